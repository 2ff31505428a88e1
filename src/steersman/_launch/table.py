"""How each option is added to a launch: one row per option, read top to bottom.

`options/table.py` holds for each option how it travels. The functions here add those options that
travel in a way of their own (`Custom`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from steersman import _json
from steersman._json import JsonDict, JsonObject
from steersman._launch.builder import (
    LONGEST_LIST,
    LaunchBuilder,
    Put,
    env_variable,
    flag,
    flag_with_value,
    host_only,
    initialize_field,
    merged,
    size_of,
)
from steersman._tool_names import BASH, COMMAND_FIELDS
from steersman.errors import Described, UsageError
from steersman.hooks.matchers import is_list
from steersman.options import Options, checks
from steersman.options.checks import PermissionMode
from steersman.options.own_flags import REPLAYS
from steersman.options.table import (
    TABLE,
    EnvVariable,
    Flag,
    FlagWithValue,
    HostOnly,
    InitializeField,
    Travels,
)
from steersman.permissions import ASK_USER_QUESTION
from steersman.ports import FileArgument

HEAD_START = 5.0
"""Seconds by which our own time limit for a hook ends before the CLI's."""

MIRROR = "--session-mirror"
"""The flag with which the CLI reports each entry that it writes to a session file."""

_QUESTION_SWITCHES = {
    "extendedQuestions": "CLAUDE_CODE_QUESTION_EXTENDED",
    "optionalDescriptions": "CLAUDE_CODE_QUESTION_OPTIONAL_DESCRIPTIONS",
}
_PROMPT_FIELDS = {
    "snapshot": "system_prompt_snapshot",
    "exclude_dynamic_sections": "exclude_dynamic_sections",
}


@dataclass(frozen=True, slots=True)
class OptionRow:
    """How one option reaches the CLI."""

    carrier: str
    """A description for docs/options.md."""
    put: Put


def hook_id(position: int) -> str:
    """Return the id under which the CLI calls the hook at `position` of the registry."""
    return f"hook_{position}"


# Where the CLI runs


def _settings(builder: LaunchBuilder) -> None:
    settings = builder.options.settings
    if _json.is_mapping(settings):
        builder.settings |= checks.plain("settings", settings)
    elif isinstance(settings, str) and settings.lstrip().startswith("{"):
        builder.settings |= _settings_text(settings)
    elif settings is not None:
        builder.settings_path = str(settings)


def _settings_text(text: str) -> JsonDict:
    try:
        found = _json.loads(text.encode("utf-8", "surrogatepass"))
    except ValueError as error:
        raise UsageError(
            "settings", Described("a string that is not JSON"), f"a JSON object or a path ({error})"
        ) from None
    if not _json.is_object(found):
        raise UsageError(
            "settings", Described("JSON that is not an object"), "a JSON object or a path"
        )
    return found


def _include_partial_messages(builder: LaunchBuilder) -> None:
    # Also for None: `turn.text()` reads partial messages.
    if builder.options.include_partial_messages is not False:
        builder.argv.append("--include-partial-messages")


def _managed_settings(builder: LaunchBuilder) -> None:
    settings = builder.options.managed_settings
    if settings is not None:
        builder.manage(checks.plain("managed_settings", settings))


def _setting_sources(builder: LaunchBuilder) -> None:
    builder.argv.append(f"--setting-sources={','.join(builder.options.sources)}")


def _add_dirs(builder: LaunchBuilder) -> None:
    paths = [str(each) for each in builder.options.add_dirs]
    flags = [f"--add-dir={each}" for each in paths]
    if size_of(flags) <= LONGEST_LIST:
        builder.argv += flags
    else:
        builder.add_rules("additionalDirectories", paths)


def _extra_args(builder: LaunchBuilder) -> None:
    extra = builder.options.extra_args
    # Replays are always on; the flag in `extra_args` decides whether they are messages.
    builder.argv += [
        f"--{name}" if value is None else f"--{name}={value}"
        for name, value in extra.items()
        if name != REPLAYS
    ]


# The model


def _fallback_model(builder: LaunchBuilder) -> None:
    models = builder.options.fallback_model
    if models is not None:
        names = models if isinstance(models, str) else ",".join(models)
        builder.argv.append(f"--fallback-model={names}")


