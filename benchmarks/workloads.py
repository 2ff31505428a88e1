"""Three fixed pieces of work, without pipes and without chance, for counting instructions.

`python -m benchmarks.workloads partial 1000` does one. The CLI is a list of lines in memory, so
that what is counted is steersman, asyncio and msgspec, and nothing that depends on the load.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Iterator
from typing import Any

from benchmarks.stand_in.stand_in import load_frames, value_of
from steersman import Agent, Allow, Hooks, Toolbox, Turn, tool
from steersman.hooks import PreToolUse
from steersman.messages import Assistant, StreamEvent
from steersman.ports import Launch
from steersman.transports.memory import MemoryTransport, Wire

CHUNK = 64 * 1024
SESSION = "00000000-0000-4000-8000-0000000000aa"
ASKED = ("permission", "hook", "tool")


class Recital:
    """A CLI that says the same lines whatever it is asked, one question at a time."""

    def __init__(self, work: str, count: int) -> None:
        self._work, self._count = work, count
        self._frames = load_frames()
        self._questions: Iterator[bytes] = iter(())
        self._ending = b""
        self._wire: Wire | None = None

    def connected(self, launch: Launch, wire: Wire) -> None:  # noqa: ARG002 - the port's shape
        """Keep the way back."""
        self._wire = wire

    def data_received(self, data: bytes) -> None:
        """Greet, recite, or go on after an answer."""
        line = data.decode()
        if '"initialize"' in line:
            self._say(self._line("initialize", R=value_of(line, "request_id")))
        elif '"control_request"' in line:
            self._say(self._line("success", R=value_of(line, "request_id")))
        elif '"control_response"' in line:
            self._say(next(self._questions, self._ending))
        else:
            self._recite(value_of(line, "uuid"))

    def input_ended(self) -> None:
        """Leave."""
        assert self._wire is not None
        self._wire.exit(0)

    def killed(self) -> None:
        """Nothing is held that must be let go."""

    def _recite(self, uuid: str) -> None:
        named = self._frames["named"].replace("@P", uuid)
        self._say(self._line("queued", P=uuid) + self._line("started", P=uuid))
        self._say(self._line("running") + self._line("init", N=named))
        self._ending = self._line("result", X="done", N=named) + self._line("completed", P=uuid)
        self._ending += self._line("idle")
        if self._work == "questions":
            self._questions = self._asking()
            self._say(next(self._questions))
            return
        text = "x" * (40 if self._work == "partial" else 1024)
        frame = self._line(self._work, X=text, I="%08d").decode()
        lines = [frame % number for number in range(self._count)]
        self._say("".join(lines).encode() + self._ending)

    def _asking(self) -> Iterator[bytes]:
        frames = [self._line(kind, U="%08d", I="%08d", H="hook_0", M="bench") for kind in ASKED]
        for number in range(1, self._count + 1):
            frame = frames[number % len(ASKED)].decode()
            yield (frame % ((number,) * frame.count("%08d"))).encode()

    def _line(self, name: str, **marks: str) -> bytes:
        text = self._frames[name]
        for mark, value in {"U": SESSION, "S": SESSION, "I": "10000000", **marks}.items():
            text = text.replace(f"@{mark}", value)
        # A number may begin with zeros in an id, not in JSON.
        return text.replace('"id":%08d', '"id":1%08d').replace(":%08d", ":1%08d").encode() + b"\n"

    def _say(self, data: bytes) -> None:
        assert self._wire is not None
        for start in range(0, len(data), CHUNK):
            self._wire.write(data[start : start + CHUNK])


async def read(turn: Turn) -> int:
    """Look at every message once."""
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
    """Have no opinion."""


async def run(work: str, count: int) -> int:
    """Do `work` with `count` items, and return how many of them were read as messages."""
    hooks = Hooks()
    hooks.on(PreToolUse)(on_tool)
    agent = Agent(
        transport=MemoryTransport(Recital(work, count)),
        include_partial_messages=True,
        can_use_tool=allow,
        hooks=hooks,
        mcp_servers={"bench": Toolbox("bench", [add])},
    )
    async with asyncio.timeout(600), agent.session() as session:
        turn = await session.send("bench")
        seen = await read(turn)
        assert (await turn).outcome == "completed"
        assert seen == (0 if work == "questions" else count), seen
        return seen


WORK: tuple[str, ...] = ("partial", "assistant", "questions")

if __name__ == "__main__":
    # What was imported is not walked by every collection, as it is not in a program of some age.
    gc.collect()
    gc.freeze()
    asyncio.run(run(sys.argv[1], int(sys.argv[2])))
