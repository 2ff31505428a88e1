"""Runs the mutants of a room: `python -m tests.mutants permissions --sample 200 --seed 1`.

Prints the survivors and a table. The status is 1 if a room is below its bar. `--again` runs only
what survived the last time; `--file policy.py` only the mutants of that file.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import signal
import sys
import time
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.mutants.making import Mutant, mutants_of  # noqa: E402
from tests.mutants.running import KILLED, SURVIVED, TIMED_OUT, Room, Trial  # noqa: E402

HERE = Path(__file__).parent
KEPT = ROOT / ".mutants"
EQUIVALENT = "equivalent"
COLUMNS = "{:<12} {:>8} {:>6} {:>7} {:>9} {:>9} {:>11} {:>7} {:>10} {:>5} {:>6} {:>8} {:>6}"
HEADINGS = (
    *("room", "mutants", "run", "killed", "by limit", "survived", "equivalent", "score"),
    *("95 %", "bar", "tests", "seconds", "cpu"),
)


def main(arguments: argparse.Namespace) -> int:
    """Run the rooms and return the exit status."""
    rooms = tomllib.loads((HERE / "rooms.toml").read_text())
    unknown = set(arguments.rooms) - set(rooms)
    if unknown:
        raise SystemExit(f"no such room: {', '.join(unknown)}; there are {', '.join(rooms)}")
    os.nice(arguments.nice)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    told, is_below = [COLUMNS.format(*HEADINGS)], False
    for name in arguments.rooms or rooms:
        line, passed = _run_room(Room(name, **rooms[name]), arguments)
        told.append(line)
        is_below |= not passed
    _print("\n".join(told))
    return int(is_below)


def _run_room(room: Room, arguments: argparse.Namespace) -> tuple[str, bool]:
    files = sorted((ROOT / "src/steersman" / room.name).rglob("*.py"))
    every = [m for file in files if arguments.file in str(file) for m in mutants_of(ROOT, file)]
    equivalent = _equivalent(room, {m.key for m in every}, is_whole=not arguments.file)
    chosen = _chosen(room, every, arguments)
    found: dict[str, list[Mutant]] = {}
    with Trial(ROOT, room) as trial:
        for name in sorted(trial.base.failed):
            _print(f"left out, because it fails without a mutant: {name}")
        for number, mutant in enumerate(chosen):
            began = time.monotonic()
            verdict = EQUIVALENT if mutant.key in equivalent else trial.run(mutant)
            found.setdefault(verdict, []).append(mutant)
            if verdict == SURVIVED:
                _print(_told(mutant))
            if arguments.verbose:
                seconds = time.monotonic() - began
                _print(f"{number} {verdict} after {seconds:.1f} s: {mutant.file}:{mutant.line}")
        base = trial.base
    KEPT.mkdir(exist_ok=True)
    (KEPT / f"{room.name}.json").write_text(json.dumps([m.key for m in found.get(SURVIVED, [])]))
    counted = Counter({verdict: len(each) for verdict, each in found.items()})
    killed, survived = counted[KILLED] + counted[TIMED_OUT], counted[SURVIVED]
    score, low, high = share(killed, killed + survived)
    line = COLUMNS.format(
        *(room.name, len(every), len(chosen), killed, counted[TIMED_OUT], survived),
        *(counted[EQUIVALENT], f"{score:.1f} %", f"{low:.0f} to {high:.0f}", f"{room.bar} %"),
        *(len(base.seconds), f"{base.wall:.1f}", f"{sum(base.seconds.values()):.1f}"),
    )
    return line, score >= room.bar


def _chosen(room: Room, every: list[Mutant], arguments: argparse.Namespace) -> list[Mutant]:
    if arguments.again:
        keys = {tuple(key) for key in json.loads((KEPT / f"{room.name}.json").read_text())}
        return [m for m in every if m.key in keys]
    if not arguments.sample or arguments.sample >= len(every):
        return every
    return random.Random(arguments.seed).sample(every, arguments.sample)


def _equivalent(room: Room, keys: set[Any], *, is_whole: bool) -> set[Any]:
    """Return the keys of the mutants that change nothing; refuse entries that name none."""
    path = HERE / "equivalent.toml"
    listed = tomllib.loads(path.read_text()).get("mutant", [])
    below = f"src/steersman/{room.name}/"
    mine = {(e["file"], e["code"], e["before"], e["after"]) for e in listed}
    mine = {key for key in mine if key[0].startswith(below)}
    if is_whole and mine - keys:
        raise SystemExit(f"{path.name} names mutants that are not there: {sorted(mine - keys)}")
    return mine


def _told(mutant: Mutant) -> str:
    place = f"{mutant.file}:{mutant.line} {mutant.function}"
    return f"survived: {place}\n    {mutant.code}\n    {mutant.before}\n -> {mutant.after}"


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def share(part: int, whole: int) -> tuple[float, float, float]:
    """Return a share in per cent, and the bounds between which it lies in 95 of 100 samples."""
    if not whole:
        return 100.0, 0.0, 100.0
    z, p = 1.96, part / whole
    middle = (p + z * z / (2 * whole)) / (1 + z * z / whole)
    spread = z * math.sqrt(p * (1 - p) / whole + z * z / (4 * whole**2)) / (1 + z * z / whole)
    return 100 * p, 100 * (middle - spread), 100 * (middle + spread)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("rooms", nargs="*")
    parser.add_argument("--sample", type=int, default=0, help="how many mutants; all if 0")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--file", default="", help="only files whose path contains this")
    parser.add_argument("--again", action="store_true", help="only what survived the last time")
    parser.add_argument("--nice", type=int, default=19)
    parser.add_argument("--verbose", action="store_true")
    sys.exit(main(parser.parse_args()))
