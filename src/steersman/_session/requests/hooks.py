"""Calls the hooks of the host program and turns failures into answers.

A guard that raises, times out, is cancelled or returns an invalid reply stops the action. The error
is logged and journalled; the model receives only the kind of error. Our time limit is shorter than
the CLI's, because the CLI lets the action happen when its own limit is reached.
"""

from __future__ import annotations

import asyncio
import inspect
import types
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import msgspec
from msgspec import Raw

from steersman._json import is_object
from steersman._protocol.events import HookAsked
from steersman.hooks.deferral import DeferralCheck
from steersman.hooks.events import (
    HookEvent,
    PermissionRequest,
    PreToolUse,
    SessionEnd,
    SessionStart,
)
from steersman.hooks.matchers import matches
from steersman.hooks.outputs import SessionStartOutput
from steersman.hooks.registry import Registered
from steersman.hooks.replies import AsyncReply, Reply
from steersman.hooks.reply_checks import InvalidReply, blocking_reply, encode_reply, parse_reply
from steersman.options import Options

__all__ = [
    "HookRunner",
    "PermissionHookBarrier",
    "run_session_end",
    "run_session_start",
    "start_outputs",
]

LIMIT = 590.0
"""Seconds for a hook without a timeout; the CLI allows 600."""

NO_OPINION = Raw(b"{}")
RUNS_ASYNC = Raw(b'{"async":true}')

Report = Callable[[str, BaseException | str], None]


class HookRunner:
    """Runs the hooks of one session."""

    def __init__(
        self,
        hooks: Mapping[str, Registered],
        report: Report,
        *,
        ask_rules: Iterable[str] = (),
        waits_on_resume: Callable[[], bool] = lambda: True,
    ) -> None:
        self._hooks = hooks
        self._report = report
        self._deferral = DeferralCheck(ask_rules, waits_on_resume)
        self._running: set[asyncio.Task[object]] = set()
        asked = {key: each for key, each in hooks.items() if _may_decide_permissions(each)}
        self._barrier = PermissionHookBarrier(asked)
        self.decides_permissions = bool(asked)
        """Whether a registered `PermissionRequest` hook may decide about permissions."""
        self.has_hooks = bool(hooks)
        """Whether any hook is registered."""

    async def answer(self, asked: HookAsked) -> Raw:
        """Call the hook and return its reply, or the reply for its failure, encoded as JSON."""
        hook = self._hooks[asked.callback_id]
        if hook.run_async:
            self._begin(hook, asked.event, asked.tool_use_id)
            return RUNS_ASYNC
        if hook.event is not PermissionRequest:
            return (await self._ask(hook, asked.event, asked.tool_use_id))[1]
        with self._barrier.running(asked.callback_id, asked.tool_use_id) as decide:
            reply, line = await self._ask(hook, asked.event, asked.tool_use_id)
            if isinstance(reply, Reply) and reply.hook_specific_output is not None:
                decide()
            return line

    async def wait_for_permission_hooks(self, tool_name: str, tool_use_id: str) -> None:
        """Wait until the `PermissionRequest` hooks have replied about a tool call.

        The CLI calls them and sends `can_use_tool` at the same time, and uses the first answer. An
        approver that allows the call must not answer before a guard that is still running.
        """
        await self._barrier.wait(tool_name, tool_use_id)

    async def run_own(self, event: HookEvent) -> list[Reply]:
        """Call the hooks for an event that the CLI does not send, and return their replies."""
        matching = [
            hook
            for hook in self._hooks.values()
            if type(event) is hook.event and matches(hook.matcher, event.matched)
        ]
        for hook in matching:
            if hook.run_async:
                self._begin(hook, event, "")
        asked = [self._ask(hook, event, "") for hook in matching if not hook.run_async]
        replies = [reply for reply, _ in await asyncio.gather(*asked)]
        return [reply for reply in replies if isinstance(reply, Reply)]

    def cancel_all(self) -> None:
        """Cancel the `run_async` hooks that are still running."""
        for task in list(self._running):
            task.cancel()

    def _begin(self, hook: Registered, event: HookEvent, tool_use_id: str) -> None:
        task = asyncio.get_running_loop().create_task(self._ask(hook, event, tool_use_id))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _ask(
        self, hook: Registered, event: HookEvent, tool_use_id: str
    ) -> tuple[Reply | AsyncReply | None, Raw]:
        try:
            given = await _call(hook, event, tool_use_id)
            if hook.kind == "observe" or given is None:
                return None, NO_OPINION
            reply = self._checked_deferral(event, parse_reply(hook.event, given))
            return reply, Raw(encode_reply(reply))
        except asyncio.CancelledError:
            if not hook.is_guard:
                raise
            # A cancelled guard has not allowed the action, whatever cancelled it.
            if not _is_being_cancelled():
                self._report(f"{hook.event_name} hook", "was cancelled")
            return _failed(hook, "was cancelled")
        except InvalidReply as invalid:
            self._report(f"{hook.event_name} hook", str(invalid))
            return _failed(hook, "did not return a reply")
        except _TooSlow as slow:
            self._report(f"{hook.event_name} hook", str(slow))
            return _failed(hook, str(slow))
        except Exception as error:  # noqa: BLE001 - the caller's own code; a guard stops the action
            self._report(f"{hook.event_name} hook", error)
            return _failed(hook, f"raised {type(error).__name__}")

    def _checked_deferral(
        self, event: HookEvent, reply: Reply | AsyncReply | None
    ) -> Reply | AsyncReply | None:
        """Return the reply, or a blocking one if it defers a tool that cannot be deferred."""
        if not (isinstance(event, PreToolUse) and isinstance(reply, Reply)):
            return reply
        objection = self._deferral.objection(event, reply)
        if objection is None:
            return reply
        self._report("PreToolUse hook", objection)
        return blocking_reply(PreToolUse, objection)


