"""Runs the mutants of a room: `python -m tests.mutants permissions --sample 200 --seed 1`.

Prints the survivors and a table. The status is 1 if a room is below its bar. `--again` runs only
what survived the last time; `--file policy.py` only the mutants of that file; `--seconds 600` stops
after that time, with the score of what was run.
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
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.mutants.making import Mutant, mutants_of  # noqa: E402
from tests.mutants.running import KILLED, SURVIVED, TIMED_OUT, Room, Trial  # noqa: E402
from tests.mutants.scores import Key, equivalent, rooms, share  # noqa: E402

KEPT = ROOT / ".mutants"
EQUIVALENT = "equivalent"
COLUMNS = "{:<12} {:>8} {:>6} {:>7} {:>9} {:>9} {:>11} {:>7} {:>10} {:>5} {:>6} {:>8} {:>6}"
HEADINGS = (
    *("room", "mutants", "run", "killed", "by limit", "survived", "equivalent", "score"),
    *("95 %", "bar", "tests", "seconds", "cpu"),
)


def main(arguments: argparse.Namespace) -> int:
    """Run the rooms and return the exit status."""
    known = rooms()
    unknown = set(arguments.rooms) - set(known)
    if unknown:
        raise SystemExit(f"no such room: {', '.join(unknown)}; there are {', '.join(known)}")
    os.nice(arguments.nice)
    signal.signal(signal.SIGTERM, _end)
    told, is_below = [COLUMNS.format(*HEADINGS)], False
    for name in arguments.rooms or known:
        line, passed = _run_room(Room(name, **known[name]), arguments)
        told.append(line)
        is_below |= not passed
    _print("\n".join(told))
    return int(is_below)


def _end(*_: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(1)


def _run_room(room: Room, arguments: argparse.Namespace) -> tuple[str, bool]:
    files = sorted((ROOT / "src/steersman" / room.name).rglob("*.py"))
    every = [m for file in files if arguments.file in str(file) for m in mutants_of(ROOT, file)]
    unseen = _equivalent(room, {m.key for m in every}, is_whole=not arguments.file)
    chosen = _chosen(room, every, arguments)
    found: dict[str, list[Mutant]] = {}
    until = time.monotonic() + (arguments.seconds or math.inf)
    with Trial(ROOT, room) as trial:
        for name in sorted(trial.base.failed):
            _print(f"left out, because it fails without a mutant: {name}")
        for number, mutant in enumerate(chosen):
            began = time.monotonic()
            if began > until:
                break
            verdict = EQUIVALENT if mutant.key in unseen else trial.run(mutant)
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
        *(room.name, len(every), counted.total(), killed, counted[TIMED_OUT], survived),
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


def _equivalent(room: Room, keys: set[Key], *, is_whole: bool) -> set[Key]:
    """Return the keys of the mutants that change nothing; refuse entries that name none."""
    mine = {key for key in equivalent() if key[0].startswith(f"src/steersman/{room.name}/")}
    if is_whole and mine - keys:
        raise SystemExit(f"equivalent.toml names mutants that are not there: {sorted(mine - keys)}")
    return mine


def _told(mutant: Mutant) -> str:
    place = f"{mutant.file}:{mutant.line} {mutant.function}"
    return f"survived: {place}\n    {mutant.code}\n    {mutant.before}\n -> {mutant.after}"


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("rooms", nargs="*")
    parser.add_argument("--sample", type=int, default=0, help="how many mutants; all if 0")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--file", default="", help="only files whose path contains this")
    parser.add_argument("--again", action="store_true", help="only what survived the last time")
    parser.add_argument("--seconds", type=float, default=0, help="stop after this time; never if 0")
    parser.add_argument("--nice", type=int, default=19)
    parser.add_argument("--verbose", action="store_true")
    sys.exit(main(parser.parse_args()))
