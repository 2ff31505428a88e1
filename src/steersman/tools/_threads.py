"""Where plain functions run: worker threads, and at most so many calls of one tool at a time.

The threads are separate from asyncio's own pool, which a few blocking tools would fill, and which
waits for all its threads when the program exits. A call also costs less here: results that are
ready at the same time wake the event loop once.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import os
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, TypeAlias, TypeVar

from steersman._portal.waiting import WAITING_TASK

Function: TypeAlias = Callable[..., Any]
"""Any function of the host program."""

R = TypeVar("R")

MOST_THREADS = 128
"""Threads at the same time; further calls wait in the queue."""
IDLE_TIMEOUT = 30.0
"""Seconds after which an idle thread ends."""


class Workers:
    """Daemon threads, started when they are needed; they do not delay the end of the program."""

    def __init__(self, most: int = MOST_THREADS, patience: float = IDLE_TIMEOUT) -> None:
        self.most = most
        self.threads = 0
        self._patience = patience
        self.spare = 0
        """The number of idle threads minus the number of queued jobs."""
        self._jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._lock = threading.Lock()

    def submit(self, job: Callable[[], None]) -> None:
        """Run `job` in a thread; it must not raise."""
        with self._lock:
            self.spare -= 1
            is_short = self.spare < 0 and self.threads < self.most
            if is_short:
                self.threads += 1
                self.spare += 1
        self._jobs.put(job)
        if is_short:
            self._start_thread()

    def _start_thread(self) -> None:
        try:
            threading.Thread(target=self._work, name="steersman-tool", daemon=True).start()
        except RuntimeError:
            # The machine allows no more threads. If there are others, they will run the job.
            with self._lock:
                self.threads -= 1
                self.spare -= 1
                if not self.threads:
                    raise

    def _work(self) -> None:
        while True:
            try:
                job = self._jobs.get(timeout=self._patience)
            except Empty:
                if self._may_end():
                    return
                continue
            job()
            # The reference would keep the call's arguments alive while the thread is idle.
            del job
            with self._lock:
                self.spare += 1

    def _may_end(self) -> bool:
        with self._lock:
            if self.spare <= 0:
                return False
            self.spare -= 1
            self.threads -= 1
            return True


class _Outbox:
    """Results of threads, on their way to one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._ready: deque[tuple[asyncio.Future[Any], object, BaseException | None]] = deque()
        self._is_scheduled = False

    def put(
        self, future: asyncio.Future[Any], outcome: object, error: BaseException | None = None
    ) -> None:
        self._ready.append((future, outcome, error))
        if not self._is_scheduled:
            self._is_scheduled = True
            try:
                self.loop.call_soon_threadsafe(self._deliver)
            except RuntimeError:
                # The event loop is closed, so nothing waits for the result.
                self._ready.clear()

    def _deliver(self) -> None:
        self._is_scheduled = False
        while self._ready:
            future, outcome, error = self._ready.popleft()
            if future.done():
                continue
            if error is None:
                future.set_result(outcome)
            else:
                future.set_exception(error)


class _PerThread(threading.local):
    outbox: _Outbox | None = None


_per_thread = _PerThread()
_workers = Workers()


def run_in_thread(
    function: Callable[..., R],
    *args: object,
    is_wanted: Callable[[], bool] = lambda: True,
    at_end: Callable[[], None] | None = None,
    workers: Workers | None = None,
) -> asyncio.Future[R]:
    """Call `function` in a worker thread, with a copy of the current contextvars.

    Cancelling the future does not stop the thread. `is_wanted` is called in the thread before the
    function, which is skipped if it returns false. `at_end` is called in the thread afterwards, in
    both cases.
    """
    loop = asyncio.get_running_loop()
    outbox = _per_thread.outbox
    if outbox is None or outbox.loop is not loop:
        outbox = _per_thread.outbox = _Outbox(loop)
    future: asyncio.Future[R] = loop.create_future()
    context = contextvars.copy_context()
    context.run(WAITING_TASK.set, asyncio.current_task())

    def job() -> None:
        outcome: object = None
        error: BaseException | None = None
        try:
            if is_wanted():
                outcome = context.run(function, *args)
        except StopIteration as stop:
            # A future cannot hold a StopIteration: the wait for the thread would never end.
            error = RuntimeError("the tool raised StopIteration")
            error.__cause__ = stop
        # The future carries every exception, SystemExit included, to the task that awaits it.
        except BaseException as raised:  # noqa: BLE001
            error = raised
        if at_end is not None:
            at_end()
        outbox.put(future, outcome, error)
        # The traceback of the error refers to this frame; break the reference cycle.
        del outcome, error

    (workers or _workers).submit(job)
    return future


def _forget_threads() -> None:
    """Start without threads in a forked child: only the forking thread exists there."""
    global _workers  # noqa: PLW0603
    _workers = Workers()


os.register_at_fork(after_in_child=_forget_threads)


@dataclass(frozen=True, slots=True)
class Handler:
    """A function for a resource or a prompt, and whether it runs in the event loop."""

    function: Function
    is_async: bool


def handler_of(function: Function) -> Handler:
    """Return the handler for a function."""
    return Handler(function, is_async(function))


def is_async(function: object) -> bool:
    """Return whether a call of `function` returns a coroutine."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - an object's own async __call__
    )


def parameter_names(function: Function) -> list[str]:
    """Return the names of the parameters of `function`."""
    return list(inspect.signature(function).parameters)


async def run_handler(handler: Handler, values: Mapping[str, object]) -> object:
    """Call a handler with keyword arguments; a plain function runs in a worker thread."""
    if handler.is_async:
        return await handler.function(**values)
    outcome = await run_in_thread(lambda: handler.function(**values))
    return await outcome if inspect.isawaitable(outcome) else outcome


class ConcurrencyLimit:
    """A semaphore over several event loops; waiters are served in the order in which they came.

    `release` may be called in any thread: a `def` tool keeps its slot until its thread returns,
    also after its call was cancelled.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._free = most
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._lock = threading.Lock()

    async def acquire(self) -> None:
        """Wait for a free slot and occupy it."""
        with self._lock:
            if self._free:
                self._free -= 1
                return
            slot = asyncio.get_running_loop().create_future()
            self._waiting.append(slot)
        try:
            await slot
        except asyncio.CancelledError:
            if not self._stop_waiting(slot):
                # The slot was assigned to this call just before it was cancelled.
                self.release()
            raise

    def release(self) -> None:
        """Free a slot, or pass it to the next waiter."""
        with self._lock:
            while self._waiting:
                slot = self._waiting.popleft()
                try:
                    slot.get_loop().call_soon_threadsafe(_assign, slot)
                except RuntimeError:
                    # The waiter's event loop is closed.
                    continue
                return
            self._free += 1

    def _stop_waiting(self, slot: asyncio.Future[None]) -> bool:
        with self._lock:
            if slot not in self._waiting:
                return False
            self._waiting.remove(slot)
            return True


def _assign(slot: asyncio.Future[None]) -> None:
    if not slot.done():
        slot.set_result(None)