class _TooSlow(Exception):
    """The hook did not answer within its timeout, which the text states."""


async def _call(hook: Registered, event: HookEvent, tool_use_id: str) -> object:
    if hook.is_official:
        given: object = hook.callback(event.raw, tool_use_id or None, {"signal": None})
    else:
        given = hook.callback(event)
    if inspect.iscoroutine(given):
        # Most hooks do not wait for anything, so they need no timer.
        try:
            awaited = given.send(None)
        except StopIteration as done:
            return done.value
        given = _resume(given, awaited)
    elif not inspect.isawaitable(given):
        return given
    limit = LIMIT if hook.timeout is None else hook.timeout
    deadline = asyncio.timeout(limit)
    try:
        async with deadline:
            return await given
    except TimeoutError:
        if not deadline.expired():
            raise
        raise _TooSlow(f"did not answer within {limit:g} s") from None


@types.coroutine
def _resume(coroutine: Coroutine[Any, Any, Any], awaited: Any) -> Generator[Any, Any, Any]:
    """Run the rest of a coroutine whose first step has yielded `awaited`."""
    try:
        while True:
            try:
                given = yield awaited
            except BaseException as error:  # noqa: BLE001 - such as a cancellation; the coroutine handles it
                awaited = coroutine.throw(error)
            else:
                awaited = coroutine.send(given)
    except StopIteration as done:
        return done.value


def _failed(hook: Registered, how: str) -> tuple[Reply | None, Raw]:
    if not hook.is_guard:
        return None, NO_OPINION
    reply = blocking_reply(hook.event, f"Stopped: the {hook.event_name} hook {how}.")
    return reply, Raw(encode_reply(reply))


def _may_decide_permissions(hook: Registered) -> bool:
    return hook.event is PermissionRequest and hook.kind != "observe"


def _is_being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


ARRIVAL = 2.0
"""Seconds for the CLI to call the hooks, which it does together with `can_use_tool`."""

WITHDRAWAL = 30.0
"""Seconds for the CLI to withdraw `can_use_tool` after a hook has decided."""

