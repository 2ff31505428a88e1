"""The fields of `Options`.

To add an option, add a field here, with a docstring that is also its line in docs/options.md, and a
row to `table.py`, which holds its check and says how it reaches the CLI.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from steersman._json import JsonObject
from steersman.errors import UsageError
from steersman.options import checks
from steersman.options.conflicts import check_conflicts
from steersman.options.forms import empty_hooks
from steersman.options.limits import Limits, Revival, StartupLimits, Watchdog
from steersman.options.table import TABLE

if TYPE_CHECKING:
    from pathlib import Path

    from steersman.hooks.registry import Hooks
    from steersman.options.agents import AgentDefinition
    from steersman.options.plugins import PluginLike
    from steersman.options.servers import McpServer
    from steersman.permissions.policy import Policy
    from steersman.ports import (
        Approver,
        Asks,
        DialogHandler,
        ElicitationHandler,
        QuestionHandler,
        Sink,
        ToolServer,
    )

__all__ = ["Effort", "OptionValue", "Options", "PermissionMode", "SettingSource", "options_from"]

PermissionMode = Literal["default", "acceptEdits", "auto", "bypassPermissions", "dontAsk", "plan"]
SettingSource = Literal["user", "project", "local"]
Effort = Literal["low", "medium", "high", "xhigh", "max"]
OptionValue: TypeAlias = Any
"""The value of any option, passed by keyword; `Options` checks it at run time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Frozen; `dataclasses.replace` makes another. Values are checked before anything runs."""

    # The model
    model: str | None = None
    """The main model, by alias or full name; `None` is the CLI's default."""
    fallback_model: str | tuple[str, ...] | None = None
    """Models to try, in order, when the main one is overloaded or gone."""
    system_prompt: str | tuple[str, ...] | JsonObject | None = None
    """`None` is the CLI's own prompt, `""` is none; or the official SDKs' forms.

    These are `{"type": "preset", "preset": "claude_code"}` with `append`,
    `exclude_dynamic_sections` and `snapshot`, `{"type": "custom", "prompt": ...}` with
    `snapshot`, `{"type": "file", "path": ...}`, and a list of texts.
    """
    append_system_prompt: str | None = None
    """Added behind the CLI's own prompt."""
    exclude_dynamic_sections: bool = False
    """Put directory, date and git status into the first message instead of the system prompt.

    The prompt is then the same for everyone, and cached for everyone.
    """
    thinking: JsonObject | None = None
    """`{"type": "adaptive"}`, `{"type": "enabled", "budget_tokens": N}` or `{"type": "disabled"}`.

    The first two may have a `display`: `summarized`, `omitted` or `highlights`.
    """
    max_thinking_tokens: int | None = None
    """The older spelling of `thinking`: a budget, or 0 for none."""
    effort: Effort | None = None
    """How hard the model tries."""
    betas: tuple[str, ...] = ()
    """Names of API betas, for those who pay by key."""
    max_turns: int | None = None
    """End a turn after so many round trips to the model."""
    max_budget_usd: float | None = None
    """End a turn when it has cost this much."""
    task_budget: Mapping[str, int] | None = None
    """`{"total": N}`: the tokens that the model is told to make do with."""
    output_format: JsonObject | None = None
    """`{"type": "json_schema", "schema": {...}}`; `run(output=...)` sets it for you."""

    # Tools and who decides about them
    tools: tuple[str, ...] | JsonObject | None = None
    """The built-in tools that exist at all; `None` is all of them, `()` is none.

    `{"type": "preset", "preset": "claude_code"}` is the CLI's usual set.
    """
    allowed_tools: tuple[str, ...] = ()
    """Rules for what runs without asking; to take tools away, see `tools` and the next."""
    disallowed_tools: tuple[str, ...] = ()
    """Rules for what never runs; a bare name takes the tool away."""
    tool_aliases: Mapping[str, str] = field(default_factory=dict[str, str])
    """Which tool runs when the model calls one by this name: `{"Bash": "mcp__box__run"}`."""
    tool_config: JsonObject | None = None
    """`{"askUserQuestion": {"previewFormat": "markdown"}}`, or `"html"`."""
    functions: tuple[Callable[..., object], ...] = ()
    """Python functions as tools, approved by being given: `mcp__functions__<name>`."""
    mcp_servers: Mapping[str, ToolServer | McpServer | JsonObject] | str | Path = field(
        default_factory=dict[str, JsonObject], repr=False
    )
    """Tool servers by name: here, elsewhere, or in a configuration file given by its path."""
    require: bool | tuple[str, ...] = ()
    """Names of tool servers without which there is no session; `True` is all of them.

    One that is not connected at the start raises `McpNotReady`.
    """
    strict_mcp_config: bool = True
    """Only the servers named here, none from configuration files."""
    permission_mode: PermissionMode | None = None
    """How much is asked at the start; `session.set_permission_mode` changes it."""
    allow_dangerously_skip_permissions: bool = False
    """Let the session be switched to `bypassPermissions` later."""
    permission_prompt_tool_name: str | None = None
    """The MCP tool that decides in place of `can_use_tool`."""
    permission_prompts: Literal["host", "none"] | None = None
    """`none`: whatever would be asked is denied at once."""
    deps: Any = None
    """Whatever your tools need of your program; they find it as `ToolContext.deps`."""
    policy: Policy | None = None
    """Ordered rules that decide about tool calls before anyone is asked."""
    can_use_tool: Approver | None = None
    """Decides what no rule decides; without one, and without an inbox, that is denied."""
    ask_every_call: bool = False
    """Ask `can_use_tool` about every call that no rule allows, also where the CLI would not ask."""
    on_question: QuestionHandler | None = None
    """Answers what the model asks the person; without anyone who can, it has no tool to ask."""
    inbox: Asks | None = None
    """Where questions wait that no callback answers: an `Inbox`, perhaps of many sessions."""
    plan_mode_instructions: str | None = None
    """What to do in plan mode, in place of the CLI's own instructions."""
    hooks: Hooks = field(default_factory=empty_hooks)
    """Callbacks at the CLI's events: a `Hooks`, or a mapping as in the official SDKs."""
    on_elicitation: ElicitationHandler | None = None
    """Answers questions of tool servers to the person; without one they are declined."""
    on_user_dialog: DialogHandler | None = None
    """Shows dialogs of the kinds in `supported_dialog_kinds`."""
    supported_dialog_kinds: tuple[str, ...] = ()
    """Dialogs that `on_user_dialog` can show; the CLI sends no others."""
    agents: Mapping[str, AgentDefinition | JsonObject] = field(
        default_factory=dict[str, JsonObject]
    )
    """Agents by name that the session may hand work to."""
    agent: str | None = None
    """The agent that leads the conversation itself."""
    skills: tuple[str, ...] | Literal["all"] | None = None
    """Skills that the model may use, approved by being named; `None` leaves it to the CLI.

    Those of the user and the project are found only with their `setting_sources`.
    """
    plugins: tuple[PluginLike, ...] = ()
    """Plugin directories: paths, `Plugin` values, or the official SDKs' mappings."""
    plugin_delivery: Literal["argv", "initialize"] = "argv"
    """`initialize` keeps the list of plugins off the command line."""
    sandbox: JsonObject | None = None
    """The CLI's sandbox for commands; where it cannot be had, the start fails by default."""

    # Where it runs
    cwd: str | Path | None = None
    """The working directory; `None` is that of this process."""
    add_dirs: tuple[str | Path, ...] = ()
    """More directories that the tools may touch."""
    project_config_root: str | Path | None = None
    """Where project settings, skills and servers are read, if not in `cwd`, such as a worktree."""
    cli_path: str | Path | None = None
    """The CLI to run; `None` looks in the usual places."""
    user: str | None = None
    """The OS user to run it as."""
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Variables for the CLI, on top of what it inherits."""
    inherit_env: bool | tuple[str, ...] | None = None
    """`None` is a short list of harmless names and logins; names or patterns add to it.

    `True` is everything, `False` nothing.
    """
    client_app: str | None = None
    """What your program is called in the CLI's requests to the API, such as `my-app/1.0`."""
    setting_sources: tuple[SettingSource, ...] = ()
    """Which settings files, memories and skills are read: of the user, project, local."""
    settings: str | Path | JsonObject | None = field(default=None, repr=False)
    """Settings for this session, above all files but managed ones."""
    managed_settings: JsonObject | None = field(default=None, repr=False)
    """Settings as an administrator gives them: they only restrict, and nothing overrides them."""
    extra_args: Mapping[str, str | None] = field(default_factory=dict[str, str | None])
    """Flags that have no option here. They are public: anyone on the machine can read them."""

    # Which conversation
    session_id: str | None = None
    """The id of a new or forked conversation; `None` makes one."""
    resume: str | None = None
    """The id of the conversation to go on with."""
    continue_conversation: bool = False
    """Go on with the latest conversation of this directory."""
    fork_session: bool = False
    """Go on under another id, and leave the old one as it is."""
    resume_session_at: str | None = None
    """Forget what came after the message with this uuid."""
    resume_drops_turn: str | None = None
    """Refuse to forget anything but the turn of this prompt uuid."""
    persist_session: bool = True
    """Whether the CLI writes the conversation to disk."""
    title: str | None = None
    """What a new conversation is called."""
    enable_file_checkpointing: bool = False
    """Keep copies of files, so that `session.rewind_files` can bring them back."""

    # What it tells
    include_partial_messages: bool = False
    """Give `StreamEvent` messages too; `turn.text()` works without."""
    include_hook_events: bool = False
    """Tell of hooks that begin, go on and end, those of settings files too."""
    forward_subagent_text: bool = False
    """Give what agents say and think, not only what they do."""
    agent_progress_summaries: bool = False
    """Have the progress of agents summed up by a model."""
    prompt_suggestions: bool = False
    """Give a guess of the next prompt after each turn."""
    per_task_stop_affordance: bool = False
    """Promise that each background task can be stopped alone: an interrupt then spares them."""
    verbatim_prompts: bool = True
    """Take prompts word by word; with `False` the CLI runs `/commands` and reads `@files` in them.

    Word by word, it also leaves out what it attaches to a prompt, such as the list of skills.
    """
    debug: bool | str = False
    """Write the CLI's debug log, all of it or these categories: `hooks,mcp`."""
    debug_file: str | Path | None = None
    """Where to write it."""

    # What we do with it on our side
    stderr: Callable[[str], None] | None = None
    """Called with each chunk of the CLI's stderr, as it comes."""
    startup: StartupLimits = field(default_factory=StartupLimits)
    """How long each phase of the start may take."""
    request_timeout: float = 60.0
    """Seconds that a control request may take."""
    close_grace: float = 5.0
    """Seconds between the end of input, SIGTERM and SIGKILL when a session closes."""
    watchdog: Watchdog | None = field(default_factory=Watchdog)
    """How much silence is borne before the CLI is interrupted, killed and brought back."""
    limits: Limits = field(default_factory=Limits)
    """How much a turn, and the whole session, may use."""
    revive: Revival | bool = True
    """Bring a lost CLI back, and let it go on; `False` ends the session with it."""
    journal: str | Path | Sink | None = None
    """The path of a file, or a `Sink`, that gets every journal entry as it is recorded.

    A file that exists is appended to. A `Sink` that you pass is yours to close.
    """
    sinks: tuple[Sink, ...] = ()
    """More sinks that get every journal entry, beside `journal`.

    If one of them fails, it gets no more entries, and the journal records a fault; the session and
    the other sinks are not affected.
    """
    journal_memory: int = 64 * 1024 * 1024
    """Bytes of the journal that are kept in memory."""
    flight_recorder: str | Path | None = None
    """A directory that gets a bundle of the last frames, states and stderr on every error."""
    max_buffer_size: int = 256 * 1024 * 1024
    """The longest line we read from the CLI; a longer one is dropped, and nothing else."""

    @property
    def goes_on(self) -> bool:
        """Whether a conversation is taken up that was there before."""
        return self.resume is not None or self.continue_conversation

    def __post_init__(self) -> None:
        # Most fields of most sessions hold their default, which needs no check.
        given = [name for name in _DEFAULTS if getattr(self, name) is not _DEFAULTS[name]]
        for name in given:
            normalize = TABLE[name].normalize
            if normalize is not None:
                object.__setattr__(self, name, normalize(name, getattr(self, name)))
        for name in given:
            TABLE[name].check(name, getattr(self, name))
        check_conflicts(self)


def options_from(base: Options | None, overrides: Mapping[str, OptionValue]) -> Options:
    """Return `base` with some fields replaced.

    Raises `UsageError` for a name that is not an option, and for a value that is not allowed.
    """
    checks.optional(_is_options)("options", base)
    for name in overrides:
        if name not in _DEFAULTS:
            raise UsageError(
                name,
                "an unknown option",
                "the name of an option",
                hint=checks.did_you_mean(name, tuple(_DEFAULTS)),
            )
    if base is None:
        return Options(**overrides)
    return dataclasses.replace(base, **overrides) if overrides else base


_is_options = checks.instance_of(Options, "an Options value")
_DEFAULTS: Mapping[str, object] = {each.name: each.default for each in dataclasses.fields(Options)}
