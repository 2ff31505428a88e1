"""A thread of a store's own, in which it does its blocking work, one call after the other.

Any event loop may use it. Work that was cancelled before it began is not done; work that has begun
is finished. The thread does not keep the program from ending.
"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeVar

__all__ = ["Worker"]

P = ParamSpec("P")
T = TypeVar("T")

_Job = tuple["Future[Any]", Callable[[], Any]]


class Worker:
    """Runs functions in one thread, in the order of the calls."""

    def __init__(self, name: str, closing: Callable[[], None]) -> None:
        """`closing` is run last, in the thread, on `close` or when this object is forgotten."""
        self._name = name
        self._closing = closing
        self._pid = 0
        self._jobs: SimpleQueue[_Job | None] | None = None
        self._lock = threading.Lock()

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function in the thread and return what it returns."""
        done: Future[T] = Future()
        self._put((done, lambda: function(*args, **kwargs)))
        return await asyncio.wrap_future(done)

    def _put(self, job: _Job) -> None:
        with self._lock:
            if self._jobs is None or self._pid != os.getpid():
                # A forked process has the object, but not the thread.
                self._pid = os.getpid()
                self._jobs = SimpleQueue()
                thread = threading.Thread(
                    target=_work, args=(self._jobs, self._closing), name=self._name, daemon=True
                )
                thread.start()
                weakref.finalize(self, self._jobs.put, None).atexit = False
            self._jobs.put(job)

    async def close(self) -> None:
        """Run `closing` after the work that is waiting, and end the thread. May be called again."""
        with self._lock:
            jobs, self._jobs = self._jobs, None
            is_ours = self._pid == os.getpid()
        if jobs is not None and is_ours:
            done: Future[None] = Future()
            jobs.put((done, self._closing))
            jobs.put(None)
            await asyncio.wrap_future(done)


def _work(jobs: SimpleQueue[_Job | None], closing: Callable[[], None]) -> None:
    while True:
        job = jobs.get()
        if job is None:
            closing()
            return
        _do(*job)
        del job


def _do(done: Future[Any], function: Callable[[], Any]) -> None:
    if not done.set_running_or_notify_cancel():
        return
    try:
        result = function()
    except BaseException as error:  # noqa: BLE001 - raised where the result is awaited
        done.set_exception(error)
    else:
        done.set_result(result)
