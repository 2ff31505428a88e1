"""The sessions of a fleet: opened for a turn, kept warm, parked, closed.

`Slots` calls `run` when a turn has a slot. What differs between a fleet in one process and a worker
of a store is in their `SessionRules`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from steersman._background import faults_of
from steersman.agent import Agent, Prompt, Session, Turn, When
from steersman.errors import SteersmanError, StoreError
from steersman.fleet.budgets import limits_for, result_json
from steersman.fleet.holds import limited_until
from steersman.fleet.jobs import failed_result
from steersman.fleet.ports import JobSpec, SegmentEnd
from steersman.journal.results import TurnResult
from steersman.journal.snapshot import StateChanged
from steersman.messages.parsing import Message
from steersman.ports import Clock, DurableAsks

if TYPE_CHECKING:
    from steersman.inbox import StoredInbox
    from steersman.options.keywords import OptionKwargs

log = logging.getLogger("steersman.fleet")

AGAIN = 1.0
"""Seconds until a segment is run again that could not begin."""
NO_AGENT = 5.0
INTERRUPTING = 20.0
"""Seconds for a turn to end after it was cancelled."""


class Observer(Protocol):
    """Learns what becomes of jobs. Every call is short and does not raise."""

    def began(self, job: str, session: Session, turn: Turn, after: int) -> None:
        """Record that the prompt of a job was sent; its entries have numbers above `after`."""
        ...

    def settled(self, job: str, result: TurnResult) -> None:
        """Record the result of a turn; it may be `parked`."""
        ...


class Reports(Protocol):
    """Takes what sessions report beside turns; `Slots` does. Every call is short."""

    def waits(self, conversation: str, *, is_waiting: bool) -> None:
        """Record that a session waits only for the user, and could be parked; or no longer."""
        ...

    def limited(self, conversation: str, until: float) -> None:
        """Record that the API refuses requests until a time, in seconds since 1970."""
        ...


class SessionRules(Protocol):
    """With what sessions are opened, and when their turns have ended for the engine of the jobs."""

    keeps_open: bool
    """Whether a session stays open after its turn, for the next one of its conversation."""

    def options(self, agent: Agent, conversation: str) -> OptionKwargs:
        """Return the options that the session of a conversation gets beside its agent's."""
        ...

    def is_undecided(self, error: SteersmanError) -> bool:
        """Whether a turn has not ended although this was raised: another segment continues it."""
        ...

    async def reserve(self, agent: Agent, spec: JobSpec) -> SegmentEnd | None:
        """Reserve what the turn may cost. Returns how the segment ends if there is not enough."""
        ...

    async def end_of(self, session: Session, spec: JobSpec, result: TurnResult) -> SegmentEnd:
        """Return how a segment ended. Its session is closed unless it is kept open."""
        ...

    async def release(self, spec: JobSpec, cost: float = 0.0) -> None:
        """Replace what a job has reserved by its cost; only the first call counts."""
        ...


class LocalRules:
    """The rules of a fleet in one process: sessions are kept; `Slots` reserves what turns cost."""

    keeps_open = True

    def __init__(self, inbox: StoredInbox | None = None) -> None:
        self._inbox = inbox
        """The inbox of agents that have none."""

    def options(self, agent: Agent, conversation: str) -> OptionKwargs:
        """Return the inbox of the fleet, for an agent without one."""
        del conversation
        if self._inbox is None or agent.options.inbox is not None:
            return {}
        return {"inbox": self._inbox}

    def is_undecided(self, error: SteersmanError) -> bool:
        """Whether the store was away."""
        return isinstance(error, StoreError)

    async def reserve(self, agent: Agent, spec: JobSpec) -> None:
        """Reserve nothing: the turn would not have a slot."""

    async def end_of(self, session: Session, spec: JobSpec, result: TurnResult) -> SegmentEnd:
        """Return the result; that of a parked turn, too."""
        del session, spec
        return parked_end(result) or SegmentEnd(state="settled", result=result_json(result))

    async def release(self, spec: JobSpec, cost: float = 0.0) -> None:
        """Release nothing: `Slots` does."""


