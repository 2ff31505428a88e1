"""Completions for the shell, by `click`: `eval "$(_STEERSMAN_COMPLETE=bash_source steersman)"`."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import EntryPoint
from typing import cast

import click
from click.shell_completion import shell_complete

from steersman.cli.commands import SUMMARIES


class _Commands(click.Group):
    """All commands, each imported when its own words are completed."""

    def __init__(self, found: Iterable[EntryPoint]) -> None:
        super().__init__("steersman")
        self._found = {command.name: command for command in found}
        self._wanted: set[str] = set()
        """The commands whose own words are completed."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's own signature
        return list(self._found)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        self._wanted.update(args[:1])
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - as above
        command = self._found.get(cmd_name)
        if command is None:
            return None
        loaded: object = command.load() if cmd_name in self._wanted else None
        if isinstance(loaded, click.Command):
            return loaded
        # Commands of argparse complete file names only.
        summary = SUMMARIES.get(cmd_name, "")
        return click.Command(cmd_name, short_help=summary, context_settings=_LOOSE)


_LOOSE = {"ignore_unknown_options": True, "allow_extra_args": True}


def complete(found: Iterable[EntryPoint], variable: str, instruction: str) -> int:
    """Write what the shell asks for in `instruction`, and return the exit status."""
    return cast("int", shell_complete(_Commands(found), {}, "steersman", variable, instruction))
