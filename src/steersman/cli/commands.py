"""The commands of `steersman`: which there are, and the list that `steersman --help` shows.

A command is a name and a function that adds a parser to the `steersman` parser. Other distributions
declare theirs as entry points of the group `steersman.commands`. Only the command that is run is
imported.
"""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple, Protocol

from steersman.cli.output import complain

if TYPE_CHECKING:
    import argparse

GROUP = "steersman.commands"

SUMMARIES = {
    "asks": "list and answer the asks of a store",
    "cassette": "check recorded conversations",
    "chat": "a conversation that you steer while it works",
    "conform": "check a CLI against the protocol, offline",
    "console": "a page for your sessions, on this machine only",
    "demo": "a conversation in the terminal, offline and at no cost",
    "doctor": "can this machine run a session, and if not, why",
    "fleet": "workers that run the jobs of a store, and what they do",
    "journal": "what a journal holds, and a policy tried on it",
    "migrate": "rewrite the imports of the official SDK to steersman.compat",
    "report": "explain a flight record",
    "run": "one prompt: streams the answer, asks you about tools",
    "sessions": "stored conversations: list, show, search, tail, fork, export, and more",
}
"""What the list of commands shows; a command that is not here is imported to learn it."""

SEPARATE = {"conform": "steersman-conformance"}
"""Commands of other distributions of this project, by the distribution to install."""

STORE_FORM = ("conform", "store")
"""What of such a command is in this distribution."""

NOT_INSTALLED = 2
SUPPRESSED = "==SUPPRESS=="
"""What argparse has as the help of an argument that it does not show."""

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


class Commands(Protocol):
    """The subparsers of the `steersman` parser; argparse has no public name for their type."""

    def add_parser(self, name: str, *, help: str) -> argparse.ArgumentParser:  # noqa: A002
        """Add a command. Its parser sets `run`, a function of the namespace to the exit status."""
        ...


class Command(Protocol):
    """A command: one of ours, or an entry point of another distribution."""

    @property
    def name(self) -> str:
        """The name on the command line."""
        ...

    def load(self) -> Callable[[Commands], None]:
        """Return the function that adds the parser; imports its module."""
        ...


class BuiltIn(NamedTuple):
    """A command of this distribution. Works in a checkout that is not installed, too."""

    name: str

    def load(self) -> Callable[[Commands], None]:
        """Return the function of `parsers.py` that adds the parser."""
        add: Callable[[Commands], None] = getattr(
            import_module("steersman.cli.parsers"), f"add_{self.name}"
        )
        return add


BUILT_IN = tuple(BuiltIn(name) for name in SUMMARIES if name not in SEPARATE)


def installed() -> list[Command]:
    """Return our commands and those of the distributions that are installed."""
    # Takes longer than all else that a command of ours needs to start.
    from importlib.metadata import entry_points  # noqa: PLC0415

    names = {command.name for command in BUILT_IN}
    others = [command for command in entry_points(group=GROUP) if command.name not in names]
    return sorted((*BUILT_IN, *others), key=lambda command: command.name)


def missing(found: Iterable[Command]) -> dict[str, str]:
    """Return the commands of other distributions of ours that are not among `found`."""
    names = {command.name for command in found}
    return {name: home for name, home in SEPARATE.items() if name not in names}


def add_missing(commands: Commands, name: str, distribution: str) -> None:
    """Add a command that only names the distribution to install."""

    def run(chosen: argparse.Namespace) -> int:
        if (name, *chosen.arguments[:1]) == STORE_FORM:
            from steersman.cli.conform_store import main  # noqa: PLC0415 - with the test kit

            return main(chosen.arguments[1:])
        print(
            f"steersman: `steersman {name}` is a package of its own."
            f" Install it: pip install {distribution}",
            file=sys.stderr,
        )
        return NOT_INSTALLED

    parser = commands.add_parser(name, help=f"not installed: pip install {distribution}")
    parser.add_argument("arguments", nargs="...", help=SUPPRESSED)
    parser.set_defaults(run=run, ignores_arguments=True)


def overview(found: Iterable[Command]) -> str:
    """Return the commands with a line for each, and the exit statuses."""
    width = min(WIDEST, shutil.get_terminal_size((80, 24)).columns)
    rows = summaries(found)
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


def summaries(found: Iterable[Command]) -> dict[str, str]:
    """Return one line about each command, and about those that are not installed."""
    commands = list(found)
    return {command.name: summary_of(command) for command in commands} | {
        name: f"{SUMMARIES[name]} (not installed: pip install {home})"
        for name, home in missing(commands).items()
    }


def summary_of(command: Command) -> str:
    """Return one line about a command; one that is not ours is imported for it."""
    if command.name in SUMMARIES:
        return SUMMARIES[command.name]
    seen = _Summary()
    try:
        command.load()(seen)
    except Exception as error:  # noqa: BLE001 - code of another distribution
        complain(f"the command {command.name} cannot be loaded: {error!r}")
        return "cannot be loaded"
    return seen.help


class _Summary:
    """Stands for the subparsers, and keeps the summary of a command."""

    help = ""

    def add_parser(self, name: str, *, help: str) -> argparse.ArgumentParser:  # noqa: A002 - argparse's own name
        import argparse  # noqa: PLC0415 - only for commands that are not ours

        self.help = help
        return argparse.ArgumentParser(name)


def version() -> str:
    """Return the name and version of this distribution."""
    from importlib.metadata import PackageNotFoundError  # noqa: PLC0415 - only for this
    from importlib.metadata import version as version_of  # noqa: PLC0415 - as above

    try:
        return f"steersman {version_of('steersman')}"
    except PackageNotFoundError:
        return "steersman, from a checkout that is not installed"
