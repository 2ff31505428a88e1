"""How every Python contestant is measured: the same order, the same clock, the same report.

Knows no SDK. A contestant gives a way to open conversations; an order says what is done with them.
CPU time is user and system time of this process alone, all its threads included.
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

SETTING_UP = 120.0
MEASURED = 240.0
OPENED_AT_ONCE = 8
CLOSING = 60.0
PAGE = resource.getpagesize()


@dataclass(frozen=True, slots=True)
class Order:
    """What a contestant is to do."""

    program: str
    """The stand-in CLI."""
    shape: str = "turn"
    """`turn`, `connect`, `idle`, `backlog` or `restart`: see `SHAPES`."""
    kind: str = "partial"
    count: int = 100
    size: int = 40
    window: int = 1
    sessions: int = 1
    warm: int = 20
    """Items of the same kind that are done before, unmeasured."""
    reading: str = "typed"
    """`typed` messages, `raw` lines, or `text` alone: of our own, as the next one."""
    journal: bool = False
    """Whether the journal goes to a file as well."""
    patience: float = 10.0
    """How long a backlog may keep a request waiting before it counts as never."""

    def asks(self, request: str) -> bool:
        """Whether there will be questions of this kind: `permission`, `hook` or `tool`."""
        also = {"permission": "backlog"}.get(request)
        return self.kind in (request, "mixed", also)

    @property
    def prompt(self) -> str:
        """What the stand-in is told."""
        return f"bench {self.kind} {self.count} {self.size} {self.window}"

    @property
    def warm_prompt(self) -> str:
        """The same for the unmeasured part."""
        return (
            f"bench {self.kind} {self.warm} {min(self.size, 65536)} {min(self.window, self.warm)}"
        )


@dataclass(slots=True)
class Report:
    """What came of it, over all items."""

    cpu: float = 0.0
    wall: float = 0.0
    items: int = 0
    peak: int = 0
    """Bytes of memory at most, of this process."""
    held: float = 0.0
    """Bytes of memory for each open session, in this process."""
    beside: float = 0.0
    """Bytes for each open session in helper processes, the CLI itself not counted."""
    weight: int = 0
    """Characters that were read: every contestant must have seen the same."""
    note: str = ""


class Conversation(Protocol):
    """One session of a contestant's."""

    async def turn(self, prompt: str) -> int:
        """Send `prompt`, read everything to its result, and give how many characters came."""
        ...

    async def send(self, prompt: str) -> None:
        """Send `prompt` and read nothing."""
        ...

    async def restart(self) -> None:
        """Kill the CLI and return once the session has another; only for those who can."""
        ...

    async def close(self) -> None:
        """End it."""
        ...


Open = Callable[[Order, asyncio.Event], Awaitable[Conversation]]
"""Opens a conversation; the event is set when a permission is asked for."""


def main(open_one: Open) -> None:
    """Do what the first argument says and print the report as JSON."""
    given = json.loads(sys.argv[1])
    known = {each.name for each in fields(Order)}
    order = Order(**{name: value for name, value in given.items() if name in known})
    report = asyncio.run(SHAPES[order.shape](order, open_one))
    report.peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps(asdict(report)))


class Stopwatch:
    """CPU and wall time between two moments."""

    def __init__(self) -> None:
        self._cpu, self._wall = cpu_time(), time.perf_counter()

    def read(self, report: Report) -> None:
        """Add what has passed to `report`."""
        report.cpu += cpu_time() - self._cpu
        report.wall += time.perf_counter() - self._wall


def cpu_time() -> float:
    """User and system seconds of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def measure_turn(order: Order, open_one: Open) -> Report:
    """One turn in each of the sessions, all at the same time."""
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
    """Opening a session until it can be spoken to, one after the other; closing is not counted."""
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
    """Memory of sessions that are open, have had one small turn each, and wait."""
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
    """From the prompt to the request behind messages that nobody reads."""
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
    """From the CLI's death until another stands in its place, which then does a turn."""
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


SHAPES = {
    "turn": measure_turn,
    "connect": measure_connect,
    "idle": measure_idle,
    "backlog": measure_backlog,
    "restart": measure_restart,
}


async def open_many(order: Order, open_one: Open) -> list[Conversation]:
    """All sessions of the order, a few at a time."""
    conversations: list[Conversation] = []
    async with asyncio.timeout(SETTING_UP):
        while missing := min(OPENED_AT_ONCE, order.sessions - len(conversations)):
            opening = (open_one(order, asyncio.Event()) for _ in range(missing))
            conversations += await asyncio.gather(*opening)
    return conversations


async def close_all(conversations: list[Conversation]) -> None:
    """End them all; one that hangs is not waited for."""
    try:
        async with asyncio.timeout(CLOSING):
            for each in conversations:
                await each.close()
    except TimeoutError:
        sys.stderr.write("closing took too long\n")


def resident() -> int:
    """Bytes of memory that this process holds now, without what is only waiting to be freed."""
    gc.collect()
    try:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * PAGE
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def helpers(order: Order) -> list[int]:
    """The processes below this one that are not the CLI."""
    found, left = list[int](), [os.getpid()]
    while left:
        pid = left.pop()
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            children = [int(each) for each in task.read_text(encoding="ascii").split()]
            left += children
            found += [each for each in children if not is_cli(each, order.program)]
    return found


def is_cli(pid: int, program: str) -> bool:
    """Whether a process is the stand-in itself."""
    try:
        return Path(f"/proc/{pid}/exe").readlink() == Path(program).resolve()
    except OSError:
        return False


def proportional(pid: int) -> int:
    """Bytes of memory of another process, what it shares counted in part."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
