"""Registers the commands of `steersman`.

Every command is an entry point of the group `steersman.commands`: a name, and a function that adds
a parser to the `steersman` parser. Other distributions declare their commands in their metadata.
Our own are listed here, so that they also work in a checkout that is not installed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from typing import Protocol

__all__ = ["GROUP", "Commands", "installed", "register"]

GROUP = "steersman.commands"

BUILT_IN = (
    EntryPoint("asks", "steersman.cli.asks:add_command", GROUP),
    EntryPoint("cassette", "steersman.cli.cassette:add_command", GROUP),
    EntryPoint("console", "steersman.cli.console:add_command", GROUP),
    EntryPoint("demo", "steersman.cli.demo:add_command", GROUP),
)

SEPARATE = {"conform": "steersman-conformance"}
"""Commands of other distributions of this project, by the distribution to install."""

STORE_FORM = ("conform", "store")
"""What of such a command is in this distribution."""

NOT_INSTALLED = 2


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


def register(commands: Commands, found: Iterable[EntryPoint]) -> None:
    """Add every command of `found`; one that cannot be loaded is reported and left out."""
    names: set[str] = set()
    for command in found:
        names.add(command.name)
        try:
            add = command.load()
        except Exception as error:  # noqa: BLE001 - code of another distribution
            print(
                f"steersman: the command {command.name} cannot be loaded: {error!r}",
                file=sys.stderr,
            )
            continue
        add(commands)
    for name, distribution in SEPARATE.items():
        if name not in names:
            _add_missing(commands, name, distribution)


def _add_missing(commands: Commands, name: str, distribution: str) -> None:
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

    missing = commands.add_parser(name, help=f"not installed: pip install {distribution}")
    missing.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    missing.set_defaults(run=run, ignores_arguments=True)
