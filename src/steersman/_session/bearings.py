"""Where a session stands: its phase, its state, and what there is to know about both."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from steersman._session.course import Course
from steersman._session.ledger import Ledger
from steersman._session.life import Life
from steersman._session.listening import Listeners
from steersman._session.log import Log
from steersman._session.views import add_open
from steersman.control.handshake import Initialized
from steersman.journal import Kind, Move, Phase, step
from steersman.journal.snapshot import SessionSnapshot, State, StateChanged
from steersman.journal.state import StateFollower

__all__ = ["Bearings"]

# Python 3.11 looks an enum's members up at thirty times the price of a name, for every question.
RUNNING, PHASE = Phase.RUNNING, Kind.PHASE


class Bearings:
    """The prompts, the journal and the state of one session, over all the CLIs that it has."""

    def __init__(self, course: Course) -> None:
        self.options = course.options
        self.log = Log(course.options.journal_memory, course.clock)
        self.ledger = Ledger(self.log, course.options.request_timeout, self._written_down)
        self.listeners = Listeners()
        self.phase = Phase.IDLE
        self.initialized: Initialized | None = None
        self.life: Life | None = None
        self.is_cli_idle = True
        """Whether the CLI says that it has nothing left to do; subagents count as something."""
        self.is_between_turns = True
        """Whether the main agent has nothing to do."""
        self._course = course
        self._known_id = course.plan.session_id
        self._told: State = "idle"
        self._since = 0.0
        self._started: float | None = None
        self._completed: float | None = None
        self._reviving: asyncio.Task[None] | None = None

    @property
    def session_id(self) -> str | None:
        """The conversation's id, as far as it is known."""
        told = "" if self.life is None else self.life.link.connection.session_id
        self._known_id = told or self._known_id
        return self._known_id

    @property
    def state(self) -> State:
        """The phase, or what the session waits for in it."""
        if self.life is not None and self.phase is RUNNING:
            return self.life.handlers.need or "running"
        return self.phase.value

    def snapshot(self) -> SessionSnapshot:
        """Where the session stands now."""
        from steersman.journal.state import snapshot_of  # noqa: PLC0415 - when first asked for

        standing = StateFollower()
        standing.phase, standing.state, standing.since = self.phase, self.state, self._since
        standing.started, standing.completed = self._started, self._completed
        if self.life is not None:
            add_open(standing, self.life.handlers)
        return snapshot_of(
            standing,
            self.ledger.accounts,
            session_id=self.session_id,
            queued=self.ledger.queued,
        )

    @property
    def started(self) -> float | None:
        """When the first CLI was launched."""
        return self._started

    @property
    def is_at_rest(self) -> bool:
        """Whether nothing happens and nothing waits, in the background neither."""
        return (
            self.phase is not Phase.STARTING
            and self.ledger.at_work is None
            and not self.ledger.queued
            and self.is_cli_idle
            and not self.is_reviving
            and not self.ledger.accounts.running_tasks
        )

    @property
    def is_reviving(self) -> bool:
        """Whether a lost CLI is being replaced."""
        return self._reviving is not None and not self._reviving.done()

    @property
    def is_parked(self) -> bool:
        """Whether only background work is left: prompts are welcome, and someone is still busy."""
        has_turn = self.ledger.at_work is not None or not self.is_between_turns
        return not has_turn and any(
            each.is_background for each in self.ledger.accounts.running_tasks
        )

    @property
    def _waits(self) -> bool:
        """Whether a person is asked, or a tool of ours runs."""
        return self.life is not None and self.life.handlers.need is not None

    @property
    def _is_modern(self) -> bool:
        """Whether the CLI can wait for our hooks before it takes a turn up again."""
        return self.initialized is not None and bool(self.initialized.capabilities)

    def _written_down(self) -> Sequence[bytes]:
        """What the CLI has written down about the conversation, as far as we can read it."""
        lines = self._course.transcript(self.session_id) if self.session_id else None
        return lines or ()

    # Moving

    def move(self, move: Move) -> None:
        """Go into another phase, if the table has that move."""
        self.phase = step(self.phase, move)
        self.refresh()

    def refresh(self) -> None:
        """Write down that the state is another one than before."""
        after = self.state
        if after == self._told:
            return
        now = self.log.clock()
        if self.phase is Phase.STARTING and self._started is None:
            self._started = now
        if self.phase.is_over:
            self._completed = now
        self._write_down(after, now)

    def _write_down(self, after: State, at: float) -> None:
        before = self._told
        self._told, self._since = after, at
        self.log.append(at, PHASE, details={"before": before, "after": after})
        self.log.wake()
        if self.listeners.wants("state_change"):
            self.listeners.tell("state_change", StateChanged(before, after, self.snapshot()))

    def _park(self) -> None:
        """Come to rest beside background work; the CLI calls itself running while agents are."""
        if self.is_parked and not self._waits:
            self.move(Move.REST)

    def _is_in_turn(self) -> bool:
        """Whether we are in the middle of a turn, as with nearly every question."""
        return self.phase is RUNNING and self.ledger.is_at_work

    def _on_waiting(self) -> None:
        """Somebody is waited for, or no longer; background work can ask as well."""
        if self.life is not None and self._is_in_turn():
            # How it is with nearly every question, in the middle of a turn.
            self._write_down(self.life.handlers.need or "running", self.log.clock())
            return
        if self._waits and self.phase is Phase.IDLE:
            self.phase = step(self.phase, Move.BEGIN)
        self._park()
        self.refresh()
