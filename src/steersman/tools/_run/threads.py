"""Threads for tools that are plain functions.

Apart from asyncio's own pool, which a few blocking tools would fill, and which waits for each of
them when the program ends. Handing a call over costs less, too: results that are ready at the same
time wake the event loop once.
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
from typing import Any

__all__ = [
    "Handler",
    "Workers",
    "handler_of",
    "is_async",
    "parameter_names",
    "run_handler",
    "run_in_thread",
]

MOST = 128
"""Threads at the same time; what comes then waits for one of them."""
PATIENCE = 30.0
"""Seconds that a thread waits for another call before it ends."""


class Workers:
    """Threads that are made when they are needed, and that hold up no end of the program."""

    def __init__(self, most: int = MOST, patience: float = PATIENCE) -> None:
        self.most = most
        self.threads = 0
        self._patience = patience
        self.spare = 0
        """Threads that wait, less the jobs that wait."""
        self._jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._lock = threading.Lock()

    def submit(self, job: Callable[[], None]) -> None:
        """Have a thread do `job`, which must not raise."""
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
            # The machine has none left. The others will come to the job, if there are others.
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
                if self._may_leave():
                    return
                continue
            job()
            # Kept, it would keep the call's arguments alive.
            del job
            with self._lock:
                self.spare += 1

    def _may_leave(self) -> bool:
        with self._lock:
            if self.spare <= 0:
                return False
            self.spare -= 1
            self.threads -= 1
            return True


class _Outbox:
    """What threads have ready for one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._ready: deque[tuple[asyncio.Future[Any], Any, BaseException | None]] = deque()
        self._is_called = False

    def put(
        self, future: asyncio.Future[Any], outcome: Any, error: BaseException | None = None
    ) -> None:
        self._ready.append((future, outcome, error))
        if not self._is_called:
            self._is_called = True
            try:
                self.loop.call_soon_threadsafe(self._deliver)
            except RuntimeError:
                # The event loop is closed: nobody waits for it.
                self._ready.clear()

    def _deliver(self) -> None:
        self._is_called = False
        while self._ready:
            future, outcome, error = self._ready.popleft()
            if future.done():
                continue
            if error is None:
                future.set_result(outcome)
            else:
                future.set_exception(error)


class _Here(threading.local):
    outbox: _Outbox | None = None


_here = _Here()
_workers = Workers()


def run_in_thread(
    function: Callable[..., Any],
    *args: Any,
    is_wanted: Callable[[], bool] = lambda: True,
    at_end: Callable[[], None] | None = None,
    workers: Workers | None = None,
) -> asyncio.Future[Any]:
    """Call `function` in a worker thread, with a copy of the contextvars of now.

    Cancelling the future does not stop the thread. `at_end` is called, in the thread, when it is
    done; so it is when nobody wants the call any more before it began.
    """
    loop = asyncio.get_running_loop()
    outbox = _here.outbox
    if outbox is None or outbox.loop is not loop:
        outbox = _here.outbox = _Outbox(loop)
    future: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def job() -> None:
        outcome: Any = None
        error: BaseException | None = None
        try:
            if is_wanted():
                outcome = context.run(function, *args)
        except StopIteration as stop:
            # A future cannot hold it: the wait for the thread would never end.
            error = RuntimeError("the tool raised StopIteration")
            error.__cause__ = stop
        # Whoever waits for the future deals with it, an exit included.
        except BaseException as raised:  # noqa: BLE001
            error = raised
        if at_end is not None:
            at_end()
        outbox.put(future, outcome, error)
        # What was raised holds this frame, which must not hold it in turn.
        del outcome, error

    (workers or _workers).submit(job)
    return future


def _forget_threads() -> None:
    """The threads of a process do not live on in its fork."""
    global _workers  # noqa: PLW0603
    _workers = Workers()


os.register_at_fork(after_in_child=_forget_threads)


@dataclass(frozen=True, slots=True)
class Handler:
    """A function, and whether it runs in the event loop."""

    function: Callable[..., Any]
    is_async: bool


def handler_of(function: Callable[..., Any]) -> Handler:
    """Learn how to call a function."""
    return Handler(function, is_async(function))


def is_async(function: Any) -> bool:
    """Tell whether a call gives something to await."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - an object's own async __call__
    )


def parameter_names(function: Callable[..., Any]) -> list[str]:
    """Name what a function takes."""
    return list(inspect.signature(function).parameters)


async def run_handler(handler: Handler, values: Mapping[str, Any]) -> Any:
    """Call it, a plain one in a worker thread."""
    if handler.is_async:
        return await handler.function(**values)
    outcome = await run_in_thread(lambda: handler.function(**values))
    return await outcome if inspect.isawaitable(outcome) else outcome
