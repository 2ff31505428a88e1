"""Can the CLI write its configuration and its transcripts."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from steersman.diagnosis.machine import Machine
from steersman.diagnosis.values import Check, Finding, failed, ok
from steersman.sessions.places import Places


async def _run(machine: Machine) -> Iterable[Finding]:
    if not (machine.env.get("HOME") or machine.env.get("CLAUDE_CONFIG_DIR")):
        return failed("the CLI gets neither HOME nor CLAUDE_CONFIG_DIR", "set HOME")
    place = existing(machine.config)
    shown = _short(machine.config, machine.home)
    if not place.is_dir():
        return failed(f"{place} is not a directory", f"remove it, or set CLAUDE_CONFIG_DIR={shown}")
    if not os.access(place, os.W_OK | os.X_OK):
        return failed(
            f"{_short(place, machine.home)} is not writable",
            f"chown or chmod {place}, or set CLAUDE_CONFIG_DIR to a directory of yours",
        )
    days = Places(str(machine.config), str(machine.cwd)).cleanup_days()
    made = "is writable" if machine.config.is_dir() else "will be made"
    return ok(f"{shown} {made}; transcripts are kept {days:g} days")


def existing(path: Path) -> Path:
    """Return `path`, or the nearest directory above it that exists."""
    while not path.exists() and path != path.parent:
        path = path.parent
    return path


def _short(path: Path, home: Path) -> str:
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)


CONFIG = Check("config", _run, "set CLAUDE_CONFIG_DIR to a directory that you can write to")
