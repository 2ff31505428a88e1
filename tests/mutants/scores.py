"""The bars of rooms, the mutants that nobody can notice, and the score of a sample."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent

Key = tuple[str, str, str, str]
"""What names a mutant even when lines move: file, line of source, text before and after."""


def rooms() -> dict[str, dict[str, Any]]:
    """Return the rooms by name: their tests, their bar, and whether the tests start programs."""
    return tomllib.loads((HERE / "rooms.toml").read_text())


def equivalent() -> dict[Key, str]:
    """Return the mutants that change nothing that can be seen, with the reasons."""
    listed = tomllib.loads((HERE / "equivalent.toml").read_text()).get("mutant", [])
    return {(e["file"], e["code"], e["before"], e["after"]): e["reason"] for e in listed}


def share(part: int, whole: int) -> tuple[float, float, float]:
    """Return a share in per cent, and the bounds between which it lies in 95 of 100 samples."""
    if not whole:
        return 100.0, 0.0, 100.0
    z, p = 1.96, part / whole
    middle = (p + z * z / (2 * whole)) / (1 + z * z / whole)
    spread = z * math.sqrt(p * (1 - p) / whole + z * z / (4 * whole**2)) / (1 + z * z / whole)
    return 100 * p, 100 * (middle - spread), 100 * (middle + spread)
