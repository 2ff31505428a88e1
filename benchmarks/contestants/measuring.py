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
QUIET = 5.0
"""Seconds for which open sessions that do nothing are measured."""
TICKS = os.sysconf("SC_CLK_TCK")
PARTIAL = ("partial", "trickle", "stamped", "streamed")
"""Kinds of turns whose partial messages are read."""


@dataclass(frozen=True, slots=True)
class Order:
    """The work that a contestant is measured with."""

    program: str
    """Path of the stand-in CLI, or of the stock CLI for the shapes `stock` and `one-shot`."""
    shape: str = "turn"
    """`turn`, `connect`, `idle`, ...: see `SHAPES`; or `stored`, or `one-shot`."""
    kind: str = "partial"
    count: int = 100
    size: int = 40
    window: int = 1
    """How many requests may be open at once; microseconds between two messages of a trickle."""
    sessions: int = 1
    warm: int = 20
    """Number of items to process before the measurement."""
    reading: str = "typed"
    """`typed` messages, `raw` lines, or `text` only. Used only by steersman."""
    journal: bool = False
    """Whether the journal is also written to a file. Used only by steersman."""
    patience: float = 10.0
    """Seconds to wait for the request behind a backlog. Then the result is `never`."""
    folder: str = ""
    """The working directory for the stock CLI."""

    @property
    def is_stock(self) -> bool:
        """Whether the program is the stock CLI, in a sandbox."""
        return bool(self.folder)

    @property
    def streams(self) -> bool:
        """Whether partial messages are asked for and read."""
        return self.kind in PARTIAL

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
    quiet: float = 0.0
    """CPU seconds of this process per second in which its sessions do nothing."""
    cli: float = 0.0
    """CPU seconds of the CLI; with those of the helpers for the shape `one-shot`."""
    first: float = 0.0
    """Seconds from the prompt to the first text."""
    start: float = 0.0
    close: float = 0.0
    """Seconds until a session could be used, and until it was closed."""
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


class FirstText:
    """Counts characters, and keeps when the first of them came."""

    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self, text: str) -> int:
        """Return the length of `text`."""
        if not self.at and text:
            self.at = time.perf_counter()
        return len(text)


first_text = FirstText()


def delay_of(text: str) -> int:
    """Return the nanoseconds since the stand-in wrote `text`, if it is a time."""
    return time.monotonic_ns() - int(text) if text.isdigit() else 0


def weigher(order: Order) -> Callable[[str], int]:
    """Return the function that readers call with each text: `len`, or one that measures times."""
    if order.is_stock:
        return first_text
    return delay_of if order.kind == "stamped" else len


def check_answer(prompt: str, answer: str | None) -> None:
    """Check the answer of the stand-in; the stock CLI answers what its model says."""
    words = prompt.split()
    assert words[0] != "bench" or answer == f"done {words[2]}", answer


OneShot = Callable[[Order, str], Awaitable[int]]
"""Sends a prompt as the SDK does it by default, and returns the number of characters."""

Stored = Callable[[Order, str], int]
"""Does the work of `order.kind` with the session files of a configuration directory."""


def main(open_one: Open, stored: Stored | None = None, one_shot: OneShot | None = None) -> None:
    """Run the order in the first argument, and print the report as JSON."""
    given = json.loads(sys.argv[1])
    known = {each.name for each in fields(Order)}
    order = Order(**{name: value for name, value in given.items() if name in known})
    if order.shape == "stored":
        assert stored is not None, "this contestant knows no stored sessions"
        report = measure_stored(order, stored)
    elif order.shape == "one-shot":
        assert one_shot is not None, "this contestant knows no prompts without a session"
        report = asyncio.run(measure_one_shot(order, one_shot))
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


async def measure_latency(order: Order, open_one: Open) -> Report:
    """Measure from the writing of each message in the CLI to its arrival at the reader."""
    report = await measure_turn(order, open_one)
    # The readers added up delays instead of characters.
    report.wall, report.weight = report.weight / 1e9, 0
    return report


async def measure_quiet(order: Order, open_one: Open) -> Report:
    """Measure the CPU time of open sessions that do nothing."""
    conversations = await open_many(order, open_one)
    for each in conversations:
        await each.turn(order.warm_prompt)
    before, used = time.perf_counter(), cpu_time()
    await asyncio.sleep(QUIET)
    elapsed = time.perf_counter() - before
    report = Report(items=order.sessions, quiet=(cpu_time() - used) / elapsed)
    await close_all(conversations)
    return report


async def measure_stock(order: Order, open_one: Open) -> Report:
    """Measure a session of the stock CLI: its start, one turn, and its end."""
    report = Report(items=1)
    started = time.perf_counter()
    async with asyncio.timeout(SETTING_UP):
        conversation = await open_one(order, asyncio.Event())
        report.start = time.perf_counter() - started
        await conversation.turn("warm up")
    first_text.at, cli = 0.0, cli_time(order)
    watch, sent = Stopwatch(), time.perf_counter()
    async with asyncio.timeout(MEASURED):
        report.weight = await conversation.turn("measured")
    watch.read(report)
    report.cli, report.first = cli_time(order) - cli, first_text.at - sent
    closing = time.perf_counter()
    await close_all([conversation])
    report.close = time.perf_counter() - closing
    return report


async def measure_one_shot(order: Order, one_shot: OneShot) -> Report:
    """Measure prompts that each start and end a CLI, with the options of the SDK's default."""
    report = Report(items=order.count)
    async with asyncio.timeout(SETTING_UP):
        await one_shot(order, "warm up")
    children, watch = children_time(), Stopwatch()
    for _ in range(order.count):
        async with asyncio.timeout(MEASURED):
            report.weight += await one_shot(order, "measured")
    watch.read(report)
    report.cli = (children_time() - children) / order.count
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
    "latency": measure_latency,
    "quiet": measure_quiet,
    "stock": measure_stock,
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
    return [each for each in descendants() if not is_cli(each, order.program)]


def descendants() -> list[int]:
    """Return the pids of all descendants of this process."""
    found, left = list[int](), [os.getpid()]
    while left:
        for task in Path(f"/proc/{left.pop()}/task").glob("*/children"):
            children = [int(each) for each in task.read_text(encoding="ascii").split()]
            left += children
            found += children
    return found


def cli_time(order: Order) -> float:
    """Return the user and system seconds of the CLIs that run now."""
    pids = [each for each in descendants() if is_cli(each, order.program)]
    return sum(map(sum, (times_of(each)[:2] for each in pids)))


def children_time() -> float:
    """Return the user and system seconds of all processes below this one, past and present."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime + sum(map(sum, map(times_of, descendants())))


def times_of(pid: int) -> list[float]:
    """Return user and system seconds of a process, and those of children it has waited for."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except OSError:
        return []
    # The name of the program, in parentheses, may contain spaces.
    return [int(each) / TICKS for each in stat.rpartition(")")[2].split()[11:15]]


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
