"""The world of one run: a clock, a database file, a CLI that survives its hosts, and its processes.

A host that is killed is cut off: its store answers no more, its CLI is killed, and nothing that its
objects still do has an effect. So no code of a host needs to know that it is simulated.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import sqlite3
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Executor
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from steersman._portal.home_thread import HomeThread
from steersman.errors import StoreError
from steersman.ports import Channel, Launch, Receiver
from steersman.stores._sql.database import Work
from steersman.stores._sql.sqlite_database import SqliteDatabase
from steersman.stores._sql.store import SqlStore
from steersman.testing.faults import VirtualClockLoop
from steersman.testing.request import ModelRequest
from steersman.testing.script import Script, Step, call, calls, say, stall
from steersman.testing.scripted.cli import ScriptedCLI
from tests.simulation.durable.plans import KEY, OTHER_KEY, Plan

__all__ = ["HOST", "Event", "Process", "SimLoop", "World"]

T = TypeVar("T")

EPOCH = 1_000_000_000.0
HOST: ContextVar[Process | None] = ContextVar("HOST", default=None)
"""The process that a tool of the CLI runs for."""


class SimLoop(VirtualClockLoop):
    """A virtual clock, and threads whose work takes no time."""

    def _jump(self, seconds: float | None) -> None:
        # A wait that is too short to move the clock would never end.
        super()._jump(None if seconds is None else max(seconds, 1e-6))

    def run_in_executor(  # type: ignore[override]
        self, _executor: Executor | None, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        done: asyncio.Future[T] = self.create_future()
        try:
            done.set_result(func(*args))
        except BaseException as error:  # noqa: BLE001 - as a thread would pass it on
            done.set_exception(error)
        return done


@dataclass(frozen=True)
class Event:
    """Something that happened outside of the hosts, or to one of them."""

    at: float
    who: str
    what: str
    about: str = ""

    def __str__(self) -> str:
        return f"{self.at:9.3f} {self.who:8} {self.what} {self.about}"


@dataclass
class World:
    """What outlives every host."""

    path: Path
    plan: Plan
    log: list[Event] = field(default_factory=list[Event])
    cli: ScriptedCLI = field(init=False)
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a tool begins."""

    def __post_init__(self) -> None:
        self.dice = random.Random(-self.plan.seed)
        self.cli = ScriptedCLI(_Model(self._step), tools={"Bash": self._pay})

    @property
    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def clock(self) -> float:
        return EPOCH + self.now

    def note(self, who: str, what: str, about: str = "") -> None:
        self.log.append(Event(self.now, who, what, about))

    def transcript(self, session_id: str) -> list[bytes] | None:
        return self.cli.stage.memory.lines(session_id)

    # The model, which remembers only what is in its conversation

    def _step(self, request: ModelRequest) -> Step:
        whole = str(request.body["messages"])
        other = whole.rfind(f"pay {OTHER_KEY}")
        key, part = (OTHER_KEY, whole[other:]) if other >= 0 else (KEY, whole)
        left = [each for each in self.plan.commands_of(key) if f"receipt for {each}" not in part]
        if "not this one" in part or "no answer came in time" in part:
            return say("denied")
        if not left:
            return say("paid")
        at_once = left if self.plan.is_at_once else left[:1]
        return stall(self.plan.think) + calls(*(call("Bash", command=each) for each in at_once))

    async def _pay(self, given: Any) -> str:
        host, command = HOST.get(), str(given["command"])
        name = host.name if host else "?"
        self.note(name, "tool begins", command)
        self.begun.set()
        if not self._count("SELECT 1 FROM steersman_turns WHERE state <> 'settled'"):
            self.note(name, "settled row", command)
        try:
            await asyncio.sleep(self.plan.work)
        except asyncio.CancelledError:
            self.note(name, "tool killed", f"{command} by the {host.ends_by if host else '?'}")
            raise
        self.note(name, "tool ends", command)
        return f"receipt for {command}"

    # What must hold at every moment

    async def watch_asks(self) -> None:
        """Note each open ask whose turn is settled; a write of both is one transaction."""
        while True:
            await asyncio.sleep(LOOKS)
            for command in self._count(ORPHANS):
                self.note("world", "orphan ask", str(command))

    def _count(self, statement: str) -> list[Any]:
        with contextlib.closing(sqlite3.connect(self.path)) as found:
            try:
                return [each for (each,) in found.execute(statement)]
            except sqlite3.OperationalError:
                # No table yet.
                return []