def _system_prompt(builder: LaunchBuilder) -> None:
    prompt = builder.options.system_prompt
    if prompt is None:
        return
    if isinstance(prompt, str | tuple):
        _set_prompt(builder, prompt)
    elif prompt.get("type") == "file":
        builder.argv.append(f"--system-prompt-file={prompt['path']}")
    else:
        _add_prompt_form(builder, prompt)


def _add_prompt_form(builder: LaunchBuilder, form: JsonObject) -> None:
    if "prompt" in form:
        _set_prompt(builder, form["prompt"])
    _append_prompt(builder, form.get("append"))
    for name, field in _PROMPT_FIELDS.items():
        if name in form:
            builder.initialize[field] = form[name]


def _set_prompt(builder: LaunchBuilder, prompt: str | Sequence[str]) -> None:
    builder.initialize["system_prompt"] = [prompt] if isinstance(prompt, str) else list(prompt)


def _append_prompt(builder: LaunchBuilder, text: str | None) -> None:
    before = builder.initialize.get("append_system_prompt")
    if text:
        builder.initialize["append_system_prompt"] = f"{before}\n\n{text}" if before else text


def _append_system_prompt(builder: LaunchBuilder) -> None:
    _append_prompt(builder, builder.options.append_system_prompt)


def _thinking(builder: LaunchBuilder) -> None:
    thinking = builder.options.thinking
    if thinking is None:
        return
    if thinking["type"] == "enabled":
        builder.argv.append(f"--max-thinking-tokens={thinking['budget_tokens']}")
    else:
        builder.argv.append(f"--thinking={thinking['type']}")
    if "display" in thinking:
        builder.argv.append(f"--thinking-display={thinking['display']}")


def _max_thinking_tokens(builder: LaunchBuilder) -> None:
    tokens = builder.options.max_thinking_tokens
    if tokens is not None:
        builder.argv.append(f"--max-thinking-tokens={tokens}" if tokens else "--thinking=disabled")


def _betas(builder: LaunchBuilder) -> None:
    if builder.options.betas:
        builder.argv.append(f"--betas={','.join(builder.options.betas)}")


def _task_budget(builder: LaunchBuilder) -> None:
    budget = builder.options.task_budget
    if budget is not None:
        builder.argv.append(f"--task-budget={budget['total']}")


def _output_format(builder: LaunchBuilder) -> None:
    wanted = builder.options.output_format
    if wanted is not None:
        builder.initialize["json_schema"] = checks.plain("output_format", wanted["schema"])


# Tools, and who decides about them


def _skills(builder: LaunchBuilder) -> None:
    skills = builder.options.skills
    if skills == "all":
        builder.approved = (*builder.approved, "Skill")
    elif skills is not None:
        builder.approved = (*builder.approved, *(f"Skill({name})" for name in skills))
        builder.initialize["skills"] = list(skills)


def _permission_mode(builder: LaunchBuilder) -> None:
    """Give the CLI a mode in any case: some releases start in `auto` mode without one."""
    builder.mode = builder.options.permission_mode or _mode_of_settings(builder) or "default"
    builder.argv.append(f"--permission-mode={builder.mode}")


def _mode_of_settings(builder: LaunchBuilder) -> str | None:
    """Return the `defaultMode` of the settings that the caller passes, which the flag overrides."""
    settings = builder.settings
    if builder.settings_path is not None and builder.read_settings is not None:
        try:
            settings = builder.read_settings(builder.settings_path)
        except UsageError:
            # The CLI reports what is wrong with a file that it cannot read either.
            return None
    permissions = settings.get("permissions")
    mode = permissions.get("defaultMode") if _json.is_mapping(permissions) else None
    if mode in (None, "manual"):
        # Another name of `default`, which older CLIs refuse.
        return None
    if mode not in get_args(PermissionMode):
        allowed = ", ".join(get_args(PermissionMode))
        raise UsageError("settings['permissions']['defaultMode']", mode, f"one of {allowed}")
    return str(mode)


