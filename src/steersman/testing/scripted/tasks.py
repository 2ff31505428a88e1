"""The tasks of one scripted process, which end with it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class Tasks:
    """Starts tasks and cancels them; an exception in a task is reported."""

    def __init__(self, on_crash: Callable[[BaseException], None]) -> None:
        self.were_cancelled = False
        """True if a task was cancelled from outside, as by an event loop that shuts down."""
        self._on_crash = on_crash
        self._running: set[asyncio.Task[None]] = set()
        self._stopped: set[asyncio.Task[None]] = set()

    def start(self, doing: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run `doing` in a new task."""
        task = asyncio.Task(doing)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    def stop(self, task: asyncio.Task[None]) -> None:
        """Cancel a task."""
        self._stopped.add(task)
        task.cancel()

    def cancel_all(self) -> asyncio.Future[Any] | None:
        """Cancel all tasks except the caller's; return a future for their end, if there are any."""
        others = [each for each in self._running if each is not _current()]
        for each in others:
            self.stop(each)
        return asyncio.gather(*others, return_exceptions=True) if others else None

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if task.cancelled():
            self.were_cancelled |= task not in self._stopped
        elif (error := task.exception()) is not None:
            self._on_crash(error)
        self._stopped.discard(task)


def _current() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None
