"""Plays a scenario in virtual time, and keeps what there is to know about the run."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import AsyncIterator, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from steersman.agent import Agent, Query, Session, Turn
from steersman.errors import SteersmanError
from steersman.hooks import Hooks
from steersman.journal import Entry, Lagged, TurnResult
from steersman.testing.faults import (
    FaultyTransport,
    JumpingClock,
    SlowReader,
    VirtualClockLoop,
    cancelled_after,
    rounds,
)
from steersman.testing.scripted.cli import ScriptedCLI
from tests.simulation.house import House
from tests.simulation.scenarios import Action, Scenario

LIMIT = 3000.0
"""Virtual seconds for a whole run; what is bounded at all is bounded far below."""
PATIENCE = 300.0
"""Virtual seconds that a patient host waits for its turns."""
POLL = 0.1
QUIET = 300
"""Rounds within which all that runs beside us must have ended."""


@dataclass
class Run:
    """What came of a scenario."""

    scenario: Scenario
    house: House
    cli: ScriptedCLI
    transport: FaultyTransport
    agent: Agent
    session: Session
    failure: BaseException | None = None
    """What escaped from the session: always a bug."""
    startup_error: SteersmanError | None = None
    turns: dict[int, Turn] = field(default_factory=dict[int, Turn])
    results: dict[int, TurnResult] = field(default_factory=dict[int, TurnResult])
    texts: dict[int, str] = field(default_factory=dict[int, str])
    """The joined text of each turn, read after the end."""
    journals: list[list[Entry | Lagged]] = field(default_factory=list[list[Entry | Lagged]])
    """What those who read all of the journal have read; the last one read it after the end."""
    surprises: list[str] = field(default_factory=list[str])
    """Exceptions of the wrong kind, warnings, complaints of the event loop."""
    left: list[str] = field(default_factory=list[str])
    """What still exists after everything should have ended."""
    was_cancelled: bool = False
    """Whether the start was."""
    took: float = 0.0
    closing_took: float = 0.0

    @property
    def has_started(self) -> bool:
        """Whether there was a session to talk to."""
        return not self.was_cancelled and self.startup_error is None

    @property
    def entries(self) -> list[Entry | Lagged]:
        """The journal."""
        return self.journals[-1] if self.journals else []

    @property
    def has_lagged(self) -> bool:
        """True if a part of the journal is lost."""
        return any(isinstance(each, Lagged) for each in self.entries)


def play(scenario: Scenario) -> Run:
    """Run it, on a loop of its own."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
            run = _new_run(scenario)
            loop = runner.get_loop()
            loop.set_exception_handler(lambda _, told: run.surprises.append(_complaint(told)))
            try:
                runner.run(_Player(run).play())
            except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - whatever it is
                run.failure = error
            run.took = loop.time()
    run.surprises += [str(each.message) for each in warned]
    return run


def _new_run(scenario: Scenario) -> Run:
    house = House()
    cli = ScriptedCLI(scenario.script, tools={"Bash": house.bash})
    transport = FaultyTransport(cli, scenario.plan, *scenario.next_plans)
    agent = Agent(
        revive=scenario.revives,
        transport=transport,
        functions=[house.note],
        can_use_tool=house.approve,
        journal_memory=scenario.journal_memory,
        # None: on the wire, but not among the messages.
        include_partial_messages=scenario.partials or None,
        close_grace=scenario.grace,
        hooks=house.hooks if scenario.has_hooks else Hooks(),
        clock=JumpingClock(scenario.jumps),
    )
    return Run(scenario, house, cli, transport, agent, agent.session())


def _complaint(told: dict[str, Any]) -> str:
    return f"{told.get('message')}: {told.get('exception')!r}"


