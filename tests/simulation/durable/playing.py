"""Draws a run from a seed, plays it, and says what is wrong with what came of it.

python -m tests.simulation.durable.playing FIRST COUNT [show]
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import itertools
import logging
import random
import sqlite3
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import steersman._factory as factory
from steersman import Agent, Allow, Deny
from steersman._session import leases
from steersman.errors import SteersmanError
from steersman.inbox.ready import ready_conversations
from steersman.options import Park
from steersman.permissions import Policy
from tests.simulation.durable.world import Event, Process, SimLoop, World

__all__ = ["Leave", "Outcome", "Plan", "broken", "draw", "play"]

Leave = Literal["stays", "park", "aclose", "term", "kill", "kill at call", "store away"]
LEASE, KEY, CONVERSATION = 6.0, "invoice 7", "customer 7"
LIMIT = 2000.0
ENDGAME = 240.0
"""Virtual seconds in which all that is left must end, once everybody answers."""


@dataclass(frozen=True)
class Life:
    """One host: what it does, when it leaves and how."""

    begins: Literal["send", "take up"]
    leave: Leave
    after: float
    """Seconds from its begin, or from the ask that it waits for if `by_ask`."""
    by_ask: bool
    call: int
    parks: float | None
    """Its `Park.after`."""
    pause: float
    """Seconds until the next host begins; below zero, it begins while this one lives."""
    waits: bool = True
    """Whether the next host begins only when this one has ended."""

    def __str__(self) -> str:
        of = "its ask" if self.by_ask else "its begin"
        call = f" {self.call}" if self.leave == "kill at call" else ""
        return f"{self.begins}, {self.leave}{call} {self.after:.3f} after {of}, Park({self.parks})"


@dataclass(frozen=True)
class Plan:
    seed: int
    is_exact: bool
    think: float
    work: float
    calls: int
    lives: tuple[Life, ...]
    delays: tuple[float, ...]
    """After which seconds each ask is answered; the last one for all others."""
    denies: bool
    grace: float

    def __str__(self) -> str:
        kind = "exact" if self.is_exact else "told"
        return (
            f"seed {self.seed}: {kind}, {self.calls} calls, thinks {self.think}, works {self.work},"
            f" answers after {[round(each, 3) for each in self.delays]}"
            f"{' (no)' if self.denies else ''}, grace {self.grace}\n    "
            + "\n    ".join(map(str, self.lives))
        )


@dataclass
class Outcome:
    plan: Plan
    log: list[Event] = field(default_factory=list[Event])
    results: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    """Host, outcome and text of each turn that settled in a host that lived."""
    rows: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    asks: list[tuple[str, str, bool]] = field(default_factory=list[tuple[str, str, bool]])
    failure: str = ""
    complaints: list[str] = field(default_factory=list[str])

    def count(self, what: str, about: str = "") -> int:
        return sum(each.what == what and about in each.about for each in self.log)


def draw(seed: int) -> Plan:
    dice = random.Random(seed)
    is_exact = dice.random() < 0.6
    lives = tuple(_life(dice, number) for number in range(dice.randint(1, 4)))
    return Plan(
        seed,
        is_exact,
        think=dice.choice((0.0, 0.1, 2.0)),
        work=dice.choice((0.0, 0.3, 2.0)),
        calls=dice.choice((1, 1, 2)),
        lives=lives,
        delays=tuple(
            dice.choice((0.05, 0.3, 1.0, 5.0, 30.0)) * dice.uniform(0.8, 1.2) for _ in range(3)
        ),
        denies=dice.random() < 0.1,
        grace=5.0,
    )


LEAVES: dict[Leave, int] = {
    "stays": 2,
    "park": 3,
    "aclose": 3,
    "term": 3,
    "kill": 3,
    "kill at call": 3,
    "store away": 1,
}


def _life(dice: random.Random, number: int) -> Life:
    (leave,) = dice.choices(tuple(LEAVES), tuple(LEAVES.values()))
    return Life(
        "send" if number == 0 or dice.random() < 0.5 else "take up",
        leave,
        after=dice.choice((0.05, 0.3, 1.0, 2.5, 8.0)) * dice.uniform(0.7, 1.3),
        by_ask=dice.random() < 0.6,
        call=dice.randint(1, 60),
        parks=dice.choice((None, None, 0.5, 3.0)),
        pause=dice.choice((0.0, 0.1, 3.0, 10.0)),
        waits=dice.random() < 0.75,
    )


def play(plan: Plan) -> Outcome:
    out = Outcome(plan)
    folder = Path("/dev/shm") if Path("/dev/shm").is_dir() else Path(tempfile.gettempdir())
    with tempfile.TemporaryDirectory(dir=folder) as place:
        world = World(
            Path(place) / "work.db", random.Random(-plan.seed), plan.think, plan.work, plan.calls
        )
        out.log = world.log
        before = factory.transcript_reader, leases._boot_time
        loop = SimLoop()
        factory.transcript_reader = lambda _env: world.transcript
        # Each reading is later than the one before: a rest that rounds to nothing must end, too.
        ticks = itertools.count()
        leases._boot_time = lambda: loop.time() + next(ticks) * 1e-9
        loop.set_exception_handler(lambda _, told: out.complaints.append(str(told)))
        try:
            asyncio.set_event_loop(loop)
            loop.run_until_complete(_Player(world, plan, out).play())
        except Exception as error:  # noqa: BLE001 - whatever it is
            out.failure = out.failure or repr(error)
        finally:
            out.log = [*world.log]
            _read_rows(world.path, out)
            _bury(loop)
            loop.close()
            factory.transcript_reader, leases._boot_time = before
    return out


def _read_rows(path: Path, out: Outcome) -> None:
    with contextlib.closing(sqlite3.connect(path)) as found:
        out.rows = found.execute("SELECT state, outcome FROM steersman_turns").fetchall()
        out.asks = [
            (text, state, bool(used))
            for text, state, used in found.execute(
                "SELECT json_extract(ask, '$.payload.input.command'), state,"
                " used_mark IS NOT NULL FROM steersman_asks ORDER BY number"
            )
        ]


def _bury(loop: SimLoop) -> None:
    """End what hosts have left; a dead one may wait for ever for a store that is cut off."""

    async def end() -> None:
        for _ in range(5):
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for each in others:
                each.cancel()
            if others:
                await asyncio.wait(others, timeout=60.0)

    with contextlib.suppress(Exception):
        loop.run_until_complete(end())
    for each in asyncio.all_tasks(loop):
        each._log_destroy_pending = False  # type: ignore[attr-defined]


class _Player:
    def __init__(self, world: World, plan: Plan, out: Outcome) -> None:
        self._world, self._plan, self._out = world, plan, out
        self._tasks: list[asyncio.Task[Any]] = []
        self._asked = asyncio.Event()
        self._is_endgame = False

    async def play(self) -> None:
        person = asyncio.ensure_future(self._answer())
        async with asyncio.timeout(LIMIT):
            for number, life in enumerate(self._plan.lives, 1):
                living = asyncio.ensure_future(self._live(f"host {number}", life))
                self._tasks.append(living)
                if life.waits:
                    await asyncio.wait([living], timeout=60.0)
                await asyncio.sleep(life.pause)
            self._is_endgame = True
            self._world.note("world", "endgame")
            await self._finish()
        person.cancel()
        for each in self._tasks:
            each.cancel()

    # A person

    async def _answer(self) -> None:
        process = Process(self._world, "person")
        delays = itertools.chain(self._plan.delays, itertools.repeat(self._plan.delays[-1]))
        shown: set[tuple[str, str]] = set()
        async for change in process.inbox.watch():
            key = change.ask.session, change.ask.id
            if change.what == "opened" and key not in shown:
                shown.add(key)
                self._world.note("person", "is shown", f"{key[1][-6:]} {_command(change.ask)}")
                self._asked.set()
                later = self._answer_later(process, change.ask, next(delays))
                self._tasks.append(asyncio.ensure_future(later))

    async def _answer_later(self, process: Process, ask: Any, delay: float) -> None:
        await asyncio.sleep(delay)
        answer = Deny("not this one") if self._plan.denies else Allow()
        with contextlib.suppress(SteersmanError):
            await process.inbox.answer(ask, answer, by="ann")
            self._world.note("person", "answers", f"{ask.id[-6:]} {_command(ask)}")

    # Hosts

    def _agent(self, host: Process, parks: float | None) -> Agent:
        more: dict[str, Any] = {"policy": Policy(otherwise="ask")} if self._plan.is_exact else {}
        return Agent(
            transport=host,
            inbox=host.inbox,
            park=Park(after=parks, lease=LEASE, grace=self._plan.grace),
            clock=self._world.clock,
            wait=2 * LEASE,
            **more,
        )

    async def _live(self, name: str, life: Life) -> None:
        host = Process(self._world, name)
        host.dies_at_call = life.call if life.leave == "kill at call" else None
        self._asked.clear()
        main = asyncio.ensure_future(self._main(host, life))
        leaving = asyncio.ensure_future(self._leave(host, life, main))
        self._tasks += [main, leaving]
        died = asyncio.ensure_future(host.died.wait())
        await asyncio.wait([main, died], return_when=asyncio.FIRST_COMPLETED)
        leaving.cancel()
        died.cancel()
        if not host.is_dead and not main.cancelled() and (error := main.exception()):
            self._world.note(name, "ends with", repr(error)[:150])
        if not host.is_dead:
            self._world.note(name, "has ended")

    async def _leave(self, host: Process, life: Life, main: asyncio.Task[None]) -> None:
        if life.leave in ("stays", "park", "aclose", "kill at call"):
            return
        if life.by_ask:
            await self._asked.wait()
        await asyncio.sleep(life.after)
        match life.leave:
            case "term":
                self._world.note(host.name, "gets SIGTERM")
                main.cancel()
            case "kill":
                host.kill()
            case _:
                self._world.note(host.name, "loses its store")
                host.away_until = self._world.now + LEASE + 3

    async def _main(self, host: Process, life: Life) -> None:
        """As docs/durable.md has it."""
        world = self._world
        async with self._agent(host, life.parks).open(CONVERSATION) as session:
            if life.begins == "send":
                turns = [await session.send("pay invoice 7", key=KEY)]
                world.note(host.name, "has sent")
            else:
                turns = await session.take_up()
                world.note(host.name, "takes up", str(len(turns)))
            if life.leave in ("park", "aclose"):
                if life.by_ask:
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(self._asked.wait(), 20)
                await asyncio.sleep(life.after)
                world.note(host.name, "leaves by", life.leave)
                await (session.park() if life.leave == "park" else session.aclose())
            for turn in turns:
                await self._settled(host, turn)

    async def _settled(self, host: Process, turn: Any) -> None:
        result = await turn
        if not host.is_dead:
            self._world.note(host.name, "settles", f"{result.outcome} {result.text!r}")
            self._out.results.append((host.name, result.outcome, result.text))

    # Once everybody answers, workers go on with what is ready until nothing is left

    async def _finish(self) -> None:
        worker = Process(self._world, "worker")
        until = self._world.now + ENDGAME
        while self._world.now < until:
            with contextlib.suppress(TimeoutError, SteersmanError):
                ready = ready_conversations(worker.keeper)
                async with asyncio.timeout(4 * LEASE):
                    found = await anext(ready)
                agent = self._agent(worker, None)
                async with asyncio.timeout(120), agent.open(found.key) as session:
                    turns = await session.take_up()
                    self._world.note("worker", "takes up", str(len(turns)))
                    for turn in turns:
                        await self._settled(worker, turn)
            if not await _unsettled(worker):
                return
            await asyncio.sleep(0.5)


async def _unsettled(process: Process) -> bool:
    async def look(rows: Any) -> bool:
        async def work(run: Any) -> bool:
            return bool(await run("SELECT 1 FROM steersman_turns WHERE state <> 'settled'"))

        return await rows.work._database.read(work)

    return await process.keeper.call(look)


def _command(ask: Any) -> str:
    return str(ask.payload.input.get("command"))


# --- What must hold ---------------------------------------------------------------------


def broken(out: Outcome) -> list[str]:
    """Return which promises were broken, by name."""
    plan, wrong = out.plan, list[str]()
    if out.failure:
        wrong.append(f"harness: {out.failure}")
    commands = [f"pay {number}" for number in range(1, plan.calls + 1)]
    for command in commands:
        allowed = 0 if plan.denies else out.count("answers", command)
        began = out.count("tool begins", command)
        by_leave = out.count("tool killed", f"{command} by the leave")
        ended = out.count("tool ends", command)
        if began > allowed:
            wrong.append(f"I1 no tool without an answer of its own: {command}")
        if ended > 1:
            wrong.append(f"I2 a tool ends once: {command}")
        if by_leave:
            wrong.append(f"I6 a leave kills no tool that ends within the grace: {command}")
        asked = out.count("answers", command)
        excused = out.count("tool killed", f"{command} by the kill")
        if asked > 1 + excused + by_leave:
            wrong.append(f"I5 nobody is asked again about a call that never began: {command}")
        elif asked > 1 + excused:
            wrong.append(f"I5 nobody is asked again after a leave: {command}")
    text = "denied" if plan.denies else "paid"
    for host, outcome, said in out.results:
        if outcome == "completed" and said != text:
            wrong.append(f"I3 completed only with its result: {host} {said!r}")
        if outcome in ("interrupted", "cancelled"):
            wrong.append(f"I4 nothing but interrupt() and cancel() interrupts: {host} {outcome}")
        if outcome == "failed" and all(each.leave != "store away" for each in plan.lives):
            wrong.append(f"I7 fails only with its store or lease: {host}")
    for state, outcome in out.rows:
        if state != "settled":
            wrong.append(f"I8 everything ends once everybody answers: {state}")
        elif outcome == "completed" and not plan.denies:
            missing = [each for each in commands if not out.count("tool ends", each)]
            if missing:
                wrong.append(f"I3 row completed without its tool: {missing}")
        elif outcome != "completed":
            wrong.append(f"I4 row settled as {outcome}")
    return wrong


def main() -> None:
    logging.disable(logging.CRITICAL)
    sys.unraisablehook = lambda _: None
    first, count = int(sys.argv[1]), int(sys.argv[2])
    tally: collections.Counter[str] = collections.Counter()
    seeds: dict[str, list[int]] = {}
    for seed in range(first, first + count):
        out = play(draw(seed))
        wrong = broken(out)
        for kind in {each.split(":")[0] for each in wrong}:
            tally[kind] += 1
            seeds.setdefault(kind, []).append(seed)
        if "show" in sys.argv:
            print(out.plan, *out.log, out.rows, out.asks, *wrong, *out.complaints[:3], sep="\n    ")
    bad = len({seed for each in seeds.values() for seed in each})
    print(f"{count} seeds from {first}: {bad} with something")
    for kind, number in tally.most_common():
        print(f"  {number:5} {kind}  seeds {seeds[kind][:8]}")


if __name__ == "__main__":
    main()
