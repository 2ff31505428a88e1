"""Calls the hooks of the host program and turns failures into answers.

A guard that raises, times out, is cancelled or returns an invalid reply stops the action. The error
is logged and journalled; the model receives only the kind of error. Our time limit is shorter than
the CLI's, because the CLI lets the action happen when its own limit is reached.
"""

from __future__ import annotations

import asyncio
import inspect
import time
import types
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Protocol

import msgspec
from msgspec import Raw

from steersman._json import JsonDict, is_object
from steersman._protocol.events import HookAsked
from steersman._session.requests.asked_writes import objection_to_ask
from steersman._session.requests.failures import raise_soon
from steersman._struct import set_source
from steersman.hooks.events import (
    HookEvent,
    PermissionRequest,
    PreToolUse,
    SessionEnd,
    SessionStart,
)
from steersman.hooks.matchers import fits_tool, is_list, matches, shown_to
from steersman.hooks.registry import Registered
from steersman.hooks.replies import AsyncReply, Reply, SessionStartOutput, ToolVerdict
from steersman.hooks.reply_checks import (
    DeferralCheck,
    InvalidReply,
    blocking_reply,
    changed_input,
    encode_reply,
    parse_reply,
)
from steersman.options import Options

LIMIT = 590.0
"""Seconds for a hook without a timeout; the CLI allows 600."""

CLEANING_UP = 1.0
"""Seconds from the timeout of a guard until it is answered for, if it does not end."""

NO_OPINION = Raw(b"{}")
RUNS_ASYNC = Raw(b'{"async":true}')

Report = Callable[[str, BaseException | str], None]


class Recheck(Protocol):
    """Decides about the input with which a hook replaces that of its event."""

    def __call__(
        self, event: PreToolUse | PermissionRequest, changed: JsonDict, *, is_allowed: bool
    ) -> tuple[str, str]: ...


_Answer = tuple[Reply | AsyncReply | None, Raw]
"""A reply, and the reply as it is sent."""

SendAnswer = Callable[[str, object], None]
"""Sends the answer to the request of that id."""


