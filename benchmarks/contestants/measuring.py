"""How every Python contestant is measured: with the same orders, clocks and reports.

Knows no SDK. A contestant passes a function that opens conversations; an order describes the work.
CPU time is user and system time of this process with all its threads, without child processes.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import resource
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Protocol

from benchmarks.stored_files import stored_files

SETTING_UP = 120.0
MEASURED = 240.0
OPENED_AT_ONCE = 8
CLOSING = 60.0
PAGE = resource.getpagesize()


@dataclass(frozen=True, slots=True)
class Order:
    """The work that a contestant is measured with."""

    program: str
    """Path of the stand-in CLI."""
    shape: str = "turn"
    """`turn`, `connect`, `idle`, `backlog` or `restart`: see `SHAPES`; or `stored`."""
    kind: str = "partial"
    count: int = 100
    size: int = 40
    window: int = 1
    sessions: int = 1
    warm: int = 20
    """Number of items to process before the measurement."""
    reading: str = "typed"
    """`typed` messages, `raw` lines, or `text` only. Used only by steersman."""
    journal: bool = False
    """Whether the journal is also written to a file. Used only by steersman."""
    patience: float = 10.0
    """Seconds to wait for the request behind a backlog. Then the result is `never`."""

    def asks(self, request: str) -> bool:
        """Return whether the order has requests of this kind: `permission`, `hook` or `tool`."""
        also = {"permission": "backlog"}.get(request)
        return self.kind in (request, "mixed", also)

    @property
    def prompt(self) -> str:
        """The prompt for the stand-in."""
        return f"bench {self.kind} {self.count} {self.size} {self.window}"

    @property
    def warm_prompt(self) -> str:
        """The prompt for the items before the measurement."""
        return (
            f"bench {self.kind} {self.warm} {min(self.size, 65536)} {min(self.window, self.warm)}"
        )


@dataclass(slots=True)
class Report:
    """The measurement of one order, over all items."""

    cpu: float = 0.0
    wall: float = 0.0
    items: int = 0
    peak: int = 0
    """Peak memory of this process, in bytes."""
    held: float = 0.0
    """Memory of this process per open session, in bytes."""
    beside: float = 0.0
    """Memory of helper processes per open session, in bytes, without the CLI."""
    weight: int = 0
    """Characters that were read. Must be equal for all contestants."""
    note: str = ""


class Conversation(Protocol):
    """One session of a contestant."""

    async def turn(self, prompt: str) -> int:
        """Send `prompt`, read up to its result, and return the number of characters."""
        ...

    async def send(self, prompt: str) -> None:
        """Send `prompt` and read nothing."""
        ...

    async def restart(self) -> None:
        """Kill the CLI and wait until the session has restarted it. May be unsupported."""
        ...

    async def close(self) -> None:
        """Close the session."""
        ...


Open = Callable[[Order, asyncio.Event], Awaitable[Conversation]]
"""Opens a conversation. Sets the event when a permission is requested."""


Stored = Callable[[Order, str], int]
"""Does the work of `order.kind` with the session files of a configuration directory."""


def main(open_one: Open, stored: Stored | None = None) -> None:
    """Run the order in the first argument, and print the report as JSON."""
    given = json.loads(sys.argv[1])
    known = {each.name for each in fields(Order)}
    order = Order(**{name: value for name, value in given.items() if name in known})
    if order.shape == "stored":
        assert stored is not None, "this contestant knows no stored sessions"
        report = measure_stored(order, stored)
    else:
        report = asyncio.run(SHAPES[order.shape](order, open_one))
    report.peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps(asdict(report)))


class Stopwatch:
    """Measures CPU and wall time since it was created."""

    def __init__(self) -> None:
        self._cpu, self._wall = cpu_time(), time.perf_counter()

    def read(self, report: Report) -> None:
        """Add the elapsed times to `report`."""
        report.cpu += cpu_time() - self._cpu
        report.wall += time.perf_counter() - self._wall


def cpu_time() -> float:
    """Return the user and system seconds of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def measure_turn(order: Order, open_one: Open) -> Report:
    """Measure one turn in each session, all at the same time."""
    report = Report(items=order.count * order.sessions)
    conversations = await open_many(order, open_one)
    async with asyncio.timeout(SETTING_UP):
        await asyncio.gather(*(each.turn(order.warm_prompt) for each in conversations))
    watch = Stopwatch()
    async with asyncio.timeout(MEASURED):
        report.weight = sum(
            await asyncio.gather(*(each.turn(order.prompt) for each in conversations))
        )
    watch.read(report)
    await close_all(conversations)
    return report


