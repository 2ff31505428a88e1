"""Runs segments on a few slots: a `Scheduler` with a clock, tasks and sessions.

A fleet in one process has one, and so has each worker of a fleet over processes.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, Protocol

from steersman.errors import LimitReached
from steersman.fleet.budgets import cost_of, usd_of
from steersman.fleet.conversations import Action, Begin, Close, Leave, Order, Prepare
from steersman.fleet.governor import Governor
from steersman.fleet.holds import Hold
from steersman.fleet.jobs import failed_result
from steersman.fleet.ports import JobSpec, SegmentEnd
from steersman.fleet.scheduler import Scheduler
from steersman.fleet.sessions import AGAIN, Reports
from steersman.ports import Clock

log = logging.getLogger("steersman.fleet")

LOOK_AGAIN = 1.0
"""Seconds until memory is looked at again while it is short."""
LONGEST_HOLD = 60.0
"""Seconds after which a turn that was held is tried again, at most."""
STARTING = 3.0
"""Seconds until a CLI that was started has taken the memory that it needs."""


class Runner(Protocol):
    """Runs the segments; `FleetSessions` is one."""

    async def run(self, spec: JobSpec, number: int, reports: Reports) -> SegmentEnd:
        """Run a segment on a slot."""
        ...

    def keeps(self, conversation: str) -> bool:
        """Whether a conversation has a session, which takes a slot."""
        ...

    def has_background(self, conversation: str) -> bool:
        """Whether a session has work of its own beside turns."""
        ...

    async def close(self, conversation: str) -> None:
        """Close the session of a conversation."""
        ...

    async def leave(self, conversation: str) -> None:
        """End the turn of a conversation as parked."""
        ...

    async def prepare(self, agent: str, reports: Reports) -> str:
        """Start a session for a conversation to come, and return its name."""
        ...


@dataclass(slots=True)
class _Waiting:
    """A segment that was asked for and has not ended."""

    spec: JobSpec
    number: int
    end: asyncio.Future[SegmentEnd]
    running: asyncio.Task[SegmentEnd] | None = None
    was_cancelled: bool = False


@dataclass(slots=True)
class Slots:
    """Runs segments when the scheduler decides so, in one event loop."""

    runner: Runner
    scheduler: Scheduler
    governor: Governor = field(default_factory=lambda: Governor(memory_free=0))
    clock: Clock = time.time
    """The time of day, for words and rate limits. Intervals are those of the event loop."""
    spare_agent: str = "default"
    is_shared: bool = False
    """Whether others share the engine: a turn that is held goes back to it, for any of them, and
    budgets are those of its store."""
    _waiting: dict[str, _Waiting] = field(default_factory=dict[str, _Waiting])
    _tasks: set[asyncio.Task[Any]] = field(default_factory=set[asyncio.Task[Any]])
    _timer: asyncio.TimerHandle | None = None
    _is_deciding: bool = False
    _starts: deque[float] = field(default_factory=deque[float])
    """When the last CLIs were started, whose memory is still counted as free."""
    _rest: asyncio.Event = field(default_factory=asyncio.Event)
    """Set whenever something has ended."""

    # Segments

    async def run(self, spec: JobSpec, number: int = 0, *, is_next: bool = False) -> SegmentEnd:
        """Run a segment once it has a slot, and return how it ended.

        One whose budget has no room ends as cancelled. Cancelling the call cancels the segment.
        """
        if spec.id in self._waiting:
            return SegmentEnd(state="again", why="it has not ended here", after=AGAIN)
        end: asyncio.Future[SegmentEnd] = asyncio.get_running_loop().create_future()
        waiting = self._waiting[spec.id] = _Waiting(spec, number, end)
        order = Order(
            id=spec.id,
            conversation=spec.conversation,
            priority=spec.priority,
            is_next=is_next,
            budget=None if self.is_shared else spec.budget,
            amount=usd_of(spec.limits),
        )
        self.scheduler.submit(order)
        self.changed()
        try:
            return await end
        except asyncio.CancelledError:
            await self._cancel(waiting)
            raise
        finally:
            if self._waiting.get(spec.id) is waiting:
                del self._waiting[spec.id]

    async def _cancel(self, waiting: _Waiting) -> None:
        waiting.was_cancelled = True
        if waiting.running is not None:
            waiting.running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([waiting.running])
        else:
            self.scheduler.forget(waiting.spec.id)
            self.changed()

    def forget(self, job: str) -> None:
        """Let the next turn of a conversation begin: this one was parked, and is cancelled."""
        if self.scheduler.forget(job):
            self.changed()

    def hold(self, job: str) -> Hold | None:
        """Return the state of a segment and why it waits; None if it is not here."""
        return self.scheduler.hold(job, self._now)

    # Decisions

    @property
    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def changed(self) -> None:
        """Decide soon what is to be done."""
        if not self._is_deciding:
            self._is_deciding = True
            asyncio.get_running_loop().call_soon(self._decide)

    def _decide(self) -> None:
        self._is_deciding = False
        now = self._now
        for each in self.scheduler.table.in_state("warm"):
            has_work = self.runner.has_background(each.name)
            self.scheduler.background(each.name, now, has_work=has_work)
        while self._starts and self._starts[0] <= now - STARTING:
            self._starts.popleft()
        for action in self.scheduler.decide(now, self._free_memory(), len(self._starts)):
            self._do(action)
        if self.is_shared:
            self._give_back(now)
        self._set_timer(now)

    def _give_back(self, now: float) -> None:
        """End the segments that are held, so that another worker can run them."""
        for id_, waiting in tuple(self._waiting.items()):
            hold = self.scheduler.hold(id_, now)
            if hold is None or hold.state != "held" or waiting.end.done():
                continue
            self.scheduler.forget(id_)
            after = min(max(hold.seconds or 0.0, AGAIN), LONGEST_HOLD)
            why = hold.words(self.clock())
            waiting.end.set_result(SegmentEnd(state="again", why=why, after=after))

    def _set_timer(self, now: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        at = self.scheduler.changes_at(now)
        is_watching = self.scheduler.is_short_of_memory or self.scheduler.table.has_background
        if is_watching:
            at = min(now + LOOK_AGAIN, now + LOOK_AGAIN if at is None else at)
        if at is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(at - now, 0.001), self.changed)

    def _free_memory(self) -> int | None:
        return self.governor.read_memory() if self.governor.memory_free else None

    def _do(self, action: Action) -> None:
        match action:
            case Begin(order, is_warm):
                if not is_warm:
                    self._starts.append(self._now)
                self._begin(self._waiting[order.id])
            case Close(conversation):
                self._spawn(self._close(conversation, is_working=False))
            case Leave(conversation):
                self._spawn(self._close(conversation, is_working=True))
            case Prepare():
                self._spawn(self._prepare())
            case _:
                self._refuse(self._waiting[action.order.id], action.order)

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.Task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _begin(self, waiting: _Waiting) -> None:
        waiting.running = self._spawn(self.runner.run(waiting.spec, waiting.number, self))
        waiting.running.add_done_callback(lambda task: self._ended(waiting, task))

    def _ended(self, waiting: _Waiting, task: asyncio.Task[SegmentEnd]) -> None:
        spec = waiting.spec
        end = None if task.cancelled() or task.exception() is not None else task.result()
        self.scheduler.ended(
            spec.id,
            self._now,
            is_parked=end is not None and end.state != "settled" and not waiting.was_cancelled,
            keeps_session=self.runner.keeps(spec.conversation),
            cost=cost_of(end),
        )
        self._rest.set()
        self.changed()
        if waiting.end.done():
            return
        if end is not None:
            waiting.end.set_result(end)
        elif task.cancelled():
            waiting.end.cancel()
        else:
            waiting.end.set_exception(task.exception() or RuntimeError("a segment gave no result"))

    def _refuse(self, waiting: _Waiting, order: Order) -> None:
        budget = self.scheduler.budgets
        why = budget.left(order.budget or "", order.amount) or LimitReached("budget", "usd", 0, 0)
        if not waiting.end.done():
            result = failed_result(waiting.spec, why, outcome="cancelled")
            waiting.end.set_result(SegmentEnd(state="settled", result=result, why=why.what))

    async def _close(self, conversation: str, *, is_working: bool) -> None:
        try:
            if is_working:
                await self._leave(conversation)
            await self.runner.close(conversation)
        except Exception:
            log.exception("a session could not be closed")
        finally:
            self.scheduler.closed(conversation)
            self._rest.set()
            self.changed()

    async def _leave(self, conversation: str) -> None:
        try:
            await self.runner.leave(conversation)
        except Exception:
            log.exception("a session could not be left")

    async def _prepare(self) -> None:
        name: str | None = None
        try:
            name = await self.runner.prepare(self.spare_agent, self)
        except Exception:
            # Without this the fleet would try again at once, and for ever.
            self.scheduler.warm = 0
            log.exception("no CLI could be started ahead; turns start their own")
        finally:
            self.scheduler.prepared(name, self._now)
            self.changed()

    # What the sessions report

    def waits(self, conversation: str, *, is_waiting: bool) -> None:
        """Record that a session waits only for the user, and could be parked; or no longer."""
        self.scheduler.waits(conversation, self._now, is_waiting=is_waiting)
        self.changed()

    def limited(self, conversation: str, until: float) -> None:
        """Record that the API refuses requests until a time, in seconds since 1970."""
        now = self._now
        self.scheduler.limited(now, now + until - self.clock(), conversation)
        self.changed()

    def claim(self) -> str | None:
        """Return the name of a conversation that has a session already, for a new one."""
        found = self.scheduler.claim(self._now)
        self.changed()
        return found

    # The end

    async def drain(self, timeout: float) -> None:
        """Begin no turn, and return when all have ended; those left at `timeout` are parked."""
        self.scheduler.is_draining = True
        self.changed()
        for each in self.scheduler.table.waiting():
            self._spawn(self._leave(each.name))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._until_rest()
        working = self.scheduler.table.in_state("working")
        await asyncio.gather(*(self._leave(each.name) for each in working))
        await self._until_rest()

    async def _until_rest(self) -> None:
        while not self.scheduler.table.is_unused:
            self._rest.clear()
            await self._rest.wait()

    async def aclose(self) -> None:
        """Cancel what waits and runs, and wait for it."""
        self.scheduler.is_draining = True
        if self._timer is not None:
            self._timer.cancel()
        for each in tuple(self._waiting.values()):
            if not each.end.done():
                each.end.cancel()
        while self._tasks:
            await asyncio.wait(self._tasks)
