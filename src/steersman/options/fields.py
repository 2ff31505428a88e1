"""The fields of `Options`.

To add an option: a field here, and a row in `_wire/launch.py` that says how it reaches the CLI.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

from steersman._json import is_mapping, is_sequence
from steersman.errors import UsageError
from steersman.hooks import Hooks
from steersman.options import checks
from steersman.ports import Approver, JsonObject, ToolServer

__all__ = ["Options", "PermissionMode", "SettingSource", "StartupLimits", "options_from"]

PermissionMode = Literal["default", "acceptEdits", "auto", "bypassPermissions", "dontAsk", "plan"]
SettingSource = Literal["user", "project", "local"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StartupLimits:
    """How long each phase of a start may take, in seconds."""

    spawn: float = 20.0
    """Until the process runs."""
    first_byte: float = 60.0
    """From there until it says anything."""
    initialize: float = 60.0
    """From there until it has answered the handshake."""

    def __post_init__(self) -> None:
        for each in dataclasses.fields(self):
            checks.positive(f"startup.{each.name}", getattr(self, each.name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Frozen; `dataclasses.replace` makes another. Values are checked before anything runs."""

    # The model
    model: str | None = None
    fallback_model: str | None = None
    system_prompt: str | Mapping[str, Any] | None = None
    """`None` is the CLI's own prompt, `""` is none; a mapping is the official SDK's preset form."""
    append_system_prompt: str | None = None
    max_turns: int | None = None
    max_budget_usd: float | None = None
    output_format: Mapping[str, Any] | None = None
    """`{"type": "json_schema", "schema": {...}}`; `run(output=...)` sets it for you."""

    # Tools and who decides about them
    tools: tuple[str, ...] | None = None
    """The built-in tools that exist at all; `None` is all of them, `()` is none."""
    allowed_tools: tuple[str, ...] = ()
    """Rules for what runs without asking; to take tools away, see `tools` and the next."""
    disallowed_tools: tuple[str, ...] = ()
    functions: tuple[Any, ...] = ()
    """Python functions as tools, approved by being given: `mcp__functions__<name>`."""
    mcp_servers: Mapping[str, ToolServer | JsonObject] = field(
        default_factory=dict[str, ToolServer | JsonObject], repr=False
    )
    strict_mcp_config: bool = True
    """Only the servers named here, none from configuration files."""
    permission_mode: PermissionMode | None = None
    can_use_tool: Approver | None = None
    hooks: Hooks = field(default_factory=Hooks)
    agents: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])

    # Where it runs
    cwd: str | Path | None = None
    add_dirs: tuple[str | Path, ...] = ()
    cli_path: str | Path | None = None
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Variables for the CLI, on top of what it inherits."""
    inherit_env: bool | tuple[str, ...] | None = None
    """`None` is a short list of harmless names and logins; names or patterns add to it.

    `True` is everything, `False` nothing.
    """
    setting_sources: tuple[SettingSource, ...] = ()
    settings: str | Path | Mapping[str, Any] | None = field(default=None, repr=False)
    extra_args: Mapping[str, str | None] = field(default_factory=dict[str, str | None])
    """Flags that have no option here. They are public: anyone on the machine can read them."""

    # Which conversation
    session_id: str | None = None
    resume: str | None = None
    continue_conversation: bool = False
    fork_session: bool = False

    # What we do with it on our side
    include_partial_messages: bool = False
    stderr: Callable[[str], None] | None = None
    """Called with each chunk of the CLI's stderr, as it comes."""
    startup: StartupLimits = field(default_factory=StartupLimits)
    request_timeout: float = 60.0
    close_grace: float = 5.0
    """Seconds between the end of input, SIGTERM and SIGKILL when a session closes."""
    journal_memory: int = 64 * 1024 * 1024
    max_buffer_size: int = 256 * 1024 * 1024
    """The longest line we read from the CLI; a longer one is dropped, and nothing else."""

    def __post_init__(self) -> None:
        if not (self.inherit_env is None or isinstance(self.inherit_env, bool)):
            object.__setattr__(
                self, "inherit_env", checks.as_tuple("inherit_env", self.inherit_env)
            )
        for name in _SEQUENCES:
            if name != "tools" or self.tools is not None:
                object.__setattr__(self, name, checks.as_tuple(name, getattr(self, name)))
        for name, check in _CHECKS.items():
            check(name, getattr(self, name))
        _check_conversation(self)


