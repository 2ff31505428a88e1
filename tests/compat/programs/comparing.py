"""Compares what ours did with what the official package did. Pure."""

from __future__ import annotations

import difflib
import json
from typing import Any

from tests.compat.programs.reasons import REASONS

Trace = dict[str, Any]


def lines_of(trace: Trace) -> list[str]:
    """Return a trace line by line: each message, call and note, behind the name of its lane."""
    found: list[str] = []
    for lane in ("messages", "calls", "notes", "raises", "model", "surprises", "left"):
        items = trace.get(lane, [])
        found.extend(
            f"{lane} {json.dumps(item, ensure_ascii=False, sort_keys=True)}"
            for item in (items if isinstance(items, list) else [items])
        )
    return found


def difference(official: Trace, ours: Trace) -> list[str]:
    """Return the lines of only one of them: `- ` before those of the official one, `+ ` of ours."""
    both = difflib.ndiff(lines_of(official), lines_of(ours))
    return [line for line in both if line.startswith(("- ", "+ "))]


def complaints(
    official: dict[str, Trace], ours: dict[str, Trace], known: dict[str, list[str]]
) -> dict[str, list[str]]:
    """Return the programs that differ otherwise than `known`, or that differ without a reason."""
    found: dict[str, list[str]] = {}
    for name, trace in ours.items():
        lines = difference(official[name], trace)
        if lines != known.get(name, []):
            found[name] = lines or ["there is no difference any more"]
        elif lines and name not in REASONS:
            found[name] = ["there is no reason for this difference", *lines]
    return found
