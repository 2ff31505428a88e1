"""Keeps the asks of a process in a store: one thread with an event loop, while there is work.

Sessions of any event loop hand their asks in; the thread writes them, notices answers that other
processes have written, and gives them to the sessions. An open ask needs no task. Without asks,
watchers and calls the thread ends.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from steersman._background import BackgroundTasks
from steersman.errors import StoreError
from steersman.inbox.changes import Watch
from steersman.inbox.rows import AskRows
from steersman.inbox.waiting import Waiting, WaitingAsks

__all__ = ["AskKeeper"]

log = logging.getLogger("steersman.inbox")

T = TypeVar("T")

LINGER = 1.0
"""Seconds without work after which the thread ends."""
FIRST_RETRY, LAST_RETRY = 0.1, 1.0
"""Seconds until a store that failed is tried again."""
LONGEST_WAIT = 3600.0
CLOSING = 5.0
"""Seconds that asks have to be written when the inbox is closed."""

_lost: list[_Run] = []
"""What a parent process had: a forked process must not close its connections."""


class AskKeeper:
    """The asks and watchers of one store in this process. Methods may be called in any thread."""

    def __init__(self, make_rows: Callable[[], AskRows], path: Path | None = None) -> None:
        self._make_rows = make_rows
        self.path = path
        """The file of the store; None if a server has it."""
        self._lock = threading.Lock()
        self._run: _Run | None = None
        self._pid = os.getpid()
        self.is_closed = False
        self.unstored: dict[str, int] = {}
        """The last numbers of journals that were closed while entries waited or were lost."""

    def keep(self, waiting: Waiting) -> None:
        """Store an ask, and give it its answer when there is one."""
        self._do(lambda run: run.asks.add(waiting))

    def let_go(self, waiting: Waiting, reason: str) -> None:
        """Stop waiting for an ask that was closed."""
        self._do(lambda run: run.asks.let_go(waiting, reason), starts=False)

    def watch(self, watch: Watch) -> None:
        """Give `watch` the open asks and all changes from now on."""
        self._do(lambda run: run.asks.add_watch(watch))

    def leave(self, watch: Watch) -> None:
        """Give `watch` no more changes."""
        self._do(lambda run: run.asks.remove_watch(watch), starts=False)

    def observe(self, changed: Callable[[], None]) -> None:
        """Call `changed` in the thread after each change in the store, also of other processes."""
        self._do(lambda run: run.observers.add(changed))

    def stop_observing(self, changed: Callable[[], None]) -> None:
        """Call `changed` no more."""
        self._do(lambda run: run.observers.discard(changed), starts=False)

    async def call(self, work: Callable[[AskRows], Awaitable[T]]) -> T:
        """Run `work` in the thread and return what it returns."""
        if self.is_closed:
            raise StoreError("the store of this inbox is closed")
        done: Future[T] = Future()
        self._do(lambda run: run.call(work, done))
        return await asyncio.wrap_future(done)

    def start(self, work: Callable[[AskRows], Awaitable[None]]) -> None:
        """Run `work`, which never raises, in the thread; the thread does not end before it."""
        self._do(lambda run: run.call(work, Future()))

    @property
    def faults(self) -> dict[str, str]:
        """What fails now in the thread, with its last error; it is tried again."""
        run = self._run
        return {} if run is None else run.faults

    async def aclose(self) -> None:
        """Write what is waiting to be written, and end the thread. May be called again."""
        self.is_closed = True
        with self._lock:
            run, is_ours = self._run, self._pid == os.getpid()
        if run is not None and is_ours:
            run.put(lambda run: run.stop())
            await asyncio.wait({asyncio.wrap_future(run.done)}, timeout=CLOSING)

    def _do(self, job: Callable[[_Run], None], *, starts: bool = True) -> None:
        with self._lock:
            if self._pid != os.getpid():
                # A forked process has the object, but not the thread.
                self._pid = os.getpid()
                if self._run is not None:
                    _lost.append(self._run)
                    self._run = None
            if self._run is None and starts:
                self._run = _Run(self._make_rows(), self._ended)
                self._run.start()
            if self._run is not None:
                self._run.put(job)

    def _ended(self, run: _Run) -> bool:
        """Whether the thread may end: nothing was put since. Called in the thread."""
        with self._lock:
            if run.jobs:
                return False
            if self._run is run:
                self._run = None
            return True


class _Run:
    """The thread, from its start to its end."""

    def __init__(self, rows: AskRows, ended: Callable[[_Run], bool]) -> None:
        self.rows = rows
        self.asks = WaitingAsks(rows)
        self.jobs: deque[Callable[[_Run], None]] = deque()
        self.observers: set[Callable[[], None]] = set()
        self._notified: int | None = None
        """The number of the change that the observers were called for last."""
        self.done: Future[None] = Future()
        self._ended = ended
        self._loop = asyncio.new_event_loop()
        self._news = asyncio.Event()
        self._calls: set[asyncio.Task[None]] = set()
        self._background = BackgroundTasks(log)
        self._signals: asyncio.Task[None] | None = None
        self._is_stopping = False

    @property
    def faults(self) -> dict[str, str]:
        """What fails now, with its last error."""
        store = {"the asks of the store": self.asks.fault} if self.asks.fault else {}
        return {**store, **self._background.faults}

    def start(self) -> None:
        """Start the thread. It does not keep the program from ending."""
        threading.Thread(target=self._work, name="steersman-inbox", daemon=True).start()

    def put(self, job: Callable[[_Run], None]) -> None:
        """Have `job` done in the thread."""
        self.jobs.append(job)
        # The thread may have just ended, which only `aclose` can meet.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._do_jobs)

    def _do_jobs(self) -> None:
        while self.jobs:
            self.jobs.popleft()(self)
        self._news.set()

    def call(self, work: Callable[[AskRows], Awaitable[T]], done: Future[T]) -> None:
        """Run `work` in a task, for `AskKeeper.call`."""
        task = asyncio.Task(self._call(work, done))
        self._calls.add(task)
        task.add_done_callback(self._call_ended)

    async def _call(self, work: Callable[[AskRows], Awaitable[T]], done: Future[T]) -> None:
        if not done.set_running_or_notify_cancel():
            return
        try:
            result = await work(self.rows)
        except BaseException as error:  # noqa: BLE001 - raised where the result is awaited
            done.set_exception(error)
        else:
            done.set_result(result)

    def _call_ended(self, task: asyncio.Task[None]) -> None:
        self._calls.discard(task)
        # What was written may be what an ask of this process waits for.
        self._news.set()

    def stop(self) -> None:
        """End the thread when all is written, or the store has failed."""
        self._is_stopping = True

    def _work(self) -> None:
        try:
            self._loop.run_until_complete(self._until_done())
        finally:
            self._loop.close()
            self.done.set_result(None)

    async def _until_done(self) -> None:
        try:
            await self._background.keep("the thread of asks", self._main, meanwhile="asks wait")
        finally:
            await self._end()

    async def _main(self) -> None:
        retry = FIRST_RETRY
        while True:
            self._news.clear()
            is_well = await self.asks.step() and await self._notify()
            self._watch_signals()
            if self._is_stopping and not self._calls and self._ended(self):
                self.asks.abandon()
                self._call_observers()
                return
            if not is_well:
                await asyncio.sleep(retry)
                retry = min(2 * retry, LAST_RETRY)
                continue
            retry = FIRST_RETRY
            if self._is_needed:
                await self._news_within(self.asks.next_expiry)
            elif not await self._news_within(LINGER) and not self._is_needed and self._ended(self):
                # Not if something came in the moment in which the time ended.
                return

    async def _notify(self) -> bool:
        """Call the observers if something has changed. Returns False if the store has failed."""
        if not self.observers:
            self._notified = None
            return True
        try:
            last = await self.rows.last_change()
        except StoreError:
            # An observer looks by itself, and finds out.
            return False
        if last != self._notified:
            self._notified = last
            self._call_observers()
        return True

    def _call_observers(self) -> None:
        for changed in [*self.observers]:
            try:
                changed()
            except RuntimeError:
                # The event loop of the observer is closed.
                self.observers.discard(changed)

    @property
    def _waits(self) -> bool:
        """Whether the changes of other processes matter."""
        return bool(self.observers) or self.asks.are_needed

    @property
    def _is_needed(self) -> bool:
        return bool(self._calls) or self._waits

    async def _news_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(min(max(seconds, 0.0), LONGEST_WAIT)):
                await self._news.wait()
        except TimeoutError:
            return False
        return True

    def _watch_signals(self) -> None:
        is_needed = self._waits
        if is_needed and (self._signals is None or self._signals.done()):
            self._signals = self._background.keep(
                "the news of the store",
                lambda: self.rows.signal(self._news.set),
                meanwhile="answers of other processes are noticed late",
            )
            # It may be needed again by the time that it has ended.
            self._signals.add_done_callback(lambda _: self._news.set())
        elif not is_needed:
            # It is kept until it has closed its connection.
            self._cancel_signals()

    async def _end(self) -> None:
        self._cancel_signals()
        if self._signals is not None:
            await asyncio.wait({self._signals}, timeout=CLOSING)
        await self.rows.aclose()

    def _cancel_signals(self) -> None:
        # Once: a second cancellation would end the closing of its connection.
        if self._signals is not None and not self._signals.cancelling():
            self._signals.cancel()
