"""Options → `LaunchPlan`: the command to run, and the initialize request.

`plan()` applies the rows of `table` from top to bottom. An option becomes a flag, an environment
variable, a private file or a field of the initialize request, or stays in this process. Nothing
private or long is put on argv, which every user of the machine can read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from steersman._launch.builder import (
    AWAIT_INITIALIZE,
    MANAGED,
    LaunchBuilder,
    ReadSettings,
    host_only,
    size_of,
)
from steersman._launch.environment import environment
from steersman._launch.isolation import NO_MEMORY, closed_settings
from steersman._launch.table import ROWS, hook_id
from steersman._release_table import FLOOR
from steersman.control.handshake import Initialize
from steersman.errors import Described, UsageError
from steersman.options import Options
from steersman.options.checks import UUID
from steersman.ports import FileArgument, Launch

__all__ = [
    "AWAIT_INITIALIZE",
    "BELOW_MINIMUM",
    "MINIMUM_VERSION",
    "ROWS",
    "LaunchPlan",
    "hook_id",
    "plan",
    "redacted",
    "without_waiting",
]

MINIMUM_VERSION = FLOOR
"""The oldest CLI with which steersman is tested; `steersman conform` finds nothing broken there."""

BELOW_MINIMUM = (
    "a turn that is interrupted may settle as completed",
    'a prompt with when="next" may not join the running turn',
    "text that is sent with query=False may start a turn",
    "the result of background work may be taken for that of a prompt",
    "a permission rule for the session may not be used at once",
    "/clear may keep the old messages",
    "control requests such as the cost of a session may be refused",
)
"""What does not hold with some older CLIs.