async def measure_connect(order: Order, open_one: Open) -> Report:
    """Measure opening sessions, one after the other, without closing them."""
    report = Report(items=order.count)
    for number in range(order.count + 1):
        watch = Stopwatch()
        async with asyncio.timeout(SETTING_UP):
            conversation = await open_one(order, asyncio.Event())
        if number:
            watch.read(report)
        await close_all([conversation])
    return report


async def measure_idle(order: Order, open_one: Open) -> Report:
    """Measure the memory of open sessions that are idle after one small turn."""
    first = await open_one(order, asyncio.Event())
    await first.turn(order.warm_prompt)
    before = resident()
    conversations = await open_many(order, open_one)
    for each in conversations:
        await each.turn(order.warm_prompt)
    report = Report(items=order.sessions, held=(resident() - before) / order.sessions)
    report.beside = sum(map(proportional, helpers(order))) / (order.sessions + 1)
    await close_all([first, *conversations])
    return report


async def measure_backlog(order: Order, open_one: Open) -> Report:
    """Measure from the prompt to a request that follows unread messages."""
    report, asked = Report(items=order.count), asyncio.Event()
    conversation = await open_one(order, asked)
    await conversation.turn("bench assistant 10 100 1")
    watch = Stopwatch()
    await conversation.send(order.prompt)
    try:
        async with asyncio.timeout(order.patience):
            await asked.wait()
    except TimeoutError:
        report.note = "never"
    watch.read(report)
    await close_all([conversation])
    return report


async def measure_restart(order: Order, open_one: Open) -> Report:
    """Measure from killing the CLI until the session has restarted it."""
    report = Report(items=order.count)
    conversation = await open_one(order, asyncio.Event())
    await conversation.turn(order.warm_prompt)
    for _ in range(order.count):
        watch = Stopwatch()
        async with asyncio.timeout(SETTING_UP):
            await conversation.restart()
        watch.read(report)
        await conversation.turn(order.warm_prompt)
    await close_all([conversation])
    return report


def measure_stored(order: Order, stored: Stored) -> Report:
    """Measure work with session files, after the same work with a single one, to load modules."""
    stored(order, str(stored_files(1, 1000)))
    config = str(stored_files(order.sessions, order.size))
    if order.warm:
        # The second time, with what the first one has kept.
        stored(order, config)
    report, watch = Report(items=order.count), Stopwatch()
    report.weight = sum(stored(order, config) for _ in range(order.count))
    watch.read(report)
    return report


SHAPES = {
    "turn": measure_turn,
    "connect": measure_connect,
    "idle": measure_idle,
    "backlog": measure_backlog,
    "restart": measure_restart,
}


async def open_many(order: Order, open_one: Open) -> list[Conversation]:
    """Open all sessions of the order, a few at a time."""
    conversations: list[Conversation] = []
    async with asyncio.timeout(SETTING_UP):
        while missing := min(OPENED_AT_ONCE, order.sessions - len(conversations)):
            opening = (open_one(order, asyncio.Event()) for _ in range(missing))
            conversations += await asyncio.gather(*opening)
    return conversations


async def close_all(conversations: list[Conversation]) -> None:
    """Close all conversations, for at most `CLOSING` seconds."""
    try:
        async with asyncio.timeout(CLOSING):
            for each in conversations:
                await each.close()
    except TimeoutError:
        sys.stderr.write("closing took too long\n")


def resident() -> int:
    """Return the resident memory of this process in bytes, after a garbage collection."""
    gc.collect()
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * PAGE
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def helpers(order: Order) -> list[int]:
    """Return the pids of all descendants that are not the CLI."""
    found, left = list[int](), [os.getpid()]
    while left:
        pid = left.pop()
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            children = [int(each) for each in task.read_text(encoding="ascii").split()]
            left += children
            found += [each for each in children if not is_cli(each, order.program)]
    return found


def is_cli(pid: int, program: str) -> bool:
    """Return whether a process is the stand-in CLI."""
    try:
        return Path(f"/proc/{pid}/exe").readlink() == Path(program).resolve()
    except OSError:
        return False


def proportional(pid: int) -> int:
    """Return the proportional set size of a process, in bytes."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
