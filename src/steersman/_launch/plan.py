"""Options to a launch: one table, `ROWS`, read top to bottom.

Each option has a row that says how it reaches the CLI: a flag, a variable, a private file, a field
of the initialize request, or not at all because it is ours. Nothing private or long goes on argv.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from steersman._launch.builder import LaunchBuilder, size_of
from steersman._launch.environment import environment
from steersman._launch.table import ROWS, hook_id
from steersman.control.handshake import Initialize
from steersman.errors import UsageError
from steersman.options import Options
from steersman.ports import FileArgument, Launch

__all__ = ["MINIMUM_VERSION", "ROWS", "LaunchPlan", "hook_id", "plan", "redacted"]

MINIMUM_VERSION = "2.1.0"
"""The oldest CLI that speaks the protocol as we do."""

_SHOWN = frozenset(
    {
        "--add-dir",
        "--agent",
        "--allowedTools",
        "--betas",
        "--debug",
        "--debug-file",
        "--disallowedTools",
        "--effort",
        "--fallback-model",
        "--input-format",
        "--max-budget-usd",
        "--max-thinking-tokens",
        "--max-turns",
        "--model",
        "--output-format",
        "--permission-mode",
        "--permission-prompt-tool",
        "--permission-prompts",
        "--plugin-dir",
        "--plugin-dir-no-mcp",
        "--project-config-root",
        "--resume",
        "--resume-drops-turn",
        "--resume-session-at",
        "--session-id",
        "--setting-sources",
        "--settings",
        "--system-prompt-file",
        "--task-budget",
        "--thinking",
        "--thinking-display",
        "--tools",
    }
)
"""Flags whose values are no secret, and tell why a start failed."""

LONGEST_ARGUMENT = 4096
LONGEST_SHOWN = 200

_ALWAYS = (
    "--output-format=stream-json",
    "--input-format=stream-json",
    "--verbose",
    # For `turn.text()`.
    "--include-partial-messages",
    # On older CLIs, whose results name no prompts, replays tell which prompt a result is for.
    "--replay-user-messages",
)


@dataclass(frozen=True, slots=True)
class LaunchPlan:
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
    reruns: bool = False,
) -> LaunchPlan:
    """The launch for `options`.

    `servers` are the keys of the tool servers in this process, `approved` the names of functions
    that may run without asking; `new_session_id` is used if the options leave the choice to us.
    With `reruns` the CLI takes up the turn in whose middle the last one was lost.
    """
    builder = LaunchBuilder(options, approved=tuple(approved))
    if reruns:
        builder.rerun()
    for name, row in ROWS.items():
        size = len(builder.argv)
        row.put(builder)
        if len(builder.argv) > size:
            _refuse_long(name, builder.argv[size:])
    session_id = _choose_session(builder, new_session_id)
    builder.add_settings()
    _refuse_long("settings", builder.argv)
    builder.initialize |= {"sdk_mcp_servers": list(servers) or None}
    launch = Launch(
        argv=(program, *_ALWAYS, _prompt_tool(options), *builder.argv),
        env=environment(host_env, options.inherit_env, _variables(builder)),
        cwd=None if options.cwd is None else str(options.cwd),
        user=options.user,
        files=builder.files,
    )
    return LaunchPlan(launch, Initialize(**builder.initialize), session_id)


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


def _prompt_tool(options: Options) -> str:
    # Without the flag the CLI denies by itself, without saying how to register an approver.
    return f"--permission-prompt-tool={options.permission_prompt_tool_name or 'stdio'}"


def _variables(builder: LaunchBuilder) -> dict[str, str]:
    """What the caller adds to the environment, by options and by name."""
    given = builder.options.env
    for name in builder.env.keys() & given.keys():
        if given[name] != builder.env[name]:
            raise UsageError(f"env[{name!r}]", "another value", "what its option says, or left out")
    return {**given, **builder.env}


def _choose_session(builder: LaunchBuilder, new_session_id: str) -> str | None:
    """Name a new conversation ourselves, so that no crash can lose its id."""
    options = builder.options
    if options.goes_on and not options.fork_session:
        return options.resume
    session_id = options.session_id or new_session_id
    builder.argv.append(f"--session-id={session_id}")
    return session_id


def _refuse_long(option: str, argv: Iterable[str | FileArgument]) -> None:
    sizes = [size_of([token]) for token in argv if isinstance(token, str)]
    if sizes and max(sizes) > LONGEST_ARGUMENT:
        raise UsageError(option, f"{max(sizes)} bytes", f"at most {LONGEST_ARGUMENT} bytes")
