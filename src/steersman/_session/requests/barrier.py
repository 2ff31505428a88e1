"""Who else is asked whether a tool may run, and whether they are done."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager

from steersman.hooks.matchers import matches
from steersman.hooks.registry import Registered

__all__ = ["PermissionHookBarrier"]

ARRIVAL = 2.0
"""Seconds in which the CLI must have asked the hooks; it asks them together with us."""

TAKEN_BACK = 30.0
"""Seconds in which the CLI must have taken our question back once a hook has decided."""

REMEMBERED = 1000
"""Calls of whose hooks we know; nobody may ever wait for some of them."""


class PermissionHookBarrier:
    """Lets nobody answer about a tool before the hooks that were asked as well."""

    def __init__(self, hooks: Mapping[str, Registered]) -> None:
        self._hooks = hooks
        self._calls: OrderedDict[str, _Call] = OrderedDict()

    @contextmanager
    def running(self, hook: str, tool_use_id: str) -> Generator[Callable[[], None], None, None]:
        """A hook looks at a tool call; call what this gives if it decides."""
        call = self._call(tool_use_id) if hook in self._hooks else _Call()
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
                await asyncio.sleep(TAKEN_BACK)
                raise TimeoutError("a hook has decided, and the CLI still asks")
        finally:
            self._calls.pop(tool_use_id, None)

    def _call(self, tool_use_id: str) -> _Call:
        call = self._calls.setdefault(tool_use_id, _Call())
        if len(self._calls) > REMEMBERED:
            self._calls.popitem(last=False)
        return call


class _Call:
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
