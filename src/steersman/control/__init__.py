"""Verbs: the control requests that we may send to a running CLI.

A verb is a frozen struct whose type parameter is the class of its answer, so that
`await session.call(SetModel(model="opus"))` is typed.
To add a verb, write its class in the module of its topic and name it in `__all__` there.
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
