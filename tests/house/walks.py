"""How many of our source files the everyday ways through the library enter.

`python -m tests.house.walks` prints each walk: how many files it enters, and how often the next
function that is entered is in another file; with names of walks, their files as well, in the order
in which they are entered. `test_walks.py` holds them to limits.

All threads count. Each walk runs on the scripted CLI, whose own files are not counted, and is
counted the second time: the first time loads modules.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

import httpx

from steersman import Agent, _json, compat, query
from steersman.fleet import FleetClient
from steersman.fleet._dbos.places import Place, place_at
from steersman.fleet._dbos.runner import Rhythm
from steersman.fleet.worker import Worker
from steersman.inbox.changes import Watch
from steersman.ports import Channel, Launch
from steersman.stores import SqliteStore, WorkerRow
from steersman.testing.request import ModelRequest
from steersman.testing.script import Script, Step, call, say
from steersman.testing.scripted.cli import ScriptedCLI
from steersman.web import Bridge
from tests.house.flows import Between, Tap, Visits, looking
from tests.web.staging import Frame, frame_where, serving
from tests.web.staging import say as send

LIMIT = 60.0
LEASE = 3600.0
"""Seconds in which nothing is renewed: what a timer enters is no part of a walk."""

Walk = Callable[[Path], Awaitable[Visits]]

_current: list[Visits] = []


def _enter(frame: FrameType, event: str, argument: object) -> None:
    """Note a function that is entered in any thread."""
    for visits in tuple(_current):
        visits.enter(frame, event, argument)


class _Counted(Visits):
    """Looks at all threads that were started after `threading.setprofile(_enter)`."""

    def start(self) -> None:
        """Begin to look."""
        _current.append(self)

    def stop(self) -> None:
        """Look no more."""
        if self in _current:
            _current.remove(self)


async def query_walk(_folder: Path) -> Visits:
    """`query()`, from the call to the end of its messages."""

    async def read() -> None:
        async for _ in query("go", transport=ScriptedCLI(Script(say("fine")))):
            pass

    return await _second(read)


async def compat_walk(_folder: Path) -> Visits:
    """`query()` of the official names, from the call to the end of its messages."""

    async def read() -> None:
        transport = _OfficialTransport(ScriptedCLI(Script(say("fine"))))
        async for _ in compat.query(prompt="go", transport=transport):
            pass

    return await _second(read)


async def ask_walk(folder: Path) -> Visits:
    """An ask in a store: from `can_use_tool` to its answer, with a POST to a bridge in between."""
    visits, answered = _Counted(), asyncio.Event()
    between = Between(visits, b'"can_use_tool"', b'"control_response"')

    def written(data: bytes) -> None:
        between.last(data)
        if between.end in data:
            answered.set()

    tap = Tap(ScriptedCLI(Script(*[_ask_or_end] * 4)), on_output=written)
    async with SqliteStore(folder / "asks.db") as store:
        inbox = store.inbox()
        bridge = Bridge(Agent(transport=tap), inbox=inbox, journals=folder / "sessions")
        async with (
            serving(bridge) as served,
            served.http() as http,
            aclosing(inbox.watch()) as changes,
        ):
            await _answer_one(http, changes)
            await answered.wait()
            tap.on_input = between.first
            answered.clear()
            await _answer_one(http, changes)
            await answered.wait()
    return visits


def _ask_or_end(request: ModelRequest) -> Step:
    return say("done") if request.tool_results else call("Bash", command="touch x")


async def _answer_one(http: httpx.AsyncClient, changes: Watch) -> None:
    """Begin a session that asks, and answer it."""
    await http.post("/sessions", json={"text": "go"})
    ask = await anext(each.ask async for each in changes if each.what == "opened")
    body = {"answer": {"behavior": "allow"}, "session": ask.session}
    (await http.post(f"/asks/{ask.id}", json=body)).raise_for_status()


async def job_walk(folder: Path) -> Visits:
    """A job on DBOS: from `client.send()` to its result, with its worker in this process."""
    place = place_at(f"sqlite://{folder / 'fleet.db'}", create=True)
    async with _working(place), FleetClient(place) as client:

        async def run() -> None:
            await (await client.send("customer 7", "go"))

        return await _second(run)


@asynccontextmanager
async def _working(place: Place) -> AsyncGenerator[None, None]:
    agents = {"default": Agent(transport=ScriptedCLI())}
    rhythm = Rhythm(queue=0.05, ends=0.05, signals=LEASE)
    worker = Worker(place, agents, lease=LEASE, rhythm=rhythm)
    running = asyncio.Task(worker.run())
    try:
        await worker.is_ready.wait()
        yield
    finally:
        worker.drain()
        await running


async def page_walk(folder: Path) -> Visits:
    """A prompt of a viewer: from its POST to the frame on a WebSocket that says it has settled."""
    visits = _Counted()
    bridge = Bridge(Agent(transport=ScriptedCLI()), journals=folder / "sessions")
    async with serving(bridge) as served, served.http() as http, served.live() as live:
        begun = (await http.post("/sessions", json={"text": "go"})).json()
        session = begun["session"]["id"]
        await send(live, type="follow", session=session, after=0)
        await frame_where(live, _is_settled)
        with looking(visits):
            await http.post(f"/sessions/{session}/send", json={"text": "again"})
            await frame_where(live, _is_settled)
    return visits


def _is_settled(frame: Frame) -> bool:
    return frame.get("kind") == "settled"


async def row_walk(folder: Path) -> Visits:
    """The rows of a store's workers are read."""
    async with SqliteStore(folder / "fleet.db") as store:
        await store.fleet.join(WorkerRow("w", "m", 1, 1), LEASE)
        return await _second(store.fleet.workers)


