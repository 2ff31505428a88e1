"""Which of our source files the flows of the tour pass through, in the order of their entry.

`docs/tour-files.md` lists them, with what each file says of itself, and draws which room may import
which. `test_flows.py` compares. After a file was moved or a room was added:

    python -m tests.house.flows --update

Without `--update`, the page is printed. Each flow runs on the scripted CLI, whose own files are not
counted, and runs twice: the first time loads modules.
"""

from __future__ import annotations

import ast
import asyncio
import configparser
import logging
import sys
import threading
from collections.abc import Awaitable, Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, cast

from steersman import Agent, Allow, Session
from steersman.ports import Channel, Launch, Receiver, Transport
from steersman.testing.script import Script, call, say, stall
from steersman.testing.scripted.cli import ScriptedCLI

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src/steersman"
PREFIX = f"{SOURCE}/"
PAGE = ROOT / "docs/tour-files.md"

HEAD = """\
# Files of the tour

<!-- Written by `python -m tests.house.flows --update`; never by hand. -->

What stations 1 to 4 of the [tour](tour.md) enter below `src/steersman/`, in order, and what each
file says of itself.
"""

ROOMS = """\
## Which room may import which

A room imports only rooms below it; rooms on one line do not import each other. `.importlinter` says
so, and which rooms do no I/O.
"""

OF_THE_SCRIPTED_CLI = ("testing/", "transports/memory.py")
LIMIT = 10.0


@dataclass
class Visits:
    """What a flow entered, in order."""

    files: list[str] = field(default_factory=list[str])
    """Every file, once, in the order of the first visit."""
    functions: list[str] = field(default_factory=list[str])
    """Every function, once, as `file:qualified name`."""
    changes: int = 0
    """How often the next function entered is in another file, in the same thread."""
    _last: dict[int, str] = field(default_factory=dict[int, str])
    """The file of each thread."""

    def enter(self, frame: FrameType, event: str, _argument: object) -> None:
        """Note a function that is entered; given to `sys.setprofile`."""
        name = frame.f_code.co_filename
        file = name.removeprefix(PREFIX)
        if event != "call" or file == name or file.startswith(OF_THE_SCRIPTED_CLI):
            return
        function = f"{file}:{frame.f_code.co_qualname}"
        thread = threading.get_ident()
        self.changes += file != self._last.get(thread)
        self._last[thread] = file
        if file not in self.files:
            self.files.append(file)
        if function not in self.functions:
            self.functions.append(function)

    def start(self) -> None:
        """Begin to look."""
        sys.setprofile(self.enter)

    def stop(self) -> None:
        """Look no more."""
        sys.setprofile(None)


@contextmanager
def looking(visits: Visits) -> Generator[None, None, None]:
    visits.start()
    try:
        yield
    finally:
        visits.stop()


@dataclass
class Tap:
    """A transport that calls back with what passes through it."""

    inner: Transport
    on_input: Callable[[bytes], None] = lambda _data: None
    """Before the session is given bytes of the CLI."""
    on_output: Callable[[bytes], None] = lambda _data: None
    """When the session has written bytes."""
    on_exit: Callable[[], None] = lambda: None

    async def open(self, launch: Launch, receiver: Receiver) -> Channel:
        inner = await self.inner.open(launch, _TappedReceiver(self, receiver))
        return cast("Channel", _TappedChannel(self, inner))


@dataclass
class _TappedReceiver:
    tap: Tap
    receiver: Receiver

    def data_received(self, data: bytes) -> None:
        self.tap.on_input(data)
        self.receiver.data_received(data)

    def stderr_received(self, data: bytes) -> None:
        self.receiver.stderr_received(data)

    def exited(self, status: int) -> None:
        self.tap.on_exit()
        self.receiver.exited(status)


class _TappedChannel:
    def __init__(self, tap: Tap, channel: Channel) -> None:
        self._tap, self._channel = tap, channel

    def write(self, data: bytes) -> None:
        self._tap.on_output(data)
        self._channel.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._channel, name)


@dataclass
class Between:
    """Looks from one sight of bytes to the next."""

    visits: Visits
    begin: bytes
    end: bytes
    is_looking: bool = False

    def first(self, data: bytes) -> None:
        if self.begin in data and not self.visits.files:
            self.is_looking = True
            self.visits.start()

    def last(self, data: bytes) -> None:
        if self.is_looking and self.end in data:
            self.visits.stop()
            self.is_looking = False


async def _idle(session: Session) -> None:
    await session.wait_idle(LIMIT)


