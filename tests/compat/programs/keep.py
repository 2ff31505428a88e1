"""Keeps what the official package does: `python -m tests.compat.programs.keep [NAME...]`.

Runs the programs on the installed official package with both CLI versions, and writes their traces
to `kept/`. With `--ours`, runs them on ours instead and keeps only how that differs; `reasons.py`
must then have a reason for each. Read the diff.
"""

from __future__ import annotations

import sys
from typing import Any

from steersman.testing.older_cli import find_older_cli
from steersman.testing.sandbox import find_stock_cli
from tests.compat.programs import keeping
from tests.compat.programs.catalogue import load
from tests.compat.programs.comparing import difference
from tests.compat.programs.playing import OFFICIAL, OURS, cli_version, play

__all__ = ["main"]


def main() -> None:
    """Run the named programs, or all, on both CLIs; a program that is gone is removed."""
    programs, given = load(), [each for each in sys.argv[1:] if not each.startswith("--")]
    names = [name for name in programs if not given or name in given]
    if "--ours" in sys.argv:
        keep_differences(names)
        return
    groups = sorted({programs[name].group for name in names})
    for cli in (find_stock_cli(), find_older_cli()):
        version = cli_version(cli)
        for group in groups:
            found = play(OFFICIAL, cli, [each for each in names if programs[each].group == group])
            before = keeping.kept(version)["programs"] if keeping.place(version).exists() else {}
            traces = {**before, **without_leftovers(found)}
            keeping.write(
                version, {name: each for name, each in traces.items() if name in programs}
            )
            sys.stdout.write(f"{version}: {len(found)} of {group}\n")
            sys.stdout.flush()


def keep_differences(names: list[str]) -> None:
    """Run programs on ours with both CLIs, and keep how they differ."""
    for cli in (find_stock_cli(), find_older_cli()):
        version = cli_version(cli)
        official = keeping.kept(version)["programs"]
        found = {
            name: difference(official[name], trace)
            for name, trace in play(OURS, cli, names).items()
        }
        known = {**keeping.differences(version), **found}
        keeping.write_differences(version, {name: each for name, each in known.items() if each})
        differing = [name for name, each in found.items() if each]
        sys.stdout.write(f"{version}: {len(differing)} of {len(found)} differ: {differing}\n")


def without_leftovers(traces: dict[str, Any]) -> dict[str, Any]:
    """Return traces without the number of processes left: ours must be none."""
    return {
        name: {lane: each for lane, each in trace.items() if lane != "left"}
        for name, trace in traces.items()
    }


if __name__ == "__main__":
    main()
