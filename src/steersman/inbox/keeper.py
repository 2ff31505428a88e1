"""Keeps the asks of a process that wait for rows of a store, in the thread of its database.

Sessions of any event loop hand their asks in; the thread writes them, notices answers that other
processes have written, and gives them to the sessions. An open ask needs no task. Without asks and
watchers nothing runs.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Mapping
from typing import Protocol

from steersman._background import BackgroundTasks
from steersman._portal.home_thread import HomeThread
from steersman.inbox.changes import Watch
from steersman.inbox.rows import AskRows
from steersman.inbox.waiting import Waiting, WaitingAsks

log = logging.getLogger("steersman.inbox")

FIRST_RETRY, LAST_RETRY = 0.1, 1.0
"""Seconds until a store that failed is tried again."""
LONGEST_WAIT = 3600.0


class Observed(Protocol):
    """A database that reports when rows may have changed."""

    home: HomeThread

    @property
    def faults(self) -> Mapping[str, str]:
        """What fails now in the background, with its last error."""
        ...

    def observe(self, changed: Callable[[], None]) -> None:
        """Call `changed`, in the thread, whenever any process may have changed a row."""
        ...

    def stop_observing(self, changed: Callable[[], None]) -> None:
        """Call `changed` no more."""
        ...


class AskKeeper:
    """The asks and watchers of one store in this process. Methods may be called in any thread."""

    def __init__(self, database: Observed, rows: AskRows) -> None:
        self._database = database
        self._home = database.home
        self._rows = rows
        self._run: _Run | None = None
        """Set in the thread only."""

    @property
    def is_closed(self) -> bool:
        """Whether the store is closed."""
        return self._home.is_closed

    @property
    def faults(self) -> Mapping[str, str]:
        """What fails now in the thread, with its last error; it is tried again."""
        run = self._run
        own: Mapping[str, str] = {} if run is None or run.has_ended else run.faults
        return {**own, **self._database.faults}

    def keep(self, waiting: Waiting) -> None:
        """Store an ask, and give it its answer when there is one."""
        self._do(lambda asks: asks.add(waiting))

    def let_go(self, waiting: Waiting, reason: str) -> None:
        """Stop waiting for an ask that was closed."""
        self._do(lambda asks: asks.let_go(waiting, reason), starts=False)

    def watch(self, watch: Watch) -> None:
        """Give `watch` the open asks and all changes from now on."""
        self._do(lambda asks: asks.add_watch(watch))

    def leave(self, watch: Watch) -> None:
        """Give `watch` no more changes."""
        self._do(lambda asks: asks.remove_watch(watch), starts=False)

    def _do(self, job: Callable[[WaitingAsks], None], *, starts: bool = True) -> None:
        self._home.post(lambda: self._do_here(job, starts=starts), starts=starts)

    def _do_here(self, job: Callable[[WaitingAsks], None], *, starts: bool) -> None:
        run = self._run
        if run is None or run.has_ended:
            if not starts:
                return
            run = self._run = _Run(self._database, self._rows)
            self._home.start(run.main)
        job(run.asks)
        run.news.set()


class _Run:
    """The asks that wait, from the first one until none does."""

    def __init__(self, database: Observed, rows: AskRows) -> None:
        self.asks = WaitingAsks(rows)
        self.news = asyncio.Event()
        self._background = BackgroundTasks(log)
        self._database = database
        self._has_ended = False
        self._pid = os.getpid()

    @property
    def has_ended(self) -> bool:
        """Whether nothing can be added: none waited, or it belongs to a parent process."""
        return self._has_ended or self._pid != os.getpid()

    @property
    def faults(self) -> Mapping[str, str]:
        """What fails now, with its last error."""
        store = {"the asks of the store": self.asks.fault} if self.asks.fault else {}
        return {**store, **self._background.faults}

    async def main(self) -> None:
        """Give asks their answers until none waits."""
        self._database.observe(self.news.set)
        try:
            await self._background.keep("the thread of asks", self._work, meanwhile="asks wait")
        finally:
            self._has_ended = True
            self._database.stop_observing(self.news.set)

    async def _work(self) -> None:
        retry = FIRST_RETRY
        while True:
            self.news.clear()
            is_well = await self.asks.step()
            is_closed = self._database.home.is_closed
            if is_closed:
                self.asks.abandon()
            if is_closed or not self.asks.are_needed:
                # At once: what comes from now on needs another run.
                self._has_ended = True
                return
            if is_well:
                retry = FIRST_RETRY
                await self._news_within(self.asks.next_expiry)
            else:
                await asyncio.sleep(retry)
                retry = min(2 * retry, LAST_RETRY)

    async def _news_within(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(min(max(seconds, 0.0), LONGEST_WAIT)):
                await self.news.wait()
        except TimeoutError:
            return
