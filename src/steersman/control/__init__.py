"""Verbs: what we may ask of a running CLI.

A verb is a frozen struct; its type parameter is the answer it gets, so
`await session.call(SetModel(model="opus"))` is typed without a line of glue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steersman._lazy import by_room

if TYPE_CHECKING:
    from steersman.control.context import *
    from steersman.control.files import *
    from steersman.control.handshake import *
    from steersman.control.mcp import *
    from steersman.control.models import *
    from steersman.control.permissions import *
    from steersman.control.session import *
    from steersman.control.settings import *
    from steersman.control.skills import *
    from steersman.control.tasks import *
    from steersman.control.verbs import *

    __all__: list[str]
else:
    __getattr__, __dir__ = by_room(
        __name__,
        "context",
        "files",
        "handshake",
        "mcp",
        "models",
        "permissions",
        "session",
        "settings",
        "skills",
        "tasks",
        "verbs",
    )