LOOKS = 0.25
"""Virtual seconds between two looks."""
ORPHANS = (
    "SELECT a.ask_id FROM steersman_asks a JOIN steersman_turns t ON t.session = a.session"
    " AND t.uuid = a.turn WHERE a.state = 'open' AND t.state = 'settled'"
)


class _Model(Script):
    def __init__(self, step: Callable[[ModelRequest], Step]) -> None:
        super().__init__()
        self._step = step

    def answer(self, request: ModelRequest) -> Step:
        return self._step(request)


class Process:
    """A process with a store of its own: a host, or somebody who answers."""

    def __init__(self, world: World, name: str) -> None:
        self.world, self.name = world, name
        self.is_dead = False
        self.died = asyncio.Event()
        self.away_until = 0.0
        """Until when the store cannot be reached from here."""
        self.dies_at_call: int | None = None
        """The number of the store's call at which the process is killed; odd ones are before it."""
        self.store_calls = 0
        self.ends_by = "leave"
        """What ends the tools of this host."""
        self._channels: list[Channel] = []
        self.database = _Cable(self)
        self.store = SqlStore(self.database, self.database)
        self.inbox = self.store.inbox()

    def kill(self) -> None:
        """End it at once: the guard kills its CLI, and its lease stays."""
        if self.is_dead:
            return
        self.is_dead, self.ends_by = True, "kill"
        self.died.set()
        self.world.note(self.name, "is killed")
        for channel in self._channels:
            channel.kill()

    def kill_cli(self) -> None:
        """End the CLI alone: its host finds out."""
        before, self.ends_by = self.ends_by, "death of the CLI"
        self._channels[-1].kill()
        asyncio.get_running_loop().call_later(0.5, setattr, self, "ends_by", before)

    async def step(self) -> None:
        """Pass one end of a call to the store."""
        self.store_calls += 1
        if self.store_calls == self.dies_at_call:
            self.kill()
        while True:
            if self.is_dead:
                await asyncio.get_running_loop().create_future()
            await asyncio.sleep(self.world.dice.choice((0.0, 0.0, 0.001, 0.004, 0.02)))
            if not self.is_dead:
                return

    # A transport

    async def open(self, launch: Launch, receiver: Receiver) -> Channel:
        if self.is_dead:
            await asyncio.get_running_loop().create_future()
        HOST.set(self)
        channel = await self.world.cli.open(launch, _Ear(self, receiver))
        self._channels.append(channel)
        return channel


class _Ear:
    """Hears nothing any more when its process is dead."""

    def __init__(self, process: Process, inner: Receiver) -> None:
        self._process, self._inner = process, inner

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not callable(found):
            return found
        return lambda *args, **kw: None if self._process.is_dead else found(*args, **kw)


class _Cable(SqliteDatabase):
    """The way from one process to the database."""

    def __init__(self, process: Process) -> None:
        super().__init__(process.world.path, 5.0, process.world.clock)
        self.home = _LoopHome()
        self._process = process

    async def read(self, work: Work[T]) -> T:
        return await self._pass(super().read(work))

    async def write(self, work: Work[T], *, is_vital: bool = False) -> T:
        return await self._pass(super().write(work, is_vital=is_vital))

    async def _pass(self, call: Coroutine[Any, Any, T]) -> T:
        process = self._process
        with contextlib.closing(call):
            if process.world.now < process.away_until:
                raise StoreError("the store is away")
            await process.step()
            done = await call
            await process.step()
            return done


class _LoopHome(HomeThread):
    """As a thread, but in the loop of the run."""

    def __init__(self) -> None:
        super().__init__("", _nothing, 1.0)
        self._tasks: set[asyncio.Future[None]] = set()

    @property
    def is_here(self) -> bool:
        return True

    def start(self, work: Callable[[], Awaitable[None]]) -> None:
        task = asyncio.ensure_future(work())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def post(self, job: Callable[[], None], *, starts: bool = True) -> None:
        if starts or self._tasks:
            asyncio.get_running_loop().call_soon(job)


async def _nothing() -> None:
    """Close nothing."""