class HookRunner:
    """Runs the hooks of one session."""

    def __init__(
        self,
        hooks: Mapping[str, Registered],
        report: Report,
        *,
        recheck: Recheck | None = None,
        waits_on_resume: Callable[[], bool] = lambda: True,
        own_servers: Callable[[], Iterable[str]] = tuple,
        on_stop: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Run `hooks`; `recheck` decides about input that a hook has changed.

        `on_stop` is called with the `stop_reason` of a reply that ends the turn.
        """
        self._on_stop = on_stop
        self._recheck = recheck
        self._hooks = hooks
        self._report = report
        self._deferral = DeferralCheck(waits_on_resume, own_servers)
        self._running: set[asyncio.Task[object]] = set()
        asked = {key: each for key, each in hooks.items() if _may_decide_permissions(each)}
        self._barrier = PermissionHookBarrier(asked)
        self.decides_permissions = bool(asked)
        """Whether a registered `PermissionRequest` hook may decide about permissions."""
        self.has_hooks = bool(hooks)
        """Whether any hook is registered."""

    async def answer(self, asked: HookAsked, send: SendAnswer | None = None) -> Raw:
        """Call the hook and return its reply, or the reply for its failure, encoded as JSON.

        For a guard that does not end at its timeout, `send` is called with the blocking reply.
        """
        hook = self._hooks[asked.callback_id]
        # The CLI was not given the matchers that it would read in another way.
        event = asked.event if _is_compared_by_cli(hook) else _event_for(hook, asked.event)
        if event is None:
            return NO_OPINION
        if hook.run_async:
            self._begin(hook, event, asked.tool_use_id)
            return RUNS_ASYNC
        overdue = None
        if hook.is_guard and send is not None:
            overdue = _Overdue(lambda task: self._answer_for(hook, asked.request_id, send, task))
        if hook.event is not PermissionRequest:
            given = await self._ask(hook, event, asked.tool_use_id, overdue)
            return self._counted(hook, given, is_other=event is not asked.event)[1]
        with self._barrier.running(asked.callback_id, asked.tool_use_id) as decide:
            given = await self._ask(hook, event, asked.tool_use_id, overdue)
            reply, line = self._counted(hook, given, is_other=event is not asked.event)
            if isinstance(reply, Reply) and reply.hook_specific_output is not None:
                decide()
            return line

    def _counted(self, hook: Registered, given: _Answer, *, is_other: bool) -> _Answer:
        """Return what counts of a reply, if `is_other` to an event that named another tool.

        Then a refusal and an ask count, as for the CLI. An approval does not, and changed input,
        which the CLI would not use, stops the call.
        """
        reply = given[0]
        if not (is_other and isinstance(reply, Reply)):
            return given
        decision, changed = changed_input(reply)
        if changed is not None:
            self._report(hook.where, "changed the input of a Bash command that a Monitor runs")
            return _failed(hook, "changed the input of another tool")
        return (None, NO_OPINION) if decision == "allow" else given

    def refusal(self, callback_id: str, how: str) -> Raw | None:
        """Return the blocking reply if the callback is a guard, else None."""
        hook = self._hooks.get(callback_id)
        return None if hook is None or not hook.is_guard else _failed(hook, how)[1]

    def _answer_for(
        self, hook: Registered, request_id: str, send: SendAnswer, task: asyncio.Task[Any] | None
    ) -> None:
        """Send the blocking reply for a guard that still runs in `task`."""
        if task is not None:
            self._running.add(task)
            task.add_done_callback(self._running.discard)
        slow = _too_slow(hook)
        self._report(hook.where, slow)
        send(request_id, _failed(hook, slow)[1])

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
        task = asyncio.Task(self._ask(hook, event, tool_use_id))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _ask(
        self,
        hook: Registered,
        event: HookEvent,
        tool_use_id: str,
        overdue: _Overdue | None = None,
    ) -> _Answer:
        try:
            given = await _call(hook, event, tool_use_id, overdue)
            if hook.kind == "observe" or given is None:
                return None, NO_OPINION
            strict = hook.is_guard and not hook.is_verbatim
            parsed = parse_reply(hook.event, given, guard=hook.name if strict else "")
            reply = self._rechecked(event, self._checked_deferral(hook, event, parsed))
            line = Raw(encode_reply(reply))
        except asyncio.CancelledError:
            if not hook.is_guard:
                raise
            # A cancelled guard has not allowed the action, whatever cancelled it.
            if not _is_being_cancelled():
                self._report(hook.where, "was cancelled")
            return _failed(hook, "was cancelled")
        except BaseException as error:
            if not (hook.is_guard or isinstance(error, Exception)):
                raise
            return self._after_failure(hook, error, overdue)
        if isinstance(reply, Reply) and not reply.continue_:
            self._on_stop(reply.stop_reason or "")
        return reply, line

    def _after_failure(
        self, hook: Registered, error: BaseException, overdue: _Overdue | None
    ) -> tuple[Reply | None, Raw]:
        """Report why a hook has no reply, and return the reply for its failure."""
        where = hook.where
        if isinstance(error, InvalidReply):
            self._report(where, str(error))
            return _failed(hook, "did not return a reply")
        if isinstance(error, _TooSlow):
            if overdue is None or not overdue.is_answered:
                self._report(where, str(error))
            return _failed(hook, str(error))
        self._report(where, error)
        raise_soon(error)
        return _failed(hook, f"raised {type(error).__name__}")

    def _rechecked(
        self, event: HookEvent, reply: Reply | AsyncReply | None
    ) -> Reply | AsyncReply | None:
        """Return the reply, or a stricter one if the policy does not allow its changed input."""
        if self._recheck is None or not isinstance(reply, Reply):
            return reply
        if not isinstance(event, PreToolUse | PermissionRequest):
            return reply
        decision, changed = changed_input(reply)
        if changed is None or decision == "deny":
            return reply
        verdict, reason = self._recheck(event, changed, is_allowed=decision == "allow")
        if verdict == "deny":
            return blocking_reply(type(event), reason)
        if verdict == "ask" and isinstance(event, PreToolUse) and decision in (None, "allow"):
            asked = ToolVerdict(
                permission_decision="ask", permission_decision_reason=reason, updated_input=changed
            )
            return msgspec.structs.replace(reply, hook_specific_output=asked, decision=None)
        return reply

    def _checked_deferral(
        self, hook: Registered, event: HookEvent, reply: Reply | AsyncReply | None
    ) -> Reply | AsyncReply | None:
        """Return the reply, or a blocking one if the CLI would not defer or ask as it requests."""
        if not (isinstance(event, PreToolUse) and isinstance(reply, Reply)):
            return reply
        objection = self._deferral.objection(event, reply) or objection_to_ask(event, reply)
        if objection is None:
            return reply
        self._report(hook.where, objection)
        return blocking_reply(PreToolUse, objection)


class _TooSlow(Exception):
    """The hook did not answer within its timeout, which the text states."""


class _Overdue:
    """Answers for a guard that does not end after its timeout, such as in a long clean-up."""

    def __init__(self, answer: Callable[[asyncio.Task[Any] | None], None]) -> None:
        self._answer = answer
        self._task: asyncio.Task[Any] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.is_answered = False

    def start(self, timeout: float) -> None:
        loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._timer = loop.call_later(timeout + CLEANING_UP, self._expire)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _expire(self) -> None:
        self.is_answered = True
        self._answer(self._task)


async def _call(
    hook: Registered, event: HookEvent, tool_use_id: str, overdue: _Overdue | None
) -> object:
    """Call the hook. Raises `_TooSlow`, also if it returns something after its timeout."""
    if not hook.is_guard:
        return await _call_within_limit(hook, event, tool_use_id, None)
    # Not the loop's own time: that of uvloop stands still while a hook blocks the loop.
    began = time.monotonic()
    given = await _call_within_limit(hook, event, tool_use_id, overdue)
    if time.monotonic() - began > _limit_of(hook):
        # A guard that blocked the event loop, or that caught its cancellation.
        raise _TooSlow(_too_slow(hook))
    return given


async def _call_within_limit(
    hook: Registered, event: HookEvent, tool_use_id: str, overdue: _Overdue | None
) -> object:
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
    limit = _limit_of(hook)
    deadline = asyncio.timeout(limit)
    if overdue is not None:
        overdue.start(limit)
    try:
        async with deadline:
            found = await given
    except TimeoutError:
        if not deadline.expired():
            raise
        raise _TooSlow(_too_slow(hook)) from None
    finally:
        if overdue is not None:
            overdue.stop()
    if hook.is_guard and deadline.expired():
        raise _TooSlow(_too_slow(hook))
    return found


def _limit_of(hook: Registered) -> float:
    return LIMIT if hook.timeout is None else hook.timeout


def _too_slow(hook: Registered) -> str:
    return f"did not answer within {_limit_of(hook):g} s"


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


def _is_compared_by_cli(hook: Registered) -> bool:
    return hook.is_verbatim or is_list(hook.matcher)


def _event_for(hook: Registered, event: HookEvent) -> HookEvent | None:
    """Return the event with which the CLI would call a hook; None if it would not call it."""
    if not isinstance(event, PreToolUse | PermissionRequest):
        return event if fits_tool(hook.matcher, event.matched) else None
    shown = shown_to(hook.matcher, event.tool_name, event.tool_input)
    if shown is None:
        return None
    name, given = shown
    if name == event.tool_name:
        return event
    made = msgspec.structs.replace(event, tool_name=name, tool_input=given)
    return set_source(made, {**event.raw, "tool_name": name, "tool_input": given})


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
