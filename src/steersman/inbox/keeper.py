"""Keeps the asks of a process that wait for rows of a store, in the thread of its database.

Sessions of any event loop hand their asks in; the thread writes them, notices answers that other
processes have written, and gives them to the sessions. An open ask needs no task. Without asks and
watchers nothing runs. Whatever fails is tried again in the next step; marks make sure that nothing
counts twice.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import uuid4

from steersman._background import BackgroundTasks
from steersman._portal.home_thread import HomeThread
from steersman.errors import StoreError
from steersman.inbox.changes import Change, Watch
from steersman.inbox.rows import AskRow, AskRows
from steersman.permissions import Ask

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


NEVER = float("inf")

Report = Callable[[BaseException], None]


def _mark() -> str:
    return uuid4().hex


def _always() -> bool:
    return True


@dataclass(slots=True, eq=False)
class Waiting:
    """A request of a session that waits for the answer to an ask."""

    ask: Ask
    settle: Callable[[Any, str], None]
    report: Report
    expires_after: float | None
    loop: asyncio.AbstractEventLoop | None
    is_owner: Callable[[], bool] = _always
    """Whether the session still has its conversation; if not, it must not use answers."""
    token: str = ""
    """What the lease of the session belongs to; empty if it has none."""
    only_looks: bool = False
    """Whether the answer is reported, and left for another request to use."""
    mark: str = field(default_factory=_mark)
    """What this request uses an answer with."""
    number: int | None = None
    """The row; None as long as none is known."""
    was_tried: bool = False
    """Whether the row may exist, also if the store has not confirmed it."""
    is_closed: bool = False
    may_return: bool = False
    is_settled: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def close(self, *, may_return: bool) -> bool:
        """Settle nothing from now on. Returns False if it was settled or closed already."""
        with self.lock:
            if self.is_settled or self.is_closed:
                return False
            self.is_closed, self.may_return = True, may_return
            return True

    @property
    def is_abandoned(self) -> bool:
        """Whether the session waits no longer, or has lost its conversation or its event loop."""
        has_no_loop = self.loop is not None and self.loop.is_closed()
        return self.is_closed or has_no_loop or not self.is_owner()

    def give(self, row: AskRow) -> bool:
        """Give the answer to the session. Returns False if the session waits no longer."""
        with self.lock:
            if self.is_abandoned:
                return False
            # A request that only looks can still be closed, which then ends the ask.
            self.is_settled = not self.only_looks
            self.settle(row.reply(), row.by)
            return True


class WaitingAsks:
    """Writes asks, looks for changes, and gives answers to those that wait."""

    def __init__(self, rows: AskRows) -> None:
        self._rows = rows
        self._new: deque[Waiting] = deque()
        self._waiting: dict[int, Waiting] = {}
        """By the number of the row."""
        self._changed: dict[int, AskRow] = {}
        """Rows with a change that has not been handled yet."""
        self._writes: deque[Callable[[], Any]] = deque()
        """What is still to be written about asks that no request waits for."""
        self._new_watches: list[Watch] = []
        self._watches: dict[Watch, int] = {}
        """The number of the change that each watcher has seen last."""
        self._seen: int | None = None
        """The number of the last change that was looked at."""
        self._reported: set[Report] = set()
        self.fault = ""
        """The last error of the store, while it fails."""
        self.next_expiry = NEVER
        """Seconds until the next ask expires."""

    @property
    def are_needed(self) -> bool:
        """Whether a request or a watcher waits, or something is to be written."""
        return bool(
            self._new or self._waiting or self._writes or self._new_watches or self._watches
        )

    def add(self, waiting: Waiting) -> None:
        """Store an ask in the next step."""
        self._new.append(waiting)

    def let_go(self, waiting: Waiting, reason: str) -> None:
        """Stop waiting. The row is closed, unless the ask may return."""
        number = waiting.number
        is_waiting = number is not None and self._waiting.get(number) is waiting
        if number is None or not (is_waiting or waiting.only_looks):
            # Not stored yet: `_store` knows what to do.
            return
        if is_waiting:
            del self._waiting[number]
        if not waiting.may_return:
            self._close_later(number, reason, waiting)

    def _close_later(self, number: int, reason: str, waiting: Waiting) -> None:
        # The request is withdrawn: an answer that came a moment ago is not used by anything.
        mark, token = waiting.mark, waiting.token
        self._writes.append(lambda: self._rows.close(number, reason, mark, token))

    def add_watch(self, watch: Watch) -> None:
        """Give `watch` the open asks in the next step, and all changes after them."""
        self._new_watches.append(watch)

    def remove_watch(self, watch: Watch) -> None:
        """Give `watch` no more changes."""
        self._watches.pop(watch, None)
        if watch in self._new_watches:
            self._new_watches.remove(watch)

    async def step(self) -> bool:
        """Write and read what there is. Returns False if the store has failed."""
        if not self.are_needed:
            self._seen, self.next_expiry = None, NEVER
            return True
        try:
            await self._step()
        except StoreError as error:
            self._report(error)
            return False
        except Exception as error:
            # A fault of ours: the asks wait, and nothing is allowed.
            log.exception("the asks of a store cannot be handled")
            self._report(error)
            return False
        if self.fault:
            log.warning("the store of the inbox works again")
        self.fault, self._reported = "", set()
        return True

    async def _step(self) -> None:
        if self._seen is None:
            self._seen = await self._rows.last_change()
        while self._new:
            await self._store(self._new[0])
            self._new.popleft()
        while self._writes:
            await self._writes[0]()
            self._writes.popleft()
        while self._new_watches:
            await self._begin_watch(self._new_watches[0])
        await self._look()
        if self._new or self._writes:
            # An answer was used by another session: the request needs a row of its own. Or it did
            # not reach its session, and is given back: also if the thread ends now.
            await self._step()

    async def _store(self, waiting: Waiting) -> None:
        if waiting.is_closed and not waiting.was_tried and not waiting.may_return:
            return
        if not waiting.is_owner():
            # The conversation has another owner, whose CLI asks by itself.
            return
        waiting.was_tried = True
        awaited = self._waiting.keys()
        row = await self._rows.open(waiting.ask, waiting.expires_after, awaited, waiting.token)
        if row is None:
            return
        waiting.number = row.number
        self._waiting[row.number] = waiting
        self._look_at(row)
        if waiting.is_closed:
            self.let_go(waiting, "the CLI withdrew the request")
        elif row.can_be_used:
            self._changed[row.number] = row

    async def _begin_watch(self, watch: Watch) -> None:
        last, rows = await self._rows.last_change(), await self._rows.open_ones()
        for row in rows:
            watch.notify(Change("opened", row.ask))
        self._watches[watch] = max([last, *(row.last for row in rows)])
        self._new_watches.remove(watch)

    async def _look(self) -> None:
        assert self._seen is not None
        rows, expiry = await self._rows.changed(self._seen)
        self.next_expiry = NEVER if expiry is None else expiry
        if not rows and self._waiting:
            await self._check_rows()
        self._notify(rows)
        self._changed |= {row.number: row for row in rows if row.number in self._waiting}
        self._seen = max([self._seen, *(row.last for row in rows)])
        while self._changed:
            number = next(iter(self._changed))
            waiting = self._waiting.get(number)
            if waiting is not None:
                await self._handle(waiting, self._changed[number])
            del self._changed[number]

    def _look_at(self, row: AskRow) -> None:
        """Notify watchers of a change that was made here, if no other came before it."""
        assert self._seen is not None
        if row.last == self._seen + 1:
            self._notify([row])
            self._seen = row.last

    async def _check_rows(self) -> None:
        """Store the asks again if the database was replaced, or put back to an earlier state."""
        assert self._seen is not None
        last = await self._rows.last_change()
        if last < self._seen:
            self._seen = last
            self._new += self._waiting.values()
            self._waiting.clear()

    def _notify(self, rows: list[AskRow]) -> None:
        for watch, since in [*self._watches.items()]:
            if watch.is_abandoned:
                del self._watches[watch]
                continue
            changes = sorted(
                (each for row in rows for each in row.changes(since)), key=lambda each: each[0]
            )
            for _, change in changes:
                watch.notify(change)
            self._watches[watch] = max([since, *(number for number, _ in changes)])

    async def _handle(self, waiting: Waiting, row: AskRow) -> None:
        if row.state == "open":
            return
        if waiting.is_abandoned:
            # Nothing is used that cannot be given. `let_go` has come, or is on its way.
            self._waiting.pop(row.number, None)
            if waiting.is_closed and not waiting.may_return:
                self._close_later(row.number, "the CLI withdrew the request", waiting)
            return
        if waiting.only_looks and row.can_be_used:
            del self._waiting[row.number]
            waiting.give(row)
            return
        if row.can_be_used or row.used_mark == waiting.mark:
            row = await self._rows.use(row.number, waiting.mark, waiting.token)
            self._look_at(row)
        # `let_go` may have come during that call.
        self._waiting.pop(row.number, None)
        if row.used_mark != waiting.mark and waiting.is_closed:
            return
        if row.used_mark != waiting.mark:
            # Closed, or used by another session. This request still waits: it gets another row.
            waiting.number, waiting.mark = None, _mark()
            self._new.append(waiting)
        elif not waiting.give(row) and (waiting.may_return or not waiting.is_closed):
            number, mark = row.number, waiting.mark
            self._writes.append(lambda: self._rows.give_back(number, mark))

    def abandon(self) -> None:
        """Report to the sessions that wait that nothing will answer them in this process."""
        closed = StoreError(
            "the store of the inbox was closed while an ask waits",
            hint="close sessions before their store; the ask stays open for the next process",
        )
        for report in {each.report for each in self._waiting.values() if not each.is_abandoned}:
            with suppress(RuntimeError):
                report(closed)

    def _report(self, error: BaseException) -> None:
        if not self.fault:
            log.warning("asks cannot be stored or answered; they wait: %s", error)
        self.fault = str(error).partition("\n")[0] or type(error).__name__
        for waiting in (*self._new, *self._waiting.values()):
            if waiting.report not in self._reported:
                self._reported.add(waiting.report)
                # The event loop of the session may be closed.
                with suppress(RuntimeError):
                    waiting.report(error)
