"""What the caller's `PreToolUse` hooks reply about a tool call, for the hook that holds calls.

The CLI calls all hooks at once. If one of them decides, no user needs to be asked.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from typing import Any

from steersman._json import JsonDict, is_mapping
from steersman.hooks.events import PreToolUse
from steersman.hooks.matchers import matches
from steersman.hooks.registry import Registered
from steersman.hooks.replies import Context, Reply, ToolVerdict

ARRIVAL = 2.0
"""Seconds for the CLI to call the other hooks, which it does at the same time."""

REMEMBERED = 1000
"""Tool calls that are remembered; few of them are held."""


class HookWatch:
    """Follows the hooks of tool calls: which have been called, have replied, have decided."""

    def __init__(self) -> None:
        self._hooks: list[Registered] = []
        self._calls: OrderedDict[str, _WatchedCall] = OrderedDict()

    def watching(self, hooks: Iterable[Registered]) -> list[Registered]:
        """Return the hooks, with callbacks that report here."""
        return [self._watched(each) for each in hooks]

    async def is_decided(self, tool_name: str, tool_use_id: str) -> bool:
        """Wait until the hooks for this tool have replied; returns whether one has decided.

        A reply that only makes the CLI ask is no decision.
        """
        wanted = sum(matches(each.matcher, tool_name) for each in self._hooks)
        call = self._call(tool_use_id)
        try:
            return bool(wanted) and await call.wait_for(wanted)
        finally:
            self._calls.pop(tool_use_id, None)

    def _watched(self, hook: Registered) -> Registered:
        is_watched = hook.event is PreToolUse and hook.kind != "observe" and not hook.run_async
        if not is_watched:
            return hook
        self._hooks.append(hook)
        callback = _Watched(hook.callback, self._call)
        return replace(hook, callback=callback)

    def _call(self, tool_use_id: str) -> _WatchedCall:
        call = self._calls.setdefault(tool_use_id, _WatchedCall())
        if len(self._calls) > REMEMBERED:
            self._calls.popitem(last=False)
        return call


class _WatchedCall:
    def __init__(self) -> None:
        self._begun = 0
        self._done = 0
        self._is_decided = False
        self._changed = asyncio.Event()

    def begin(self) -> None:
        self._begun += 1
        self._changed.set()

    def end(self, *, decides: bool) -> None:
        self._done += 1
        self._is_decided = self._is_decided or decides
        self._changed.set()

    async def wait_for(self, wanted: int) -> bool:
        try:
            async with asyncio.timeout(ARRIVAL):
                while self._begun < wanted and not self._is_decided:
                    await self._change()
        except TimeoutError:
            # The CLI did not call this hook, so it does not decide.
            pass
        while self._done < self._begun and not self._is_decided:
            await self._change()
        return self._is_decided

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()


class _Watched:
    """Calls a hook, and reports when it is called and what it replies."""

    def __init__(
        self,
        callback: Callable[..., object],
        find: Callable[[str], _WatchedCall],
    ) -> None:
        self.func = callback
        """As `functools.partial` has it: the log shows the name of this function."""
        self._find = find

    def __call__(self, *given: object) -> Any:
        event = given[0]
        about = event.tool_use_id if isinstance(event, PreToolUse) else given[1]
        call = self._find(str(about))
        call.begin()
        try:
            found = self.func(*given)
        except BaseException:
            call.end(decides=True)
            raise
        if inspect.isawaitable(found):
            return self._await(found, call)
        call.end(decides=decides(found))
        return found

    async def _await(self, given: Awaitable[object], call: _WatchedCall) -> Any:
        try:
            found = await given
        except BaseException:
            # Its failure stops the tool, or it was cancelled: no user is asked yet.
            call.end(decides=True)
            raise
        call.end(decides=decides(found))
        return found


def decides(found: object) -> bool:
    """Return whether a reply does more than leave the call to others, or have the CLI ask."""
    if found is None or found == {}:
        return False
    specific = found.hook_specific_output if isinstance(found, Reply) else None
    if isinstance(found, Reply):
        is_plain = found.continue_ and found.decision is None
    elif is_mapping(found):
        specific = found.get("hookSpecificOutput")
        is_plain = found.keys() <= {"hookSpecificOutput", "systemMessage", "suppressOutput"}
    else:
        return True
    return not (is_plain and _only_asks(specific))


def _only_asks(specific: object) -> bool:
    if specific is None or isinstance(specific, Context):
        return True
    if isinstance(specific, ToolVerdict):
        decision, changed = specific.permission_decision, specific.updated_input
    elif is_mapping(specific):
        given: JsonDict = dict(specific)
        decision, changed = given.get("permissionDecision"), given.get("updatedInput")
    else:
        return False
    return decision in (None, "ask") and changed is None
