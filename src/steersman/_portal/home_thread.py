"""A thread with an event loop, for work that must not depend on the event loops of the callers.

It starts with the first work, and ends when nothing was left to do for a while. It does not keep
the program from ending.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import ParamSpec, TypeVar
from weakref import WeakMethod, finalize

from steersman.errors import StoreError

P = ParamSpec("P")
T = TypeVar("T")

log = logging.getLogger("steersman.stores")

CLOSING = 5.0
"""Seconds that work has to end when the thread is closed."""

_lost: list[_Life] = []
"""What a parent process had: a forked process must not close its connections."""


class HomeThread:
    """Runs functions and coroutines in a thread of its own. Any thread may call the methods."""

    def __init__(self, name: str, at_rest: Callable[[], Awaitable[None]], rest: float) -> None:
        """After `rest` seconds without work, `at_rest` is run, and the thread ends.

        So it does when this object is forgotten, which `at_rest` must not keep.
        """
        self._name = name
        self._at_rest = at_rest
        self._rest = rest
        self._lock = threading.Lock()
        self._life: _Life | None = None
        self._forgotten: finalize[..., HomeThread] | None = None
        """Ends the last life when this object is forgotten."""
        self._pid = os.getpid()
        self.is_closed = False

    async def do(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call `function` in the thread, in the order of the calls, and return what it returns.

        One that was cancelled before it began is not called.
        """
        if self.is_here:
            return function(*args, **kwargs)
        self._check_open()
        done: Future[T] = Future()
        self.post(lambda: _do(lambda: function(*args, **kwargs), done))
        return await asyncio.wrap_future(done)

    async def call(self, work: Callable[[], Awaitable[T]]) -> T:
        """Run `work`, which may wait, in the thread, beside others. What has begun is finished."""
        if self.is_here:
            return await work()
        self._check_open()
        done: Future[T] = Future()
        self.start(lambda: _settle(work, done))
        return await asyncio.wrap_future(done)

    def start(self, work: Callable[[], Awaitable[None]]) -> None:
        """Run `work`, which never raises, in the thread; the thread does not end before it."""
        self.post(lambda: self._running().begin(work))

    def post(self, job: Callable[[], None], *, starts: bool = True) -> None:
        """Call `job` in the thread, in the order of the posts; if not `starts`, only if it runs."""
        with self._lock:
            if self._pid != os.getpid():
                # A forked process has the object, but not the thread.
                self._pid = os.getpid()
                if self._life is not None:
                    _lost.append(self._life)
                    self._life = None
            if self._life is None and starts:
                self._life = _Life(self._at_rest, self._rest, WeakMethod(self._may_end))
                self._life.start(self._name)
                if self._forgotten is not None:
                    self._forgotten.detach()
                self._forgotten = finalize(self, _end, self._life, self._pid)
                self._forgotten.atexit = False
            if self._life is not None:
                self._life.put(job)

    @property
    def is_here(self) -> bool:
        """Whether the caller runs in the thread."""
        life = self._life
        return life is not None and life.ident == threading.get_ident()

    async def aclose(self) -> None:
        """End the thread when its work has ended. May be called again."""
        self.is_closed = True
        with self._lock:
            life, is_ours = self._life, self._pid == os.getpid()
        if life is not None and is_ours:
            life.put(life.stop)
            await asyncio.wait({asyncio.wrap_future(life.done)}, timeout=CLOSING)

    def _check_open(self) -> None:
        if self.is_closed:
            raise StoreError("the store is closed")

    def _running(self) -> _Life:
        assert self._life is not None
        return self._life

    def _may_end(self, life: _Life) -> bool:
        """Whether the thread may end: nothing was put since. Called in the thread."""
        with self._lock:
            if not life.jobs.empty():
                return False
            if self._life is life:
                self._life = None
            return True


class _Life:
    """The thread, from its start to its end.

    It waits for jobs, which costs less than an event loop does; that runs while there are tasks.
    """

    def __init__(
        self,
        at_rest: Callable[[], Awaitable[None]],
        rest: float,
        may_end: WeakMethod[Callable[[_Life], bool]],
    ) -> None:
        self.jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self.done: Future[None] = Future()
        self.ident: int | None = None
        self._at_rest = at_rest
        self._rest = rest
        self._may_end = may_end
        # It may be taken again by the collector of garbage, which ends the thread.
        self._lock = threading.RLock()
        self._loop = asyncio.new_event_loop()
        self._is_looping = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._done = 0
        """How many jobs were done."""
        self._is_stopping = False

    def start(self, name: str) -> None:
        threading.Thread(target=self._work, name=name, daemon=True).start()

    def put(self, job: Callable[[], None]) -> None:
        with self._lock:
            self.jobs.put(job)
            if self._is_looping:
                self._loop.call_soon_threadsafe(self._do_jobs)

    def begin(self, work: Callable[[], Awaitable[None]]) -> None:
        task = asyncio.Task(_run(work), loop=self._loop)
        self._tasks.add(task)
        task.add_done_callback(self._task_ended)

    def stop(self) -> None:
        self._is_stopping = True

    def _work(self) -> None:
        self.ident = threading.get_ident()
        try:
            while not self._has_ended():
                continue
        finally:
            self._loop.close()
            self.done.set_result(None)

    def _has_ended(self) -> bool:
        """Do what comes until nothing has come for a while, and close what can be opened again."""
        with suppress(Empty):
            while not self._is_stopping:
                self._do(self.jobs.get(timeout=self._rest))
                if self._tasks:
                    self._run_tasks()
        done = self._done
        self.begin(self._at_rest)
        self._run_tasks()
        if self._done != done:
            # What has come meanwhile may have opened something.
            return False
        may_end = self._may_end()
        return may_end is None or may_end(self)

    def _run_tasks(self) -> None:
        """Run the event loop until there are no tasks."""
        with self._lock:
            self._is_looping = True
        # What has come before.
        self._loop.call_soon(self._do_jobs)
        while self._tasks:
            # It stops after a round in which the last task has ended, and another may have begun.
            self._loop.run_forever()
        with self._lock:
            self._is_looping = False

    def _do_jobs(self) -> None:
        with suppress(Empty):
            while True:
                self._do(self.jobs.get_nowait())

    def _do(self, job: Callable[[], None]) -> None:
        self._done += 1
        try:
            job()
        except Exception:
            log.exception("a job in the thread of a store has failed")

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not self._tasks:
            self._loop.stop()


def _end(life: _Life, pid: int) -> None:
    if pid == os.getpid():
        life.put(life.stop)


async def _run(work: Callable[[], Awaitable[None]]) -> None:
    try:
        await work()
    except Exception:
        log.exception("a task in the thread of a store has failed")


def _do(function: Callable[[], T], done: Future[T]) -> None:
    if not done.set_running_or_notify_cancel():
        return
    try:
        result = function()
    except BaseException as error:  # noqa: BLE001 - raised where the result is awaited
        done.set_exception(error)
    else:
        done.set_result(result)


async def _settle(work: Callable[[], Awaitable[T]], done: Future[T]) -> None:
    if not done.set_running_or_notify_cancel():
        return
    try:
        result = await work()
    except BaseException as error:  # noqa: BLE001 - raised where the result is awaited
        done.set_exception(error)
    else:
        done.set_result(result)
