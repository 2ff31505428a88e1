"""Options to a launch: one table, read top to bottom.

Each option has a row that says how it reaches the CLI: a flag, a variable, a private file, a field
of the initialize request, or not at all because it is ours. Nothing private or long goes on argv.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from steersman import _json
from steersman._wire.environment import environment
from steersman.control import Initialize
from steersman.errors import UsageError
from steersman.hooks import Hooks
from steersman.options import Options, checks
from steersman.ports import FileArgument, Launch

__all__ = ["MINIMUM_VERSION", "Plan", "hook_id", "plan", "redacted"]

MINIMUM_VERSION = "2.1.0"
"""The oldest CLI that speaks the protocol as we do."""

_SHOWN = frozenset(
    {
        "--add-dir",
        "--allowedTools",
        "--disallowedTools",
        "--fallback-model",
        "--input-format",
        "--max-budget-usd",
        "--max-turns",
        "--model",
        "--output-format",
        "--permission-mode",
        "--permission-prompt-tool",
        "--resume",
        "--session-id",
        "--setting-sources",
        "--settings",
        "--tools",
    }
)
"""Flags whose values are no secret, and tell why a start failed."""

LONGEST_ARGUMENT = 4096
LONGEST_SHOWN = 200
LONGEST_LIST = 1500
"""Bytes of a list on argv; a longer one goes into the settings file."""

_ALWAYS = (
    "--output-format=stream-json",
    "--input-format=stream-json",
    "--verbose",
    # For `turn.text()`.
    "--include-partial-messages",
    # On older CLIs, whose results name no prompts, replays tell which prompt a result is for.
    "--replay-user-messages",
    # Without it the CLI denies by itself, without saying how to register an approver.
    "--permission-prompt-tool=stdio",
)


@dataclass(frozen=True, slots=True)
class Plan:
    """All that a session needs to start: what to run and how to greet it."""

    launch: Launch
    initialize: Initialize
    session_id: str | None
    """The conversation's id, where it is known before the start."""


def plan(
    options: Options,
    *,
    program: str,
    host_env: Mapping[str, str],
    new_session_id: str,
    servers: Iterable[str] = (),
    approved: Iterable[str] = (),
) -> Plan:
    """The launch for `options`.

    `servers` are the keys of the tool servers in this process, `approved` the names of functions
    that may run without asking; `new_session_id` is used if the options leave the choice to us.
    """
    draft = _Draft(options, approved=tuple(approved))
    for name, row in ROWS.items():
        row(draft, getattr(options, name))
        _refuse_long(name, draft.argv)
    session_id = _choose_session(draft, new_session_id)
    draft.add_settings()
    _refuse_long("settings", draft.argv)
    draft.initialize |= {"sdk_mcp_servers": list(servers) or None}
    launch = Launch(
        argv=(program, *_ALWAYS, *draft.argv),
        env=environment(host_env, options.inherit_env, options.env),
        cwd=None if options.cwd is None else str(options.cwd),
        files=draft.files,
    )
    return Plan(launch, Initialize(**draft.initialize), session_id)


def redacted(launch: Launch) -> tuple[str, ...]:
    """The command line as it may be shown: values of flags that we do not know are left out."""
    return tuple(map(_shown, launch.argv))


def _shown(token: str | FileArgument) -> str:
    if isinstance(token, FileArgument):
        return f"{token.prefix}<file>"
    flag, equals, _ = token.partition("=")
    known = not flag.startswith("--") or not equals or flag in _SHOWN
    shown = token if known else f"{flag}=…"
    return shown if len(shown) <= LONGEST_SHOWN else shown[:LONGEST_SHOWN] + "…"


def hook_id(position: int) -> str:
    """The name under which the CLI calls the hook at `position` of the registry."""
    return f"hook_{position}"


