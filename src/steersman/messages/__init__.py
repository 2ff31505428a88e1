"""What Claude says, and what the CLI says about itself.

To add a message, write its class in the file of its topic and name it in that file's union:
`turns` for what a turn is made of, and those that `system` lists for what the CLI says about
itself. Tools have their classes in `steersman.messages.builtin`, the API's own stream events in
`steersman.messages.streaming`; both are loaded when somebody asks for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steersman._lazy import by_room

if TYPE_CHECKING:
    from steersman.messages.content import *
    from steersman.messages.hook_runs import *
    from steersman.messages.limits import *
    from steersman.messages.notes import *
    from steersman.messages.parsing import *
    from steersman.messages.reading import *
    from steersman.messages.server_tools import *
    from steersman.messages.system import *
    from steersman.messages.tasks import *
    from steersman.messages.transcripts import *
    from steersman.messages.turns import *
    from steersman.messages.usage import *

    __all__: list[str]
else:
    __getattr__, __dir__ = by_room(
        __name__,
        "content",
        "hook_runs",
        "limits",
        "notes",
        "parsing",
        "reading",
        "server_tools",
        "system",
        "tasks",
        "transcripts",
        "turns",
        "usage",
    )
