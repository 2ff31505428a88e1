"""The list of commands that `steersman --help` shows."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable
from importlib.metadata import EntryPoint, PackageNotFoundError
from importlib.metadata import version as version_of
from typing import TYPE_CHECKING

from steersman.cli.commands import SUMMARIES, missing
from steersman.cli.output import complain

if TYPE_CHECKING:
    import argparse

HEAD = "Drive the stock Claude Code CLI: run it, steer it, and see what it did."
FOOT = (
    (
        "`steersman COMMAND --help` explains a command. `steersman --debug COMMAND` shows where an"
        " error comes from."
    ),
    (
        "Exit status: 0 completed, 1 failed, 2 misuse, 3 denied, 4 limit reached,"
        " 5 could not start, 130 interrupted."
    ),
)
WIDEST = 100


def overview(found: Iterable[EntryPoint]) -> str:
    """Return the commands with a line for each, and the exit statuses."""
    width = min(WIDEST, shutil.get_terminal_size((80, 24)).columns)
    commands = list(found)
    rows = {command.name: summary_of(command) for command in commands}
    rows |= {
        name: f"{SUMMARIES[name]} (not installed: pip install {home})"
        for name, home in missing(commands).items()
    }
    column = max(map(len, rows), default=0) + 4
    lines = [
        textwrap.fill(
            text,
            max(width, column + 20),
            initial_indent=f"  {name}".ljust(column),
            subsequent_indent=" " * column,
            break_long_words=False,
        )
        for name, text in sorted(rows.items())
    ]
    feet = [textwrap.fill(each, width) for each in FOOT]
    usage = "usage: steersman [--help] [--version] [--debug] COMMAND ..."
    return "\n".join([usage, "", textwrap.fill(HEAD, width), "", *lines, "", *feet])


def summary_of(command: EntryPoint) -> str:
    """Return one line about a command; one that is not ours is imported for it."""
    if command.name in SUMMARIES:
        return SUMMARIES[command.name]
    try:
        loaded = command.load()
    except Exception as error:  # noqa: BLE001 - code of another distribution
        complain(f"the command {command.name} cannot be loaded: {error!r}")
        return "cannot be loaded"
    if hasattr(loaded, "get_short_help_str"):
        return str(loaded.get_short_help_str(WIDEST))
    seen = _Summaries()
    loaded(seen)
    return seen.help


class _Summaries:
    """Takes the place of subparsers, and keeps the line about a command."""

    help = ""

    def add_parser(self, name: str, *, help: str) -> argparse.ArgumentParser:  # noqa: A002 - argparse's own name
        import argparse  # noqa: PLC0415 - only for commands that are not ours

        self.help = help
        return argparse.ArgumentParser(name)


def version() -> str:
    """Return the name and version of this distribution."""
    try:
        return f"steersman {version_of('steersman')}"
    except PackageNotFoundError:
        return "steersman, from a checkout that is not installed"
