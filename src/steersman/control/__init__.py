"""Verbs: what we may ask of a running CLI.

A verb is a frozen struct; its type parameter is the answer it gets, so
`await session.call(SetModel(model="opus"))` is typed without a line of glue.
"""

from __future__ import annotations

from steersman.control import (
    context,
    files,
    handshake,
    mcp,
    models,
    permissions,
    session,
    settings,
    skills,
    tasks,
    verbs,
)
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

__all__: list[str] = []
__all__ += context.__all__
__all__ += files.__all__
__all__ += handshake.__all__
__all__ += mcp.__all__
__all__ += models.__all__
__all__ += permissions.__all__
__all__ += session.__all__
__all__ += settings.__all__
__all__ += skills.__all__
__all__ += tasks.__all__
__all__ += verbs.__all__
