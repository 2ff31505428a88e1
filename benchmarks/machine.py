"""The machine that numbers were measured on, without its name."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.entrants import Entrant


def describe(entrants: Mapping[str, Entrant], stand_in: str) -> dict[str, str]:
    """Return hardware, system and versions."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": f"{_processor()}, {os.cpu_count()} cores",
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
        "Node": _first_line("node", "--version") or "not installed",
        **{each.name: each.version or each.absent for each in entrants.values()},
        "stand-in": stand_in,
    }


def load() -> str:
    """Return the load averages of one, five and fifteen minutes."""
    return " ".join(f"{each:.1f}" for each in os.getloadavg())


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _first_line(program: str, *arguments: str) -> str:
    path = shutil.which(program)
    if path is None:
        return ""
    done = subprocess.run([path, *arguments], capture_output=True, check=False)  # noqa: S603 - asks for a version
    return done.stdout.decode().strip().partition("\n")[0]
