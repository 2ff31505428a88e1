"""Instructions of steersman divided by those of the bare loop, on the stand-in.

The bare loop is `add_reader`, reads of 64 KB and msgspec: nothing in Python does the same work with
much less. Callgrind counts the host process only; the system's part, which is the same for both, is
in no count. As in `benchmarks.instructions`, the difference between few and many items is the cost
of one.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.instructions import KEPT, count_command, find_valgrind, place, run_python
from benchmarks.stand_in.build import stand_in
from steersman.testing.executable import executable
from steersman.testing.script import say

WORK: Mapping[str, dict[str, Any]] = {
    "partial": {"kind": "partial", "few": 500, "many": 3_000},
    "1kb": {"kind": "assistant", "size": 1024, "few": 200, "many": 1_200},
    "permission": {"kind": "permission", "few": 50, "many": 300},
    "hook": {"kind": "hook", "few": 50, "many": 300},
    "tool": {"kind": "tool", "few": 100, "many": 600},
    "permissions": {"kind": "permission", "window": 3_000, "few": 100, "many": 1_000},
    # The pause is longer than a message takes under callgrind, so that each is one wake-up.
    "trickle": {"kind": "trickle", "window": 30_000, "few": 20, "many": 120},
}
"""The orders, with the two numbers of items whose difference is counted."""

START = "start"
"""The start of a scripted CLI, which tests run as a program: everything it imports counts."""

GOALS: Mapping[str, float] = {
    "partial": 2.0,
    "1kb": 2.0,
    "permission": 3.5,
    "hook": 3.5,
    "tool": 3.5,
    "permissions": 5.0,
    "trickle": 3.5,
    START: 2.5,
}
"""The goals of the design: our instructions, relative to those of the bare loop."""

TOLERANCE = 0.10
"""Growth by more than this is a regression. How lines fall into reads varies a little."""

CONTESTANTS = ("ours", "bare")
FLOOR = "floor"
"""Where the ratios are kept in the file, beside the interpreters."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Count both contestants and compare. Return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--update", action="store_true", help="keep the new ratios")
    parser.add_argument("--work", help="some workloads only, with commas")
    asked = parser.parse_args(arguments)
    valgrind = find_valgrind()
    if valgrind is None:
        return 0
    wanted = asked.work.split(",") if asked.work else [*WORK, START]
    for name in CONTESTANTS:
        # Compile edited modules first, so that the compilation is not counted.
        run_python(*_contestant(name, {"program": str(stand_in()), "count": 1}))
    counts = {
        each: _starts(valgrind) if each == START else _counts(valgrind, each) for each in wanted
    }
    kept: dict[str, dict[str, Any]] = json.loads(KEPT.read_text(encoding="utf-8"))
    ratios = {each: round(ours / bare, 2) for each, (ours, bare) in counts.items()}
    key = f"{place()} {FLOOR}"
    if asked.update:
        kept[key] = {**kept.get(key, {}), **ratios}
        KEPT.write_text(json.dumps(kept, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    lines, is_fine = compare(ratios, kept.get(key, {}))
    for line, (ours, bare) in zip(lines, counts.values(), strict=True):
        print(f"{line} ({ours:,} and {bare:,} instructions)")
    return 0 if is_fine else 1


def compare(ratios: Mapping[str, float], kept: Mapping[str, float]) -> tuple[list[str], bool]:
    """Return a line for each workload, and whether none has grown since it was kept."""
    lines: list[str] = []
    is_fine = True
    for work, found in ratios.items():
        goal = GOALS[work]
        verdict = "goal met" if found <= goal else "goal missed"
        if work in kept and found > kept[work] * (1 + TOLERANCE):
            is_fine, verdict = False, f"{verdict}, MORE than the {kept[work]:.2f} that is kept"
        lines.append(f"{work:<12}{found:6.2f} times the bare loop, goal {goal:g}: {verdict}")
    return lines, is_fine


def _counts(valgrind: str, work: str) -> tuple[int, int]:
    """Return the instructions per item of steersman and of the bare loop."""
    order = dict(WORK[work])
    few, many = order.pop("few"), order.pop("many")
    order = {"program": str(stand_in()), "warm": 10, **order}
    runs = [(name, number) for name in CONTESTANTS for number in (few, many)]
    count = functools.partial(_count, valgrind, order)
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        found = list(pool.map(count, runs))
    ours, bare = ((found[at + 1] - found[at]) // (many - few) for at in (0, 2))
    return ours, bare


def _starts(valgrind: str) -> tuple[int, int]:
    """Return the instructions of a scripted CLI without input, and of Python that imports."""
    with tempfile.TemporaryDirectory(prefix="steersman-") as folder:
        script = executable(say("read"), Path(folder)).script
        started = ("-P", "-m", "steersman.testing", "--script", script)
        run_python(*started)
        ours = count_command(valgrind, *started)
    return ours, count_command(valgrind, "-P", "-c", "import asyncio, msgspec")


def _count(valgrind: str, order: Mapping[str, Any], run: tuple[str, int]) -> int:
    name, number = run
    return count_command(valgrind, *_contestant(name, {**order, "count": number}))


def _contestant(name: str, order: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return the arguments of Python that run a contestant."""
    return "-m", f"benchmarks.contestants.{name}", json.dumps(order)


if __name__ == "__main__":
    sys.exit(main())
