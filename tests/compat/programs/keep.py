"""Keeps what the official package does: `python -m tests.compat.programs.keep [NAME...]`.

Runs the programs on the installed official package with both CLI versions, and writes their traces
to `kept/`. With `--ours`, runs them on ours instead and keeps only how that differs; `reasons.py`
must then have a reason for each. Read the diff.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from steersman.testing.older_cli import find_older_cli
from steersman.testing.sandbox import find_stock_cli
from tests.compat.programs import keeping
from tests.compat.programs.catalogue import load
from tests.compat.programs.comparing import difference
from tests.compat.programs.playing import OFFICIAL, OURS, cli_version, play


def main() -> None:
    """Run the named programs, or all, on both CLIs."""
    programs, given = load(), [each for each in sys.argv[1:] if not each.startswith("--")]
    names = [name for name in programs if not given or name in given]
    keep = keep_differences if "--ours" in sys.argv else keep_traces
    for cli in (find_stock_cli(), find_older_cli()):
        # Few at a time, so that little is lost if it is stopped.
        for group in sorted({programs[name].group for name in names}):
            keep(cli, [name for name in names if programs[name].group == group])


def keep_traces(cli: Path, names: list[str]) -> None:
    """Keep what the official package does; a program that is gone is removed."""
    version, programs = cli_version(cli), load()
    found = play(OFFICIAL, cli, names)
    before = keeping.kept(version)["programs"] if keeping.place(version).exists() else {}
    traces = {**before, **without_leftovers(found)}
    keeping.write(version, {name: each for name, each in traces.items() if name in programs})
    report(version, found)


def keep_differences(cli: Path, names: list[str]) -> None:
    """Keep how ours differs from what was kept."""
    version = cli_version(cli)
    official = keeping.kept(version)["programs"]
    traces = play(OURS, cli, names)
    found = {name: difference(official[name], trace) for name, trace in traces.items()}
    known = {**keeping.differences(version), **found}
    left = {name: each for name, each in known.items() if each and name in load()}
    keeping.write_differences(version, left)
    report(version, [name for name, each in found.items() if each])


def report(version: str, names: Iterable[str]) -> None:
    """Write which programs were kept."""
    sys.stdout.write(f"{version}: {', '.join(names) or '-'}\n")
    sys.stdout.flush()


def without_leftovers(traces: dict[str, Any]) -> dict[str, Any]:
    """Return traces without the number of processes left: ours must be none."""
    return {
        name: {lane: each for lane, each in trace.items() if lane != "left"}
        for name, trace in traces.items()
    }


if __name__ == "__main__":
    main()
