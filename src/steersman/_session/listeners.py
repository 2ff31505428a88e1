"""Listeners: functions that are told what happens in a session, and cannot hurt it.

Each has a task and a line of its own: a slow one falls behind, a failing one is logged.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Literal, get_args

from steersman.errors import UsageError
from steersman.journal.snapshot import StateChanged

__all__ = ["EventListeners", "EventName", "Listener", "StateChanged"]

log = logging.getLogger("steersman.session")

EventName = Literal[
    "message", "tool_call", "tool_result", "state_change", "ask", "complete", "error"
]

Listener = Callable[[Any], Awaitable[None] | None]

MOST_WAITING = 100_000
"""Events that a listener may lie behind; then the oldest are dropped, and it is said so."""


class EventListeners:
    """Everybody who listens to one session."""

    def __init__(self) -> None:
        self._queues: dict[str, list[_ListenerQueue]] = {name: [] for name in get_args(EventName)}
        self.is_any = False
        """Whether anybody listens, or did: most sessions have nobody."""

    def add(self, event: str, listener: Listener) -> Callable[[], None]:
        """Tell `listener` of each such event from now on; gives what ends that."""
        if event not in get_args(EventName):
            raise UsageError("event", event, f"one of {', '.join(self._queues)}")
        if not callable(listener):
            raise UsageError("listener", listener, "a function of what happened")
        queue = _ListenerQueue(event, listener)
        self.is_any = True
        queues = self._queues[event]
        queues.append(queue)

        def remove() -> None:
            if queue in queues:
                queues.remove(queue)
                queue.cancel()

        return remove

    def has(self, event: EventName) -> bool:
        """Whether anybody would hear it."""
        return bool(self._queues[event])

    def emit(self, event: EventName, value: object) -> None:
        """Let everybody know who listens for it; returns at once."""
        for queue in self._queues[event]:
            queue.put(value)

    async def drain(self, timeout: float) -> None:
        """Wait until all that was told is heard, or time is up; then nobody listens any more."""
        queues = [queue for each in self._queues.values() for queue in each]
        busy = [queue.task for queue in queues if queue.task is not None]
        mine = asyncio.current_task()
        waiting = [task for task in busy if task is not mine]
        if waiting:
            await asyncio.wait(waiting, timeout=timeout)
        for queue in queues:
            queue.cancel()
        if left := [task for task in waiting if not task.done()]:
            # A cancelled listener may clean up, and nothing of it runs on after the close.
            await asyncio.wait(left, timeout=timeout)


class _ListenerQueue:
    """One listener, and what it has not heard yet."""

    def __init__(self, event: str, listener: Listener) -> None:
        self._event = event
        self._listener = listener
        self._waiting: deque[object] = deque()
        self.task: asyncio.Task[None] | None = None

    def put(self, value: object) -> None:
        if len(self._waiting) >= MOST_WAITING:
            self._waiting.popleft()
            log.error("a listener for %r is too slow: an event was dropped", self._event)
        self._waiting.append(value)
        if self.task is None:
            self.task = asyncio.get_running_loop().create_task(self._drain())

    def cancel(self) -> None:
        self._waiting.clear()
        if self.task is not None and self.task is not asyncio.current_task():
            self.task.cancel()

    async def _drain(self) -> None:
        """Runs only as long as there is something to tell."""
        try:
            while self._waiting:
                await self._call(self._waiting.popleft())
        finally:
            self.task = None

    async def _call(self, value: object) -> None:
        try:
            answer = self._listener(value)
            if inspect.isawaitable(answer):
                await answer
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # What it waited for was cancelled, not we.
            log.exception("a listener for %r failed", self._event)
        except Exception:
            log.exception("a listener for %r failed", self._event)
