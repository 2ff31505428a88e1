"""Messages from the CLI: assistant and user messages, results, and system messages.

To add a message, write its class in the module of its topic and name it in the union there:
`turns` for messages of a turn, and the modules that `system` lists for system messages.
Classes for tool inputs and outputs are in `steersman.messages.builtin`, those for stream events of
the API in `steersman.messages.streaming`; both are imported only by a program that uses them.
"""

from __future__ import annotations

from steersman.messages import (
    content,
    limits,
    notes,
    parsing,
    system,
    tasks,
    turns,
    usage,
)
from steersman.messages.content import *
from steersman.messages.limits import *
from steersman.messages.notes import *
from steersman.messages.parsing import *
from steersman.messages.system import *
from steersman.messages.tasks import *
from steersman.messages.turns import *
from steersman.messages.usage import *

__all__: list[str] = []
__all__ += content.__all__
__all__ += limits.__all__
__all__ += notes.__all__
__all__ += parsing.__all__
__all__ += system.__all__
__all__ += tasks.__all__
__all__ += turns.__all__
__all__ += usage.__all__
