"""What an import costs, in CPU time over a bare interpreter, beside the official Python SDK.

Each number is the median of several runs of a fresh interpreter, alternating. Not asserted.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median

SOURCE = Path(__file__).parents[1] / "src"

STATEMENTS = (
    "pass",
    "import steersman",
    "from steersman import Agent",
    "import claude_agent_sdk",
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=11)
    runs = parser.parse_args(arguments).runs
    statements = [each for each in STATEMENTS if is_possible(each)]
    times: dict[str, list[float]] = {each: [] for each in statements}
    for _ in range(runs):
        for statement in statements:
            times[statement].append(cpu_time(statement))
    print(table({statement: median(seen) for statement, seen in times.items()}))


def is_possible(statement: str) -> bool:
    """Whether what the statement imports is installed."""
    return "claude_agent_sdk" not in statement or bool(importlib.util.find_spec("claude_agent_sdk"))


def cpu_time(statement: str) -> float:
    """User and system seconds of an interpreter that runs `statement` and nothing else."""
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    before = children_cpu()
    subprocess.run([sys.executable, "-c", statement], check=True, env=environment)  # noqa: S603 - our own statements
    return children_cpu() - before


def children_cpu() -> float:
    """User and system seconds of all children that ended so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def table(medians: dict[str, float]) -> str:
    """Milliseconds over the bare interpreter, and the ratio to the official SDK."""
    bare = medians["pass"]
    official = medians.get("import claude_agent_sdk")
    rows = [f"{'CPU time over a bare interpreter':<36}{'ms':>8}{'ratio':>8}"]
    for statement, seconds in medians.items():
        if statement == "pass":
            continue
        over = seconds - bare
        ratio = f"{over / (official - bare):.2f}" if official else "-"
        rows.append(f"{statement:<36}{over * 1000:>8.1f}{ratio:>8}")
    rows.append(f"{'(the bare interpreter itself)':<36}{bare * 1000:>8.1f}")
    return "\n".join(rows)


if __name__ == "__main__":
    main()
