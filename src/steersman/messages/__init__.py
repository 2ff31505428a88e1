"""What Claude says, and what the CLI says about itself.

To add a message, write its class in the file of its topic and name it in that file's union:
`turns` for what a turn is made of, and those that `system` lists for what the CLI says about
itself. Tools have their classes in `steersman.messages.builtin`, the API's own stream events in
`steersman.messages.streaming`; both are loaded when somebody asks for them.
"""

from __future__ import annotations

from steersman.messages import (
    accessors,
    content,
    limits,
    notes,
    parsing,
    server_tools,
    system,
    tasks,
    transcripts,
    turns,
    usage,
)
from steersman.messages.accessors import *
from steersman.messages.content import *
from steersman.messages.limits import *
from steersman.messages.notes import *
from steersman.messages.parsing import *
from steersman.messages.server_tools import *
from steersman.messages.system import *
from steersman.messages.tasks import *
from steersman.messages.transcripts import *
from steersman.messages.turns import *
from steersman.messages.usage import *

__all__: list[str] = []
__all__ += accessors.__all__
__all__ += content.__all__
__all__ += limits.__all__
__all__ += notes.__all__
__all__ += parsing.__all__
__all__ += server_tools.__all__
__all__ += system.__all__
__all__ += tasks.__all__
__all__ += transcripts.__all__
__all__ += turns.__all__
__all__ += usage.__all__
