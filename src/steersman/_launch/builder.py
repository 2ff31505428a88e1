"""A launch that is being put together, and the usual ways in which an option is added to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from steersman import _json
from steersman._json import Json, JsonDict
from steersman.errors import Described, UsageError
from steersman.options import Options, checks
from steersman.ports import FileArgument

AWAIT_INITIALIZE = "--await-initialize"
"""The flag with which the CLI waits for the initialize request. Older CLIs do not know it."""

MANAGED = "--managed-settings-in-initialize"

ReadSettings: TypeAlias = Callable[[str], JsonDict]

LONGEST_LIST = 1500
"""Bytes that a list may take on argv; a longer one moves to the settings file or to initialize."""


@dataclass(slots=True)
class LaunchBuilder:
    """The parts of a launch that the options have added so far."""

    options: Options
    approved: tuple[str, ...]
    """Rules that allow what the caller approved by passing it, such as functions and skills."""
    forbidden: tuple[str, ...] = ()
    """Rules that deny what other options than `disallowed_tools` forbid."""
    argv: list[str | FileArgument] = field(default_factory=list[str | FileArgument])
    env: dict[str, str] = field(default_factory=dict[str, str])
    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    initialize: JsonDict = field(default_factory=dict[str, object])
    settings: JsonDict = field(default_factory=dict[str, object])
    settings_path: str | None = None
    mode: str = "default"
    """The permission mode that the CLI is given."""
    read_settings: ReadSettings | None = None
    """Reads the file `settings_path`; `None` if it may be on another machine."""

    def await_initialize(self) -> None:
        """Let the CLI wait for the initialize request before it loads plugins and policies."""
        if AWAIT_INITIALIZE not in self.argv:
            self.argv.append(AWAIT_INITIALIZE)

    def rerun(self) -> None:
        """Let the CLI resume the turn that was interrupted when the previous CLI was lost.

        Without waiting for initialize, the turn would resume before our hooks are registered, and a
        tool that a hook denies would run.
        """
        self.await_initialize()
        self.env["CLAUDE_CODE_RESUME_INTERRUPTED_TURN"] = "1"

    def add_rules(self, kind: str, rules: Iterable[str]) -> None:
        """Add permission rules to the settings of this session, after those already there."""
        _add_rules(self.settings, "settings", kind, rules)

    def add_settings(self, closed: JsonDict) -> None:
        """Write all settings that were collected into one private file.

        `closed` are settings of every session, which the caller's settings override, except for
        their deny rules. A switch alone is on argv: it is no secret, and short.
        """
        if self.settings_path is not None and self.settings and self.read_settings is not None:
            self._merge_file(self.read_settings(self.settings_path))
        if self.settings_path is not None:
            self._add_settings_path(self.settings_path, closed)
        elif self.settings or "permissions" in closed:
            self._close(self.settings, "settings", closed)
            self.files["settings.json"] = _json.dumps(self.settings)
            self.argv.append(FileArgument("--settings=", "settings.json"))
        elif closed:
            self.argv.append(f"--settings={_json.dumps(closed).decode()}")

    def _merge_file(self, found: JsonDict) -> None:
        """Put what other options have added to the settings over the content of a file."""
        for name, value in self.settings.items():
            if name == "permissions":
                for kind, rules in value.items():
                    _add_rules(found, "settings", kind, rules)
            else:
                found[name] = merged(found.get(name), value)
        self.settings, self.settings_path = found, None

    def _add_settings_path(self, path: str, closed: JsonDict) -> None:
        """Pass the path of a file. What every session has is added as managed settings."""
        if self.settings:
            raise UsageError(
                "settings",
                path,
                "a mapping, if sandbox= or a list of rules or directories over"
                f" {LONGEST_LIST} bytes is passed too",
                hint="read the file and pass its content as settings={...}: it may be elsewhere",
            )
        self.argv.append(f"--settings={path}")
        if closed:
            managed: JsonDict = self.initialize.get("managed_settings") or {}
            self._close(managed, "managed_settings", closed)
            self.manage(managed)

    def _close(self, settings: JsonDict, option: str, closed: JsonDict) -> None:
        for name, value in closed.items():
            if name == "permissions":
                _add_rules(settings, option, "deny", value["deny"])
            else:
                settings.setdefault(name, value)

    def manage(self, settings: JsonDict) -> None:
        """Send managed settings with initialize: every user of the machine can read argv."""
        self.await_initialize()
        if MANAGED not in self.argv:
            self.argv.append(MANAGED)
        self.initialize["managed_settings"] = settings


def _add_rules(settings: JsonDict, option: str, kind: str, rules: Iterable[str]) -> None:
    permissions = settings.setdefault("permissions", {})
    if not _json.is_object(permissions) or not _json.is_array(permissions.get(kind, [])):
        raise UsageError(
            option,
            Described("permissions of another form"),
            f'{{"permissions": {{"{kind}": [...]}}}}',
        )
    permissions[kind] = [*permissions.get(kind, []), *rules]


def merged(under: Json, over: JsonDict) -> JsonDict:
    """Return a mapping with the values of both; where both have one, that of `over`."""
    if not _json.is_object(under):
        return over
    both = {
        name: merged(under[name], over[name])
        for name in under.keys() & over.keys()
        if _json.is_object(over[name])
    }
    return {**under, **over, **both}


Put: TypeAlias = Callable[[LaunchBuilder], None]
"""Adds one option to a launch; reads its value from `LaunchBuilder.options`."""


def flag_with_value(option: str, name: str) -> Put:
    """Add `--name=value`: one token, so that the CLI cannot read the value as a flag."""

    def put(builder: LaunchBuilder) -> None:
        given: object = getattr(builder.options, option)
        if given is not None:
            builder.argv.append(f"{name}={given}")

    return put


def flag(option: str, name: str, *, when: bool) -> Put:
    """Add `--name` if the option is `when`."""

    def put(builder: LaunchBuilder) -> None:
        if getattr(builder.options, option) is when:
            builder.argv.append(name)

    return put


def initialize_field(option: str, name: str) -> Put:
    """Add a field to the initialize request, unless the option is empty, `False` or `None`."""

    def put(builder: LaunchBuilder) -> None:
        given: object = getattr(builder.options, option)
        if given:
            builder.initialize[name] = checks.plain(option, given)

    return put


def env_variable(option: str, name: str) -> Put:
    """Set a variable to the option's string, or to `true` if the option is `True`."""

    def put(builder: LaunchBuilder) -> None:
        given: object = getattr(builder.options, option)
        if isinstance(given, str):
            builder.env[name] = given
        elif given is True:
            builder.env[name] = "true"

    return put


def host_only(_builder: LaunchBuilder) -> None:
    """Add nothing: the option is not for the CLI, or `plan()` handles it."""


def size_of(texts: Iterable[str]) -> int:
    """Return the bytes that `texts` take on a command line, with a separator after each.

    File names may hold bytes that are not UTF-8, which Python represents as lone surrogates.
    """
    return sum(len(text.encode("utf-8", "surrogateescape")) + 1 for text in texts)
