"""What mirroring costs: the same turn on the stock CLI with a store and without, side by side.

`python -m benchmarks.mirroring --calls 60 --rounds 7` prints the CPU of the thread that runs the
session, and that of the CLI and its tools. The turn calls a tool again and again. The model is
scripted, in a thread of its own, and not counted. `flag only` passes `--session-mirror` to the CLI
and uses no store: the CLI's own part of the cost. `ours` is what the session needs more than
without a store, in percent of the CPU of the whole turn.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from steersman import Agent
from steersman.ports import SessionStore
from steersman.stores import MemoryStore, SqliteStore
from steersman.testing.model import ScriptedModel
from steersman.testing.sandbox import CliSandbox, find_stock_cli
from steersman.testing.script import Script, call, say

MOST = 0.05
"""The target of the design: how much more CPU a turn may need with a store."""
FLAG = "flag only"
WAYS = ("without", FLAG, "MemoryStore", "SqliteStore")
PATIENCE = 300.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print. Return the exit status: 1 if our part costs more than 5 % of the turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=60, help="tool calls in the turn")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--output", type=int, default=4000, help="bytes that each call returns")
    asked = parser.parse_args(arguments)
    found: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
    asyncio.run(measure("without", 2, asked.output))
    for _ in range(asked.rounds):
        for way in WAYS:
            found[way].append(asyncio.run(measure(way, asked.calls, asked.output)))
    print(f"a turn of {asked.calls} tool calls, median of {asked.rounds}: CPU milliseconds")
    print(f"{'':<14}{'session':>9}{'CLI':>9}{'together':>10}{'more':>8}{'ours':>8}")
    without, _ = (statistics.median(each) for each in zip(*found["without"], strict=True))
    base = statistics.median(map(sum, found["without"]))
    worst = 0.0
    for way, rounds in found.items():
        session, cli = (statistics.median(each) for each in zip(*rounds, strict=True))
        both = statistics.median(map(sum, rounds))
        ours = (session - without) / base
        worst = max(worst, ours)
        figures = f"{session * 1e3:>9.1f}{cli * 1e3:>9.0f}{both * 1e3:>10.0f}"
        print(f"{way:<14}{figures}{both / base - 1:>+8.1%}{ours:>+8.1%}")
    return 0 if worst <= MOST else 1


async def measure(way: str, calls: int, size: int) -> tuple[float, float]:
    """Run a turn; return the CPU seconds of this thread, and of the CLI."""
    command = f"head -c {size} /dev/zero | tr '\\0' x"
    script = Script(*[call("Bash", command=command) for _ in range(calls)], say("Done."))
    with (
        tempfile.TemporaryDirectory() as folder,
        CliSandbox() as box,
        ScriptedModel(script) as model,
    ):
        agent = Agent(
            inherit_env=False,
            cwd=box.project,
            cli_path=find_stock_cli(),
            env=box.env(model.url),
            allowed_tools=["Bash"],
            session_store=store_of(way, Path(folder)),
            extra_args={"session-mirror": None} if way == FLAG else {},
        )
        children = _children()
        async with asyncio.timeout(PATIENCE), agent.session() as session:
            began = time.thread_time()
            result = await session.run("go")
            ours = time.thread_time() - began
            assert result.text == "Done."
        return ours, _children() - children


def store_of(way: str, folder: Path) -> SessionStore | None:
    """Return the store of that name."""
    if way in ("without", FLAG):
        return None
    return MemoryStore() if way == "MemoryStore" else SqliteStore(folder / "sessions.db")


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
