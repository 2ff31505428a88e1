"""Instruction counts of fixed workloads, compared with those kept in the repository.

Times are noisy, counts are not. Callgrind runs each workload with few and with many items; the
difference is the cost of an item, without the start. The check fails if a count exceeds the kept
one by more than the tolerance. `--update` keeps the new counts, `--work partial` counts one
workload. Counts are valid for one version of Python and msgspec; others are not compared.
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

KEPT = Path(__file__).with_name("instructions.json")
ROOT = Path(__file__).parents[1]
FEW, MANY = 200, 1_200
TOLERANCE = 0.03
"""Growth by more than this is a regression. Counts are reproducible to about 0.1 %."""
PATIENCE = 900.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Count and compare. Return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--update", action="store_true", help="keep the new counts")
    parser.add_argument("--work", choices=WORK, help="one workload only")
    asked = parser.parse_args(arguments)
    valgrind = find_valgrind()
    if valgrind is None:
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
    """Return a line for each workload, and whether all are within the tolerance."""
    lines: list[str] = []
    is_fine = True
    for work, count in counted.items():
        if work not in kept:
            lines.append(f"{work:<12}{count:>10,} instructions per item; none kept for {place()}")
            continue
        grown = count / kept[work] - 1
        is_fine = is_fine and grown <= TOLERANCE
        verdict = "fine" if grown <= TOLERANCE else f"MORE than the tolerance of {TOLERANCE:.0%}"
        lines.append(f"{work:<12}{count:>10,} instructions per item, {grown:+.1%}: {verdict}")
    return lines, is_fine


def place() -> str:
    """Return the interpreter, the machine and the msgspec that the counts depend on."""
    parts = (platform.python_implementation(), platform.python_version(), platform.machine())
    return " ".join((*parts, "msgspec", importlib.metadata.version("msgspec")))


def find_valgrind() -> str | None:
    """Return the path of valgrind; if there is none, say so here and in the last line of CI."""
    found = shutil.which("valgrind")
    if found is None:
        words = "nothing was counted: install valgrind (Debian: apt-get install valgrind)"
        print(words)
        if place := os.environ.get("STEERSMAN_NOT_RUN"):
            Path(place).write_text(f"{words}\n", encoding="utf-8")
    return found


def count_all(valgrind: str, work: Sequence[str]) -> dict[str, int]:
    """Return the instructions per item of each workload."""
    names = [each for each in work for _ in (FEW, MANY)]
    # Compile edited modules first, so that the compilation is not counted.
    run_python("-m", "benchmarks.workloads", work[0], str(FEW))
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        count = functools.partial(_count, valgrind)
        counts = list(pool.map(count, names, (FEW, MANY) * len(work)))
    pairs = zip(counts[::2], counts[1::2], strict=True)
    costs = [(many - few) // (MANY - FEW) for few, many in pairs]
    return dict(zip(work, costs, strict=True))


def _count(valgrind: str, work: str, items: int) -> int:
    return count_command(valgrind, "-m", "benchmarks.workloads", work, str(items))


def count_command(valgrind: str, *arguments: str) -> int:
    """Return the instructions of Python with these arguments, without child processes."""
    tool = (valgrind, "--tool=callgrind", "--callgrind-out-file=/dev/null")
    output = run_python(*arguments, tool=tool)
    found = re.search(r"Collected : (\d+)", output)
    if found is None:
        raise RuntimeError(f"{arguments} could not be counted:\n{output[-2000:]}")
    return int(found[1])


def run_python(*arguments: str, tool: Sequence[str] = ()) -> str:
    """Run Python with these arguments, with nothing to read, and return its stderr."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "PYTHONPATH") if name in os.environ}
    done = subprocess.run(  # noqa: S603 - our own program
        [*tool, sys.executable, *arguments],
        cwd=ROOT,
        # Without a fixed seed the iteration order of sets differs in every run.
        env={**kept, "PYTHONHASHSEED": "0"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    output = done.stderr.decode("utf-8", "replace")
    if done.returncode:
        raise RuntimeError(f"{arguments} failed:\n{output[-2000:]}")
    return output


if __name__ == "__main__":
    sys.exit(main())