The first was seen on 2.1.77; `steersman conform` finds the others on 2.1.116.
"""

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
"""Flags whose values are not secret, and help to explain why a start failed."""

FILE_END = ".jsonl"
"""How the names of session files end; the CLI takes such a `--resume` for a path."""

LONGEST_ARGUMENT = 4096
LONGEST_SHOWN = 200
_ANY_LENGTH = ("extra_args",)
"""Options whose own check has limited what they put on argv."""

_ALWAYS = (
    "--output-format=stream-json",
    "--input-format=stream-json",
    "--verbose",
    # The results of older CLIs name no prompts. There, replayed user messages show which prompt a
    # result belongs to.
    "--replay-user-messages",
)


_PUTS = tuple((name, row.put) for name, row in ROWS.items() if row.put is not host_only)
"""What adds each option to a launch, for those that the CLI gets."""


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """What a session needs to start a CLI: the command, and the initialize request."""

    launch: Launch
    initialize: Initialize
    session_id: str | None
    """The id of the conversation.

    `None` if only the CLI knows it: with `continue_conversation`, and if `resume` is not an id.
    """
    path: str | None = None
    """The file of the conversation, if it is resumed by its path; the CLI appends to that file."""
    mode: str = "default"
    """The permission mode that the CLI is given."""


def plan(  # noqa: PLR0913 - all but one by name
    options: Options,
    *,
    program: str,
    host_env: Mapping[str, str],
    new_session_id: str,
    servers: Iterable[str] = (),
    approved: Iterable[str] = (),
    reruns: bool = False,
    read_settings: ReadSettings | None = None,
) -> LaunchPlan:
    """Return the launch plan for `options`.

    `program` is the CLI to run and `host_env` the environment of this process. `new_session_id` is
    used for a new conversation if the options name none. `servers` are the keys of the in-process
    MCP servers, `approved` the names of tools that run without a permission request. With `reruns`
    the CLI resumes the turn that was interrupted when the previous CLI was lost. `read_settings`
    reads a settings file that other options add to.
    """
    builder = LaunchBuilder(options, approved=tuple(approved), read_settings=read_settings)
    if reruns:
        builder.rerun()
    size = len(builder.argv)
    for name, put in _PUTS:
        put(builder)
        if len(builder.argv) > size:
            if name not in _ANY_LENGTH:
                _refuse_long(name, builder.argv[size:])
            size = len(builder.argv)
    session_id, path = _choose_session(builder, new_session_id)
    if options.goes_on:
        # Without it, a resumed CLI could run a tool before our hooks are registered.
        builder.await_initialize()
    env = environment(host_env, options.inherit_env, _variables(builder))
    size = len(builder.argv)
    builder.add_settings(closed_settings(builder, env))
    _refuse_long("settings", builder.argv[size:])
    builder.initialize |= {"sdk_mcp_servers": list(servers) or None}
    launch = Launch(
        argv=(program, *_ALWAYS, *_prompt_tool(options), *builder.argv),
        env=env,
        cwd=None if options.cwd is None else str(options.cwd),
        user=options.user,
        files=builder.files,
    )
    return LaunchPlan(launch, Initialize(**builder.initialize), session_id, path, builder.mode)


def without_waiting(plan: LaunchPlan) -> LaunchPlan | None:
    """Return the plan for a CLI that does not know `--await-initialize`.

    None if the plan does not have the flag, or cannot be carried out without it.
    """
    launch = plan.launch
    needs_it = (
        MANAGED in launch.argv
        or plan.initialize.plugins is not None
        or "CLAUDE_CODE_RESUME_INTERRUPTED_TURN" in launch.env
    )
    if needs_it or AWAIT_INITIALIZE not in launch.argv:
        return None
    argv = tuple(each for each in launch.argv if each != AWAIT_INITIALIZE)
    return replace(plan, launch=replace(launch, argv=argv))


def redacted(launch: Launch) -> tuple[str, ...]:
    """Return the command line for error messages, without the values of unknown flags."""
    return tuple(map(_shown, launch.argv))


def _shown(token: str | FileArgument) -> str:
    if isinstance(token, FileArgument):
        return f"{token.prefix}<file>"
    flag, equals, value = token.partition("=")
    # Settings in JSON are those of every session, and too long to read in an error.
    is_long = flag == "--settings" and value.startswith("{")
    known = not flag.startswith("--") or not equals or (flag in _SHOWN and not is_long)
    shown = token if known else f"{flag}=…"
    return shown if len(shown) <= LONGEST_SHOWN else shown[:LONGEST_SHOWN] + "…"


def _prompt_tool(options: Options) -> list[str]:
    # Without this flag the CLI denies such calls itself. With it, our answer can explain to the
    # developer how to pass `can_use_tool`. Only `steersman.compat` gives an empty name: no flag.
    name = options.permission_prompt_tool_name
    return [] if name == "" else [f"--permission-prompt-tool={name or 'stdio'}"]


def _variables(builder: LaunchBuilder) -> dict[str, str]:
    """Return the variables that the caller sets, through `env` and through other options."""
    given = builder.options.env
    for name in builder.env.keys() & given.keys():
        if given[name] != builder.env[name]:
            raise UsageError(
                f"env[{name!r}]",
                Described("another value than the option that sets this variable"),
                "the same value, or no value",
                hint=f"leave {name} out of env=",
            )
    closed = {} if builder.options.memory else {NO_MEMORY: "1"}
    return {**closed, **given, **builder.env}


def _choose_session(builder: LaunchBuilder, new_session_id: str) -> tuple[str | None, str | None]:
    """Return the id of the conversation and the path of its file, and add a new id to argv.

    The id of a new conversation is chosen here, so that it is known even if the CLI crashes.
    """
    options = builder.options
    if options.goes_on and not options.fork_session:
        # A conversation may also be resumed by its title.
        resumed = options.resume or ""
        path = resumed if resumed.startswith("/") and resumed.endswith(FILE_END) else None
        name = resumed if path is None else path.rpartition("/")[2].removesuffix(FILE_END)
        return name if UUID.fullmatch(name) else None, path
    session_id = options.session_id or new_session_id
    builder.argv.append(f"--session-id={session_id}")
    return session_id, None


def _refuse_long(option: str, argv: Iterable[str | FileArgument]) -> None:
    sizes = [size_of([token]) for token in argv if isinstance(token, str)]
    if sizes and max(sizes) > LONGEST_ARGUMENT:
        raise UsageError(
            option, Described(f"{max(sizes)} bytes"), f"at most {LONGEST_ARGUMENT} bytes"
        )
