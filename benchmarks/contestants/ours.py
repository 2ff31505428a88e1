"""steersman, as a program would use it."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from benchmarks.contestants.measuring import Order, check_answer, main, weigher
from steersman import Agent, Allow, Hooks, Session, Toolbox, Turn, run, tool
from steersman.hooks import PreToolUse
from steersman.journal import Entry, Kind
from steersman.messages import Assistant, Result, StreamEvent, TextBlock
from steersman.sessions import Sessions

Weigh = Callable[[str], int]
Read = Callable[[Turn, Weigh], Awaitable[int]]


class Ours:
    """One session, read in the way that the order selects."""

    def __init__(self, session: Session, order: Order, journal: Path | None) -> None:
        self._session = session
        self._weigh = weigher(order)
        self.journal = journal
        """The journal's file, removed when the session is closed; None if there is none."""
        readings = {"typed": read_typed, "raw": read_raw, "text": read_text}
        self._read: Read = readings[order.reading]

    async def turn(self, prompt: str) -> int:
        """Send a prompt and read up to the result."""
        turn = await self._session.send(prompt)
        weight = await self._read(turn, self._weigh)
        check_answer(prompt, (await turn).answer)
        return weight

    async def send(self, prompt: str) -> None:
        """Send a prompt and read nothing."""
        await self._session.send(prompt)

    async def restart(self) -> None:
        """Kill the CLI and wait until the session is idle again, with a new one."""
        before, is_lost = self._session.last_seq, False
        assert self._session.pid is not None
        os.kill(self._session.pid, signal.SIGKILL)
        async for entry in self._session.journal(after=before):
            assert isinstance(entry, Entry)
            is_lost = is_lost or entry.kind is Kind.RESTARTED
            if is_lost and entry.kind is Kind.PHASE and entry.details["after"] == "idle":
                break

    async def close(self) -> None:
        """Close the session and remove its journal."""
        await self._session.aclose()
        if self.journal:
            shutil.rmtree(self.journal.parent)


async def read_typed(turn: Turn, weigh: Weigh = len) -> int:
    """Read the text of every message."""
    weight = 0
    async for message in turn:
        if isinstance(message, StreamEvent):
            weight += weigh(message.event.get("delta", {}).get("text", ""))
        elif isinstance(message, Assistant):
            texts = (each.text for each in message.content if isinstance(each, TextBlock))
            weight += sum(map(weigh, texts))
        else:
            assert not isinstance(message, Result) or not message.is_error
    return weight


async def read_raw(turn: Turn, _weigh: Weigh = len) -> int:
    """Read the lines as the CLI wrote them."""
    weight = 0
    async for line in turn.raw():
        weight += len(line)
    return weight


async def read_text(turn: Turn, weigh: Weigh = len) -> int:
    """Read only the text, as it is streamed."""
    weight = 0
    async for chunk in turn.text():
        weight += weigh(chunk)
    return weight


@tool
async def add(a: float, b: float) -> float:
    """Add two numbers."""
    return a + b


async def on_tool(_event: PreToolUse) -> None:
    """Return no decision."""


async def open_ours(order: Order, asked: asyncio.Event) -> Ours:
    """Start a session on the stand-in, with only the options that the order needs."""

    async def can_use_tool(*_: Any) -> Allow:
        asked.set()
        return Allow()

    wanted: dict[str, Any] = {"include_partial_messages": order.streams}
    if order.is_stock:
        wanted.update(cwd=order.folder, inherit_env=True)
        if order.reading == "text":
            # As a program that reads `turn.text()` has it by default.
            del wanted["include_partial_messages"]
    if order.journal:
        wanted["journal"] = Path(tempfile.mkdtemp(prefix="steersman-bench-"), "journal.jsonl")
    if order.asks("permission"):
        wanted["can_use_tool"] = can_use_tool
    if order.asks("hook"):
        hooks = wanted["hooks"] = Hooks()
        hooks.on(PreToolUse)(on_tool)
    if order.asks("tool"):
        wanted["mcp_servers"] = {"bench": Toolbox("bench", [add])}
    session = Agent(cli_path=order.program, **wanted).session()
    return Ours(await session.start(), order, wanted.get("journal"))


async def one_shot(order: Order, prompt: str) -> int:
    """Send one prompt with `run()`, in the environment of the sandbox."""
    done = await run(prompt, cli_path=order.program, cwd=order.folder, inherit_env=True)
    return len(done.text)


NEWEST = 20
WORDS = ("needle7", "error needle500", '"request value"', "lorem")


def stored(order: Order, config: str) -> int:
    """List, read or search session files."""
    # An index of its own beside the files, which later rounds find.
    os.environ["XDG_CACHE_HOME"] = f"{config}-cache"
    sessions = Sessions(config=config, index=order.journal)
    if order.kind in ("list", "newest"):
        return len(sessions.list(limit=NEWEST if order.kind == "newest" else None))
    if order.kind == "search":
        return sum(len(sessions.search(each)) for each in WORDS)
    (path,) = Path(config).glob("projects/*/*.jsonl")
    last = None if order.kind == "chain" else NEWEST
    return sum(1 for _ in sessions.messages(path.stem, last=last))


if __name__ == "__main__":
    main(open_ours, stored, one_shot)
