"""Deterministic workloads without pipes, for counting instructions.

`python -m benchmarks.workloads partial 1000` runs one. The CLI is a list of lines in memory, so
that only steersman, asyncio and msgspec are counted, independent of the load of the machine. Two
workloads have no CLI, but a session in a SQLite file.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.stand_in.stand_in import load_frames, value_of
from steersman import Agent, Allow, Hooks, Toolbox, Turn, tool
from steersman.hooks import PreToolUse
from steersman.messages import Assistant, StreamEvent
from steersman.ports import Launch
from steersman.stores import SqliteStore
from steersman.transcripts.keys import SessionKey
from steersman.transports.memory import MemoryTransport, Wire

CHUNK = 64 * 1024
SESSION = "00000000-0000-4000-8000-0000000000aa"
LOADS = 5
"""How often what is stored is loaded."""
REQUESTS = ("permission", "hook", "tool")


class FixedPeer:
    """A CLI that writes fixed lines, with one open request at a time."""

    def __init__(self, work: str, count: int) -> None:
        self._work, self._count = work, count
        self._frames = load_frames()
        self._requests: Iterator[bytes] = iter(())
        self._last_lines = b""
        self._wire: Wire | None = None

    def connected(self, launch: Launch, wire: Wire) -> None:  # noqa: ARG002 - as in Peer
        """Keep the wire."""
        self._wire = wire

    def data_received(self, data: bytes) -> None:
        """Answer a request, begin a turn, or write the next request after an answer."""
        line = data.decode()
        if '"initialize"' in line:
            self._write(self._line("initialize", R=value_of(line, "request_id")))
        elif '"control_request"' in line:
            self._write(self._line("success", R=value_of(line, "request_id")))
        elif '"control_response"' in line:
            self._write(next(self._requests, self._last_lines))
        else:
            self._run_turn(value_of(line, "uuid"))

    def input_ended(self) -> None:
        """Exit."""
        assert self._wire is not None
        self._wire.exit(0)

    def killed(self) -> None:
        """Release nothing: this peer holds nothing."""

    def _run_turn(self, uuid: str) -> None:
        named = self._frames["named"].replace("@P", uuid)
        self._write(self._line("queued", P=uuid) + self._line("started", P=uuid))
        listed = self._frames["listed"].replace("@M", "bench") if self._work == "requests" else ""
        self._write(self._line("running") + self._line("init", N=named, V=listed))
        self._last_lines = self._line("result", X="done", N=named) + self._line("completed", P=uuid)
        self._last_lines += self._line("idle")
        if self._work == "requests":
            self._requests = self._request_lines()
            self._write(next(self._requests))
            return
        text = "x" * (40 if self._work == "partial" else 1024)
        frame = self._line(self._work, X=text, I="%08d").decode()
        lines = [frame % number for number in range(self._count)]
        self._write("".join(lines).encode() + self._last_lines)

    def _request_lines(self) -> Iterator[bytes]:
        frames = [self._line(kind, U="%08d", I="%08d", H="hook_0", M="bench") for kind in REQUESTS]
        for number in range(1, self._count + 1):
            frame = frames[number % len(REQUESTS)].decode()
            yield (frame % ((number,) * frame.count("%08d"))).encode()

    def _line(self, name: str, **marks: str) -> bytes:
        text = self._frames[name]
        for mark, value in {"U": SESSION, "S": SESSION, "I": "10000000", **marks}.items():
            text = text.replace(f"@{mark}", value)
        # A number may have leading zeros in an id, but not in JSON.
        return text.replace('"id":%08d', '"id":1%08d').replace(":%08d", ":1%08d").encode() + b"\n"

    def _write(self, data: bytes) -> None:
        assert self._wire is not None
        for start in range(0, len(data), CHUNK):
            self._wire.write(data[start : start + CHUNK])


async def read(turn: Turn) -> int:
    """Read every message once. Return how many had content."""
    seen = 0
    async for message in turn:
        if isinstance(message, StreamEvent):
            seen += bool(message.event)
        elif isinstance(message, Assistant):
            seen += len(message.content)
    return seen


@tool
async def add(a: float, b: float) -> float:
    """Add two numbers."""
    return a + b


async def allow(*_: Any) -> Allow:
    """Allow everything."""
    return Allow()


async def on_tool(_event: PreToolUse) -> None:
    """Return no decision."""


async def run(work: str, count: int) -> int:
    """Run a workload with `count` items. Return how many of them were read."""
    if work in STORED:
        return await store(work, count)
    hooks = Hooks()
    hooks.on(PreToolUse)(on_tool)
    agent = Agent(
        transport=MemoryTransport(FixedPeer(work, count)),
        include_partial_messages=True,
        can_use_tool=allow,
        hooks=hooks,
        mcp_servers={"bench": Toolbox("bench", [add])},
    )
    async with asyncio.timeout(600), agent.session() as session:
        turn = await session.send("bench")
        seen = await read(turn)
        assert (await turn).outcome == "completed"
        assert seen == (0 if work == "requests" else count), seen
        return seen


async def store(work: str, count: int) -> int:
    """Append `count` entries one by one, or load them. Return how many were loaded."""
    key: SessionKey = {"project_key": "p", "session_id": "s"}
    entries: list[Any] = [
        {"type": "user", "uuid": f"uuid-{number}", "text": "x" * 1000} for number in range(count)
    ]
    with tempfile.TemporaryDirectory() as folder:
        async with asyncio.timeout(600), SqliteStore(Path(folder, "store.db")) as made:
            if work == "load":
                await made.append(key, entries)
                loaded = [await made.load(key) for _ in range(LOADS)]
                return sum(len(each or ()) for each in loaded) // LOADS
            for entry in entries:
                await made.append(key, [entry])
            return await made.positions(key)


STORED = ("append", "load")
WORK: tuple[str, ...] = ("partial", "assistant", "requests", *STORED)

if __name__ == "__main__":
    # As in a long-running program, imported modules are not part of every garbage collection.
    gc.collect()
    gc.freeze()
    asyncio.run(run(sys.argv[1], int(sys.argv[2])))
