"""`OptionKwargs`: every option by keyword, with what may be given for it.

The signatures of the library name it, so that editors and type checkers know the options. What is
given is not always what is kept: `Options` keeps a list as a tuple. Nothing imports this module at
run time. `tests/house/test_keywords.py` compares it with `Options`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypedDict

from steersman._json import JsonObject
from steersman.hooks.registry import HookForms, Hooks
from steersman.options.agents import AgentDefinition
from steersman.options.checks import Effort, PermissionMode, SettingSource
from steersman.options.limits import Budget, Limits, Park, Revival, StartupLimits, Watchdog
from steersman.options.mappings import (
    CustomPrompt,
    HttpServer,
    OutputFormat,
    PresetPrompt,
    PromptFile,
    SandboxSettings,
    SseServer,
    StdioServer,
    TaskBudget,
    ThinkingConfig,
    ToolConfig,
    ToolsPreset,
)
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

__all__ = ["OptionKwargs", "ServerForm"]

ServerForm: TypeAlias = ToolServer | McpServer | StdioServer | HttpServer | SseServer | JsonObject
"""One value of `mcp_servers`."""


class OptionKwargs(TypedDict, total=False):
    """Every option, by keyword; `Options` states what each one does.

    For functions of your own: `def make(**options: Unpack[OptionKwargs]) -> Agent`.
    """

    # The model
    model: str | None
    fallback_model: str | Sequence[str] | None
    system_prompt: (
        str | Sequence[str] | PresetPrompt | CustomPrompt | PromptFile | JsonObject | None
    )
    append_system_prompt: str | None
    exclude_dynamic_sections: bool
    thinking: ThinkingConfig | JsonObject | None
    max_thinking_tokens: int | None
    effort: Effort | None
    betas: Sequence[str]
    max_turns: int | None
    max_budget_usd: float | None
    task_budget: TaskBudget | Mapping[str, int] | None
    output_format: OutputFormat | JsonObject | None

    # Tools and permissions
    tools: Sequence[str] | ToolsPreset | JsonObject | None
    allowed_tools: Sequence[str]
    disallowed_tools: Sequence[str]
    tool_aliases: Mapping[str, str]
    tool_config: ToolConfig | JsonObject | None
    functions: Sequence[Callable[..., object]]
    mcp_servers: Mapping[str, ServerForm] | str | Path
    require: bool | Sequence[str]
    strict_mcp_config: bool
    permission_mode: PermissionMode | None
    allow_dangerously_skip_permissions: bool
    permission_prompt_tool_name: str | None
    permission_prompts: Literal["host", "none"] | None
    deps: Any
    policy: Policy | None
    can_use_tool: Approver | None
    ask_every_call: bool
    on_question: QuestionHandler | None
    inbox: Asks | None
    plan_mode_instructions: str | None
    hooks: Hooks | HookForms
    on_elicitation: ElicitationHandler | None
    on_user_dialog: DialogHandler | None
    supported_dialog_kinds: Sequence[str]
    agents: Mapping[str, AgentDefinition | JsonObject]
    agent: str | None
    skills: Sequence[str] | Literal["all"] | None
    plugins: Sequence[PluginLike]
    plugin_delivery: Literal["argv", "initialize"]
    sandbox: SandboxSettings | JsonObject | None

    # Where the CLI runs
    cwd: str | Path | None
    add_dirs: Sequence[str | Path]
    project_config_root: str | Path | None
    cli_path: str | Path | None
    user: str | None
    env: Mapping[str, str]
    inherit_env: bool | Sequence[str] | None
    client_app: str | None
    setting_sources: Sequence[SettingSource] | None
    memory: bool
    skill_commands: bool
    settings: str | Path | JsonObject | None
    managed_settings: JsonObject | None
    extra_args: Mapping[str, str | None]

    # Which conversation
    session_id: str | None
    resume: str | None
    continue_conversation: bool
    fork_session: bool
    resume_session_at: str | None
    resume_drops_turn: str | None
    persist_session: bool
    wait: float
    title: str | None
    enable_file_checkpointing: bool
    session_store: SessionStore | None
    session_store_flush: Literal["batched", "eager"]
    load_timeout: float

    # What the CLI reports
    include_partial_messages: bool | None
    include_hook_events: bool
    forward_subagent_text: bool
    agent_progress_summaries: bool
    prompt_suggestions: bool
    per_task_stop_affordance: bool
    verbatim_prompts: bool
    debug: bool | str
    debug_file: str | Path | None

    # What steersman does
    stderr: Callable[[str], object] | None
    allow_old_cli: bool
    allow_unsafe_cli: bool
    startup: StartupLimits
    request_timeout: float
    close_grace: float
    watchdog: Watchdog | None
    budget: Budget | None
    limits: Limits
    revive: Revival | bool
    park: Park
    journal: str | Path | Sink | None
    sinks: Sequence[Sink]
    journal_memory: int
    flight_recorder: str | Path | None
    max_buffer_size: int
