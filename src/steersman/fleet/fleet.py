"""`Fleet`: many conversations on a few CLIs, in one process."""

from __future__ import annotations

import logging
import time
import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Self, get_args

from steersman._background import BackgroundTasks
from steersman._prompt_content import prompt_content
from steersman.agent import Agent, Prompt, When
from steersman.errors import ChannelClosed, UsageError
from steersman.fleet.answers import AnswerWatch
from steersman.fleet.budgets import (
    BudgetPeriod,
    Budgets,
    BudgetStatus,
    budget_of,
    cost_of,
    limits_fields,
    limits_for,
    usd_of,
)
from steersman.fleet.governor import Governor
from steersman.fleet.job import Job, check_job
from steersman.fleet.local_jobs import JobLives, LocalJob
from steersman.fleet.ports import JobSpec, SegmentEnd
from steersman.fleet.queue import JobQueue, Join
from steersman.fleet.scheduler import Scheduler
from steersman.fleet.sessions import FleetSessions, LocalRules
from steersman.fleet.slots import Slots
from steersman.options import Limits, checks

if TYPE_CHECKING:
    from steersman.inbox import StoredInbox
    from steersman.ports import Clock
    from steersman.stores import PostgresStore, SqliteStore


log = logging.getLogger("steersman.fleet")

