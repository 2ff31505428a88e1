"""One call of one tool, from the model's arguments to the result of `tools/call`.

Every call returns a result, whatever the tool does; only a cancelled call has none.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypedDict, cast

from steersman._arguments import check_callback
from steersman._json import Json
from steersman.errors import ToolExecutionError, UsageError
from steersman.ports import JsonObject
from steersman.tools._calls import RunningCall, running_calls
from steersman.tools._threads import run_in_thread
from steersman.tools.context import ToolContext
from steersman.tools.definition import AnyTool
from steersman.tools.results import ToolError, error_result, wire_result

LONGEST_REASON = 500

HEARTBEAT = 15.0
"""A CLI that is set to give up on silent tools looks for progress every 30 s."""
STALL_AFTER = 0.5

Explain = Callable[[BaseException], str]

logger = logging.getLogger("steersman.tools")


def kind_of_error(error: BaseException) -> str:
    """Return the name of the error's class, which is all that the model reads by default.

    The text of an error may contain secrets.
    """
    return type(error).__name__


@dataclass(frozen=True, slots=True)
class RunSettings:
    """How the calls of a toolbox are run."""

    heartbeat: float | None = HEARTBEAT
    """Seconds between progress notifications for a call that takes long; `None` sends none."""
    stall_after: float | None = STALL_AFTER
    """Seconds after which a tool that blocks the event loop is reported; `None` reports none."""
    explain: Explain = kind_of_error
    """Returns what the model reads about an error that is no `ToolError`, such as `str`."""

    def __post_init__(self) -> None:
        for name in ("heartbeat", "stall_after"):
            seconds = getattr(self, name)
            is_time = isinstance(seconds, int | float) and not isinstance(seconds, bool)
            if seconds is not None and not (is_time and seconds > 0):
                raise UsageError(name, seconds, "seconds above 0, or None")
        check_callback("explain", self.explain, "an error")


class RunKeywords(TypedDict, total=False):
    """The keywords of `Toolbox` that become its `RunSettings`."""

    heartbeat: float | None
    stall_after: float | None
    explain: Explain


async def run_tool(
    tool: AnyTool, given: JsonObject, context: ToolContext, settings: RunSettings
) -> JsonObject:
    """Check the arguments, call the handler and return the result of `tools/call`.

    A `def` handler runs in a worker thread, with the caller's contextvars.
    """
    try:
        values = tool.call.arguments.read(given)
    except ValueError as invalid:
        return _failed(f"invalid arguments for tool {tool.name!r}: {_shorten(str(invalid))}")
    # Reading runs checks of the user's own classes, which raise what they like.
    except Exception as error:  # noqa: BLE001
        return _report(tool, error, context, settings)
    calls = running_calls()
    call = RunningCall(context, calls.loop.time(), settings.heartbeat, settings.stall_after)
    calls.add(call, may_stall=tool.call.is_async and settings.stall_after is not None)
    try:
        return wire_result(await _outcome(tool, values, call))
    except ToolError as error:
        return _failed(str(error))
    # A tool raises what it likes, and sys.exit() in it must not end the program.
    except (Exception, SystemExit, asyncio.CancelledError) as error:
        if isinstance(error, asyncio.CancelledError) and _is_being_cancelled():
            context.cancel()
            raise
        return _report(tool, error, context, settings)
    finally:
        calls.remove(call)


def _outcome(tool: AnyTool, values: Json, call: RunningCall) -> Awaitable[object]:
    """Start the handler with as few layers around it as the tool's settings need."""
    if tool.timeout is not None:
        return _with_timeout(tool, values, call, tool.timeout)
    if tool.call.limit is not None:
        return _with_limit(tool, values, call)
    if not tool.call.is_async:
        return _in_thread(tool, values, call)
    call.coroutine = coroutine = cast("Awaitable[object]", tool.call.start(values, call.context))
    return coroutine


async def _with_timeout(tool: AnyTool, values: Json, call: RunningCall, seconds: float) -> object:
    call.context.deadline = time.monotonic() + seconds
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await _with_limit(tool, values, call)
    except TimeoutError as error:
        if not limit.expired():
            raise
        call.context.cancel()
        raise TimeoutError(f"timed out after {seconds:g} s") from error


async def _with_limit(tool: AnyTool, values: Json, call: RunningCall) -> object:
    """Wait for a slot of `max_concurrency`, then run the handler."""
    limit = tool.call.limit
    if limit is not None:
        await limit.acquire()
    if not tool.call.is_async:
        return await _in_thread(tool, values, call)
    try:
        call.coroutine = coroutine = cast(
            "Awaitable[object]", tool.call.start(values, call.context)
        )
        return await coroutine
    finally:
        if limit is not None:
            limit.release()


async def _in_thread(tool: AnyTool, values: Json, call: RunningCall) -> object:
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
    """Return whether this task is cancelled, as opposed to a `CancelledError` of the tool's own."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _report(
    tool: AnyTool, error: BaseException, context: ToolContext, settings: RunSettings
) -> JsonObject:
    # A call that was cancelled and still has a result timed out; that text is ours, and safe.
    reason = str(error) if context.is_cancelled else _explained(error, settings.explain)
    failure = ToolExecutionError(tool.name, reason)
    failure.__cause__ = error
    logger.error("tool %r failed", tool.name, exc_info=failure)
    if context.caller is not None:
        context.caller.report(tool.name, error)
    return _failed(failure.what)


def _explained(error: BaseException, explain: Explain) -> str:
    try:
        return _shorten(str(explain(error)))
    # `explain` is a function of the host program and raises what it likes.
    except Exception:
        logger.exception("the explanation of an error failed")
        return kind_of_error(error)


def _failed(text: str) -> JsonObject:
    return wire_result(error_result(text))


def _shorten(text: str) -> str:
    return text if len(text) <= LONGEST_REASON else text[: LONGEST_REASON - 1] + "…"
