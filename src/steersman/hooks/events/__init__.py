"""Hook events: one class per moment the CLI lets us look in.

To add an event, write its class in the file of its topic. Its name is the CLI's name for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steersman._lazy import by_room

if TYPE_CHECKING:
    from steersman.hooks.events.event import *
    from steersman.hooks.events.places import *
    from steersman.hooks.events.prompts import *
    from steersman.hooks.events.sessions import *
    from steersman.hooks.events.tools import *
    from steersman.hooks.events.work import *

    __all__: list[str]
else:
    __getattr__, __dir__ = by_room(
        __name__,
        "event",
        "places",
        "prompts",
        "sessions",
        "tools",
        "work",
    )
