"""How callbacks of the official signatures are called.

The client passes other functions where the program runs in another event loop than the session, as
under trio.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

Call: TypeAlias = Callable[..., Awaitable[Any]]
"""Calls a function of the program with these arguments, and awaits what it returns if needed."""

Notify: TypeAlias = Callable[..., object]
"""Calls a function of the program with these arguments, without waiting for a result."""


async def call_here(function: Callable[..., Any], *args: Any) -> Any:
    """Call `function` in this event loop. A plain function works as well as an async one."""
    given = function(*args)
    return await given if inspect.isawaitable(given) else given


def notify_here(function: Callable[..., Any], *args: Any) -> object:
    """Call `function` in this thread."""
    return function(*args)
