"""The world of one run: a clock, a database file, a CLI that survives its hosts, and its processes.

A host that is killed is cut off: its store answers no more, its CLI is killed, and nothing that its
objects still do has an effect. One that is stopped runs no step, and its timers wait; its CLI runs
until its guard ends it. So no code of a host needs to know that it is simulated.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import heapq
import random
import selectors
import sqlite3
import tempfile
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Executor
from contextlib import closing
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast

from steersman._portal.home_thread import HomeThread
from steersman.durable.leases import RESERVE
from steersman.errors import StoreError
from steersman.ports import Channel, Launch, Receiver
from steersman.stores._sql.database import Work
from steersman.stores._sql.store import SqlStore
from steersman.stores.sqlite import LATE, SOON, SqliteDatabase, SqliteFile
from steersman.testing.faults import NothingScheduled
from steersman.testing.request import ModelRequest
from steersman.testing.script import Script, Step, call, calls, say, stall
from steersman.testing.scripted.cli import FakeTool, ScriptedCLI, Subagent
from tests.simulation.durable.plans import KEY, OTHER_KEY, Plan

T = TypeVar("T")

EPOCH = 1_000_000_000.0
HOST: ContextVar[Process | None] = ContextVar("HOST", default=None)
"""The process that a tool of the CLI runs for."""
RUNS: ContextVar[Process | None] = ContextVar("RUNS", default=None)
"""The process that code belongs to; None for a CLI, and for the world itself."""


class SimLoop(asyncio.SelectorEventLoop):
    """A loop with a virtual clock, and with threads whose work takes no time.

    It asks the machine for nothing, since nothing from outside of this thread can come.
    """

    _scheduled: list[asyncio.TimerHandle]
    _ready: deque[asyncio.Handle]

    def __init__(self) -> None:
        self._now = 0.0
        self._stopped: dict[Process, list[asyncio.Handle]] = {}
        """What waits in processes that are stopped: their timers, and what would run now."""
        super().__init__(_NoSelector(self._jump))

    def stop_process(self, process: Process) -> None:
        """Run no code of a process, as after a SIGSTOP."""
        waiting: list[asyncio.Handle] = []
        others: list[asyncio.TimerHandle] = []
        for each in self._scheduled:
            is_its = each._context.get(RUNS) is process  # type: ignore[attr-defined]
            (waiting if is_its else others).append(each)
        self._scheduled = others
        heapq.heapify(others)
        self._stopped[process] = waiting

    def continue_process(self, process: Process) -> None:
        """Run it again: what is due by now comes first."""
        for each in self._stopped.pop(process):
            if isinstance(each, asyncio.TimerHandle):
                heapq.heappush(self._scheduled, each)
            else:
                self._ready.append(each)

    def call_soon(  # type: ignore[override]  # its types need Python 3.12
        self, callback: Any, *args: Any, context: Any = None
    ) -> asyncio.Handle:
        if self._stopped:
            context = context or contextvars.copy_context()
            waiting = self._stopped.get(context.get(RUNS))
            if waiting is not None:
                handle = asyncio.Handle(callback, args, self, context)
                waiting.append(handle)
                return handle
        return super().call_soon(callback, *args, context=context)

    def time(self) -> float:
        return self._now

    def _jump(self, seconds: float | None) -> None:
        if seconds is None:
            raise NothingScheduled("every task waits for another one")
        # A wait that is too short to move the clock would never end.
        self._now += max(seconds, 1e-6)

    def in_process(self, process: Process | None, callback: Any, *args: Any) -> asyncio.Handle:
        """Call something in a process, once it runs."""
        return self.call_soon(callback, *args, context=context_of(process))

    def call_soon_threadsafe(  # type: ignore[override]  # as above
        self, callback: Any, *args: Any, context: Any = None
    ) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    def run_in_executor(  # type: ignore[override]
        self, _executor: Executor | None, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        done: asyncio.Future[T] = self.create_future()
        try:
            done.set_result(func(*args))
        except BaseException as error:  # noqa: BLE001 - as a thread would pass it on
            done.set_exception(error)
        return done


async def later(seconds: float) -> None:
    """Let virtual time pass."""
    until = asyncio.get_running_loop().time() + seconds
    while (left := until - asyncio.get_running_loop().time()) > 0:  # noqa: ASYNC110 - virtual time
        await asyncio.sleep(left)


def context_of(process: Process | None) -> contextvars.Context:
    """Return the context of code that belongs to a process."""
    context = contextvars.copy_context()
    context.run(RUNS.set, process)
    return context


class _NoSelector(selectors.SelectSelector):
    def __init__(self, jump: Callable[[float | None], None]) -> None:
        super().__init__()
        self._jump = jump

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout > 0:
            self._jump(timeout)
        return []


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

    processes: list[Process] = field(default_factory=list["Process"])

    def __post_init__(self) -> None:
        self.dice = random.Random(-self.plan.seed)
        self.path.touch(0o600)
        self.path.write_bytes(_empty_database())
        self.database = sqlite3.connect(self.path, isolation_level=None)
        helper = Subagent(lambda given: [("Bash", {"command": given["prompt"]})])
        tools: dict[str, FakeTool | Subagent] = {"Bash": self._pay, "Task": helper}
        self.cli = ScriptedCLI(_Model(self._step), tools=tools)

    @property
    def loop(self) -> SimLoop:
        return cast("SimLoop", asyncio.get_running_loop())

    @property
    def now(self) -> float:
        return self.loop.time()

    def clock(self) -> float:
        return EPOCH + self.now

    def note(self, who: str, what: str, about: str = "") -> None:
        self.log.append(Event(self.now, who, what, about))

    def transcript(self, session_id: str) -> list[bytes] | None:
        return self.cli.stage.memory.lines(session_id)

    # The model, which remembers only what is in its conversation

    def _step(self, request: ModelRequest) -> Step:
        whole = str(request.body["messages"])
        at, key = max((whole.rfind(f"pay {key}"), key) for key in (KEY, OTHER_KEY))
        part = whole[max(at, 0) :]
        left = [each for each in self.plan.commands_of(key) if f"receipt for {each}" not in whole]
        if "not this one" in part or "no answer came in time" in part:
            return say("denied")
        if not left:
            return say("paid")
        at_once = left if self.plan.is_at_once else left[:1]
        made = [
            call("Task", prompt=each) if self.plan.delegates else call("Bash", command=each)
            for each in at_once
        ]
        return stall(self.plan.think) + calls(*made)

    async def _pay(self, given: Any) -> str:
        host, command = HOST.get(), str(given["command"])
        name = host.name if host else "?"
        self.note(name, "tool begins", command)
        self.begun.set()
        if not self.look("SELECT 1 FROM steersman_turns WHERE state <> 'settled'"):
            self.note(name, "settled row", command)
        try:
            await asyncio.sleep(self.plan.work)
        except asyncio.CancelledError:
            # Of a process that is stopped, the guard kills it: the row may say that there was time,
            # because the last renewal was not confirmed.
            is_over = host is not None and (
                host.is_stopped or self.look(ENDING_LEASE, self.clock() + LEASE_RESERVE)
            )
            by = "end of the lease" if is_over else host.ends_by if host else "?"
            self.note(name, "tool killed", f"{command} by the {by}")
            raise
        self.note(name, "tool ends", command)
        return f"receipt for {command}"

    # What must hold at every moment

    def written(self, by: Process) -> None:
        """Note each open ask whose turn is settled, and let all other processes know."""
        for command in self.look(ORPHANS):
            self.note("world", "orphan ask", str(command))
        for each in self.processes:
            if each is not by:
                each.news.set()

    def look(self, statement: str, *values: object) -> list[Any]:
        """Return the first column of what stands in the database."""
        return [each for (each, *_) in self.database.execute(statement, values)]

    def close(self) -> None:
        self.database.close()


@functools.cache
def _empty_database() -> bytes:
    """Return a database file with all tables and no rows, made by the store itself."""
    with tempfile.TemporaryDirectory() as folder:
        file = SqliteFile(Path(folder) / "work.db", 5.0)
        file.read(lambda _: None)
        file.close()
        return file.path.read_bytes()


LEASE = 6.0
"""Seconds that the leases of all hosts last."""
LEASE_RESERVE = RESERVE * LEASE + 0.1
"""A host ends its CLI before the lease is over."""
ENDING_LEASE = "SELECT 1 FROM steersman_conversations WHERE lease_token <> '' AND lease_until <= ?"
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
        self.is_stopped = False
        self.died = asyncio.Event()
        self.away_until = 0.0
        """Until when the store cannot be reached from here."""
        self.dies_at_call: int | None = None
        """The number of the store's call at which the process is killed; odd ones are before it."""
        self.store_calls = 0
        self.ends_by = "leave"
        """What ends the tools of this host."""
        self.news = asyncio.Event()
        """Set when another process has written."""
        world.processes.append(self)
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

    def stop(self, seconds: float) -> None:
        """Stop it for a while; the guard of its CLI goes on."""
        loop = self.world.loop
        self.world.note(self.name, "is stopped")
        self.is_stopped = True
        loop.stop_process(self)
        loop.call_later(seconds, self._continue, context=context_of(None))

    def _continue(self) -> None:
        self.world.note(self.name, "is continued")
        self.is_stopped = False
        self.world.loop.continue_process(self)

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run `work` as code of this process."""
        return asyncio.get_running_loop().create_task(work, context=context_of(self))

    # A transport

    async def open(self, launch: Launch, receiver: Receiver) -> Channel:
        if self.is_dead:
            await asyncio.get_running_loop().create_future()
        context = context_of(None)
        context.run(HOST.set, self)
        opening = self.world.cli.open(launch, cast("Receiver", _Ear(self, receiver)))
        channel = await asyncio.get_running_loop().create_task(opening, context=context)
        self._channels.append(channel)
        return _Guarded(channel)


class _Ear:
    """Hears nothing any more when its process is dead, and what it missed once it runs again."""

    def __init__(self, process: Process, inner: Receiver) -> None:
        self._process, self._inner = process, inner

    def __getattr__(self, name: str) -> Callable[..., None]:
        found = getattr(self._inner, name)
        loop = self._process.world.loop

        def hear(*args: Any) -> None:
            if not self._process.is_dead:
                loop.in_process(self._process, found, *args)

        return hear


class _Guarded:
    """A channel with a guard, which ends the CLI whatever its host does."""

    def __init__(self, inner: Channel) -> None:
        self._inner = inner
        self._ending: asyncio.TimerHandle | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def end_after(self, seconds: float) -> None:
        if self._ending is not None:
            self._ending.cancel()
        loop = asyncio.get_running_loop()
        self._ending = loop.call_later(seconds, self._inner.kill, context=context_of(None))


class _Cable(SqliteDatabase):
    """The way from one process to the database."""

    def __init__(self, process: Process) -> None:
        super().__init__(process.world.path, 5.0, process.world.clock)
        self.home = _LoopHome()
        self._process = process

    async def read(self, work: Work[T]) -> T:
        return await self._pass(super().read(work))

    async def write(self, work: Work[T], *, is_vital: bool = False) -> T:
        return await self._pass(self._written(work, is_vital=is_vital))

    async def _written(self, work: Work[T], *, is_vital: bool) -> T:
        done = await super().write(work, is_vital=is_vital)
        self._process.world.written(self._process)
        return done

    async def _signal(self, changed: Callable[[], None]) -> None:
        """At once, as a server notifies, or as late as a file is looked at."""
        process = self._process
        while True:
            await asyncio.sleep(process.world.dice.choice((0.0, SOON, LATE)))
            changed()
            await process.news.wait()
            process.news.clear()

    async def _pass(self, call: Coroutine[Any, Any, T]) -> T:
        process = self._process
        with closing(call):
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
