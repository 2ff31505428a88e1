"""Plays a run of durable work: hosts, people and workers over the real tables, in virtual time."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import steersman._factory as factory
from steersman import Agent, Allow, Deny
from steersman.durable import leases
from steersman.errors import SteersmanError
from steersman.fleet.ports import JobSpec
from steersman.options import Park
from steersman.permissions import Policy, allow
from steersman.stores._sql.database import Transaction
from tests.simulation.durable.fleet import JobLog, WorkerProcess
from tests.simulation.durable.outcome import Outcome
from tests.simulation.durable.plans import KEY, OTHER_KEY, Life, Plan
from tests.simulation.durable.world import LEASE, Process, SimLoop, World, later

CONVERSATION = "customer 7"
ASKS = Policy(allow("Task"), otherwise="ask")
LIMIT = 2000.0
ENDGAME = 240.0
"""Virtual seconds in which all that is left must end, once everybody answers."""


def play(plan: Plan) -> Outcome:
    """Play a run, and return what came of it."""
    out = Outcome(plan)
    player = _FleetPlayer if plan.is_fleet else _Player
    in_world(plan, out, lambda world: player(world, plan, out).play())
    return out


def in_world(plan: Plan, out: Outcome, work: Callable[[World], Awaitable[None]]) -> None:
    """Run `work` in a world of its own, and read what it has left into `out`."""
    folder = Path("/dev/shm") if Path("/dev/shm").is_dir() else Path(tempfile.gettempdir())
    with tempfile.TemporaryDirectory(dir=folder) as place:
        world = World(Path(place) / "work.db", plan)
        before = factory.transcript_reader, leases._boot_time
        loop = SimLoop()
        factory.transcript_reader = lambda env: world.transcript
        # Each reading is later than the one before: a rest that rounds to nothing must end, too.
        ticks = itertools.count()
        leases._boot_time = lambda: loop.time() + next(ticks) * 1e-9
        loop.set_exception_handler(lambda _, told: out.complaints.append(str(told)))
        try:
            asyncio.set_event_loop(loop)
            loop.run_until_complete(_in_time(work(world)))
        except Exception as error:  # noqa: BLE001 - whatever it is
            out.failure = out.failure or repr(error)
        finally:
            out.log = [*world.log]
            out.read_rows(world.path)
            _bury(loop)
            loop.close()
            world.close()
            factory.transcript_reader, leases._boot_time = before


async def _in_time(work: Awaitable[None]) -> None:
    async with asyncio.timeout(LIMIT):
        await work


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
        self._lives: list[asyncio.Task[None]] = []
        self._asked = asyncio.Event()

    async def play(self) -> None:
        person = asyncio.ensure_future(self._answer())
        for number, life in enumerate(self._plan.lives, 1):
            living = asyncio.ensure_future(self._live(f"host {number}", life))
            self._tasks.append(living)
            self._lives.append(living)
            if life.waits:
                await asyncio.wait([living], timeout=60.0)
            await asyncio.sleep(life.pause)
        self._world.note("world", "endgame")
        await self._finish()
        # An answer may have been used before its author learns that it is stored.
        await later(1.0)
        person.cancel()
        for each in self._tasks:
            each.cancel()

    # A person

    async def _answer(self) -> None:
        process = Process(self._world, "person")
        delays = itertools.chain(self._plan.delays, itertools.repeat(self._plan.delays[-1]))
        shown: set[tuple[str, str]] = set()
        numbers = itertools.count()
        async for change in process.inbox.watch():
            key = change.ask.session, change.ask.id
            if change.what == "opened" and key not in shown:
                shown.add(key)
                self._world.note("person", "is shown", f"{key[1][-6:]} {_command(change.ask)}")
                self._asked.set()
                expires = next(numbers) == self._plan.expiring
                later = self._answer_later(process, change.ask, next(delays), expires=expires)
                self._tasks.append(asyncio.ensure_future(later))

    async def _answer_later(
        self, process: Process, ask: Any, delay: float, *, expires: bool
    ) -> None:
        await asyncio.sleep(delay)
        if expires:
            with contextlib.suppress(SteersmanError):
                await process.inbox.expire(ask)
                self._world.note("person", "lets expire", f"{ask.id[-6:]} {_command(ask)}")
            return
        answer = Deny("not this one") if self._plan.denies else Allow()
        with contextlib.suppress(SteersmanError):
            await process.inbox.answer(ask, answer, by="ann")
            self._world.note("person", "answers", f"{ask.id[-6:]} {_command(ask)}")

    # Hosts

    def _agent(self, host: Process, parks: float | None) -> Agent:
        more: dict[str, Any] = {"policy": ASKS} if self._plan.is_exact else {}
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
        self._world.begun.clear()
        main = host.start(self._main(host, life))
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
        await self._moment(life)
        await asyncio.sleep(life.after)
        match life.leave:
            case "term":
                self._world.note(host.name, "gets SIGTERM")
                main.cancel()
            case "kill":
                host.kill()
            case "stop":
                host.stop(life.stopped)
            case _:
                self._world.note(host.name, "loses its store")
                host.away_until = self._world.now + LEASE + 3

    async def _main(self, host: Process, life: Life) -> None:
        """As docs/durable.md has it."""
        world = self._world
        async with self._agent(host, life.parks).open(CONVERSATION) as session:
            if life.begins == "send":
                turns = [await session.send(f"pay {KEY}", key=KEY)]
                world.note(host.name, "has sent")
            else:
                turns = await session.resume_turns()
                world.note(host.name, "takes up", str(len(turns)))
            if life.deed:
                doing = asyncio.ensure_future(self._do(host, life, session, turns))
                self._tasks.append(doing)
            if life.leave in ("park", "aclose"):
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._moment(life), 20)
                await asyncio.sleep(life.after)
                world.note(host.name, "leaves by", life.leave)
                await (session.park() if life.leave == "park" else session.aclose())
            for turn in turns:
                await self._settled(host, turn)

    async def _moment(self, life: Life) -> None:
        """Return at the moment from which the times of this host count."""
        if life.by_tool:
            await self._world.begun.wait()
        elif life.by_ask:
            await self._asked.wait()

    async def _do(self, host: Process, life: Life, session: Any, turns: list[Any]) -> None:
        """Do what this host does beside its turn; a session may have ended meanwhile."""
        await self._moment(life)
        await asyncio.sleep(life.deed_after)
        if host.is_dead:
            return
        self._world.note(host.name, "loses its CLI" if life.deed == "CLI dies" else life.deed)
        with contextlib.suppress(SteersmanError):
            match life.deed:
                case "interrupt":
                    host.ends_by = "interrupt"
                    await session.interrupt()
                case "cancel":
                    host.ends_by = "cancel"
                    await session.cancel()
                case "withdraw":
                    for turn in turns:
                        await turn.withdraw()
                case "CLI dies":
                    host.kill_cli()
                case _:
                    turn = await session.send(f"pay {OTHER_KEY}", key=OTHER_KEY)
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
                ready = worker.store.ready()
                async with asyncio.timeout(4 * LEASE):
                    found = await anext(ready)
                agent = self._agent(worker, None)
                async with asyncio.timeout(120), agent.open(found.key) as session:
                    turns = await session.resume_turns()
                    self._world.note("worker", "takes up", str(len(turns)))
                    for turn in turns:
                        await self._settled(worker, turn)
            # A host that still runs may send something.
            if all(each.done() for each in self._lives) and not await _unsettled(worker):
                return
            await asyncio.sleep(0.5)


class _FleetPlayer(_Player):
    """Plays workers instead of hosts; the prompts are jobs."""

    def __init__(self, world: World, plan: Plan, out: Outcome) -> None:
        super().__init__(world, plan, out)
        self._log = JobLog()
        self._log.submit(
            *(JobSpec(conversation=CONVERSATION, prompt=f"pay {key}", key=key) for key in plan.keys)
        )

    def _worker(self, host: Process, parks: float | None) -> WorkerProcess:
        return WorkerProcess(host, self._log, self._agent(host, None), parks or 1.0)

    async def _main(self, host: Process, life: Life) -> None:
        working = self._worker(host, life.parks)
        if life.deed == "CLI dies":
            self._tasks.append(host.start(self._lose_cli(host, life)))
        if life.leave in ("stays", "park", "aclose", "term"):
            self._tasks.append(host.start(self._drain(host, life, working)))
        await working.run()

    async def _lose_cli(self, host: Process, life: Life) -> None:
        await self._moment(life)
        await asyncio.sleep(life.deed_after)
        self._world.note(host.name, "loses its CLI")
        host.kill_cli()

    async def _drain(self, host: Process, life: Life, working: WorkerProcess) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._moment(life), 20)
        await asyncio.sleep(life.after)
        self._world.note(host.name, "is drained")
        working.worker.drain()

    async def _leave(self, host: Process, life: Life, main: asyncio.Task[None]) -> None:
        if life.leave != "term":
            await super()._leave(host, life, main)

    async def _finish(self) -> None:
        host = Process(self._world, "worker")
        working = host.start(self._worker(host, None).run())
        self._tasks.append(working)
        until = self._world.now + ENDGAME
        jobs = self._log.jobs
        while self._world.now < until and jobs.keys() - self._log.results.keys():  # noqa: ASYNC110 - virtual time
            await asyncio.sleep(0.5)
        for id_, spec in jobs.items():
            result = self._log.results.get(id_)
            if result is None:
                self._world.note("fleet", "job is lost", spec.key)
            else:
                outcome, text = str(result["outcome"]), str(result.get("text", ""))
                self._world.note("fleet", "job settles", f"{spec.key} {outcome} {text!r}")
                self._out.results.append(("fleet", outcome, text))


async def _unsettled(process: Process) -> bool:
    async def work(tx: Transaction) -> bool:
        return bool(await tx.run("SELECT 1 FROM steersman_turns WHERE state <> 'settled'"))

    return await process.database.read(work)


def _command(ask: Any) -> str:
    return str(ask.payload.input.get("command"))
