"""A session from its start to its end: CLIs are launched, greeted, and seen gone."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from dataclasses import replace

from steersman._launch.plan import LaunchPlan
from steersman._protocol.events import Event
from steersman._session.bearings import Bearings
from steersman._session.ceremonies import raise_end
from steersman._session.course import Course, Flight
from steersman._session.handlers import Handlers
from steersman._session.handover import Handover
from steersman._session.inbound import Desk
from steersman._session.life import Life
from steersman._session.link import Link
from steersman._session.measuring import Meter
from steersman._session.pausing import Gate, with_gate
from steersman._session.readiness import ServerBook, await_servers
from steersman._session.starting import start
from steersman._session.watching import Watch
from steersman.control.session import Interrupt
from steersman.errors import (
    ChannelClosed,
    LimitReached,
    RequestRefused,
    Stalled,
    SteersmanError,
    UsageError,
)
from steersman.journal import Entry, Kind, Move, Phase
from steersman.messages.turns import Assistant

__all__ = ["Voyage"]

log = logging.getLogger("steersman.session")

FLIGHT = 500
"""Entries of the journal that are kept after an error."""

LOST = -9
"""The status of a CLI whose end nobody told us."""


class Voyage(Bearings, ABC):
    """Begins and ends. What happens between is for those who build on it."""

    def __init__(self, course: Course) -> None:
        super().__init__(course)
        self.gate = Gate()
        self.cause: SteersmanError | None = None
        """Why the session is over, if it did not end in order."""
        self.desk: Desk | None = None
        """Set before the start."""
        self.servers = ServerBook(self.log)
        self._watch = Watch(course.options.watchdog, self)
        self._meter = Meter(course.options.limits, self)
        self._ending: Move | None = None
        self._parting: asyncio.Task[None] | None = None
        self._starting = asyncio.Event()
        """Clear while the first CLI is being started; each step of that is bounded."""
        self._starting.set()

    @abstractmethod
    def kill(self, why: Stalled | LimitReached) -> None:
        """End a CLI that does not obey."""

    @abstractmethod
    def message_arrived(self, entry: Entry, name: str) -> None:
        """A message stands in the journal."""

    @abstractmethod
    def speech_arrived(self, entry: Entry, speech: Assistant) -> None:
        """The same for what an agent said."""

    @abstractmethod
    def event_happened(self, event: Event) -> None:
        """The machine reports a question, a turn or a state."""

    @abstractmethod
    def caught_up(self) -> None:
        """All that the CLI has said so far was told."""

    @abstractmethod
    def link_ended(self, link: Link, status: int) -> None:
        """The CLI and its tree are gone."""

    # Whom one can speak to

    def at_work(self) -> Life:
        """The CLI that can be spoken to now. Raises what it is that keeps us from it."""
        if self.cause is not None:
            raise self.cause
        if self.life is None or self.initialized is None:
            raise ChannelClosed("this session has not started", hint="use `async with`")
        if not self.life.link.is_open:
            raise ChannelClosed("this session is closed", hint="open another session")
        return self.life

    async def living(self) -> Life:
        """The same, after a revival that is under way; each of its steps is bounded."""
        while self._reviving is not None and not self._reviving.done():
            await asyncio.wait([self._reviving])
        return self.at_work()

    async def answering(self, operation: str) -> Life:
        """The same, unless it is stopped where it stands, and would not answer."""
        life = await self.living()
        if self.gate.has_stopped_tree:
            raise RequestRefused(
                operation, "the CLI is stopped by pause(hard=True); resume() first"
            )
        return life

    def refuse_more(self) -> None:
        """Raise `LimitReached` if the session's own limit is used up."""
        self._meter.refuse_more()

    def _look(self) -> None:
        """Watch the CLI, unless it is held."""
        if not self.gate.is_shut:
            self._watch.look()

    # The start

    async def start(self) -> None:
        """Run the first CLI and greet it."""
        if self.phase is not Phase.IDLE or self.life is not None:
            raise UsageError("session", self, "a session that was not started before")
        assert self.desk is not None
        if self._course.record is not None:
            self.log.keep(self._course.record(self._redacted, self._on_full_disk))
        self.move(Move.LAUNCH)
        self._starting.clear()
        try:
            await self.desk.serving.attach()
            await self._begin(self._course.plan)
        except BaseException as error:
            await self._give_up(error)
            raise
        finally:
            self._starting.set()
        assert self.life is not None
        self.move(Move.GREET)
        self.ledger.move_to(self.life.link)

    async def _begin(self, plan: LaunchPlan, handover: Handover | None = None) -> None:
        """Run a CLI. On failure it is gone again."""
        assert self.desk is not None
        if self._ending is not None:
            raise ChannelClosed("this session was closed while it was starting")
        if self.gate.is_installed or self.gate.is_shut:
            plan = replace(plan, initialize=with_gate(plan.initialize))
            self.gate.is_installed = True
            self.gate.has_stopped_tree = False
        is_fresh = self.life is None and not self.options.goes_on
        link = Link(plan, self.options, self, self.log)
        self.life = Life(link, Handlers(self.desk, link, self._on_waiting, self._is_in_turn))
        if handover is not None:
            self.ledger.announce(link, handover)
        self.initialized = await start(link, plan, self._course.transport, self.options.startup)
        self._meter.launched(is_fresh=is_fresh)
        self.ledger.tells_all = self._is_modern
        await await_servers(link, self.servers, self.options, self.desk.serving.keys)

    async def _give_up(self, error: BaseException) -> None:
        """End a session that did not start: failed, unless it was we who did not want it to."""
        assert self.desk is not None
        is_wanted = self._ending is not None or isinstance(error, asyncio.CancelledError)
        self._ending = self._ending or (Move.CANCEL if is_wanted else Move.FAIL)
        cause = error if isinstance(error, SteersmanError) and not is_wanted else None
        if not self.phase.is_over:
            self._finish(cause)
        if cause is None and not is_wanted:
            self._keep_flight(error)
        if self._parting is not None:
            await asyncio.shield(self._parting)
        await self.listeners.hear_out(self.options.close_grace)

    # The end

    def close(self, ending: Move = Move.COMPLETE) -> None:
        """Begin to end the session: in order, or at once if it is cancelled."""
        if self.phase.is_over or (self.phase is Phase.IDLE and self.life is None):
            self._close_unused(ending)
            return
        self._ending = self._ending or ending
        self.ledger.take_back(None, also_queued=True)
        if self._reviving is not None:
            self._reviving.cancel()
        if self.life is not None:
            self.life.handlers.cancel_all()
            self._end_life(self.life, ending)

    def _close_unused(self, ending: Move) -> None:
        """One that was never started can only be cancelled; one that is over stays as it is."""
        if ending is Move.CANCEL and not self.phase.is_over:
            self._ending = ending
            self._finish(None)

    def _end_life(self, life: Life, ending: Move) -> None:
        if ending is Move.CANCEL or self.phase is Phase.STARTING:
            life.link.end()
        elif life.link.is_open:
            # A tree that was stopped is ended as it stands: it must not run on to hear of it.
            if self.ledger.at_work is not None and not self.gate.has_stopped_tree:
                # Also where it has not begun: at the end of its input the CLI would still run it.
                life.link.tell(Interrupt(cancel_queued=True), self.options.request_timeout)
            life.link.close(self.options.close_grace)

    async def see_it_gone(self) -> None:
        """Return when the CLI's whole tree is gone, and everybody has been told."""
        await self._starting.wait()
        if self.life is None or self.desk is None:
            return
        if self._reviving is not None:
            await asyncio.wait([self._reviving])
        link = self.life.link
        if link.was_opened:
            await asyncio.wait([link.gone], timeout=3 * self.options.close_grace + 10)
            if not link.gone.done():
                # The ladder is the transport's, and it has lost its way: nobody shall wait for it.
                link.exited(LOST)
        if not self.phase.is_over:
            self._finish(None)
        if self._parting is not None:
            # Shielded: nobody may be left uninformed because one who waits is cancelled.
            await asyncio.shield(self._parting)
        await self.listeners.hear_out(self.options.close_grace)

    def _finish(self, cause: SteersmanError | None) -> None:
        """Settle what is left: cancelled if we closed, failed with `cause` if the CLI left us."""
        self.cause = self.cause or cause
        self._watch.rest()
        self._meter.rest()
        self.ledger.settle_all(cause)
        self.move((self._ending or Move.COMPLETE) if cause is None else Move.FAIL)
        self.log.end()
        if cause is not None:
            self._failed(cause)
        self.listeners.tell("complete", self.snapshot())
        self._parting = asyncio.get_running_loop().create_task(self._part())

    async def _part(self) -> None:
        """Take leave of hooks and servers; also where nobody waits for the end."""
        assert self.desk is not None
        if self.life is not None:
            await self.life.handlers.wait(self.options.close_grace)
        if self.initialized is not None:
            await raise_end(self.desk.hooking, self.options, self.session_id or "")
        await self.desk.serving.detach()

    # Keeping what happened

    def _redacted(self, line: bytes) -> bytes:
        return line if self.life is None else self.life.link.redactor.line(line)

    def _on_full_disk(self, report: str) -> None:
        log.error("the journal is no longer written: %s", report)
        self.log.fault("journal file", report)

    def _failed(self, error: SteersmanError) -> None:
        self.listeners.tell("error", error)
        self._keep_flight(error)

    def _keep_flight(self, error: BaseException) -> None:
        if self._course.on_flight is None:
            return
        journal = self.log.journal
        stderr = "" if self.life is None else self.life.link.evidence("flight").stderr_tail
        version = "" if self.initialized is None else self.initialized.claude_code_version
        recent = max(0, journal.last_seq - FLIGHT)
        entries = [
            Entry(each.seq, each.at, each.kind, self._redacted(each.line), each.turns, each.details)
            for each in journal.after(0, most=journal.last_seq)
            if each.seq > recent or each.kind is Kind.PHASE
        ]
        self._course.on_flight(Flight(error, self.session_id, entries, stderr, version))