REMEMBERED = 1000
"""Tool calls whose hooks are remembered; the CLI sends no `can_use_tool` for some of them."""


class PermissionHookBarrier:
    """Delays the answer to `can_use_tool` until the `PermissionRequest` hooks have replied."""

    def __init__(self, hooks: Mapping[str, Registered]) -> None:
        self._hooks = hooks
        self._calls: OrderedDict[str, _HookedCall] = OrderedDict()

    @contextmanager
    def running(self, hook: str, tool_use_id: str) -> Generator[Callable[[], None], None, None]:
        """Mark a hook as running for a tool call; call the yielded function if the hook decides."""
        call = self._call(tool_use_id) if hook in self._hooks else _HookedCall()
        call.begin(hook)
        try:
            yield call.decide
        finally:
            call.end(hook)

    async def wait(self, tool_name: str, tool_use_id: str) -> None:
        """Return when all hooks that match this tool are done and none of them has decided.

        If a hook has decided, the CLI withdraws its request, which cancels this wait. To answer as
        well would be a race that the wrong answer can win.
        """
        wanted = {key for key, hook in self._hooks.items() if matches(hook.matcher, tool_name)}
        if not wanted:
            return
        call = self._call(tool_use_id)
        try:
            await call.wait_for(wanted)
            if call.is_decided:
                await asyncio.sleep(WITHDRAWAL)
                raise TimeoutError("a hook has decided, but the CLI has not withdrawn its request")
        finally:
            self._calls.pop(tool_use_id, None)

    def _call(self, tool_use_id: str) -> _HookedCall:
        call = self._calls.setdefault(tool_use_id, _HookedCall())
        if len(self._calls) > REMEMBERED:
            self._calls.popitem(last=False)
        return call


class _HookedCall:
    """The hooks of one tool call: those that have begun, and those that are done."""

    def __init__(self) -> None:
        self._begun: set[str] = set()
        self._done: set[str] = set()
        self._changed = asyncio.Event()
        self.is_decided = False

    def decide(self) -> None:
        self.is_decided = True

    def begin(self, hook: str) -> None:
        self._begun.add(hook)
        self._changed.set()

    def end(self, hook: str) -> None:
        self._done.add(hook)
        self._changed.set()

    async def wait_for(self, wanted: set[str]) -> None:
        try:
            async with asyncio.timeout(ARRIVAL):
                while not wanted <= self._begun:
                    await self._change()
        except TimeoutError:
            # The CLI did not call this hook, so it does not decide.
            pass
        while not self._begun <= self._done:
            await self._change()

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()


async def run_session_start(
    runner: HookRunner, options: Options, session_id: str
) -> list[SessionStartOutput]:
    """Call the `SessionStart` hooks and return what they add to the conversation."""
    source = "startup"
    if options.goes_on:
        source = "fork" if options.fork_session else "resume"
    event = SessionStart(
        session_id=session_id,
        cwd=str(options.cwd or ""),
        source=source,
        model=options.model,
        session_title=options.title,
    )
    return start_outputs(await runner.run_own(event))


async def run_session_end(runner: HookRunner, options: Options, session_id: str) -> None:
    """Call the `SessionEnd` hooks, then cancel the `run_async` hooks."""
    event = SessionEnd(session_id=session_id, cwd=str(options.cwd or ""), reason="other")
    with suppress(TimeoutError):
        async with asyncio.timeout(options.close_grace):
            await runner.run_own(event)
    runner.cancel_all()


def start_outputs(replies: Iterable[Reply]) -> list[SessionStartOutput]:
    """Return the `SessionStart` output of each reply that has one, in order."""
    found: list[SessionStartOutput] = []
    for reply in replies:
        specific = reply.hook_specific_output
        if isinstance(specific, SessionStartOutput):
            found.append(specific)
        elif is_object(specific):
            found.append(msgspec.convert(specific, SessionStartOutput))
    return found