class _Player:
    """The host: does one thing after the other, and some of them beside the others."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._session = run.session
        self._beside: list[asyncio.Task[Any]] = []

    async def play(self) -> None:
        async with asyncio.timeout(LIMIT):
            if self._run.scenario.style == "session":
                await self._hold_session()
            else:
                await self._ask_once()
        await self._see_all_gone()

    async def _ask_once(self) -> None:
        """Use `agent.query()` or `agent.run()`, without a reference to the session."""
        scenario, agent = self._run.scenario, self._run.agent
        prompt = f"{scenario.prompts[0].mark} please"
        asking = (
            agent.run(prompt)
            if scenario.style == "run"
            else _read_some(agent.query(prompt), scenario.most)
        )
        # Nothing bounds a model that never answers but the one who asks.
        patience = scenario.patience
        doing = asking if patience is None else cancelled_after(patience, asking)
        with suppress(SteersmanError, TimeoutError):
            async with asyncio.timeout(PATIENCE):
                await doing

    async def _hold_session(self) -> None:
        starting, patience = self._session.start(), self._run.scenario.patience
        try:
            if patience is None:
                await starting
            elif await cancelled_after(patience, starting) is None:
                self._run.was_cancelled = True
        except SteersmanError as error:
            self._run.startup_error = error
        if self._run.has_started:
            await self._converse()
        if self._session._parts.slot.running is not None:
            await self._look_back()

    async def _converse(self) -> None:
        self._start(self._read_journal(0))
        for action in self._run.scenario.actions:
            await self._act(action)
            await rounds(action.pause)
        await self._wait_for_turns()
        begun = asyncio.get_running_loop().time()
        await self._session.aclose()
        self._run.closing_took = asyncio.get_running_loop().time() - begun
        if self._beside:
            await asyncio.wait(self._beside)
        self._run.surprises += [
            f"{each.get_coro()!r} ended with {how}"
            for each in self._beside
            if (how := "a cancellation" if each.cancelled() else each.exception())
        ]

    async def _wait_for_turns(self) -> None:
        if not (self._run.scenario.is_patient and self._run.turns):
            return
        waits = [asyncio.ensure_future(turn.result()) for turn in self._run.turns.values()]
        await asyncio.wait(waits, timeout=PATIENCE)
        for each in waits:
            each.cancel()

    async def _act(self, action: Action) -> None:
        turn = None if action.prompt is None else self._run.turns.get(action.prompt)
        match action.deed:
            case "send":
                await self._send(action)
            case "nap":
                await asyncio.sleep(action.seconds)
            case "wait" if turn is not None:
                self._start(self._bounded(action, turn.result()))
            case "interrupt" | "interrupt all":
                self._start(self._bounded(action, self._interrupt(action, turn)))
            case "close":
                self._start(self._bounded(action, self._session.aclose()))
            case "ask":
                self._start(self._bounded(action, self._session.set_model("opus")))
            case "read":
                stream = self._session.messages() if turn is None else turn.text()
                self._start(self._bounded(action, _read(stream, action.dawdles)))
                self._start(self._read_journal(action.dawdles))
            case _:
                pass

    async def _send(self, action: Action) -> None:
        assert action.prompt is not None
        prompt = self._run.scenario.prompts[action.prompt - 1]
        sending = self._session.send(f"{prompt.mark} please", query=prompt.query)
        turn = await self._bounded(action, sending)
        if turn is not None:
            self._run.turns[action.prompt] = turn

    async def _interrupt(self, action: Action, turn: Turn | None) -> None:
        also_queued = action.deed == "interrupt all"
        await self._session.interrupt(turn=turn, also_queued=also_queued)
        if turn is not None and not turn.is_settled:
            self._run.surprises.append(f"<p{action.prompt}> is open after its interrupt")

    async def _bounded(self, action: Action, doing: Coroutine[Any, Any, Any]) -> Any:
        """Do it, perhaps be cancelled; an error of the session's own kind is no surprise."""
        try:
            if action.patience is None:
                return await doing
            return await cancelled_after(action.patience, doing)
        except SteersmanError:
            return None

    async def _read_journal(self, dawdles: int) -> None:
        stream = SlowReader(self._session.journal(), rounds=dawdles)
        self._run.journals.append([each async for each in stream])

    def _start(self, doing: Coroutine[Any, Any, Any]) -> None:
        self._beside.append(asyncio.ensure_future(doing))

    async def _look_back(self) -> None:
        for number, turn in self._run.turns.items():
            if turn.is_settled:
                self._run.results[number] = await turn
                self._run.texts[number] = await _text(turn)
        await self._read_journal(0)

    async def _see_all_gone(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                while self._run.transport.running:  # noqa: ASYNC110 - there is no event to wait for
                    await asyncio.sleep(POLL)
        for _ in range(QUIET):
            if len(asyncio.all_tasks()) == 1:
                break
            await asyncio.sleep(0)
        self._run.left += _left_of(self._run)


async def _read(stream: AsyncIterator[Any], dawdles: int) -> list[Any]:
    return [each async for each in SlowReader(stream, rounds=dawdles)]


async def _read_some(query: Query, most: int) -> None:
    seen = 0
    async with query as messages:
        async for _ in messages:
            seen += 1
            if seen == most:
                break


async def _text(turn: Turn) -> str:
    try:
        return "".join([piece async for piece in turn.text()])
    except SteersmanError as lagged:
        return f"({type(lagged).__name__})"


def _left_of(run: Run) -> list[str]:
    """Return tasks, processes, requests and timers that were left behind."""
    tasks = [each for each in asyncio.all_tasks() if each is not asyncio.current_task()]
    found = [f"task {each.get_coro()!r}" for each in tasks]
    found += [f"{run.cli.running} processes"] * bool(run.cli.running)
    found += ["a process whose end was not told"] * bool(run.transport.running)
    timers: list[asyncio.TimerHandle] = asyncio.get_running_loop()._scheduled  # type: ignore[attr-defined]
    # The bound of the run itself is behind us.
    found += [f"timer {each!r}" for each in timers if not each.cancelled()]
    works = run.session._parts.slot.running
    if works is not None:
        open_ = works.link.connection.open_requests | works.link.connection.pending
        found += [f"open request {each}" for each in sorted(open_)]
        found += [f"forgotten answer {each}" for each in works.link._waiting]
        found += [f"handler {each}" for each in works.tasks._open]
    return found
