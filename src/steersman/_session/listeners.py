"""Listeners: functions that are called with the events of a session and cannot disturb it.

Each listener has its own queue and task, so a slow one only delays itself. A failure is logged.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import deque
from collections.abc import Callable
from typing import Any, Literal, Protocol, TypeVar, get_args

from steersman._arguments import check_callback
from steersman.errors import UsageError
from steersman.journal.snapshot import StateChanged

__all__ = ["Decorator", "EventListeners", "EventName", "Remove", "StateChanged"]

T = TypeVar("T")
R = TypeVar("R")

log = logging.getLogger("steersman.session")

EventName = Literal[
    "message", "tool_call", "tool_result", "state_change", "ask", "complete", "error"
]

Remove = Callable[[], None]
"""Removes a listener; may be called again."""


class Decorator(Protocol[T]):
    """Registers a listener for events of one type, and returns it unchanged."""

    def __call__(self, listener: Callable[[T], R], /) -> Callable[[T], R]:
        """Register `listener`."""
        ...


MOST_WAITING = 100_000
"""Events that may wait for a listener; above that number, the oldest is dropped and logged."""


class EventListeners:
    """The listeners of one session, by event."""

    def __init__(self) -> None:
        self._queues: dict[str, list[_ListenerQueue]] = {name: [] for name in get_args(EventName)}
        self.is_any = False
        """Whether a listener was ever added; most sessions have none."""

    def add(self, event: str, listener: Callable[[Any], object]) -> Remove:
        """Call `listener` for each `event` from now on. Returns a function that removes it."""
        self._check(event)
        check_callback("listener", listener, "the event")
        queue = _ListenerQueue(event, listener)
        self.is_any = True
        queues = self._queues[event]
        queues.append(queue)

        def remove() -> None:
            if queue in queues:
                queues.remove(queue)
                queue.cancel()

        return remove

    def decorator(self, event: str) -> Decorator[Any]:
        """Return a decorator that adds a listener for `event`."""
        self._check(event)

        def register(listener: Callable[[Any], R], /) -> Callable[[Any], R]:
            self.add(event, listener)
            return listener

        return register

    def _check(self, event: str) -> None:
        if event not in get_args(EventName):
            raise UsageError("event", event, f"one of {', '.join(self._queues)}")

    def has(self, event: EventName) -> bool:
        """Whether the event has a listener."""
        return bool(self._queues[event])

    def emit(self, event: EventName, value: object) -> None:
        """Queue `value` for every listener of the event; returns at once."""
        for queue in self._queues[event]:
            queue.put(value)

    async def drain(self, timeout: float) -> None:
        """Wait at most `timeout` seconds for the queued events, then cancel the listeners."""
        queues = [queue for each in self._queues.values() for queue in each]
        busy = [queue.task for queue in queues if queue.task is not None]
        mine = asyncio.current_task()
        waiting = [task for task in busy if task is not mine]
        if waiting:
            await asyncio.wait(waiting, timeout=timeout)
        for queue in queues:
            queue.cancel()
        if left := [task for task in waiting if not task.done()]:
            # A cancelled listener may clean up, but must not run after the session has closed.
            await asyncio.wait(left, timeout=timeout)


class _ListenerQueue:
    """One listener, and the events that it has not handled yet."""

    def __init__(self, event: str, listener: Callable[[Any], object]) -> None:
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
            self.task = asyncio.Task(self._drain())

    def cancel(self) -> None:
        self._waiting.clear()
        if self.task is not None and self.task is not asyncio.current_task():
            self.task.cancel()

    async def _drain(self) -> None:
        """Call the listener for each queued event; the task ends when the queue is empty."""
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
            # Something that the listener awaited was cancelled, not this task.
            log.exception("a listener for %r failed", self._event)
        except Exception:
            log.exception("a listener for %r failed", self._event)
