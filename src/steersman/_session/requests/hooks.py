"""How a hook is called, and what a failing one means.

A guard that raises, is too slow, is cancelled, or answers with something else, stops the action.
What went wrong is logged and journalled; the model is told no more than the kind of error. Our own
limit is shorter than the CLI's, so that we answer before the CLI lets the action happen.
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
"""Seconds for a hook without a timeout of its own; the CLI gives it 600."""

NO_OPINION = Raw(b"{}")
RUNS_ASYNC = Raw(b'{"async":true}')

Report = Callable[[str, BaseException | str], None]


class HookRunner:
    """Runs the hooks of one session."""

    def __init__(
        self, hooks: Mapping[str, Registered], report: Report, *, ask_rules: Iterable[str] = ()
    ) -> None:
        self._hooks = hooks
        self._report = report
        self._deferral = DeferralCheck(ask_rules)
        self._running: set[asyncio.Task[object]] = set()
        asked = {key: each for key, each in hooks.items() if _may_decide_permissions(each)}
        self._barrier = PermissionHookBarrier(asked)
        self.decides_permissions = bool(asked)
        """Whether a hook may decide about permissions."""

    async def answer(self, asked: HookAsked) -> Raw:
        """What the hook says, or what its failure means, ready to be sent."""
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
        """Wait until the `PermissionRequest` hooks have had their say about a tool.

        The CLI asks them and us at the same time and goes by who is first: an approver that
        allows must not overtake a guard that still looks.
        """
        await self._barrier.wait(tool_name, tool_use_id)

    async def run_own(self, event: HookEvent) -> list[Reply]:
        """Call the hooks for something that the CLI does not call back for; gives what they say."""
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
        """End the hooks that nobody waits for."""
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
            # Whoever cancelled it: what it looked at has not been allowed.
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
        """The reply, unless it puts off a tool that cannot be."""
        if not (isinstance(event, PreToolUse) and isinstance(reply, Reply)):
            return reply
        objection = self._deferral.objection(event, reply)
        if objection is None:
            return reply
        self._report("PreToolUse hook", objection)
        return blocking_reply(PreToolUse, objection)


class _TooSlow(Exception):
    """The hook had its time; the text says how long."""


async def _call(hook: Registered, event: HookEvent, tool_use_id: str) -> object:
    if hook.is_official:
        given: object = hook.callback(event.raw, tool_use_id or None, {"signal": None})
    else:
        given = hook.callback(event)
    if inspect.iscoroutine(given):
        # Most hooks wait for nothing, and need no timer then.
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
    """Go on with a coroutine that has taken its first step and waits for something."""
    try:
        while True:
            try:
                given = yield awaited
            except BaseException as error:  # noqa: BLE001 - a cancellation, for the one who waits
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
"""Seconds in which the CLI must have asked the hooks; it asks them together with us."""

WITHDRAWAL = 30.0
"""Seconds in which the CLI must have taken our question back once a hook has decided."""

REMEMBERED = 1000
"""Calls of whose hooks we know; nobody may ever wait for some of them."""


class PermissionHookBarrier:
    """Lets nobody answer about a tool before the hooks that were asked as well."""

    def __init__(self, hooks: Mapping[str, Registered]) -> None:
        self._hooks = hooks
        self._calls: OrderedDict[str, _HookedCall] = OrderedDict()

    @contextmanager
    def running(self, hook: str, tool_use_id: str) -> Generator[Callable[[], None], None, None]:
        """A hook looks at a tool call; call what this gives if it decides."""
        call = self._call(tool_use_id) if hook in self._hooks else _HookedCall()
        call.begin(hook)
        try:
            yield call.decide
        finally:
            call.end(hook)

    async def wait(self, tool_name: str, tool_use_id: str) -> None:
        """Return once all hooks are done that this tool matters to, and none has decided.

        Where one has, the CLI takes the question back, which cancels us. Both answers at once
        would be a race, which the wrong one can win.
        """
        wanted = {key for key, hook in self._hooks.items() if matches(hook.matcher, tool_name)}
        if not wanted:
            return
        call = self._call(tool_use_id)
        try:
            await call.wait_for(wanted)
            if call.is_decided:
                await asyncio.sleep(WITHDRAWAL)
                raise TimeoutError("a hook has decided, and the CLI still asks")
        finally:
            self._calls.pop(tool_use_id, None)

    def _call(self, tool_use_id: str) -> _HookedCall:
        call = self._calls.setdefault(tool_use_id, _HookedCall())
        if len(self._calls) > REMEMBERED:
            self._calls.popitem(last=False)
        return call


class _HookedCall:
    """One tool call: the hooks that look at it, and those that have."""

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
            # It was not asked; then it has no say.
            pass
        while not self._begun <= self._done:
            await self._change()

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()


async def run_session_start(
    runner: HookRunner, options: Options, session_id: str
) -> list[SessionStartOutput]:
    """Call the hooks on `SessionStart`; gives what they add to the conversation."""
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
    """Call the hooks on `SessionEnd`, and end those that nobody waits for."""
    event = SessionEnd(session_id=session_id, cwd=str(options.cwd or ""), reason="other")
    with suppress(TimeoutError):
        async with asyncio.timeout(options.close_grace):
            await runner.run_own(event)
    runner.cancel_all()


def start_outputs(replies: Iterable[Reply]) -> list[SessionStartOutput]:
    """The part of each reply that is about the start, in order."""
    found: list[SessionStartOutput] = []
    for reply in replies:
        specific = reply.hook_specific_output
        if isinstance(specific, SessionStartOutput):
            found.append(specific)
        elif is_object(specific):
            found.append(msgspec.convert(specific, SessionStartOutput))
    return found