def _policy(builder: LaunchBuilder) -> None:
    """Give the CLI those rules of the policy that it can express, beside the policy's hook.

    The CLI applies them after following symbolic links and with its own parser of shell commands.
    """
    if not _can_answer_questions(builder.options):
        builder.forbidden = (*builder.forbidden, ASK_USER_QUESTION)
    policy = builder.options.policy
    if policy is None:
        return
    from steersman.permissions.policy import settings_rules  # noqa: PLC0415 - most have none

    denials, approvals = settings_rules(policy)
    builder.approved = (*builder.approved, *approvals)
    builder.forbidden = (*builder.forbidden, *policy.forbid, *denials)
    if policy.available is not None:
        builder.argv.append(f"--tools={','.join(policy.available)}")


def _can_answer_questions(options: Options) -> bool:
    """Whether `AskUserQuestion` would reach anything that can answer it."""
    return (
        options.on_question is not None
        or options.inbox is not None
        or options.can_use_tool is not None
        or options.permission_prompt_tool_name is not None
    )


def _tools(builder: LaunchBuilder) -> None:
    tools = builder.options.tools
    if isinstance(tools, tuple):
        builder.argv.append(f"--tools={','.join(tools)}")
    elif tools is not None:
        builder.argv.append("--tools=default")


def _allowed_tools(builder: LaunchBuilder) -> None:
    _add_rules(builder, "--allowedTools", "allow", builder.options.allowed_tools, builder.approved)


def _disallowed_tools(builder: LaunchBuilder) -> None:
    """Deny tools. Without `Bash` the other tools that run commands do not exist either."""
    denied = builder.options.disallowed_tools
    forbidden = builder.forbidden
    if BASH in (*denied, *forbidden):
        named = {*builder.options.allowed_tools, *_tools_given(builder.options)}
        forbidden = (*forbidden, *(each for each in COMMAND_FIELDS if each not in named))
    _add_rules(builder, "--disallowedTools", "deny", denied, forbidden)


def _tools_given(options: Options) -> tuple[str, ...]:
    return options.tools if isinstance(options.tools, tuple) else ()


def _add_rules(
    builder: LaunchBuilder, name: str, kind: str, rules: tuple[str, ...], more: tuple[str, ...]
) -> None:
    """Add rules on argv where the CLI reads them correctly, and otherwise in the settings."""
    wanted = (*rules, *(each for each in dict.fromkeys(more) if each not in rules))
    if size_of(wanted) > LONGEST_LIST:
        builder.add_rules(kind, wanted)
        return
    # On argv the CLI does not count brackets: it splits a rule at a comma after the first `)`.
    nested = [rule for rule in wanted if rule.count("(") > 1]
    flat = [rule for rule in wanted if rule not in nested]
    if flat:
        builder.argv.append(f"{name}={','.join(flat)}")
    if nested:
        builder.add_rules(kind, nested)


def _tool_config(builder: LaunchBuilder) -> None:
    question: JsonObject = (builder.options.tool_config or {}).get("askUserQuestion", {})
    if "previewFormat" in question:
        builder.env["CLAUDE_CODE_QUESTION_PREVIEW_FORMAT"] = question["previewFormat"]
    for key, name in _QUESTION_SWITCHES.items():
        if question.get(key):
            builder.env[name] = "1"


def _mcp_servers(builder: LaunchBuilder) -> None:
    """Add the servers that the CLI connects to itself; their headers and variables are private."""
    servers = builder.options.mcp_servers
    if not _json.is_mapping(servers):
        builder.argv.append(f"--mcp-config={servers}")
        return
    external = {
        key: checks.plain(f"mcp_servers[{key!r}]", config)
        for key, config in servers.items()
        if _json.is_mapping(config)
    }
    if external:
        builder.files["mcp.json"] = _json.dumps({"mcpServers": external})
        builder.argv.append(FileArgument("--mcp-config=", "mcp.json"))


def _hooks(builder: LaunchBuilder) -> None:
    config: dict[str, list[JsonDict]] = {}
    for position, hook in enumerate(builder.options.hooks):
        matcher: JsonDict = {"hookCallbackIds": [hook_id(position)]}
        if hook.matcher is not None and (hook.is_verbatim or is_list(hook.matcher)):
            # The CLI would read an expression as JavaScript does; the session compares it instead.
            matcher["matcher"] = hook.matcher
        if hook.timeout is not None:
            # Our own limit ends first and blocks the action. At the CLI's limit it would happen.
            matcher["timeout"] = hook.timeout + HEAD_START
        if hook.is_guard:
            matcher["onFailure"] = "block"
        config.setdefault(hook.event_name, []).append(matcher)
    if config:
        builder.initialize["hooks"] = config


