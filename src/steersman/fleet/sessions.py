"""The sessions of a fleet: opened for a turn, kept warm, parked, closed.

Knows nothing of slots: who calls `run` has one. It is what an activity of another engine calls.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from steersman._background import faults_of
from steersman.agent import Agent, Prompt, Session, Turn, When
from steersman.errors import SteersmanError, StoreError
from steersman.fleet.jobs import failed_result
from steersman.fleet.ports import JobSpec, SegmentEnd
from steersman.fleet.rate_limits import limited_until
from steersman.fleet.specs import limits_for, result_json
from steersman.journal.results import TurnResult
from steersman.journal.snapshot import StateChanged
from steersman.messages.parsing import Message
from steersman.ports import Clock, DurableAsks

if TYPE_CHECKING:
    from steersman.inbox import StoredInbox
    from steersman.options.keywords import OptionKwargs

INTERRUPTING = 20.0
"""Seconds for a turn to end after it was cancelled."""


class Observer(Protocol):
    """Learns what sessions do. Every call is short and does not raise."""

    def began(self, job: str, session: Session, turn: Turn, after: int) -> None:
        """Record that the prompt of a job was sent; its entries have numbers above `after`."""
        ...

    def settled(self, job: str, result: TurnResult) -> None:
        """Record the result of a turn; it may be `parked`."""
        ...

    def waits(self, conversation: str, *, is_waiting: bool) -> None:
        """Record that a session waits only for the user, and could be parked; or no longer."""
        ...

    def limited(self, conversation: str, until: float) -> None:
        """Record that the API refuses requests until a time, in seconds since 1970."""
        ...


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
        observer: Observer,
        *,
        inbox: StoredInbox | None = None,
        again: tuple[type[SteersmanError], ...] = (StoreError,),
        clock: Clock = time.time,
    ) -> None:
        self.agents = agents
        self._observer = observer
        self._inbox = inbox
        """The inbox of agents that have none."""
        self._again = again
        """Errors after which a segment is run again, because nothing was decided."""
        self._clock = clock
        self._open: dict[str, _Open] = {}
        self._opening: set[str] = set()
        self._left: set[str] = set()
        """Conversations that were to be left while they were being opened."""

    # One turn

    async def run(self, spec: JobSpec, number: int = 0) -> SegmentEnd:
        """Run one segment: open the conversation, send the prompt, wait for its end.

        The session stays open if `keeps` is true. `send(key=)` makes sure that the turn runs once,
        whatever was done before. A cancellation interrupts the turn.
        """
        del number
        self._opening.add(spec.conversation)
        try:
            held = await self._session_for(spec)
            if spec.conversation in self._left:
                await self.close(spec.conversation)
                return SegmentEnd(state="parked")
            after = held.session.last_seq
            prompt: Prompt = spec.prompt
            turn = await held.session.send(prompt, key=spec.key)
        except self._again as error:
            return SegmentEnd(state="again", why=error.what, after=1.0)
        except SteersmanError as error:
            await self.close(spec.conversation)
            self._observer.settled(spec.id, _failed(spec, error))
            return SegmentEnd(state="settled", result=failed_result(spec, error))
        finally:
            self._opening.discard(spec.conversation)
            self._left.discard(spec.conversation)
        held.turns.append(turn)
        self._observer.began(spec.id, held.session, turn, after)
        try:
            result = await turn
            self._observer.settled(spec.id, result)
            await self._others(held, turn)
        except asyncio.CancelledError:
            await _stop(held.session, turn)
            raise
        finally:
            held.turns.clear()
        return await self._end(spec, held, result)

    async def _others(self, held: _Open, turn: Turn) -> None:
        """Wait for the prompts that joined the turn, and became turns of their own."""
        while left := [each for each in held.turns if each is not turn and not each.is_settled]:
            await left[0]

    async def _end(self, spec: JobSpec, held: _Open, result: TurnResult) -> SegmentEnd:
        if held.session.phase.is_over or result.outcome == "parked":
            await self.close(spec.conversation)
        return _end_of(result)

    async def _session_for(self, spec: JobSpec) -> _Open:
        """Return the warm session of the conversation, or open it."""
        held, limits = self._open.get(spec.conversation), repr(spec.limits)
        if held is not None:
            if not held.session.phase.is_over and (held.agent, held.limits) == (spec.agent, limits):
                return held
            await self.close(spec.conversation)
        agent = self.agents[spec.agent]
        words = self._words(agent)
        if spec.limits is not None:
            words["limits"] = limits_for(agent, spec.limits)
        session = await agent.open(spec.conversation, **words)
        return self._keep(spec.conversation, session, spec.agent, limits)

    def _words(self, agent: Agent) -> OptionKwargs:
        """Return the options that the sessions of an agent get besides."""
        if self._inbox is None or agent.options.inbox is not None:
            return {}
        return {"inbox": self._inbox}

    def _keep(self, conversation: str, session: Session, agent: str, limits: str) -> _Open:
        can_park = isinstance(session.options.inbox, DurableAsks)
        held = self._open[conversation] = _Open(session, agent, limits, can_park)

        def heard(message: Message) -> None:
            until = limited_until(message, self._clock())
            if until is not None:
                self._observer.limited(conversation, until)

        def changed(state: StateChanged) -> None:
            is_waiting = state.after == "waiting_permission"
            if is_waiting or state.before == "waiting_permission":
                self._observer.waits(conversation, is_waiting=is_waiting)

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
        after = held.session.last_seq
        prompt: Prompt = spec.prompt
        turn = await held.session.send(prompt, when=when, key=spec.key)
        held.turns.append(turn)
        self._observer.began(spec.id, held.session, turn, after)
        result = await turn
        self._observer.settled(spec.id, result)
        return _end_of(result)

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
            # Nothing is sent once it is open.
            self._left.add(conversation)
            return
        held = self._open.get(conversation)
        if held is None:
            return
        with contextlib.suppress(SteersmanError):
            if held.can_park:
                await held.session.park()
            else:
                # Not `aclose`, which interrupts: a turn that was killed continues with its key.
                await held.session.cancel()

    async def prepare(self, agent: str) -> str:
        """Start a session for a conversation to come, and return its name: its session id."""
        name = str(uuid.uuid4())
        words = self._words(self.agents[agent])
        words["session_id"] = name
        session = await self.agents[agent].start(**words)
        self._keep(name, session, agent, repr(None))
        return name

    async def aclose(self) -> None:
        """Close all sessions."""
        await asyncio.gather(*(self.close(each) for each in tuple(self._open)))


def _end_of(result: TurnResult) -> SegmentEnd:
    written = result_json(result)
    if result.outcome != "parked":
        return SegmentEnd(state="settled", result=written)
    count = len(result.waits_for)
    why = f"waits for {count} answer{'' if count == 1 else 's'}" if count else ""
    return SegmentEnd(state="parked", result=written, waits_for=result.waits_for, why=why)


def _failed(spec: JobSpec, error: SteersmanError) -> TurnResult:
    return TurnResult(uuid=spec.id, outcome="failed", cause=error)


async def _stop(session: Session, turn: Turn) -> None:
    """Interrupt a turn, also during a cancellation."""
    stopping = asyncio.ensure_future(session.interrupt(turn=turn))
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.wait([stopping], timeout=INTERRUPTING)
    if not stopping.done() or stopping.cancelled() or stopping.exception() is not None:
        session.abandon()
