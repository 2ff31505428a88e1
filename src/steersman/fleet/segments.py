"""Segments on a store: one life of a CLI each, which any worker can continue.

The conversation is opened with the store's inbox, so its turn is stored before it is sent, and its
lease keeps other workers away. `send(key=)` continues the turn if it has begun before.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from steersman import _json
from steersman._background import faults_of
from steersman._json import JsonDict, JsonObject
from steersman.errors import LimitReached, SteersmanError, StoreError, UsageError
from steersman.fleet.jobs import failed_result
from steersman.fleet.ports import JobSpec, SegmentEnd
from steersman.fleet.specs import budget_of, limits_for
from steersman.fleet.turn_gate import TurnGate
from steersman.journal.redaction import Redactor, secrets_in
from steersman.journal.value_json import result_to_json
from steersman.ports import DurableAsks

if TYPE_CHECKING:
    from steersman.agent import Agent, Prompt, Session, Turn
    from steersman.journal.results import TurnResult
    from steersman.options.keywords import OptionKwargs
    from steersman.stores import PostgresStore, SqliteStore

log = logging.getLogger("steersman.fleet")

AGAIN = 1.0
"""Seconds until a segment is run again that could not begin."""
NO_AGENT = 5.0
LONGEST_HOLD = 60.0
INTERRUPTING = 20.0
UNDECIDED = frozenset({"lease_lost", "store", "session_in_use"})
"""The codes of errors after which the turn has not ended: another segment continues it."""


async def segment(agent: Agent, conversation: str, prompt: Prompt, *, key: str) -> TurnResult:
    """Run one life of a CLI for a turn, in the activity of an engine of your own.

    Calling it again with the same `key`, here or elsewhere, continues the turn, or returns its
    result. If the agent's inbox is in a store, a turn that waits for a user ends as `parked`
    after `Park(after=...)`: call it again when an ask of `waits_for` is answered. A cancellation
    parks the turn, too; without a store it is interrupted.
    """
    async with agent.open(conversation) as session:
        turn = await session.send(prompt, key=key)
        try:
            return await turn
        except asyncio.CancelledError:
            if isinstance(session.options.inbox, DurableAsks):
                with suppress(SteersmanError):
                    await session.park()
            raise


class StoreSegments:
    """Runs segments with the agents of this process, and remembers the current sessions."""

    def __init__(
        self,
        agents: Mapping[str, Agent],
        store: SqliteStore | PostgresStore,
        *,
        lease: float,
        park_after: float,
        is_shared: bool,
        gate: TurnGate,
    ) -> None:
        """With `is_shared`, workers are on several machines, so the store keeps conversations."""
        self._agents = agents
        self._store = store
        self._lease = lease
        self._park_after = park_after
        self._is_shared = is_shared
        self._gate = gate
        self._sessions: dict[str, Session] = {}
        self._begun = 0
        """How many segments are past the gate."""
        self._redactors: dict[str, Redactor] = {}
        self._is_leaving = False

    async def run(self, spec: JobSpec, number: int) -> SegmentEnd:
        """Run one segment: the `Segment` of a worker."""
        del number
        agent = self._agents.get(spec.agent)
        if agent is None:
            why = f"no worker that has tried it has the agent {spec.agent!r}"
            return SegmentEnd(state="again", why=why, after=NO_AGENT)
        hold = self._gate.hold(self._begun)
        if hold is not None:
            after = AGAIN if hold.seconds is None else min(max(hold.seconds, AGAIN), LONGEST_HOLD)
            return SegmentEnd(state="again", why=hold.words(time.time()), after=after)
        self._begun += 1
        try:
            spec = replace(spec, budget=budget_of(agent, spec.budget))
            held = await self._reserve(agent, spec)
            return held if held is not None else await self._turn(agent, spec)
        except SteersmanError as error:
            is_undecided = isinstance(error, StoreError) or error.code in UNDECIDED
            if is_undecided or self._is_leaving:
                # A session that is parked while its turn is sent refuses the turn.
                return SegmentEnd(state="again", why=error.what, after=AGAIN)
            return await self._settled(spec, failed_result(spec, error), 0.0)
        except asyncio.CancelledError:
            # The job was cancelled before its turn began, unless another worker is to run it.
            if not self._is_leaving:
                await self.release(spec)
            raise
        finally:
            self._begun -= 1

    async def _turn(self, agent: Agent, spec: JobSpec) -> SegmentEnd:
        session = await agent.open(spec.conversation, **self._words(agent, spec))
        self._sessions[spec.id] = session
        began = time.time()
        session.on("message", lambda message: self._gate.observe(message, began, self._begun))
        try:
            turn = await session.send(spec.prompt, key=spec.key)
            if self._is_leaving:
                await session.park()
            result = await self._result(session, turn, spec)
        finally:
            self._sessions.pop(spec.id, None)
            await session.aclose()
        if result.outcome == "parked":
            if not await self._are_stored(session, result):
                return SegmentEnd(state="again", why="an ask is not stored", after=AGAIN)
            count = len(result.waits_for)
            why = f"waits for {count} answer{'' if count == 1 else 's'}"
            return SegmentEnd(state="parked", waits_for=result.waits_for, why=why if count else "")
        if result.cause is not None and result.cause.code in UNDECIDED:
            return SegmentEnd(state="again", why=result.cause.what, after=AGAIN)
        if not await self._is_settled(session, result):
            await self.release(spec, result.cost_usd)
            return SegmentEnd(state="again", why="the end of the turn is not stored", after=AGAIN)
        found: JsonDict = _json.loads(self._redacted(spec.agent, result_to_json(result)))
        return await self._settled(spec, found, result.cost_usd)

    async def _are_stored(self, session: Session, result: TurnResult) -> bool:
        """Whether all asks that a parked turn waits for can be answered. Raises `StoreError`.

        One that came while the store was away may be lost with its session.
        """
        if not result.waits_for:
            return True
        stored = await self._store.work.asks_of(session.id or "", result.uuid)
        return {*result.waits_for} <= {each.id for each in stored}

    async def _is_settled(self, session: Session, result: TurnResult) -> bool:
        """Whether the row of a turn is settled: otherwise it would be open for ever."""
        left = await self._store.work.unsettled(session.id or "")
        return result.uuid not in {each.uuid for each in left}

    def _redacted(self, agent: str, line: bytes) -> bytes:
        """Return a result without the secrets that the CLI was given: rows are read by others."""
        if agent not in self._redactors:
            options = self._agents[agent].options
            given = (options.mcp_servers, options.settings, options.managed_settings)
            self._redactors[agent] = Redactor(secrets_in({**os.environ, **options.env}, *given))
        return self._redactors[agent].line(line)

    async def _result(self, session: Session, turn: Turn, spec: JobSpec) -> TurnResult:
        try:
            return await turn
        except asyncio.CancelledError:
            # The job was cancelled: the turn ends before its session does.
            stopping = asyncio.ensure_future(session.interrupt(turn=turn))
            with suppress(asyncio.CancelledError):
                await asyncio.wait([stopping], timeout=INTERRUPTING)
            if turn.is_settled:
                await self.release(spec, (await turn).cost_usd)
            raise

    def _words(self, agent: Agent, spec: JobSpec) -> OptionKwargs:
        options = agent.options
        after = self._park_after if options.park.after is None else options.park.after
        words: OptionKwargs = {
            "inbox": self._store.inbox(),
            "park": replace(options.park, after=after, lease=self._lease),
            "sinks": (*options.sinks, self._store.sink(spec.conversation)),
            # The last worker may have ended without giving the conversation back.
            "wait": max(options.wait, self._lease + AGAIN),
        }
        if options.include_partial_messages is None:
            # Each token would be a row of the store; readers of the job get whole messages.
            words["include_partial_messages"] = False
        if self._is_shared and options.session_store is None:
            words["session_store"] = self._store
        words["limits"] = limits_for(agent, spec.limits)
        return words

    # Money

    async def _reserve(self, agent: Agent, spec: JobSpec) -> SegmentEnd | None:
        """Reserve what the turn may cost. Returns how the segment ends if there is not enough."""
        if spec.budget is None:
            return None
        fleet = self._store.fleet
        amount = limits_for(agent, spec.limits).turn.usd
        match await fleet.reserve(spec.budget, spec.id, amount):
            case "reserved":
                return None
            case "wait":
                why = f"budget {spec.budget!r}: other turns have reserved what is left"
                return SegmentEnd(state="again", why=why, after=AGAIN)
            case "unknown":
                error: SteersmanError = UsageError("budget", spec.budget, "a budget of this store")
            case "out":
                error = await self._out(spec.budget)
        return SegmentEnd(state="settled", result=failed_result(spec, error))

    async def _out(self, name: str) -> LimitReached:
        known = {each.name: each for each in await self._store.fleet.budgets()}
        budget = known[name]
        hint = f"raise it with client.budget({name!r}, usd=..., per={budget.per!r})"
        return LimitReached(f"budget {name!r}", "usd", budget.spent, budget.usd, hint=hint)

    async def _settled(self, spec: JobSpec, result: JsonObject, cost: float) -> SegmentEnd:
        if spec.budget is not None:
            await self.release(spec, cost)
        return SegmentEnd(state="settled", result=result)

    async def release(self, spec: JobSpec, cost: float = 0.0) -> None:
        """Replace what a job has reserved by its cost; only the first call counts."""
        agent = self._agents.get(spec.agent)
        if spec.budget is None and (agent is None or agent.options.limits.fleet_budget is None):
            return
        try:
            await self._store.fleet.settle(spec.id, cost)
        except StoreError as error:
            log.warning("what the job %s has reserved stays so: %s", spec.id, error)

    @property
    def faults(self) -> dict[str, str]:
        """The background tasks of sessions that fail now."""
        return faults_of({each.id or job: each.faults for job, each in self._sessions.items()})

    # The end of the worker

    async def park_all(self) -> None:
        """Park every session: its turn ends as parked, and another worker continues it."""
        self._is_leaving = True
        parking = [each.park() for each in tuple(self._sessions.values())]
        for found in await asyncio.gather(*parking, return_exceptions=True):
            if isinstance(found, BaseException):
                log.warning("a session could not be parked: %s", found)
