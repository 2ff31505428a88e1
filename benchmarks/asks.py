"""Measures an inbox in a store: stored before shown, answer to session, and 1,000 open asks.

`python -m benchmarks.asks` measures SQLite in a temporary folder, `python -m benchmarks.asks
postgresql://...` a database. The session and the one who answers are two stores, as in two
processes. Prints one line per figure, with its bar.
"""

from __future__ import annotations

import asyncio
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from steersman.permissions import Allow, Ask, CanUseTool
from steersman.stores import PostgresStore, SqliteStore

ROUNDS = 300
OPEN = 1000
WATCHED = 10.0
"""Seconds for which the cost of open asks is measured."""

Store = SqliteStore | PostgresStore


def main(arguments: list[str]) -> int:
    """Measure and print; the bars are those of the database."""
    if arguments:
        asyncio.run(_measure(lambda: PostgresStore(arguments[0]), shown_ms=10, answered_ms=60))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "asks.db"
        asyncio.run(_measure(lambda: SqliteStore(path), shown_ms=5, answered_ms=300))
    return 0


async def _measure(make: Callable[[], Store], shown_ms: float, answered_ms: float) -> None:
    session, person = make(), make()
    shown, answered = await _latencies(session, person)
    _print("stored before shown, median", _at(shown, 0.5), shown_ms)
    _print("stored before shown, p99", _at(shown, 0.99), shown_ms)
    _print("answer to session, median", _at(answered, 0.5), answered_ms)
    _print("answer to session, p99", _at(answered, 0.99), answered_ms)
    await _many(session)
    await session.aclose()
    await person.aclose()


async def _latencies(session: Store, person: Store) -> tuple[list[float], list[float]]:
    """Return ms from `open` to a watcher of the process, and from `answer` to the session."""
    inbox, answering = session.inbox(), person.inbox()
    watch = inbox.watch()
    shown, answered = list[float](), list[float]()
    for number in range(ROUNDS):
        settled: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        began = time.perf_counter()
        inbox.open(_ask(number), _settler(settled))
        while (await anext(watch)).what != "opened":
            continue
        shown.append(1e3 * (time.perf_counter() - began))
        # At any moment between two looks, not always just after one.
        await asyncio.sleep(0.001 * (number * 37 % 250))
        began = time.perf_counter()
        await answering.answer(f"q{number}", Allow(), by="ann")
        answered.append(1e3 * (await settled - began))
    await watch.aclose()
    return sorted(shown), sorted(answered)


def _settler(settled: asyncio.Future[float]) -> Callable[[Any, str], None]:
    loop = asyncio.get_running_loop()

    def settle(_answer: Any, _by: str) -> None:
        loop.call_soon_threadsafe(settled.set_result, time.perf_counter())

    return settle


async def _many(store: Store) -> None:
    inbox = store.inbox()
    before = _memory()
    began = time.perf_counter()
    for number in range(OPEN):
        inbox.open(_ask(10_000 + number), lambda _answer, _by: None)
    watch = inbox.watch()
    for _ in range(OPEN):
        await anext(watch)
    _print(f"{OPEN} asks stored and shown, ms", 1e3 * (time.perf_counter() - began), None)
    await watch.aclose()
    _print(f"{OPEN} open asks, MB", (_memory() - before) / 1024, 10)
    _print(f"{OPEN} open asks, tasks", len(asyncio.all_tasks()) - 1, 0)
    used, began = time.process_time(), time.perf_counter()
    await asyncio.sleep(WATCHED)
    share = (time.process_time() - used) / (time.perf_counter() - began)
    _print(f"{OPEN} open asks, % of a core", 100 * share, 2)


def _ask(number: int) -> Ask:
    payload = CanUseTool(
        tool_name="Bash",
        input={"command": f"echo {number}", "text": "x" * 200},
        tool_use_id=f"t{number}",
    )
    return Ask(id=f"q{number}", session="s1", payload=payload, created=time.time(), turn="u1")


def _memory() -> int:
    """Return the resident memory, in KB."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() // 1024


def _at(found: list[float], part: float) -> float:
    return found[min(len(found) - 1, int(part * len(found)))]


def _print(what: str, figure: float, bar: float | None) -> None:
    verdict = "" if bar is None else f"  (bar {bar:g}: {'met' if figure <= bar else 'MISSED'})"
    print(f"{what:35} {figure:10.2f}{verdict}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
