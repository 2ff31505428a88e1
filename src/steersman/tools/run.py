"""One call of one tool: what the model sent goes in, the wire's result comes out.

Whatever the tool does, there is an answer; only a cancelled call has none.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypedDict, cast

from steersman.errors import ToolExecutionError, UsageError
from steersman.ports import JsonObject
from steersman.tools._run.heartbeats import RunningCall, running_calls
from steersman.tools._run.threads import run_in_thread
from steersman.tools.context import ToolContext
from steersman.tools.definition import Tool
from steersman.tools.results import ToolError, error_result, wire_result

__all__ = ["RunKeywords", "RunSettings", "kind_of_error", "run_tool"]

LONGEST_REASON = 500

HEARTBEAT = 15.0
"""The CLI, where it is told to give up on silent tools, looks for signs of life every 30 s."""
STALL_AFTER = 0.5

Explain = Callable[[BaseException], str]

logger = logging.getLogger("steersman.tools")


def kind_of_error(error: BaseException) -> str:
    """What the model is told of an error by default: no text of it, which may hold secrets."""
    return type(error).__name__


@dataclass(frozen=True, slots=True)
class RunSettings:
    """How the calls of a toolbox are run."""

    heartbeat: float | None = HEARTBEAT
    """Seconds between signs of life of a call that takes long; `None` gives none."""
    stall_after: float | None = STALL_AFTER
    """Seconds for which a tool may block the event loop unremarked; `None` is for ever."""
    explain: Explain = kind_of_error
    """What the model is told of an error that is no `ToolError`, such as `str`."""

    def __post_init__(self) -> None:
        for name in ("heartbeat", "stall_after"):
            seconds = getattr(self, name)
            is_time = isinstance(seconds, int | float) and not isinstance(seconds, bool)
            if seconds is not None and not (is_time and seconds > 0):
                raise UsageError(name, seconds, "seconds above 0, or None")
        if not callable(cast("object", self.explain)):
            raise UsageError("explain", self.explain, "a function of an error, such as str")


class RunKeywords(TypedDict, total=False):
    """The keywords of `Toolbox` that become its manner."""

    heartbeat: float | None
    stall_after: float | None
    explain: Explain


async def run_tool(
    tool: Tool[..., Any], given: Mapping[str, Any], context: ToolContext, manner: RunSettings
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
        return _report(tool, error, context, manner)
    calls = running_calls()
    call = RunningCall(context, calls.loop.time(), manner.heartbeat, manner.stall_after)
    calls.add(call, may_stall=tool.call.is_async and manner.stall_after is not None)
    try:
        return wire_result(await _outcome(tool, values, call))
    except ToolError as error:
        return _failed(str(error))
    # The tool is someone else's code, and sys.exit() in it must not end the program.
    except (Exception, SystemExit, asyncio.CancelledError) as error:
        if isinstance(error, asyncio.CancelledError) and _is_being_cancelled():
            context.cancel()
            raise
        return _report(tool, error, context, manner)
    finally:
        calls.remove(call)


def _outcome(tool: Tool[..., Any], values: Any, call: RunningCall) -> Awaitable[Any]:
    """The handler's result, by the shortest way there is."""
    if tool.timeout is not None:
        return _in_time(tool, values, call, tool.timeout)
    if tool.call.limit is not None:
        return _in_its_place(tool, values, call)
    if not tool.call.is_async:
        return _in_thread(tool, values, call)
    call.coroutine = tool.call.start(values, call.context)
    return cast("Awaitable[Any]", call.coroutine)


async def _in_time(tool: Tool[..., Any], values: Any, call: RunningCall, seconds: float) -> Any:
    call.context.deadline = time.monotonic() + seconds
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await _in_its_place(tool, values, call)
    except TimeoutError as error:
        if not limit.expired():
            raise
        call.context.cancel()
        raise TimeoutError(f"timed out after {seconds:g} s") from error


async def _in_its_place(tool: Tool[..., Any], values: Any, call: RunningCall) -> Any:
    """Run the handler, once there is a place for it."""
    limit = tool.call.limit
    if limit is not None:
        await limit.acquire()
    if not tool.call.is_async:
        return await _in_thread(tool, values, call)
    try:
        call.coroutine = tool.call.start(values, call.context)
        return await call.coroutine
    finally:
        if limit is not None:
            limit.release()


async def _in_thread(tool: Tool[..., Any], values: Any, call: RunningCall) -> Any:
    context, limit = call.context, tool.call.limit
    outcome = await run_in_thread(
        tool.call.start,
        values,
        context,
        is_wanted=lambda: not context.is_cancelled,
        at_end=None if limit is None else limit.release,
    )
    if not inspect.isawaitable(outcome):
        return outcome
    call.coroutine = outcome
    return await outcome


def _is_being_cancelled() -> bool:
    """Tell our own cancellation from one that the tool made itself."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _report(
    tool: Tool[..., Any], error: BaseException, context: ToolContext, manner: RunSettings
) -> JsonObject:
    # Where the call was given up and yet has an answer, its time was over, and the text is ours.
    known = str(error) if context.is_cancelled else _explained(error, manner.explain)
    failure = ToolExecutionError(tool.name, known)
    failure.__cause__ = error
    logger.error("tool %r failed", tool.name, exc_info=failure)
    if context.caller is not None:
        context.caller.report(tool.name, error)
    return _failed(failure.what)


def _explained(error: BaseException, explain: Explain) -> str:
    try:
        return _shorten(str(explain(error)))
    # The explanation is someone else's code too.
    except Exception:
        logger.exception("the explanation of an error failed")
        return kind_of_error(error)


def _failed(text: str) -> JsonObject:
    return wire_result(error_result(text))


def _shorten(text: str) -> str:
    return text if len(text) <= LONGEST_REASON else text[: LONGEST_REASON - 1] + "…"
