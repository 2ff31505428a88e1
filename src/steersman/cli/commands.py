"""Registers the commands of `steersman`.

Every command is an entry point of the group `steersman.commands`: a name, and a function that adds
a parser to the `steersman` parser, or a command of `click`. Other distributions declare their
commands in their metadata. Our own are listed here, so that they also work in a checkout that is
not installed. Only the command that is run is imported.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import argparse

GROUP = "steersman.commands"

BUILT_IN = (
    EntryPoint("asks", "steersman.cli.asks:add_command", GROUP),
    EntryPoint("cassette", "steersman.cli.cassette:add_command", GROUP),
    EntryPoint("chat", "steersman.cli.chat:command", GROUP),
    EntryPoint("console", "steersman.cli.console:add_command", GROUP),
    EntryPoint("demo", "steersman.cli.demo:add_command", GROUP),
    EntryPoint("doctor", "steersman.cli.doctor:add_command", GROUP),
    EntryPoint("fleet", "steersman.cli.fleet:command", GROUP),
    EntryPoint("journal", "steersman.cli.journal:command", GROUP),
    EntryPoint("migrate", "steersman.cli.migrate:command", GROUP),
    EntryPoint("report", "steersman.cli.report:command", GROUP),
    EntryPoint("run", "steersman.cli.run:command", GROUP),
    EntryPoint("sessions", "steersman.cli.sessions:command", GROUP),
)

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


class Commands(Protocol):
    """The subparsers of the `steersman` parser; argparse has no public name for their type."""

    def add_parser(self, name: str, *, help: str) -> argparse.ArgumentParser:  # noqa: A002
        """Add a command. Its parser sets `run`, a function of the namespace to the exit status."""
        ...


def installed() -> list[EntryPoint]:
    """Return our commands and those of the distributions that are installed."""
    names = {command.name for command in BUILT_IN}
    others = [command for command in entry_points(group=GROUP) if command.name not in names]
    return sorted((*BUILT_IN, *others), key=lambda command: command.name)


def missing(found: Iterable[EntryPoint]) -> dict[str, str]:
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