_check_when = checks.one_of(*get_args(When))
_check_governor = checks.instance_of(Governor, "a Governor")


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetStatus:
    """A fleet at one moment: its jobs, and what its slots are used for.

    `queued + held + running + parked + settled == sent`, and
    `working + warm + ready + starting + closing + free == slots`.
    """

    sent: int
    """Jobs since the fleet was opened."""
    queued: int
    """Jobs that wait for a slot, or for an earlier turn of their conversation."""
    held: int
    """Jobs that wait for memory, money or a rate limit; `holds` has the reasons."""
    running: int
    parked: int
    """Jobs that wait for the user, without a CLI."""
    settled: int
    slots: int
    working: int
    """Slots with a turn, also while its CLI starts. Prompts that join a turn have no own slot."""
    warm: int
    """Slots with a session whose turn has settled."""
    ready: int
    """Slots with a CLI for a conversation to come."""
    starting: int
    """Slots with a CLI that is being started for a conversation to come."""
    closing: int
    """Slots whose CLI is being ended."""
    free: int
    at_once: int
    """How many turns may run at once now: `slots`, or less after a rate limit."""
    is_draining: bool = False
    holds: Mapping[str, int] = field(default_factory=dict[str, int])
    """How many jobs wait for what, in words: `held: rate limit until 14:05`."""
    budgets: Mapping[str, BudgetStatus] = field(default_factory=dict[str, BudgetStatus])
    faults: Mapping[str, str] = field(default_factory=dict[str, str])
    """The background tasks of the fleet that fail now, with their errors; they are tried again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drained:
    """What became of the jobs of a fleet that was drained."""

    finished: int
    """Turns that settled before the timeout."""
    parked: int
    """Turns that were parked: the next fleet of the same store continues them."""
    stopped: int
    """Turns that were stopped, because their asks are in no store; sent again with their key they
    continue."""
    queued: int
    """Jobs that have not begun."""


class Fleet:
    """Runs the turns of many conversations on at most `slots` CLIs: `async with Fleet(agent)`.

    A session whose turn has settled stays open for `idle` seconds, or until its slot is wanted.
    Leaving the block ends what runs, as `drain(0)` does. Jobs live as long as the fleet; a turn is
    run once beyond that if it has a `key`. With a `store`, agents without an inbox get that of the
    store, so that a turn that waits for the user can give its slot away. For jobs that outlive the
    process, start workers on the store and send with `FleetClient`.
    """

    def __init__(
        self,
        agents: Agent | Mapping[str, Agent],
        *,
        store: SqliteStore | PostgresStore | None = None,
        slots: int = 4,
        idle: float = 20.0,
        warm: int = 0,
        governor: Governor | None = None,
        clock: Clock = time.time,
    ) -> None:
        self.agents = _checked_agents(agents)
        checks.count("slots", slots)
        checks.not_negative("idle", idle)
        _check_warm(warm, slots)
        governor = Governor() if governor is None else governor
        _check_governor("governor", governor)
        self._clock = clock
        self._budgets = Budgets(clock)
        self._lives = JobLives()
        self._inbox = _inbox_of(store)
        self._sessions = FleetSessions(
            self.agents, LocalRules(self._inbox), self._lives, clock=clock
        )
        scheduler = Scheduler(
            slots,
            idle=idle,
            quiet=governor.quiet,
            memory_free=governor.memory_free,
            cli_memory=governor.cli_memory,
            warm=warm,
            budgets=self._budgets,
        )
        spare = "default" if "default" in self.agents else next(iter(self.agents))
        self._slots = Slots(self._sessions, scheduler, governor, clock, spare_agent=spare)
        self._queue = JobQueue(self._slots, clock=clock, settled=self._lives.ended)
        self._background = BackgroundTasks(log)
        self._answers = AnswerWatch(self._queue, self._background)
        self._lives.connect(self._answers)
        self._is_open = False

    # Start and end

    async def __aenter__(self) -> Self:
        self._is_open = True
        self._slots.changed()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End what runs, as `drain(0)` does; jobs that have not begun end as cancelled."""
        if not self._is_open:
            return
        try:
            await self.drain(0.0)
        finally:
            self._is_open = False
            await self._background.aclose()
            await self._queue.aclose()
            await self._sessions.aclose()

    async def drain(self, timeout: float) -> Drained:
        """Begin no turn any more; those in progress finish, or are parked after `timeout` seconds.

        Asks stay open. A turn that waits for the user is parked at once. Without an inbox in a
        store a turn cannot be parked: its CLI is killed, and it continues when the same key is
        sent again. `send()` raises `ChannelClosed` from now on.
        """
        checks.not_negative("timeout", timeout)
        hold = self._queue.hold
        running = {id_ for id_ in self._queue.unsettled if hold(id_).state == "running"}
        lives = [self._lives.get(each) for each in running]
        await self._slots.drain(timeout)
        outcomes = Counter(each.last.outcome for each in lives if each and each.last)
        left = [hold(id_).state for id_ in self._queue.unsettled if id_ not in running]
        return Drained(
            finished=len(running) - outcomes["parked"] - outcomes["cancelled"],
            parked=outcomes["parked"],
            stopped=outcomes["cancelled"],
            queued=left.count("queued") + left.count("held"),
        )

    # Jobs

    async def send(  # noqa: PLR0913 - one argument for each thing that may be given
        self,
        conversation: str | None,
        prompt: Prompt,
        *,
        key: str | None = None,
        agent: str = "default",
        priority: int = 0,
        budget: str | None = None,
        limits: Limits | None = None,
        when: When = "later",
    ) -> Job:
        """Give a prompt to the fleet and return its job.

        Turns of one conversation run one after the other. A `conversation` of None begins a new
        one: `job.conversation` is its id. The same `key` in the same conversation is the same job;
        `KeyTaken` is raised for another prompt. `when="next"` and `"now"` reach a turn in progress;
        otherwise it is the next turn of the conversation. `limits` can only lower those of the
        agent. Raises `LimitReached` if the budget is used up.
        """
        content = prompt_content(prompt)
        check_job(conversation, key, priority, limits)
        if agent not in self.agents:
            raise UsageError("agent", agent, f"an agent of this fleet: {', '.join(self.agents)}")
        _check_when("when", when)
        budget = budget_of(self.agents[agent], budget)
        self._budgets.check(budget)
        fields = limits_fields(limits)
        if fields is not None:
            fields = limits_fields(limits_for(self.agents[agent], fields))
        if not self._is_open or self._slots.scheduler.is_draining:
            what = "is being drained" if self._is_open else "is not open"
            raise ChannelClosed(f"this fleet {what}", hint="use `async with Fleet(agent) as fleet`")
        spec = JobSpec(
            conversation=conversation or self._claim(agent, limits) or str(uuid.uuid4()),
            prompt=content,
            key=key or f"job {uuid.uuid4()}",
            agent=agent,
            priority=priority,
            budget=budget,
            limits=fields,
        )
        if budget is not None and not self._queue.has(spec.id):
            reached = self._budgets.left(budget, usd_of(fields))
            if reached is not None:
                raise reached
        join = self._join(spec, when) if when != "later" else None
        row = self._queue.add(spec, is_next=when != "later", join=join)
        life = self._lives.of(spec, row.result)
        return Job(LocalJob(self._queue, spec, life, self._clock), spec)

    def _claim(self, agent: str, limits: Limits | None) -> str | None:
        """Return the name of a conversation whose CLI is ready, for a new one."""
        is_usual = agent == self._slots.spare_agent and limits is None
        return self._slots.claim() if is_usual else None

    def _join(self, spec: JobSpec, when: When) -> Join | None:
        if not self._sessions.has_turn(spec.conversation):
            return None

        async def join() -> SegmentEnd | None:
            """Send the prompt into the turn, if there is money for it."""
            if spec.budget is None:
                return await self._sessions.join(spec, when)
            if self._budgets.reserve(spec.budget, spec.id, usd_of(spec.limits)) != "reserved":
                return None
            end: SegmentEnd | None = None
            try:
                end = await self._sessions.join(spec, when)
            finally:
                self._budgets.settle(spec.budget, spec.id, cost_of(end))
            return end

        return join

    # Money

    async def budget(self, name: str, *, usd: float, per: BudgetPeriod) -> None:
        """Set what the jobs with `budget=name` may cost in a day, a month or ever.

        What was spent before stays. A budget lasts as long as the fleet.
        """
        self._budgets.define(name, usd, per)
        self._slots.scheduler.review(name)
        self._slots.changed()

    # What is so

    def status(self) -> FleetStatus:
        """Return the status now: jobs, slots, what is held and why."""
        now = self._clock()
        holds = self._queue.holds()
        states = Counter(each.state for each in holds)
        words = Counter(f"{each.state}: {each.words(now)}" for each in holds if each.why)
        slots = self._slots.scheduler.table.counts()
        stored: Mapping[str, str] = {} if self._inbox is None else self._inbox.faults
        return FleetStatus(
            sent=self._queue.sent,
            queued=states["queued"],
            held=states["held"],
            running=states["running"],
            parked=states["parked"],
            settled=self._queue.has_settled,
            slots=slots.slots,
            working=slots.working,
            warm=slots.warm,
            ready=slots.ready,
            starting=slots.starting,
            closing=slots.closing,
            free=slots.free,
            at_once=self._slots.scheduler.rate.limit,
            is_draining=self._slots.scheduler.is_draining,
            holds=MappingProxyType(words),
            budgets=MappingProxyType(self._budgets.status()),
            faults=MappingProxyType({**self._background.faults, **self._sessions.faults, **stored}),
        )