async def _allow(*_: object) -> Allow:
    return Allow()


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def prompt() -> Visits:
    """Send a prompt."""
    visits = Visits()
    sent = Between(visits, b"", b'"user"')
    tap = Tap(ScriptedCLI(Script(say("fine"), say("fine"))), on_output=sent.last)
    async with Agent(transport=tap).session() as session:
        await (await session.send("warm up"))
        await _idle(session)
        sent.is_looking = True
        with looking(visits):
            turn = await session.send("go")
        await turn
    return visits


async def permission() -> Visits:
    """Answer one permission request with a callback."""
    visits = Visits()
    between = Between(visits, b'"can_use_tool"', b'"control_response"')
    cli = ScriptedCLI(Script(call("Bash", command="touch x"), say("done")))
    tap = Tap(cli, on_input=between.first, on_output=between.last)
    async with Agent(transport=tap, can_use_tool=_allow).session() as session:
        await (await session.send("go"))
    return visits


async def tool_call() -> Visits:
    """Answer one call of a tool written in Python."""
    visits = Visits()
    between = Between(visits, b'"tools/call"', b'"control_response"')
    cli = ScriptedCLI(Script(call("mcp__functions__add", a=1, b=2), say("three")))
    tap = Tap(cli, on_input=between.first, on_output=between.last)
    async with Agent(transport=tap, functions=[add]).session() as session:
        await (await session.send("go"))
    return visits


async def loss() -> Visits:
    """Lose the CLI in the middle of a turn, and send the prompt to the next one."""
    visits = Visits()
    between = Between(visits, b"", b'"user"')
    cli = ScriptedCLI(Script(say("half") + stall(), say("whole")))
    tap = Tap(cli, on_output=between.last)

    def begin() -> None:
        if not visits.files:
            between.is_looking = True
            visits.start()

    tap.on_exit = begin
    async with Agent(transport=tap).session() as session:
        turn = await session.send("go")
        await cli.wait_for_stall()
        cli.exit(7, "lost")
        await turn
        tap.on_exit = lambda: None
    return visits


async def close() -> Visits:
    """Close a session that is idle."""
    visits = Visits()
    session = Agent(transport=Tap(ScriptedCLI(Script(say("fine"))))).session()
    await session.start()
    await (await session.send("go"))
    await _idle(session)
    with looking(visits):
        await session.aclose()
    return visits


@dataclass(frozen=True)
class Flow:
    """A station of the tour, or a part of one."""

    title: str
    begins_and_ends: str
    play: Callable[[], Awaitable[Visits]]


FLOWS = (
    Flow("1. A prompt", "From `session.send()` to the bytes of the prompt.", prompt),
    Flow(
        "2. A permission request",
        "From the bytes of `can_use_tool` to the bytes of its answer.",
        permission,
    ),
    Flow("3. A tool call", "From the bytes of `tools/call` to the bytes of its answer.", tool_call),
    Flow(
        "4. A restart",
        "From the exit of the CLI to the bytes of the same prompt, sent to the next CLI.",
        loss,
    ),
    Flow("4. The close", "From `session.aclose()` to its return.", close),
)


async def played(play: Callable[[], Awaitable[Visits]]) -> Visits:
    """Play a flow twice, and return what it entered the second time."""
    try:
        async with asyncio.timeout(LIMIT):
            await play()
            return await play()
    finally:
        sys.setprofile(None)


def section(flow: Flow, files: Iterable[str]) -> str:
    """Return the part of the page about one flow."""
    listed = (f"{number}. `{file}`: {_purpose(file)}" for number, file in enumerate(files, 1))
    return "\n".join((f"## {flow.title}", "", flow.begins_and_ends, "", *listed, ""))


def _purpose(file: str) -> str:
    """Return the first paragraph of a module's docstring."""
    docstring = ast.get_docstring(ast.parse((SOURCE / file).read_text(encoding="utf-8")))
    return " ".join((docstring or "").partition("\n\n")[0].split())


def rooms() -> str:
    """Return the part of the page about imports: the layers of `.importlinter`."""
    contracts = configparser.ConfigParser()
    contracts.read(ROOT / ".importlinter", encoding="utf-8")
    layers = contracts["importlinter:contract:rings"]["layers"].strip()
    return f"{ROOMS}\n```\n{layers}\n```\n"


def page() -> str:
    """Play all flows, and return `docs/tour-files.md`."""
    sections = (section(flow, asyncio.run(played(flow.play)).files) for flow in FLOWS)
    return "\n".join((HEAD, *sections, rooms()))


def main(arguments: list[str]) -> int:
    """Write the page, or print it."""
    logging.disable()
    if "--update" in arguments:
        PAGE.write_text(page(), encoding="utf-8")
    else:
        sys.stdout.write(page())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