@dataclass(slots=True)
class _Draft:
    """A launch in the making."""

    options: Options
    approved: tuple[str, ...]
    argv: list[str | FileArgument] = field(default_factory=list[str | FileArgument])
    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    initialize: dict[str, Any] = field(default_factory=dict[str, Any])
    settings: dict[str, Any] = field(default_factory=dict[str, Any])
    settings_path: str | None = None

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
                "a mapping, when rule lists or directories are longer than 1500 bytes",
                hint="read the file and pass its content as settings={...}",
            )
        if self.settings_path is not None:
            self.argv.append(f"--settings={self.settings_path}")
        elif self.settings:
            self.files["settings.json"] = _json.dumps(self.settings)
            self.argv.append(FileArgument("--settings=", "settings.json"))


Row = Callable[[_Draft, Any], None]


def _value(flag: str) -> Row:
    """`--flag=value`: one token, so a value can never pose as a flag."""

    def row(draft: _Draft, value: Any) -> None:
        if value is not None:
            draft.argv.append(f"{flag}={value}")

    return row


def _switch(flag: str) -> Row:
    def row(draft: _Draft, value: Any) -> None:
        if value:
            draft.argv.append(flag)

    return row


def _greeting(name: str) -> Row:
    """A field of the initialize request."""

    def row(draft: _Draft, value: Any) -> None:
        if value:
            draft.initialize[name] = checks.plain(name, value)

    return row


def _ours(_draft: _Draft, _value: Any) -> None:
    """Never leaves this process, or is handled beside the table."""


def _add_system_prompt(draft: _Draft, prompt: str | Mapping[str, Any] | None) -> None:
    if isinstance(prompt, str):
        draft.initialize["system_prompt"] = [prompt]
    elif prompt is not None and prompt.get("append"):
        _append_system_prompt(draft, str(prompt["append"]))


def _append_system_prompt(draft: _Draft, text: str | None) -> None:
    before = draft.initialize.get("append_system_prompt")
    if text:
        draft.initialize["append_system_prompt"] = f"{before}\n\n{text}" if before else text


def _add_output_format(draft: _Draft, wanted: Mapping[str, Any] | None) -> None:
    if wanted is not None:
        draft.initialize["json_schema"] = checks.plain("output_format", wanted["schema"])


def _add_tools(draft: _Draft, tools: tuple[str, ...] | None) -> None:
    if tools is not None:
        draft.argv.append(f"--tools={','.join(tools)}")


def _rules(flag: str, kind: str) -> Row:
    """A list of rules: on argv where the CLI reads them as they are, else in the settings."""

    def row(draft: _Draft, rules: tuple[str, ...]) -> None:
        wanted = (*rules, *(draft.approved if kind == "allow" else ()))
        if _size(wanted) > LONGEST_LIST:
            draft.add_rules(kind, wanted)
            return
        # The CLI forgets a bracket at the first that closes, and would split what follows.
        nested = [rule for rule in wanted if rule.count("(") > 1]
        flat = [rule for rule in wanted if rule not in nested]
        if flat:
            draft.argv.append(f"{flag}={','.join(flat)}")
        if nested:
            draft.add_rules(kind, nested)

    return row


def _add_directories(draft: _Draft, directories: tuple[Any, ...]) -> None:
    paths = [str(each) for each in directories]
    flags = [f"--add-dir={each}" for each in paths]
    if _size(flags) <= LONGEST_LIST:
        draft.argv += flags
    else:
        draft.add_rules("additionalDirectories", paths)


def _size(texts: Iterable[str]) -> int:
    """Bytes on a command line; file names may hold bytes that are no UTF-8."""
    return sum(len(text.encode("utf-8", "surrogateescape")) + 1 for text in texts)


def _add_servers(draft: _Draft, servers: Mapping[str, Any]) -> None:
    """Servers that the CLI runs or dials itself; their headers and variables may be secrets."""
    external = {
        key: checks.plain(f"mcp_servers[{key!r}]", config)
        for key, config in servers.items()
        if isinstance(config, Mapping)
    }
    if external:
        draft.files["mcp.json"] = _json.dumps({"mcpServers": external})
        draft.argv.append(FileArgument("--mcp-config=", "mcp.json"))


def _add_settings(draft: _Draft, settings: Any) -> None:
    if isinstance(settings, Mapping):
        draft.settings |= checks.plain("settings", settings)
    elif isinstance(settings, str) and settings.lstrip().startswith("{"):
        draft.settings |= _settings_text(settings)
    elif settings is not None:
        draft.settings_path = str(settings)