def _checked_agents(given: Agent | Mapping[str, Agent]) -> Mapping[str, Agent]:
    """Return the agents by name. Raises `UsageError`."""
    agents: dict[str, Agent] = {}
    if isinstance(given, Agent):
        agents["default"] = given
    elif isinstance(given, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        agents.update(given)
    for name, agent in agents.items():
        checks.non_empty("agents key", name)
        if not isinstance(agent, Agent):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError("agents", given, "an Agent, or a mapping of names to agents")
        if not agent.options.persist_session:
            allowed = "agents that save their conversations: a fleet closes and resumes them"
            raise UsageError("persist_session", False, allowed)  # noqa: FBT003 - the value given
    if not agents:
        raise UsageError("agents", given, "an Agent, or a mapping of names to agents")
    return MappingProxyType(agents)


def _inbox_of(store: object) -> StoredInbox | None:
    """Return the inbox of a store. Raises `UsageError`."""
    if store is None:
        return None
    # Stores are slow to load, and most fleets have none.
    from steersman.stores import PostgresStore, SqliteStore  # noqa: PLC0415

    if isinstance(store, SqliteStore | PostgresStore):
        return store.inbox()
    raise UsageError(
        "store",
        store,
        "a SqliteStore, a PostgresStore, or None",
        hint="for a fleet over processes start `steersman fleet worker --store URL`, and send with"
        " FleetClient(URL)",
    )


def _check_warm(warm: object, slots: int) -> None:
    checks.whole("warm", warm)
    if isinstance(warm, int) and warm >= slots:
        raise UsageError("warm", warm, f"less than slots, which is {slots}")
