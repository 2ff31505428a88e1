"""Classes for the inputs and outputs of the CLI's built-in tools.

`ToolUseBlock.typed()` and `typed_output()` choose the class by the tool's name. No other module
imports this package, so its classes are loaded only by a program that uses them.
"""

from __future__ import annotations

from steersman.messages.builtin import (
    agents,
    base,
    files,
    hosted,
    mcp,
    planning,
    schedules,
    shell,
    table,
    user,
    web,
)
from steersman.messages.builtin.agents import *
from steersman.messages.builtin.base import *
from steersman.messages.builtin.files import *
from steersman.messages.builtin.hosted import *
from steersman.messages.builtin.mcp import *
from steersman.messages.builtin.planning import *
from steersman.messages.builtin.schedules import *
from steersman.messages.builtin.shell import *
from steersman.messages.builtin.table import *
from steersman.messages.builtin.user import *
from steersman.messages.builtin.web import *

__all__: list[str] = []
__all__ += agents.__all__
__all__ += base.__all__
__all__ += files.__all__
__all__ += hosted.__all__
__all__ += mcp.__all__
__all__ += planning.__all__
__all__ += schedules.__all__
__all__ += shell.__all__
__all__ += table.__all__
__all__ += user.__all__
__all__ += web.__all__
