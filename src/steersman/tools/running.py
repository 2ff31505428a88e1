"""One call of one tool: what the model sent goes in, the wire's result comes out.

Whatever the tool does, there is an answer; only a cancelled call has none.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Mapping
from typing import Any

from steersman.errors import ToolExecutionError
from steersman.ports import JsonObject
from steersman.tools.context import ToolContext
from steersman.tools.definition import Tool
from steersman.tools.results import ToolError, error_result, wire_result

__all__ = ["run_tool"]

LONGEST_REASON = 500

logger = logging.getLogger("steersman.tools")


async def run_tool(
    tool: Tool[..., Any], given: Mapping[str, Any], context: ToolContext
) -> JsonObject:
    """Check the arguments, call the handler, spell its result.

    A `def` handler runs in a worker thread, with the caller's contextvars.
    """
    try:
        values = tool.call.arguments.read(given)
    except ValueError as misfit:
        return _failed(f"invalid arguments for tool {tool.name!r}: {_shorten(str(misfit))}")
    # Reading runs the checks of the user's own classes.
    except Exception as error:  # noqa: BLE001
        return _report(tool, error)
    try:
        return wire_result(await _outcome(tool, values, context))
    except ToolError as error:
        return _failed(str(error))
    except asyncio.CancelledError as error:
        if _is_being_cancelled():
            raise
        return _report(tool, error)
    # The tool is someone else's code, and sys.exit() in it must not end the program.
    except (Exception, SystemExit) as error:  # noqa: BLE001
        return _report(tool, error)


async def _outcome(tool: Tool[..., Any], values: Any, context: ToolContext) -> Any:
    start = tool.call.start
    if tool.call.is_async:
        return await start(values, context)
    outcome = await asyncio.to_thread(_start_in_thread, start, values, context)
    return await outcome if inspect.isawaitable(outcome) else outcome


def _start_in_thread(start: Callable[..., Any], values: Any, context: ToolContext) -> Any:
    try:
        return start(values, context)
    except StopIteration as error:
        # A future cannot hold it: the wait for the thread would never end.
        raise RuntimeError("the tool raised StopIteration") from error


def _is_being_cancelled() -> bool:
    """Tell our own cancellation from one that the tool made itself."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _report(tool: Tool[..., Any], error: BaseException) -> JsonObject:
    reason = ": ".join(filter(None, (type(error).__name__, _shorten(str(error)))))
    failure = ToolExecutionError(tool.name, reason)
    failure.__cause__ = error
    logger.error("tool %r failed", tool.name, exc_info=failure)
    return _failed(failure.what)


def _failed(text: str) -> JsonObject:
    return wire_result(error_result(text))


def _shorten(text: str) -> str:
    return text if len(text) <= LONGEST_REASON else text[: LONGEST_REASON - 1] + "…"
