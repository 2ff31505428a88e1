"""The tasks of one scripted process: every one has an owner, and ends with it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

__all__ = ["Tasks"]


class Tasks:
    """Starts tasks and ends them all; one that raises is reported."""

    def __init__(self, on_crash: Callable[[BaseException], None]) -> None:
        self.were_taken = False
        """Somebody else has cancelled one of them, as a loop does that shuts down."""
        self._on_crash = on_crash
        self._running: set[asyncio.Task[None]] = set()
        self._stopped: set[asyncio.Task[None]] = set()

    def start(self, doing: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run `doing` in a task of its own."""
        task = asyncio.get_running_loop().create_task(doing)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    def stop(self, task: asyncio.Task[None]) -> None:
        """End one of them."""
        self._stopped.add(task)
        task.cancel()

    def cancel_all(self) -> asyncio.Future[Any] | None:
        """End all but the one that calls; gives what to wait for, if there is something."""
        others = [each for each in self._running if each is not _current()]
        for each in others:
            self.stop(each)
        return asyncio.gather(*others, return_exceptions=True) if others else None

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if task.cancelled():
            self.were_taken |= task not in self._stopped
        elif (error := task.exception()) is not None:
            self._on_crash(error)
        self._stopped.discard(task)


def _current() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None
