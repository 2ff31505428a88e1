"""The `steersman` command: parses the command line and runs the command that it names."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from importlib.metadata import EntryPoint
from typing import TextIO

from steersman.cli.commands import installed, register

__all__ = ["main", "parser"]


def main(
    arguments: Sequence[str] | None = None,
    stdin: TextIO = sys.stdin,
    found: Iterable[EntryPoint] | None = None,
) -> int:
    """Run the command and return its exit status; `found` are the commands that there are."""
    reading = parser(installed() if found is None else found)
    chosen, rest = reading.parse_known_args(
        arguments, argparse.Namespace(stdin=stdin, ignores_arguments=False)
    )
    if rest and not chosen.ignores_arguments:
        reading.error(f"unrecognized arguments: {' '.join(rest)}")
    return int(chosen.run(chosen))


def parser(found: Iterable[EntryPoint]) -> argparse.ArgumentParser:
    """Return the parser of `steersman` with the commands of `found`."""
    parser = argparse.ArgumentParser(
        prog="steersman", description="Drive the stock Claude Code CLI from Python."
    )
    register(parser.add_subparsers(required=True, metavar="command"), found)
    return parser
