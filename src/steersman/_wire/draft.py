"""A launch in the making, and the kinds of rows that add to it.

A row knows one option: in what it travels, and how its value gets there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from steersman import _json
from steersman.errors import UsageError
from steersman.options import Options, checks
from steersman.ports import FileArgument

__all__ = [
    "LONGEST_LIST",
    "Draft",
    "Put",
    "Row",
    "greeting",
    "ours",
    "size_of",
    "switch",
    "value",
    "variable",
]

LONGEST_LIST = 1500
"""Bytes of a list on argv; a longer one goes into the settings file or the greeting."""


@dataclass(slots=True)
class Draft:
    """What the rows have put together so far."""

    options: Options
    approved: tuple[str, ...]
    """Rules for what the caller has approved by giving it."""
    forbidden: tuple[str, ...] = ()
    """Rules for what must not run, beside those that are named so."""
    argv: list[str | FileArgument] = field(default_factory=list[str | FileArgument])
    env: dict[str, str] = field(default_factory=dict[str, str])
    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    initialize: dict[str, Any] = field(default_factory=dict[str, Any])
    settings: dict[str, Any] = field(default_factory=dict[str, Any])
    settings_path: str | None = None

    def await_initialize(self) -> None:
        """Have the CLI read the greeting before it looks for plugins and policies."""
        if "--await-initialize" not in self.argv:
            self.argv.append("--await-initialize")

    def rerun(self) -> None:
        """Have the CLI take up the turn in whose middle the last one was lost.

        It would begin before our hooks are registered, and a denied tool would run: so it waits.
        """
        self.await_initialize()
        self.env["CLAUDE_CODE_RESUME_INTERRUPTED_TURN"] = "1"

    def add_rules(self, kind: str, rules: Iterable[str]) -> None:
        """Put permission rules into the settings of this session, beside those already there."""
        permissions = self.settings.setdefault("permissions", {})
        if not _json.is_object(permissions) or not _json.is_array(permissions.get(kind, [])):
            raise UsageError(
                "settings", "other permissions", f'{{"permissions": {{"{kind}": [...]}}}}'
            )
        permissions[kind] = [*permissions.get(kind, []), *rules]

    def add_settings(self) -> None:
        """Write the settings that came together into one private file."""
        if self.settings_path is not None and self.settings:
            raise UsageError(
                "settings",
                self.settings_path,
                "a mapping, with sandbox= or lists of rules or directories over 1500 bytes",
                hint="read the file and pass its content as settings={...}",
            )
        if self.settings_path is not None:
            self.argv.append(f"--settings={self.settings_path}")
        elif self.settings:
            self.files["settings.json"] = _json.dumps(self.settings)
            self.argv.append(FileArgument("--settings=", "settings.json"))


Put = Callable[[Draft, Any], None]


@dataclass(frozen=True, slots=True)
class Row:
    """How one option reaches the CLI."""

    carrier: str
    """In words, for the page that lists the options."""
    put: Put


def value(flag: str) -> Row:
    """`--flag=value`: one token, so a value can never pose as a flag."""

    def put(draft: Draft, given: Any) -> None:
        if given is not None:
            draft.argv.append(f"{flag}={given}")

    return Row(f"`{flag}`", put)


def switch(flag: str, *, when: bool = True) -> Row:
    """A flag without a value."""

    def put(draft: Draft, given: Any) -> None:
        if given is when:
            draft.argv.append(flag)

    return Row(f"`{flag}`", put)


def greeting(name: str) -> Row:
    """A field of the initialize request."""

    def put(draft: Draft, given: Any) -> None:
        if given:
            draft.initialize[name] = checks.plain(name, given)

    return Row(f"initialize: `{name}`", put)


def variable(name: str, read: Callable[[Any], str | None]) -> Row:
    """An environment variable; `read` gives its value, or nothing."""

    def put(draft: Draft, given: Any) -> None:
        text = read(given)
        if text is not None:
            draft.env[name] = text

    return Row(f"variable `{name}`", put)


def ours(how: str) -> Row:
    """Never leaves this process, or is handled beside the table."""

    def put(_draft: Draft, _given: Any) -> None:
        pass

    return Row(how, put)


def size_of(texts: Iterable[str]) -> int:
    """Bytes on a command line; file names may hold bytes that are no UTF-8."""
    return sum(len(text.encode("utf-8", "surrogateescape")) + 1 for text in texts)
