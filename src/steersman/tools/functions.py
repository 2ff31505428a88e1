"""Functions of the host that are no tools: where they run, and what they take."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from steersman.tools._run.threads import run_in_thread

__all__ = ["Handler", "handler_of", "is_async", "parameter_names", "run_handler"]


@dataclass(frozen=True, slots=True)
class Handler:
    """A function, and whether it runs in the event loop."""

    function: Callable[..., Any]
    is_async: bool


def handler_of(function: Callable[..., Any]) -> Handler:
    """Learn how to call a function."""
    return Handler(function, is_async(function))


def is_async(function: Any) -> bool:
    """Tell whether a call gives something to await."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - an object's own async __call__
    )


def parameter_names(function: Callable[..., Any]) -> list[str]:
    """Name what a function takes."""
    return list(inspect.signature(function).parameters)


async def run_handler(handler: Handler, values: Mapping[str, Any]) -> Any:
    """Call it, a plain one in a worker thread."""
    if handler.is_async:
        return await handler.function(**values)
    outcome = await run_in_thread(lambda: handler.function(**values))
    return await outcome if inspect.isawaitable(outcome) else outcome
