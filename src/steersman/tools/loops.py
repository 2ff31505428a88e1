"""Calls into an event loop, from wherever one is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

__all__ = ["call_in"]


def call_in(
    loop: asyncio.AbstractEventLoop | None, function: Callable[..., Any], *args: Any
) -> None:
    """Call `function` at once if `loop` runs here, else have it call it soon.

    Nothing happens if the loop is closed; without one, the call is made here.
    """
    if loop is None or loop is _running_loop():
        function(*args)
    elif not loop.is_closed():
        loop.call_soon_threadsafe(function, *args)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
