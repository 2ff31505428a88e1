"""Segments on a store: one life of a CLI each, which any worker can continue.

They run on the slots and sessions of `Fleet`, with rules of their own: the conversation is opened
with the store's inbox, so its turn is stored before it is sent, and its lease keeps other workers
away. `send(key=)` continues the turn if it has begun before.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from steersman import _json
from steersman._json import JsonDict
from steersman.errors import LimitReached, SteersmanError, StoreError, UsageError
from steersman.fleet.budgets import budget_of, limits_for
from steersman.fleet.governor import Governor
from steersman.fleet.ports import JobSpec, SegmentEnd
from steersman.fleet.scheduler import Scheduler
from steersman.fleet.sessions import AGAIN, FleetSessions, parked_end
from steersman.fleet.slots import Slots
from steersman.journal.json_form import result_to_json
from steersman.journal.redaction import Redactor, secrets_in
from steersman.ports import DurableAsks

if TYPE_CHECKING:
    from steersman.agent import Agent, Prompt, Session
    from steersman.journal.results import TurnResult
    from steersman.options.keywords import OptionKwargs
    from steersman.stores import PostgresStore, SqliteStore

log = logging.getLogger("steersman.fleet")

PARKING = 15.0
"""Seconds that sessions have to park at the end."""
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
    """Runs the segments of a worker, with the agents of this process."""

    def __init__(
        self,
        agents: Mapping[str, Agent],
        store: SqliteStore | PostgresStore,
        *,
        slots: int,
        lease: float,
        park_after: float,
        is_shared: bool,
        governor: Governor | None = None,
    ) -> None:
        """With `is_shared`, workers are on several machines, so the store keeps conversations."""
        self._rules = StoreRules(
            agents, store, lease=lease, park_after=park_after, is_shared=is_shared
        )
        self._sessions = FleetSessions(agents, self._rules)
        governor = Governor() if governor is None else governor
        scheduler = Scheduler(
            slots,
            idle=0.0,
            quiet=governor.quiet,
            memory_free=governor.memory_free,
            cli_memory=governor.cli_memory,
            # The engine keeps it, and the next segment of a parked turn may run elsewhere.
            keeps_order=False,
        )
        self._slots = Slots(self._sessions, scheduler, governor, is_shared=True)

    async def run(self, spec: JobSpec, number: int) -> SegmentEnd:
        """Run one segment: the `Segment` of a worker."""
        try:
            return await self._slots.run(spec, number)
        except asyncio.CancelledError:
            # The job was cancelled before its turn began, unless another worker is to run it.
            if not self._slots.scheduler.is_draining:
                await self._rules.release(spec)
            raise

    async def release(self, spec: JobSpec) -> None:
        """Give back what a job has reserved; nothing if its cost was counted."""
        await self._rules.release(spec)

    @property
    def faults(self) -> dict[str, str]:
        """The background tasks of sessions that fail now."""
        return self._sessions.faults

    async def drain(self, timeout: float) -> None:
        """Begin nothing; turns left at `timeout` are parked, and other workers continue them."""
        try:
            async with asyncio.timeout(timeout + PARKING):
                await self._slots.drain(timeout)
        except TimeoutError:
            log.warning("not all sessions could be parked within %g seconds", PARKING)

    async def aclose(self) -> None:
        """Cancel what still runs, and close its sessions."""
        await self._slots.aclose()
        await self._sessions.aclose()


class StoreRules:
    """The `SessionRules` of a worker: a turn has ended once the store has its end."""

    keeps_open = False

    def __init__(
        self,
        agents: Mapping[str, Agent],
        store: SqliteStore | PostgresStore,
        *,
        lease: float,
        park_after: float,
        is_shared: bool,
    ) -> None:
        self._agents = agents
        self._store = store
        self._lease = lease
        self._park_after = park_after
        self._is_shared = is_shared
        self._redactors: dict[str, Redactor] = {}

    def options(self, agent: Agent, conversation: str) -> OptionKwargs:
        """Return the options that keep a conversation in the store."""
        options = agent.options
        after = self._park_after if options.park.after is None else options.park.after
        words: OptionKwargs = {
            "inbox": self._store.inbox(),
            "park": replace(options.park, after=after, lease=self._lease),
            "sinks": (*options.sinks, self._store.sink(conversation)),
            # The last worker may have ended without giving the conversation back.
            "wait": max(options.wait, self._lease + AGAIN),
        }
        if options.include_partial_messages is None:
            # Each token would be a row of the store; readers of the job get whole messages.
            words["include_partial_messages"] = False
        if self._is_shared and options.session_store is None:
            words["session_store"] = self._store
        return words

    def is_undecided(self, error: SteersmanError) -> bool:
        """Whether the store was away, or another process has the conversation."""
        return isinstance(error, StoreError) or error.code in UNDECIDED

    # The end

    async def end_of(self, session: Session, spec: JobSpec, result: TurnResult) -> SegmentEnd:
        """Return how a segment ended: it is run again unless the store has what the job goes by."""
        parked = parked_end(result)
        if parked is not None:
            if not await self._are_stored(session, result):
                return SegmentEnd(state="again", why="an ask is not stored", after=AGAIN)
            return replace(parked, result=None)
        if result.cause is not None and result.cause.code in UNDECIDED:
            return SegmentEnd(state="again", why=result.cause.what, after=AGAIN)
        is_settled = await self._is_settled(session, result)
        await self.release(spec, result.cost_usd)
        if not is_settled:
            return SegmentEnd(state="again", why="the end of the turn is not stored", after=AGAIN)
        found: JsonDict = _json.loads(self._redacted(spec.agent, result_to_json(result)))
        return SegmentEnd(state="settled", result=found)

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

    # Money

    async def reserve(self, agent: Agent, spec: JobSpec) -> SegmentEnd | None:
        """Reserve what the turn may cost. Raises `LimitReached` or `UsageError`."""
        budget = budget_of(agent, spec.budget)
        if budget is None:
            return None
        amount = limits_for(agent, spec.limits).turn.usd
        match await self._store.fleet.reserve(budget, spec.id, amount):
            case "reserved":
                return None
            case "wait":
                why = f"budget {budget!r}: other turns have reserved what is left"
                return SegmentEnd(state="again", why=why, after=AGAIN)
            case "unknown":
                raise UsageError("budget", budget, "a budget of this store")
            case "out":
                raise await self._out(budget)

    async def _out(self, name: str) -> LimitReached:
        known = {each.name: each for each in await self._store.fleet.budgets()}
        budget = known[name]
        hint = f"raise it with client.budget({name!r}, usd=..., per={budget.per!r})"
        return LimitReached(f"budget {name!r}", "usd", budget.spent, budget.usd, hint=hint)

    async def release(self, spec: JobSpec, cost: float = 0.0) -> None:
        """Replace what a job has reserved by its cost; only the first call counts."""
        agent = self._agents.get(spec.agent)
        if spec.budget is None and (agent is None or agent.options.limits.fleet_budget is None):
            return
        try:
            await self._store.fleet.settle(spec.id, cost)
        except StoreError as error:
            log.warning("what the job %s has reserved stays so: %s", spec.id, error)