async def lease_walk(folder: Path) -> Visits:
    """A conversation gets a lease."""
    async with SqliteStore(folder / "leases.db") as store:

        async def take() -> None:
            await store.work.take("s", key="k", owner="o", token="t", machine="m", seconds=LEASE)

        return await _second(take)


WALKS: dict[str, Walk] = {
    "query": query_walk,
    "compat": compat_walk,
    "ask": ask_walk,
    "job": job_walk,
    "page": page_walk,
    "row": row_walk,
    "lease": lease_walk,
}


async def _second(walk: Callable[[], Awaitable[object]]) -> Visits:
    """Walk twice, and return what was entered the second time."""
    visits = _Counted()
    await walk()
    with looking(visits):
        await walk()
    return visits


class _OfficialTransport(compat.Transport):
    """The scripted CLI, as a transport of the official form."""

    def __init__(self, cli: ScriptedCLI) -> None:
        self._cli = cli
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._channel: Channel | None = None

    async def connect(self) -> None:
        self._channel = await self._cli.open(Launch(argv=("claude",)), self)

    def data_received(self, data: bytes) -> None:
        for line in data.splitlines():
            self._lines.put_nowait(line)

    def stderr_received(self, data: bytes) -> None:
        """Nothing reads it."""

    def exited(self, status: int) -> None:
        del status
        self._lines.put_nowait(None)

    async def write(self, data: str) -> None:
        assert self._channel is not None
        self._channel.write(data.encode())

    async def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        while (line := await self._lines.get()) is not None:
            yield _json.loads(line)

    async def end_input(self) -> None:
        assert self._channel is not None
        self._channel.end_input()

    async def close(self) -> None:
        assert self._channel is not None
        self._channel.close(grace=1.0)

    def is_ready(self) -> bool:
        return self._channel is not None


async def walked(walk: Walk) -> Visits:
    """Take a walk in a folder of its own."""
    with TemporaryDirectory() as folder:
        async with asyncio.timeout(LIMIT):
            return await walk(Path(folder))


def main(names: list[str]) -> int:
    """Print the walks: one line each, and the files of those that are named."""
    logging.disable()
    threading.setprofile(_enter)
    sys.setprofile(_enter)
    for name, walk in WALKS.items():
        if not names or name in names:
            seen = asyncio.run(walked(walk))
            lines = (f"{name}: {len(seen.files)} files, {seen.changes} changes", *seen.files)
            sys.stdout.write("\n    ".join(lines if names else lines[:1]) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
