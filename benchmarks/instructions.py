"""Instruction counts of the three fixed workloads, beside those kept in the repository.

Times are noisy, counts are not: callgrind runs each workload with few and with many items, and the
difference is what an item costs, whatever the start-up. A count above the one kept by more than the
tolerance fails the check. `--update` keeps today's counts, `--work partial` looks at one.
Counts hold for one interpreter and one msgspec; for others there is nothing to compare with.
"""

from __future__ import annotations

import argparse
import functools
import importlib.metadata
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.workloads import WORK

__all__ = ["TOLERANCE", "check", "main", "place"]

KEPT = Path(__file__).with_name("instructions.json")
ROOT = Path(__file__).parents[1]
FEW, MANY = 200, 1_200
TOLERANCE = 0.03
"""Grown by more than this is a regression; the counts themselves repeat to about 0.1 %."""
PATIENCE = 600.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Count, compare, and give the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--update", action="store_true", help="keep today's counts")
    parser.add_argument("--work", choices=WORK, help="one workload only")
    asked = parser.parse_args(arguments)
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        print("valgrind is not here, so nothing was counted (Debian: apt-get install valgrind)")
        return 0
    counted = count_all(valgrind, (asked.work,) if asked.work else WORK)
    kept: dict[str, dict[str, int]] = json.loads(KEPT.read_text(encoding="utf-8"))
    if asked.update:
        kept[place()] = {**kept.get(place(), {}), **counted}
        KEPT.write_text(json.dumps(kept, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    lines, is_fine = check(counted, kept.get(place(), {}))
    print("\n".join(lines))
    return 0 if is_fine else 1


def check(counted: Mapping[str, int], kept: Mapping[str, int]) -> tuple[list[str], bool]:
    """A line for each workload, and whether none of them has grown."""
    lines: list[str] = []
    is_fine = True
    for work, count in counted.items():
        if work not in kept:
            lines.append(f"{work:<12}{count:>10,} instructions an item; none kept for {place()}")
            continue
        grown = count / kept[work] - 1
        is_fine = is_fine and grown <= TOLERANCE
        words = "fine" if grown <= TOLERANCE else f"MORE than the {TOLERANCE:.0%} that are let pass"
        lines.append(f"{work:<12}{count:>10,} instructions an item, {grown:+.1%}: {words}")
    return lines, is_fine


def place() -> str:
    """What counts depend on, beside our code."""
    words = (platform.python_implementation(), platform.python_version(), platform.machine())
    return " ".join((*words, "msgspec", importlib.metadata.version("msgspec")))


def count_all(valgrind: str, work: Sequence[str]) -> dict[str, int]:
    """Instructions for one item of each workload."""
    names = [each for each in work for _ in (FEW, MANY)]
    # Compiled once for all of them: what was edited since would be counted as the first one's.
    _run([sys.executable], work[0], FEW)
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        count = functools.partial(_count, valgrind)
        counts = list(pool.map(count, names, (FEW, MANY) * len(work)))
    pairs = zip(counts[::2], counts[1::2], strict=True)
    costs = [(many - few) // (MANY - FEW) for few, many in pairs]
    return dict(zip(work, costs, strict=True))


def _count(valgrind: str, work: str, items: int) -> int:
    tool = [valgrind, "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    output = _run([*tool, sys.executable], work, items)
    found = re.search(r"Collected : (\d+)", output)
    if found is None:
        raise RuntimeError(f"{work} could not be counted:\n{output[-2000:]}")
    return int(found[1])


def _run(python: Sequence[str], work: str, items: int) -> str:
    """Do `work`, and give what is output about it on stderr."""
    command = [*python, "-m", "benchmarks.workloads", work, str(items)]
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "PYTHONPATH") if name in os.environ}
    done = subprocess.run(  # noqa: S603 - our own program
        command,
        cwd=ROOT,
        # Without a fixed seed sets and dicts are walked in another order each time.
        env={**kept, "PYTHONHASHSEED": "0"},
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    output = done.stderr.decode("utf-8", "replace")
    if done.returncode:
        raise RuntimeError(f"{work} could not be done:\n{output[-2000:]}")
    return output


if __name__ == "__main__":
    sys.exit(main())
