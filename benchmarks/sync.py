"""Measures what `steersman.sync` costs: one trip to the event loop, and one piece of a flood.

`python -m benchmarks.sync` runs on the scripted CLI and prints one line per figure, with its bar.
Trips are measured by the clock, pieces in processor time of both threads.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable

from steersman import Agent as AsyncAgent
from steersman._portal.portal import shared_portal
from steersman.sync import Agent
from steersman.testing.script import Script, say
from steersman.testing.scripted.cli import ScriptedCLI

TRIPS = 5000
PIECES = 50_000
ROUNDS = 5
TRIP_US = 150.0
PIECE_US = 5.0


def main() -> int:
    """Measure and print."""
    trips = sorted(_trip() for _ in range(TRIPS))
    _print("one trip, median", trips[TRIPS // 2], TRIP_US)
    _print("one trip, p99", trips[TRIPS * 99 // 100])
    ours = _best(_flood)
    awaited = _best(lambda: asyncio.run(_awaited_flood()))
    _print("one piece of text that is there", ours)
    _print("the same with async for", awaited)
    _print("so that `for` adds", ours - awaited, PIECE_US)
    _print("one piece of text while it arrives", _best(_live_flood))
    _print("the same with async for", _best(lambda: asyncio.run(_awaited_live_flood())))
    return 0


async def _nothing() -> None:
    return None


def _trip() -> float:
    began = time.perf_counter()
    shared_portal().call(_nothing)
    return 1e6 * (time.perf_counter() - began)


def _scripted() -> ScriptedCLI:
    return ScriptedCLI(Script(say("word " * PIECES, chunks=PIECES)))


def _flood() -> float:
    """Return µs per piece of a turn that has ended."""
    with Agent(transport=_scripted(), journal_memory=1 << 30).session() as session:
        turn = session.send("go")
        turn.result()
        return _timed(lambda: sum(1 for _ in turn.text()))


async def _awaited_flood() -> float:
    async with AsyncAgent(transport=_scripted(), journal_memory=1 << 30).session() as session:
        turn = await session.send("go")
        await turn
        began, count = time.process_time(), 0
        async for _ in turn.text():
            count += 1
        return 1e6 * (time.process_time() - began) / count


def _live_flood() -> float:
    """Return µs per piece, with what the scripted CLI and the session take for it."""
    with Agent(transport=_scripted()).session() as session:
        return _timed(lambda: sum(1 for _ in session.send("go").text()))


async def _awaited_live_flood() -> float:
    async with AsyncAgent(transport=_scripted()).session() as session:
        began, count = time.process_time(), 0
        async for _ in (await session.send("go")).text():
            count += 1
        return 1e6 * (time.process_time() - began) / count


def _timed(read: Callable[[], int]) -> float:
    began = time.process_time()
    count = read()
    return 1e6 * (time.process_time() - began) / count


def _best(measure: Callable[[], float]) -> float:
    return min(measure() for _ in range(ROUNDS))


def _print(name: str, found: float, bar: float | None = None) -> None:
    end = "" if bar is None else f"   (bar: {bar:g})"
    sys.stdout.write(f"{name:<40} {found:8.2f} µs{end}\n")


if __name__ == "__main__":
    sys.exit(main())