def options_from(base: Options | None, overrides: Mapping[str, Any]) -> Options:
    """`base` with some fields replaced. Raises `UsageError` for a name that is no option."""
    if not (base is None or isinstance(base, Options)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError("options", base, "an Options value")
    names = [each.name for each in dataclasses.fields(Options)]
    for name in overrides:
        if name not in names:
            near = get_close_matches(name, names, n=3)
            hint = f"did you mean {' or '.join(near)}?" if near else ""
            raise UsageError(name, "an unknown option", "the name of an option", hint=hint)
    return dataclasses.replace(base or Options(), **overrides)


_SEQUENCES = (
    "tools",
    "allowed_tools",
    "disallowed_tools",
    "functions",
    "add_dirs",
    "setting_sources",
)

_FLAG_NAME = re.compile(r"[a-z][a-z0-9-]*")
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _has(given: object, **fields: str) -> bool:
    return is_mapping(given) and all(given.get(key) == fields[key] for key in fields)


def _are_texts(given: object) -> bool:
    return is_sequence(given) and all(isinstance(each, str) for each in given)


_CHECKS: Mapping[str, checks.Check] = {
    "model": checks.optional(checks.word),
    "fallback_model": checks.optional(checks.word),
    "system_prompt": checks.optional(
        checks.must_be(
            'a text, or {"type": "preset", "preset": "claude_code", "append": ...}',
            lambda given: isinstance(given, str) or _has(given, preset="claude_code"),
        )
    ),
    "append_system_prompt": checks.optional(checks.text),
    "max_turns": checks.optional(checks.count),
    "max_budget_usd": checks.optional(checks.positive),
    "output_format": checks.optional(
        checks.must_be(
            '{"type": "json_schema", "schema": {...}}',
            lambda given: (
                _has(given, type="json_schema") and isinstance(given.get("schema"), Mapping)
            ),
        )
    ),
    "tools": checks.each(checks.name_of_tool),
    "allowed_tools": checks.each(checks.rule),
    "disallowed_tools": checks.each(checks.rule),
    "functions": checks.each(checks.callable_),
    "mcp_servers": checks.mapping_of(
        checks.KEY, "up to 64 letters, digits, - and _", checks.server
    ),
    "strict_mcp_config": checks.flag,
    "permission_mode": checks.optional(checks.permission_mode),
    "can_use_tool": checks.optional(checks.callable_),
    "hooks": checks.must_be("a Hooks value", lambda given: isinstance(given, Hooks)),
    "agents": checks.mapping_of(checks.KEY, "up to 64 letters, digits, - and _", checks.mapping),
    "cwd": checks.optional(checks.path),
    "add_dirs": checks.each(checks.path),
    "cli_path": checks.optional(checks.path),
    "env": checks.mapping_of(_VARIABLE_NAME, "a variable's name", checks.variable_value),
    "inherit_env": checks.must_be(
        "None, True, False, or a list of names",
        lambda given: given is None or isinstance(given, bool) or _are_texts(given),
    ),
    "setting_sources": checks.each(checks.one_of("user", "project", "local")),
    "settings": checks.optional(
        checks.must_be(
            "a path, a text of JSON, or a mapping",
            lambda given: isinstance(given, Mapping) or checks.is_path_or_json(given),
            private=True,
        )
    ),
    "extra_args": checks.mapping_of(_FLAG_NAME, "a flag's name without dashes", checks.flag_value),
    "session_id": checks.optional(checks.uuid),
    "resume": checks.optional(checks.word),
    "continue_conversation": checks.flag,
    "fork_session": checks.flag,
    "include_partial_messages": checks.flag,
    "stderr": checks.optional(checks.callable_),
    "startup": checks.must_be(
        "a StartupLimits value", lambda given: isinstance(given, StartupLimits)
    ),
    "request_timeout": checks.positive,
    "close_grace": checks.not_negative,
    "journal_memory": checks.count,
    "max_buffer_size": checks.count,
}


def _check_conversation(options: Options) -> None:
    """Which conversation is meant must be one thing."""
    goes_on = options.resume is not None or options.continue_conversation
    if options.resume is not None and options.continue_conversation:
        raise UsageError("resume", options.resume, "not together with continue_conversation=True")
    if options.fork_session and not goes_on:
        raise UsageError(
            "fork_session", "True", "only together with resume= or continue_conversation="
        )
    if options.session_id is not None and goes_on and not options.fork_session:
        raise UsageError(
            "session_id",
            options.session_id,
            "not together with resume= or continue_conversation=, unless fork_session=True",
        )
