"""Words on a command line to what they ask for."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from typing import TextIO

from steersman.cli import cassette, conform, demo
from steersman.cli.screen import Screen, screen_for
from steersman.errors import SteersmanError

__all__ = ["main"]

INTERRUPTED = 130
"""What a shell reports of a program that Ctrl-C ended."""

REAL_WARNING = (
    "This uses your own Claude login and a real model. It may cost a few cents; it stops at"
    f" ${demo.REAL_BUDGET_USD:.2f}. The agent works in a temporary folder."
)


def main(arguments: Sequence[str] | None = None, stdin: TextIO = sys.stdin) -> int:
    """Run the command; gives its exit status."""
    chosen = parser().parse_args(arguments)
    if "run" in chosen:
        return int(chosen.run(chosen))
    screen = screen_for(sys.stdout)
    if chosen.real and not (chosen.yes or _confirms(screen, stdin)):
        return 1
    try:
        return asyncio.run(demo.show(screen, _stage_of(chosen)))
    except SteersmanError as error:
        screen.end()
        print(f"steersman: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        screen.end()
        return INTERRUPTED


def parser() -> argparse.ArgumentParser:
    """What may be written after `steersman`."""
    parser = argparse.ArgumentParser(
        prog="steersman", description="Drive the stock Claude Code CLI from Python."
    )
    commands = parser.add_subparsers(required=True, metavar="command")
    cassette.add_command(commands)
    conform.add_command(commands)
    shown = commands.add_parser(
        "demo", help="a conversation in the terminal, offline and at no cost"
    )
    where = shown.add_mutually_exclusive_group()
    where.add_argument(
        "--embedded", action="store_true", help="use the embedded scripted CLI, not the stock one"
    )
    where.add_argument(
        "--real", action="store_true", help="use your own login and a real model; costs money"
    )
    shown.add_argument("--yes", action="store_true", help="with --real: do not ask first")
    return parser


def _stage_of(chosen: argparse.Namespace) -> demo.StageName:
    if chosen.real:
        return "real"
    return "embedded" if chosen.embedded else "any"


def _confirms(screen: Screen, stdin: TextIO) -> bool:
    screen.line("real", REAL_WARNING)
    if not stdin.isatty():
        screen.line("real", "Nobody is here to agree; pass --yes to agree beforehand.")
        return False
    screen.line("real", "Go on? [y/N]")
    return stdin.readline().strip().lower() in ("y", "yes")
