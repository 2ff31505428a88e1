"""Reads and writes baselines: the recorded observations of one CLI version, as JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path

from steersman import _json
from steersman._json import JsonObject
from steersman.errors import UsageError
from steersman_conformance.verdicts import Baseline

__all__ = ["SHIPPED", "load", "nearest", "save"]

SHIPPED = Path(__file__).parent / "baselines"
"""The folder of the baselines in this package, one file per version."""


def nearest(version: str, folder: Path = SHIPPED) -> Baseline | None:
    """Return the baseline of this version, else of the newest older one, else of the oldest."""
    known = {_numbers(path.stem): path for path in folder.glob("*.json")}
    if not known:
        return None
    before = [numbers for numbers in known if numbers <= _numbers(version)]
    return load(known[max(before) if before else min(known)])


def load(path: Path) -> Baseline:
    """Read a baseline. Raises `UsageError` if the file cannot be read or is not a baseline."""
    try:
        found = _json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise UsageError("baseline", str(path), f"a baseline that can be read ({error})") from None
    if not _json.is_object(found) or not _json.is_object(found.get("observed")):
        raise UsageError("baseline", str(path), "a file that `--record` has written")
    return Baseline(str(found.get("version")), found["observed"])


def save(path: Path, version: str, observed: JsonObject) -> None:
    """Write a baseline, sorted by name. Raises `UsageError`."""
    baseline = {"version": version, "observed": dict(sorted(observed.items()))}
    text = json.dumps(baseline, indent=1, ensure_ascii=True)
    try:
        path.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise UsageError("baseline", str(path), f"a file that can be written ({error})") from None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])
