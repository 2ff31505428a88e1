"""The fields of `Options`.

To add an option, add a field here, with a docstring that is also its line in docs/options.md, a
row to `table.py`, which holds its check and how it reaches the CLI, and a line to `keywords.py`,
which lists what may be given.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, cast

from steersman._json import JsonObject
from steersman.errors import Described, UsageError
from steersman.options import checks
from steersman.options.checks import Effort, PermissionMode, SettingSource
from steersman.options.conflicts import check_conflicts
from steersman.options.forms import empty_hooks
from steersman.options.limits import Budget, Limits, Park, Revival, StartupLimits, Watchdog
from steersman.options.own_flags import adopt_flags
from steersman.options.table import TABLE

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Unpack

    from steersman.hooks.registry import Hooks
    from steersman.options.agents import AgentDefinition
    from steersman.options.keywords import OptionKwargs
    from steersman.options.plugins import PluginLike
    from steersman.options.servers import McpServer
    from steersman.permissions.policy import Policy
    from steersman.ports import (
        Approver,
        Asks,
        DialogHandler,
        ElicitationHandler,
        QuestionHandler,
        SessionStore,
        Sink,
        ToolServer,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of a session. Frozen: `replace` makes another one.

    Every value is checked when it is passed, before anything is started. The annotations below are
    what is kept; what may be given is in `OptionKwargs`.
    """

    # The model
    model: str | None = None
    """The main model, by alias or full name; `None` is the CLI's default."""
    fallback_model: str | tuple[str, ...] | None = None
    """Models to use, in this order, if the main one is overloaded or not available."""
    system_prompt: str | tuple[str, ...] | JsonObject | None = None
    """The system prompt. `None` is the CLI's own prompt; `""` is no prompt at all.

    A string, a list of strings, or one of the official SDKs' forms: `{"type": "preset", "preset":
    "claude_code"}` with `append`, `exclude_dynamic_sections` and `snapshot`; `{"type": "custom",
    "prompt": ...}` with `snapshot`; `{"type": "file", "path": ...}`.
    """
    append_system_prompt: str | None = None
    """Text that is added at the end of the CLI's own system prompt."""
    exclude_dynamic_sections: bool = False
    """Move directory, date and git status from the system prompt to the first message.

    The system prompt is then the same in every session, so that the API can cache it.
    """
    thinking: JsonObject | None = None
    """Whether and how much the model thinks before it answers.

    `{"type": "adaptive"}`, `{"type": "enabled", "budget_tokens": N}` or `{"type": "disabled"}`. The
    first two may have a `display`: `summarized`, `omitted` or `highlights`.
    """
    max_thinking_tokens: int | None = None
    """The older form of `thinking`: a budget in tokens; 0 disables thinking."""
    effort: Effort | None = None
    """How much effort the model makes: `low`, `medium`, `high`, `xhigh` or `max`."""
    betas: tuple[str, ...] = ()
    """Names of beta features of the API; they work with an API key only."""
    max_turns: int | None = None
    """End a turn after this many round trips to the model."""
    max_budget_usd: float | None = None
    """End a turn when it has cost this many US dollars."""
    task_budget: Mapping[str, int] | None = None
    """`{"total": N}`: a budget in tokens that the model knows and plans with."""
    output_format: JsonObject | None = None
    """`{"type": "json_schema", "schema": {...}}`: the form of the structured output.

    `run(output=...)` sets it from a Python type.
    """

    # Tools and permissions
    tools: tuple[str, ...] | JsonObject | None = None
    """The built-in tools that exist in this session; `None` is all of them, `()` is none.

    `{"type": "preset", "preset": "claude_code"}` is the CLI's default set.
    """
    allowed_tools: tuple[str, ...] = ()
    """Rules for tool calls that run without a permission request: `Read`, `Bash(git log:*)`.

    Other tools still exist. To remove tools, use `tools` or `disallowed_tools`.
    """
    disallowed_tools: tuple[str, ...] = ()
    """Rules for tool calls that never run; a name without brackets removes the tool."""
    tool_aliases: Mapping[str, str] = field(default_factory=dict[str, str])
    """Tools that run in place of others: `{"Bash": "mcp__box__run"}`."""
    tool_config: JsonObject | None = None
    """Settings of built-in tools.

    `{"askUserQuestion": {...}}`, with `previewFormat` (`markdown` or `html`), `extendedQuestions`
    and `optionalDescriptions` (`True` or `False`).
    """
    functions: tuple[Callable[..., object], ...] = ()
    """Python functions that the model can call as tools, named `mcp__functions__<name>`.

    They run without a permission request.
    """
    mcp_servers: Mapping[str, ToolServer | McpServer | JsonObject] | str | Path = field(
        default_factory=dict[str, JsonObject], repr=False
    )
    """MCP servers by key; the tools of a server are named `mcp__<key>__<tool>`.

    Each is a `Toolbox` or another server in this process, or the configuration of a server that the
    CLI connects to. Instead of a mapping, pass the path of a configuration file.
    """
    require: bool | tuple[str, ...] = ()
    """Keys of MCP servers that must be connected at the start; `True` is all of them.

    If one is not connected in time, the start raises `McpNotReady`.
    """
    strict_mcp_config: bool = True
    """Use only the servers in `mcp_servers`, and none from the CLI's configuration files."""
    permission_mode: PermissionMode | None = None
    """The permission mode at the start: which tool calls need a permission.

    `None` is the `defaultMode` of `settings`, or else `default`. `session.set_permission_mode`
    changes it later. A CLI that reports another mode than it was given is ended: `CliMisbehaves`.
    """
    allow_dangerously_skip_permissions: bool = False
    """Allow a change to the mode `bypassPermissions` while the session runs."""
    permission_prompt_tool_name: str | None = None
    """The MCP tool that decides about tool calls, in place of `can_use_tool`."""
    permission_prompts: Literal["host", "none"] | None = None
    """Where the CLI sends permission requests: `host` is your program.

    With `none` the CLI denies every tool call for which it would send one.
    """
    deps: Any = None
    """Any object that your tools need; they find it as `ToolContext.deps`."""
    policy: Policy | None = None
    """Ordered rules that decide about tool calls, before `can_use_tool` or an inbox is asked."""
    can_use_tool: Approver | None = None
    """A callback that decides about tool calls that no rule decides.

    Without a callback and without `inbox`, such calls are denied.
    """
    ask_every_call: bool = False
    """Call `can_use_tool`, or ask the inbox, for every tool call that no rule allows.

    Without it, only those calls are asked about for which the CLI requests a permission.
    """
    on_question: QuestionHandler | None = None
    """A callback that answers the model's questions to the user (the tool `AskUserQuestion`).

    Without anything that can answer (`on_question`, `inbox`, `can_use_tool`) the tool is removed.
    """
    inbox: Asks | None = None
    """An `Inbox`: it keeps what no callback answers until the user answers.

    These are permission requests, `AskUserQuestion`, elicitations and dialogs. Several sessions can
    share one inbox.
    """
    plan_mode_instructions: str | None = None
    """Instructions for plan mode, in place of the CLI's own."""
    hooks: Hooks = field(default_factory=empty_hooks)
    """Callbacks for hook events: a `Hooks`, or a mapping in the official SDKs' form."""
    on_elicitation: ElicitationHandler | None = None
    """A callback that answers elicitations: requests of MCP servers for input of the user.

    Without a callback and without `inbox`, elicitations are declined.
    """
    on_user_dialog: DialogHandler | None = None
    """A callback that shows the CLI's dialogs of the kinds in `supported_dialog_kinds`."""
    supported_dialog_kinds: tuple[str, ...] = ()
    """The kinds of dialogs that `on_user_dialog` can show; the CLI sends no others."""
    agents: Mapping[str, AgentDefinition | JsonObject] = field(
        default_factory=dict[str, JsonObject]
    )
    """Subagents by name that the session may start; each is an `AgentDefinition` or a mapping."""
    agent: str | None = None
    """The name of the agent that runs as the main one."""
    skills: tuple[str, ...] | Literal["all"] | None = None
    """Skills that the model may use, and that run without a permission request.

    A list of names, or `"all"`. `None` leaves the choice to the CLI. If `setting_sources` is not
    given, the CLI reads `user` and `project`, where such skills are; not for those of a plugin.
    """
    plugins: tuple[PluginLike, ...] = ()
    """Directories of plugins: paths, `Plugin` values, or mappings in the official SDKs' form."""
    plugin_delivery: Literal["argv", "initialize"] = "argv"
    """How the list of plugins is passed: `argv`, or `initialize`.

    `initialize` keeps it off the command line.
    """
    sandbox: JsonObject | None = None
    """Settings of the sandbox in which the CLI runs commands.

    If an enabled sandbox is not available, the start fails; `{"failIfUnavailable": False}` changes
    that.
    """

    # Where the CLI runs
    cwd: str | Path | None = None
    """The working directory of the CLI; `None` is the directory of this process."""
    add_dirs: tuple[str | Path, ...] = ()
    """More directories, beside `cwd`, in which the CLI's tools may work."""
    project_config_root: str | Path | None = None
    """The directory with the project's settings, skills and servers, if it is not `cwd`.

    For example the main checkout, if the CLI works in a git worktree.
    """
    cli_path: str | Path | None = None
    """The program of the CLI; `None` looks in the usual places."""
    user: str | None = None
    """The operating system user that runs the CLI."""
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Environment variables for the CLI, added to those that it inherits."""
    inherit_env: bool | tuple[str, ...] | None = None
    """Which variables the CLI inherits from this process.

    `None` is a fixed list of harmless names and logins; a list of names or patterns adds to it.
    `True` is every variable, `False` none.
    """
    client_app: str | None = None
    """The name of your program in the CLI's requests to the API, such as `my-app/1.0`."""
    setting_sources: tuple[SettingSource, ...] | None = None
    """Which settings files, `CLAUDE.md` files and skills the CLI reads: `user`, `project`, `local`.

    By default none, or with `skills`: `user` and `project`.
    """
    memory: bool = False
    """Whether agents have the memory that the CLI keeps in its configuration directory.

    Without it the memory is not read, and agents can neither read nor change the files of memories
    and transcripts there.
    """
    skill_commands: bool = False
    """Whether the CLI runs the commands in the text of skills and slash commands.

    The CLI runs them without a permission request, and no hook is called for them.
    """
    settings: str | Path | JsonObject | None = field(default=None, repr=False)
    """Settings for this session: a mapping, a JSON string, or the path of a file.

    They override all settings files, except managed settings. What other options add, such as
    `sandbox`, is merged over them.
    """
    managed_settings: JsonObject | None = field(default=None, repr=False)
    """Settings as an administrator sets them, for this session.

    They can only restrict, and no other settings override them.
    """
    extra_args: Mapping[str, str | None] = field(default_factory=dict[str, str | None])
    """Command-line flags that have no option here: `{"flag": "value"}`, or `None` as the value.

    Every user of the machine can read them in the list of processes. `include-partial-messages`
    and `session-id` set the options of these names; `verbose` and `print` are always so. With
    `replay-user-messages`, prompts that the CLI repeats are messages: a `User` with `is_replay`.
    """

    # Which conversation
    session_id: str | None = None
    """The UUID of a new or forked conversation; `None` makes one."""
    resume: str | None = None
    """The id of the conversation to resume, or the path of its file: an absolute path to `.jsonl`.

    New entries are then appended to that file.
    """
    continue_conversation: bool = False
    """Resume the latest conversation of the working directory."""
    fork_session: bool = False
    """Resume under a new id, and leave the original conversation unchanged.

    Use it with `resume` or `continue_conversation`.
    """
    resume_session_at: str | None = None
    """Resume up to the message with this UUID, and drop what came after it."""
    resume_drops_turn: str | None = None
    """The UUID of the only prompt that `resume_session_at` may drop.

    The CLI refuses to start if more than the turn of this prompt would be dropped.
    """
    persist_session: bool = True
    """Whether the CLI saves the conversation to disk, so that it can be resumed."""
    wait: float = 0.0
    """How many seconds the start waits while another session has the conversation open.

    After that it raises `SessionInUse`.
    """
    title: str | None = None
    """The title of a new conversation."""
    enable_file_checkpointing: bool = False
    """Keep copies of changed files, so that `session.rewind_files` can restore them."""
    session_store: SessionStore | None = None
    """A store that gets a copy of the conversation as it grows, and that it is resumed from.

    `resume` and `continue_conversation` look in the store first, so a conversation can continue on
    another machine.
    """
    session_store_flush: Literal["batched", "eager"] = "batched"
    """When entries are appended to the store: in batches, or as soon as the CLI reports them.

    A batch ends with 500 entries, with 1 MiB, and with the result of a turn.
    """
    load_timeout: float = 60.0
    """How many seconds finding and reading a conversation in the store may take at the start."""

    # What the CLI reports
    include_partial_messages: bool | None = None
    """Whether the CLI sends partial messages: True: they are also read as `StreamEvent` messages.

    None: it sends them, so that `turn.text()` streams, but they are not among the messages. `run`
    and `query` have no reader of the text while it grows, so there None means False, unless
    `watchdog` is given. False: `turn.text()` has whole messages. Each costs the program and the CLI
    time: see the performance page.
    """
    include_hook_events: bool = False
    """Report when hooks start, make progress and end, also those of settings files."""
    forward_subagent_text: bool = False
    """Report the text and the thinking of subagents, and not only their tool calls."""
    agent_progress_summaries: bool = False
    """Report summaries of the progress of subagents, which a model writes."""
    prompt_suggestions: bool = False
    """Report a suggestion for the next prompt after each turn."""
    per_task_stop_affordance: bool = False
    """Declare that your program can stop each background task by itself.

    An interrupt then leaves background tasks running.
    """
    verbatim_prompts: bool = True
    """Pass prompts to the model unchanged.

    With `False` the CLI runs `/commands` in prompts and reads files named with `@`. With `True` it
    also adds nothing to a prompt, such as the list of skills.
    """
    debug: bool | str = False
    """Write the CLI's debug log: `True` is all of it, `"hooks,mcp"` is these categories."""
    debug_file: str | Path | None = None
    """The file for the CLI's debug log; setting it switches the log on."""

    # What steersman does
    stderr: Callable[[str], object] | None = None
    """A callback that gets each chunk of the CLI's stderr as it arrives."""
    allow_old_cli: bool = False
    """Run a CLI that is older than the oldest supported one, and log what does not hold there.

    Without it the start raises `CliTooOld`.
    """
    allow_unsafe_cli: bool = False
    """Run a release of the CLI on which guards do not hold, and log what is broken.

    Without it the start raises `UnsafeCli`.
    """
    startup: StartupLimits = StartupLimits()  # noqa: RUF009 - it is frozen
    """Time limits for the phases of the start: a `StartupLimits`."""
    request_timeout: float = 60.0
    """How many seconds the CLI may take to answer a control request."""
    close_grace: float = 5.0
    """How many seconds a closing session waits for the CLI to exit.

    First after the end of its input, then once more after SIGTERM; then the CLI gets SIGKILL.
    """
    watchdog: Watchdog | None = Watchdog()  # noqa: RUF009 - it is frozen
    """How much silence of the CLI is normal: a `Watchdog`, or `None` for no limit.

    A CLI that is silent for longer is interrupted; if that does not help, it is killed and
    restarted.
    """
    budget: Budget | None = None
    """A `Budget` of money or tokens that several sessions use together."""
    limits: Limits = Limits()  # noqa: RUF009 - it is frozen
    """Limits on cost, tokens, calls and time, for each turn and for the session: a `Limits`."""
    revive: Revival | bool = True
    """Restart the CLI if it is lost, and resume the conversation.

    `True`, a `Revival` with the number of attempts, or `False`: the session then ends with its CLI.
    """
    park: Park = Park()  # noqa: RUF009 - it is frozen
    """How a session with an inbox in a store leaves and continues later: a `Park`.

    `Park(after=60.0)` ends the CLI after a minute in which only asks are waited for. The turn
    settles as `parked`.
    """
    journal: str | Path | Sink | None = None
    """The path of a file, or a `Sink`, that gets every journal entry as it is recorded.

    Entries are appended to a file that exists. A `Sink` that you pass is yours to close.
    """
    sinks: tuple[Sink, ...] = ()
    """More sinks that get every journal entry, beside `journal`; they are yours to close.

    If one of them raises, it gets no more entries, and the journal records a fault. The session and
    the other sinks are not affected.
    """
    journal_memory: int = 64 * 1024 * 1024
    """How many bytes of the journal are kept in memory; older entries are dropped.

    The result of a turn keeps as much of its messages, but 64 MiB at least; `TurnResult.left_out`
    counts the others.
    """
    flight_recorder: str | Path | None = None
    """A directory that gets one file after every error of a session.

    The file holds the last journal entries, the states and the end of stderr, without known
    secrets.
    """
    max_buffer_size: int = 256 * 1024 * 1024
    """The longest line, in bytes, that is read from the CLI.

    A longer line is dropped and recorded; the session continues.
    """

    @property
    def is_checked(self) -> bool:
        """Whether steersman checks the values; those of `steersman.compat` the CLI alone checks."""
        return True

    @property
    def goes_on(self) -> bool:
        """Whether these options resume a conversation that exists already."""
        return self.resume is not None or self.continue_conversation

    @property
    def sources(self) -> tuple[SettingSource, ...]:
        """The sources that the CLI reads: `setting_sources`, or those of the wanted `skills`."""
        if self.setting_sources is not None:
            return self.setting_sources
        # A skill of a plugin is `plugin:skill`.
        wanted = self.skills == "all" or any(":" not in each for each in self.skills or ())
        return ("user", "project") if wanted else ()

    if TYPE_CHECKING:

        def __init__(self, **words: Unpack[OptionKwargs]) -> None:
            """Make the options; the dataclass writes this method."""

    def replace(self, **words: Unpack[OptionKwargs]) -> Options:
        """Return these options with some of them changed."""
        return options_from(self, words)

    __replace__ = replace
    """For `copy.replace` of Python 3.13."""

    def __post_init__(self) -> None:
        # Most fields of most sessions hold their default, which needs no check.
        given = [name for name in _DEFAULTS if getattr(self, name) is not _DEFAULTS[name]]
        for name in given:
            normalize = TABLE[name].normalize
            if normalize is not None:
                object.__setattr__(self, name, normalize(name, getattr(self, name)))
        if not self.is_checked:
            return
        for name in given:
            TABLE[name].check(name, getattr(self, name))
        if "extra_args" in given:
            adopt_flags(self)
        check_conflicts(self)


def options_from(base: Options | None, overrides: Mapping[str, object]) -> Options:
    """Return `base` with some fields replaced.

    Raises `UsageError` for a name that is not an option, and for a value that is not allowed.
    """
    checks.optional(_is_options)("options", base)
    for name in overrides:
        if name not in _DEFAULTS:
            raise UsageError(
                name,
                Described("an unknown option"),
                "the name of an option",
                what="there is no such option",
                hint=checks.did_you_mean(name, tuple(_DEFAULTS)),
            )
    if base is None:
        return Options(**cast("OptionKwargs", overrides))
    # The values are checked when they are stored, not here.
    return dataclasses.replace(base, **cast("Any", overrides)) if overrides else base


_is_options = checks.instance_of(Options, "an Options value")
_DEFAULTS: Mapping[str, object] = {each.name: each.default for each in dataclasses.fields(Options)}