def _agents(builder: LaunchBuilder) -> None:
    agents = builder.options.agents
    if not agents:
        return
    from steersman.options.agents import agent_of  # noqa: PLC0415 - most programs have none

    places = {name: f"agents[{name!r}]" for name in agents}
    builder.initialize["agents"] = {
        name: agent_of(place, agents[name]).written(place) for name, place in places.items()
    }


def _plugins(builder: LaunchBuilder) -> None:
    plugins = builder.options.plugins
    if not plugins:
        return
    from steersman.options.plugins import plugin_of  # noqa: PLC0415 - most programs have none

    known = [plugin_of(f"plugins[{n}]", given) for n, given in enumerate(plugins)]
    flags = [
        f"--plugin-dir{'-no-mcp' if each.skip_mcp_discovery else ''}={each.path}" for each in known
    ]
    if builder.options.plugin_delivery == "argv" and size_of(flags) <= LONGEST_LIST:
        builder.argv += flags
    else:
        builder.await_initialize()
        builder.initialize["plugins"] = [
            {"type": "local", "path": str(each.path)}
            | ({"skipMcpDiscovery": True} if each.skip_mcp_discovery else {})
            for each in known
        ]


def _sandbox(builder: LaunchBuilder) -> None:
    """Merge the option over the sandbox of the settings.

    An enabled sandbox that is not available makes the start fail, unless the caller decides
    otherwise: without that, the CLI would run commands unprotected.
    """
    sandbox = builder.options.sandbox
    if sandbox is None:
        return
    wanted: JsonDict = checks.plain("sandbox", sandbox)
    if wanted.get("enabled"):
        wanted.setdefault("failIfUnavailable", True)
    builder.settings["sandbox"] = merged(builder.settings.get("sandbox"), wanted)


# What the CLI reports


def _debug(builder: LaunchBuilder) -> None:
    debug = builder.options.debug
    # `--debug-file` switches the debug log on by itself.
    if debug and builder.options.debug_file is None:
        builder.argv.append("--debug" if debug is True else f"--debug={debug}")


def _session_store(builder: LaunchBuilder) -> None:
    if builder.options.session_store is not None:
        builder.argv.append(MIRROR)


CUSTOM: Mapping[str, Put] = {
    "add_dirs": _add_dirs,
    "agents": _agents,
    "allowed_tools": _allowed_tools,
    "append_system_prompt": _append_system_prompt,
    "betas": _betas,
    "debug": _debug,
    "disallowed_tools": _disallowed_tools,
    "extra_args": _extra_args,
    "fallback_model": _fallback_model,
    "hooks": _hooks,
    "include_partial_messages": _include_partial_messages,
    "managed_settings": _managed_settings,
    "max_thinking_tokens": _max_thinking_tokens,
    "mcp_servers": _mcp_servers,
    "output_format": _output_format,
    "permission_mode": _permission_mode,
    "plugins": _plugins,
    "policy": _policy,
    "sandbox": _sandbox,
    "session_store": _session_store,
    "setting_sources": _setting_sources,
    "settings": _settings,
    "skills": _skills,
    "system_prompt": _system_prompt,
    "task_budget": _task_budget,
    "thinking": _thinking,
    "tool_config": _tool_config,
    "tools": _tools,
}
"""The functions of the options that `options/table.py` calls `Custom`."""


def _put(option: str, travels: Travels) -> Put:
    match travels:
        case Flag():
            return flag(option, travels.name, when=travels.when)
        case FlagWithValue():
            return flag_with_value(option, travels.name)
        case InitializeField():
            return initialize_field(option, travels.name)
        case EnvVariable():
            return env_variable(option, travels.name)
        case HostOnly():
            return host_only
        case _:
            return CUSTOM[option]


ROWS: Mapping[str, OptionRow] = {
    option: OptionRow(spec.travels.carrier, _put(option, spec.travels))
    for option, spec in TABLE.items()
}