def _settings_text(text: str) -> dict[str, Any]:
    try:
        found = _json.loads(text.encode("utf-8", "surrogatepass"))
    except ValueError as error:
        raise UsageError(
            "settings", "a text that is not JSON", f"JSON or a path ({error})"
        ) from None
    if not _json.is_object(found):
        raise UsageError("settings", "JSON that is no object", "a JSON object or a path")
    return found


def _add_sources(draft: _Draft, sources: tuple[str, ...]) -> None:
    draft.argv.append(f"--setting-sources={','.join(sources)}")


def _add_hooks(draft: _Draft, hooks: Hooks) -> None:
    config: dict[str, list[dict[str, Any]]] = {}
    for position, hook in enumerate(hooks):
        matcher: dict[str, Any] = {"hookCallbackIds": [hook_id(position)]}
        if hook.matcher is not None:
            matcher["matcher"] = hook.matcher
        if hook.timeout is not None:
            matcher["timeout"] = hook.timeout
        if hook.is_guard:
            matcher["onFailure"] = "block"
        config.setdefault(hook.event_name, []).append(matcher)
    if config:
        draft.initialize["hooks"] = config


RESERVED = frozenset(
    {
        "include-partial-messages",
        "input-format",
        "output-format",
        "permission-prompt-tool",
        "print",
        "replay-user-messages",
        "session-id",
        "verbose",
    }
)
"""Flags that the protocol hangs on, or that have their option."""


def _add_extra(draft: _Draft, extra: Mapping[str, str | None]) -> None:
    for flag in RESERVED.intersection(extra):
        raise UsageError("extra_args key", flag, "a flag that is not steersman's own")
    draft.argv += [
        f"--{flag}" if value is None else f"--{flag}={value}" for flag, value in extra.items()
    ]


ROWS: Mapping[str, Row] = {
    # First, because long rule lists are added to it.
    "settings": _add_settings,
    "model": _value("--model"),
    "fallback_model": _value("--fallback-model"),
    "system_prompt": _add_system_prompt,
    "append_system_prompt": _append_system_prompt,
    "max_turns": _value("--max-turns"),
    "max_budget_usd": _value("--max-budget-usd"),
    "output_format": _add_output_format,
    "tools": _add_tools,
    "allowed_tools": _rules("--allowedTools", "allow"),
    "disallowed_tools": _rules("--disallowedTools", "deny"),
    "functions": _ours,
    "mcp_servers": _add_servers,
    "strict_mcp_config": _switch("--strict-mcp-config"),
    "permission_mode": _value("--permission-mode"),
    "can_use_tool": _ours,
    "hooks": _add_hooks,
    "agents": _greeting("agents"),
    "cwd": _ours,
    "add_dirs": _add_directories,
    "cli_path": _ours,
    "env": _ours,
    "inherit_env": _ours,
    "setting_sources": _add_sources,
    "extra_args": _add_extra,
    "session_id": _ours,
    "resume": _value("--resume"),
    "continue_conversation": _switch("--continue"),
    "fork_session": _switch("--fork-session"),
    "include_partial_messages": _ours,
    "stderr": _ours,
    "startup": _ours,
    "request_timeout": _ours,
    "close_grace": _ours,
    "journal_memory": _ours,
    "max_buffer_size": _ours,
}


def _choose_session(draft: _Draft, new_session_id: str) -> str | None:
    """Name a new conversation ourselves, so that no crash can lose its id."""
    options = draft.options
    goes_on = options.resume is not None or options.continue_conversation
    if goes_on and not options.fork_session:
        return options.resume
    session_id = options.session_id or new_session_id
    draft.argv.append(f"--session-id={session_id}")
    return session_id


def _refuse_long(option: str, argv: Iterable[str | FileArgument]) -> None:
    sizes = [_size([token]) for token in argv if isinstance(token, str)]
    if sizes and max(sizes) > LONGEST_ARGUMENT:
        raise UsageError(option, f"{max(sizes)} bytes", f"at most {LONGEST_ARGUMENT} bytes")
