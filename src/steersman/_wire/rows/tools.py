"""Which tools there are, who decides about them, and whom work is handed to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from steersman import _json
from steersman._wire.draft import (
    LONGEST_LIST,
    Draft,
    Put,
    Row,
    greeting,
    ours,
    size_of,
    switch,
    value,
)
from steersman.hooks.registry import Hooks
from steersman.options import Options, checks
from steersman.permissions import ASK_USER_QUESTION
from steersman.ports import FileArgument

if TYPE_CHECKING:
    from steersman.permissions.policy import Policy

__all__ = ["TOOLS", "hook_id"]

HEAD_START = 5.0
"""Seconds by which a hook's own limit ends before the CLI's."""


def hook_id(position: int) -> str:
    """The name under which the CLI calls the hook at `position` of the registry."""
    return f"hook_{position}"


def _add_policy(draft: Draft, policy: Policy | None) -> None:
    """What the CLI can hold of a policy, it holds too: it follows links and parses commands."""
    if not _can_answer_questions(draft.options):
        draft.forbidden = (*draft.forbidden, ASK_USER_QUESTION)
    if policy is None:
        return
    denials, approvals = policy.settings_rules()
    draft.approved = (*draft.approved, *policy.auto_approve, *approvals)
    draft.forbidden = (*draft.forbidden, *policy.forbid, *denials)
    if policy.available is not None:
        draft.argv.append(f"--tools={','.join(policy.available)}")


def _can_answer_questions(options: Options) -> bool:
    return (
        options.on_question is not None
        or options.inbox is not None
        or options.can_use_tool is not None
        or options.permission_prompt_tool_name is not None
    )


def _add_tools(draft: Draft, tools: tuple[str, ...] | Mapping[str, Any] | None) -> None:
    if isinstance(tools, tuple):
        draft.argv.append(f"--tools={','.join(tools)}")
    elif tools is not None:
        draft.argv.append("--tools=default")


def _add_tool_config(draft: Draft, config: Mapping[str, Any] | None) -> None:
    question: Mapping[str, Any] = (config or {}).get("askUserQuestion", {})
    if "previewFormat" in question:
        draft.env["CLAUDE_CODE_QUESTION_PREVIEW_FORMAT"] = question["previewFormat"]
    for key, name in _QUESTION_SWITCHES.items():
        if question.get(key):
            draft.env[name] = "1"


_QUESTION_SWITCHES = {
    "extendedQuestions": "CLAUDE_CODE_QUESTION_EXTENDED",
    "optionalDescriptions": "CLAUDE_CODE_QUESTION_OPTIONAL_DESCRIPTIONS",
}


def _rules(flag: str, kind: str) -> Put:
    """A list of rules: on argv where the CLI reads them as they are, else in the settings."""

    def put(draft: Draft, rules: tuple[str, ...]) -> None:
        ours = draft.approved if kind == "allow" else draft.forbidden
        wanted = (*rules, *(each for each in dict.fromkeys(ours) if each not in rules))
        if size_of(wanted) > LONGEST_LIST:
            draft.add_rules(kind, wanted)
            return
        # The CLI forgets a bracket at the first that closes, and would split what follows.
        nested = [rule for rule in wanted if rule.count("(") > 1]
        flat = [rule for rule in wanted if rule not in nested]
        if flat:
            draft.argv.append(f"{flag}={','.join(flat)}")
        if nested:
            draft.add_rules(kind, nested)

    return put


def _add_servers(draft: Draft, servers: Any) -> None:
    """Servers that the CLI runs or dials itself; their headers and variables may be secrets."""
    if not _json.is_mapping(servers):
        draft.argv.append(f"--mcp-config={servers}")
        return
    external = {
        key: checks.plain(f"mcp_servers[{key!r}]", config)
        for key, config in servers.items()
        if isinstance(config, Mapping)
    }
    if external:
        draft.files["mcp.json"] = _json.dumps({"mcpServers": external})
        draft.argv.append(FileArgument("--mcp-config=", "mcp.json"))


def _add_hooks(draft: Draft, hooks: Hooks) -> None:
    config: dict[str, list[dict[str, Any]]] = {}
    for position, hook in enumerate(hooks):
        matcher: dict[str, Any] = {"hookCallbackIds": [hook_id(position)]}
        if hook.matcher is not None:
            matcher["matcher"] = hook.matcher
        if hook.timeout is not None:
            # We keep the time ourselves: where the CLI does, the action may happen.
            matcher["timeout"] = hook.timeout + HEAD_START
        if hook.is_guard:
            matcher["onFailure"] = "block"
        config.setdefault(hook.event_name, []).append(matcher)
    if config:
        draft.initialize["hooks"] = config


def _add_agents(draft: Draft, agents: Mapping[str, Any]) -> None:
    if not agents:
        return
    from steersman.options.agents import agent_of  # noqa: PLC0415 - most programs have none

    places = {name: f"agents[{name!r}]" for name in agents}
    draft.initialize["agents"] = {
        name: agent_of(place, agents[name]).written(place) for name, place in places.items()
    }


def _add_skills(draft: Draft, skills: Any) -> None:
    if skills == "all":
        draft.approved = (*draft.approved, "Skill")
    elif skills is not None:
        draft.approved = (*draft.approved, *(f"Skill({name})" for name in skills))
        draft.initialize["skills"] = list(skills)


def _add_plugins(draft: Draft, plugins: tuple[Any, ...]) -> None:
    if not plugins:
        return
    from steersman.options.plugins import plugin_of  # noqa: PLC0415 - most programs have none

    known = [plugin_of(f"plugins[{n}]", given) for n, given in enumerate(plugins)]
    flags = [
        f"--plugin-dir{'-no-mcp' if each.skip_mcp_discovery else ''}={each.path}" for each in known
    ]
    if draft.options.plugin_delivery == "argv" and size_of(flags) <= LONGEST_LIST:
        draft.argv += flags
    else:
        draft.await_initialize()
        draft.initialize["plugins"] = [
            {"type": "local", "path": str(each.path)}
            | ({"skipMcpDiscovery": True} if each.skip_mcp_discovery else {})
            for each in known
        ]


def _add_sandbox(draft: Draft, sandbox: Mapping[str, Any] | None) -> None:
    """Beside what the settings say of it; a sandbox that cannot be had must not be left out."""
    if sandbox is None:
        return
    wanted = checks.plain("sandbox", sandbox)
    if wanted.get("enabled"):
        wanted.setdefault("failIfUnavailable", True)
    before = draft.settings.get("sandbox", {})
    draft.settings["sandbox"] = _merged(before, wanted) if _json.is_object(before) else wanted


def _merged(under: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    both = {
        name: _merged(under[name], over[name])
        for name in under.keys() & over.keys()
        if _json.is_object(under[name]) and _json.is_object(over[name])
    }
    return {**under, **over, **both}


TOOLS: Mapping[str, Row] = {
    # First, because skills are approved by being named.
    "skills": Row("initialize: `skills`, and rules in `--allowedTools`", _add_skills),
    # And this, because it adds to the three that follow.
    "policy": Row("`--tools`, `--allowedTools`, `--disallowedTools`; a hook", _add_policy),
    "tools": Row("`--tools`", _add_tools),
    "allowed_tools": Row(
        "`--allowedTools`; a long list by `--settings`", _rules("--allowedTools", "allow")
    ),
    "disallowed_tools": Row(
        "`--disallowedTools`; a long list by `--settings`", _rules("--disallowedTools", "deny")
    ),
    "tool_aliases": greeting("tool_aliases"),
    "tool_config": Row("variable `CLAUDE_CODE_QUESTION_PREVIEW_FORMAT`", _add_tool_config),
    "functions": ours("initialize: `sdk_mcp_servers`, and rules in `--allowedTools`"),
    "mcp_servers": Row(
        "private file, `--mcp-config`; those in Python by initialize: `sdk_mcp_servers`",
        _add_servers,
    ),
    "require": ours("asks `mcp_status` at the start"),
    "strict_mcp_config": switch("--strict-mcp-config"),
    "permission_mode": value("--permission-mode"),
    "allow_dangerously_skip_permissions": switch("--allow-dangerously-skip-permissions"),
    # Beside the table: that flag always stands there.
    "permission_prompt_tool_name": ours("`--permission-prompt-tool`"),
    "permission_prompts": value("--permission-prompts"),
    "deps": ours("`ToolContext.deps`"),
    "can_use_tool": ours("answers `can_use_tool`"),
    "ask_every_call": ours("a hook of ours"),
    "on_question": ours("answers `can_use_tool` of `AskUserQuestion`"),
    "inbox": ours("answers `can_use_tool`, `elicitation`, `request_user_dialog`"),
    "plan_mode_instructions": greeting("plan_mode_instructions"),
    "hooks": Row("initialize: `hooks`; answers `hook_callback`", _add_hooks),
    "on_elicitation": ours("answers `elicitation`"),
    "on_user_dialog": ours("answers `request_user_dialog`"),
    "supported_dialog_kinds": greeting("supported_dialog_kinds"),
    "agents": Row("initialize: `agents`", _add_agents),
    "agent": value("--agent"),
    "plugins": Row(
        "`--plugin-dir`, `--plugin-dir-no-mcp`; a long list by initialize: `plugins`", _add_plugins
    ),
    "plugin_delivery": ours("`--await-initialize` and initialize: `plugins`"),
    "sandbox": Row("private file, `--settings`", _add_sandbox),
}