@dataclass(slots=True)
class _Open:
    """A session that is open, and what it was opened with."""

    session: Session
    agent: str
    limits: str
    can_park: bool
    turns: list[Turn] = field(default_factory=list[Turn])
    """The turns that were sent to it and are waited for."""


class FleetSessions:
    """The open sessions, by conversation. At most one each."""

    def __init__(
        self,
        agents: Mapping[str, Agent],
        rules: SessionRules,
        observer: Observer | None = None,
        *,
        clock: Clock = time.time,
    ) -> None:
        self.agents = agents
        self._rules = rules
        self._observer = observer
        self._clock = clock
        self._open: dict[str, _Open] = {}
        self._opening: set[str] = set()
        self._left: set[str] = set()
        """Conversations that were to be left while they were being opened."""

    # One turn

    async def run(self, spec: JobSpec, number: int, reports: Reports) -> SegmentEnd:
        """Run one segment: open the conversation, send the prompt, wait for its end.

        The session stays open if `keeps` is true. `send(key=)` makes sure that the turn runs once,
        whatever was done before. A cancellation interrupts the turn.
        """
        del number
        agent = self.agents.get(spec.agent)
        if agent is None:
            why = f"no worker that has tried it has the agent {spec.agent!r}"
            return SegmentEnd(state="again", why=why, after=NO_AGENT)
        self._opening.add(spec.conversation)
        try:
            held = await self._rules.reserve(agent, spec)
            return held or await self._turn(agent, spec, reports)
        except SteersmanError as error:
            if self._rules.is_undecided(error):
                return SegmentEnd(state="again", why=error.what, after=AGAIN)
            await self.close(spec.conversation)
            await self._rules.release(spec)
            self._settled(spec, TurnResult(uuid=spec.id, outcome="failed", cause=error))
            return SegmentEnd(state="settled", result=failed_result(spec, error))
        finally:
            self._sent(spec.conversation)
            if not self._rules.keeps_open:
                await self.close(spec.conversation)

    async def _turn(self, agent: Agent, spec: JobSpec, reports: Reports) -> SegmentEnd:
        held = await self._session_for(agent, spec, reports)
        if spec.conversation in self._left:
            await self.close(spec.conversation)
            return SegmentEnd(state="parked")
        turn = await self._send(held, spec, "later")
        try:
            if self._sent(spec.conversation):
                await self.leave(spec.conversation)
            result = await turn
            self._settled(spec, result)
            await self._others(held, turn)
        except asyncio.CancelledError:
            await _stop(held.session, turn)
            if turn.is_settled:
                await self._rules.release(spec, (await turn).cost_usd)
            raise
        finally:
            held.turns.clear()
        is_over = held.session.phase.is_over or result.outcome == "parked"
        if is_over or not self._rules.keeps_open:
            await self.close(spec.conversation)
        return await self._rules.end_of(held.session, spec, result)

    async def _send(self, held: _Open, spec: JobSpec, when: When) -> Turn:
        after = held.session.last_seq
        prompt: Prompt = spec.prompt
        turn = await held.session.send(prompt, when=when, key=spec.key)
        held.turns.append(turn)
        if self._observer is not None:
            self._observer.began(spec.id, held.session, turn, after)
        return turn

    def _sent(self, conversation: str) -> bool:
        """Record that nothing is sent any more; returns whether to leave the conversation now."""
        was_left = conversation in self._left
        self._opening.discard(conversation)
        self._left.discard(conversation)
        return was_left

    def _settled(self, spec: JobSpec, result: TurnResult) -> None:
        if self._observer is not None:
            self._observer.settled(spec.id, result)

    async def _others(self, held: _Open, turn: Turn) -> None:
        """Wait for the prompts that joined the turn, and became turns of their own."""
        while left := [each for each in held.turns if each is not turn and not each.is_settled]:
            await left[0]

    async def _session_for(self, agent: Agent, spec: JobSpec, reports: Reports) -> _Open:
        """Return the warm session of the conversation, or open it."""
        held, limits = self._open.get(spec.conversation), repr(spec.limits)
        if held is not None:
            if not held.session.phase.is_over and (held.agent, held.limits) == (spec.agent, limits):
                return held
            await self.close(spec.conversation)
        words = self._rules.options(agent, spec.conversation)
        if spec.limits is not None:
            words["limits"] = limits_for(agent, spec.limits)
        session = await agent.open(spec.conversation, **words)
        return self._keep(spec.conversation, session, spec.agent, limits, reports)

    def _keep(
        self, conversation: str, session: Session, agent: str, limits: str, reports: Reports
    ) -> _Open:
        can_park = isinstance(session.options.inbox, DurableAsks)
        held = self._open[conversation] = _Open(session, agent, limits, can_park)

        def heard(message: Message) -> None:
            until = limited_until(message, self._clock())
            if until is not None:
                reports.limited(conversation, until)

        def changed(state: StateChanged) -> None:
            is_waiting = state.after == "waiting_permission"
            if is_waiting or state.before == "waiting_permission":
                reports.waits(conversation, is_waiting=is_waiting)

        session.on("message", heard)
        if can_park:
            session.on("state_change", changed)
        return held

    def has_turn(self, conversation: str) -> bool:
        """Whether a turn of the conversation runs, which a prompt can join."""
        held = self._open.get(conversation)
        return held is not None and any(not turn.is_settled for turn in held.turns)

    async def join(self, spec: JobSpec, when: When) -> SegmentEnd | None:
        """Send a prompt into the turn in progress; returns None if there is none."""
        held = self._open.get(spec.conversation)
        if held is None or not self.has_turn(spec.conversation):
            return None
        result = await (await self._send(held, spec, when))
        self._settled(spec, result)
        return await self._rules.end_of(held.session, spec, result)

    # Sessions

    def keeps(self, conversation: str) -> bool:
        """Whether the conversation has an open session."""
        held = self._open.get(conversation)
        return held is not None and not held.session.phase.is_over

    def can_park(self, conversation: str) -> bool:
        """Whether the turn of the conversation can be left, and continued later."""
        held = self._open.get(conversation)
        return held is not None and held.can_park

    def has_background(self, conversation: str) -> bool:
        """Whether a session has work of its own beside turns."""
        held = self._open.get(conversation)
        return held is not None and any(each.is_running for each in held.session.tasks)

    @property
    def faults(self) -> dict[str, str]:
        """The background tasks of sessions that fail now."""
        return faults_of({name: each.session.faults for name, each in self._open.items()})

    async def close(self, conversation: str) -> None:
        """Close the session of a conversation, if it has one; returns when its CLI has exited."""
        held = self._open.pop(conversation, None)
        if held is not None:
            await held.session.aclose()

    async def leave(self, conversation: str) -> None:
        """Park the session of a conversation: its turn ends as parked. Kill it if it cannot be."""
        if conversation in self._opening:
            # It is left once it is open and its prompt is sent, or not sent at all.
            self._left.add(conversation)
            return
        held = self._open.get(conversation)
        if held is None:
            return
        try:
            if held.can_park:
                await held.session.park()
            else:
                # Not `aclose`, which interrupts: a turn that was killed continues with its key.
                await held.session.cancel()
        except SteersmanError as error:
            log.warning("a session could not be left: %s", error)

    async def prepare(self, agent: str, reports: Reports) -> str:
        """Start a session for a conversation to come, and return its name: its session id."""
        name = str(uuid.uuid4())
        words = self._rules.options(self.agents[agent], name)
        words["session_id"] = name
        session = await self.agents[agent].start(**words)
        self._keep(name, session, agent, repr(None), reports)
        return name

    async def aclose(self) -> None:
        """Close all sessions."""
        await asyncio.gather(*(self.close(each) for each in tuple(self._open)))


def parked_end(result: TurnResult) -> SegmentEnd | None:
    """Return how the segment of a parked turn ended; None for any other turn."""
    if result.outcome != "parked":
        return None
    count = len(result.waits_for)
    why = f"waits for {count} answer{'' if count == 1 else 's'}" if count else ""
    return SegmentEnd(
        state="parked", result=result_json(result), waits_for=result.waits_for, why=why
    )


async def _stop(session: Session, turn: Turn) -> None:
    """Interrupt a turn, also during a cancellation."""
    stopping = asyncio.ensure_future(session.interrupt(turn=turn))
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.wait([stopping], timeout=INTERRUPTING)
    if not stopping.done() or stopping.cancelled() or stopping.exception() is not None:
        session.abandon()
