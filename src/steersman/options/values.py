"""What each option may be, in one table; and which of them are stored as tuples.

A check raises `UsageError` with the option's name and the values that are allowed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeGuard

from steersman import _json
from steersman._json import is_mapping, is_sequence
from steersman.errors import UsageError
from steersman.options import checks
from steersman.options.limits import Limits, Revival, StartupLimits, Watchdog

if TYPE_CHECKING:
    from steersman.hooks.registry import Hooks

__all__ = ["AS_STORED", "CHECKS", "no_hooks"]

_FLAG_NAME = re.compile(r"[a-z][a-z0-9-]*")
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MODEL = re.compile(r"[^\s,]+")
_KEY_SAID = "up to 64 letters, digits, - and _"

PRESET = {"type": "preset", "preset": "claude_code"}
DISPLAYS = ("summarized", "omitted", "highlights")
_QUESTION_SWITCHES = ("extendedQuestions", "optionalDescriptions")
_PREVIEWS = (("previewFormat", "markdown"), ("previewFormat", "html"))


def _tuple_unless(*kinds: type) -> Callable[[str, Any], Any]:
    def store(name: str, given: Any) -> Any:
        return given if given is None or isinstance(given, kinds) else checks.as_tuple(name, given)

    return store


def _tuple_if_list(_name: str, given: Any) -> Any:
    return tuple(given) if is_sequence(given) else given


def _tuple_unless_all(name: str, given: Any) -> Any:
    return given if given is None or given == "all" else checks.as_tuple(name, given)


def _servers_read(name: str, given: Any) -> Any:
    """The servers in a JSON text; whatever else was given stays as it is."""
    if not (isinstance(given, str) and given.lstrip().startswith("{")):
        return given
    try:
        found = _json.loads(given.encode("utf-8", "surrogatepass"))
        servers = found["mcpServers"]
    except (ValueError, KeyError):
        raise UsageError(
            name, "a text of other JSON", '{"mcpServers": {...}}, a mapping or a path'
        ) from None
    return servers


def no_hooks() -> Hooks:
    """An empty registry."""
    return _hooks_class()()


def _hooks_class() -> type[Hooks]:
    from steersman.hooks.registry import Hooks  # noqa: PLC0415 - large: read with the first options

    return Hooks


def _is_hooks(given: object) -> TypeGuard[Hooks]:
    return isinstance(given, _hooks_class())


def _hooks_read(name: str, given: Any) -> Hooks:
    if _is_hooks(given):
        return given
    from steersman.hooks.mappings import hooks_from  # noqa: PLC0415 - for the official SDKs' form

    return hooks_from(name, given)


AS_STORED: Mapping[str, Callable[[str, Any], Any]] = {
    "inherit_env": _tuple_unless(bool),
    "require": _tuple_unless(bool),
    "tools": _tuple_unless(Mapping),
    "fallback_model": _tuple_unless(str),
    "system_prompt": _tuple_if_list,
    "skills": _tuple_unless_all,
    "mcp_servers": _servers_read,
    "hooks": _hooks_read,
    **dict.fromkeys(
        (
            "allowed_tools",
            "disallowed_tools",
            "functions",
            "betas",
            "add_dirs",
            "setting_sources",
            "supported_dialog_kinds",
            "plugins",
        ),
        checks.as_tuple,
    ),
}
"""How a value is kept: lists as tuples, so that nobody changes them later."""


def _has(given: object, **fields: str) -> bool:
    return is_mapping(given) and all(given.get(key) == fields[key] for key in fields)


def _are_texts(given: object) -> bool:
    return is_sequence(given) and all(isinstance(each, str) for each in given)


def _may_have(given: Mapping[str, Any], **kinds: type) -> bool:
    """Whether there is nothing beside `type` and these, and each of its kind."""
    return all(
        key == "type" or (key in kinds and isinstance(given[key], kinds[key])) for key in given
    )


def _is_prompt(given: Any) -> bool:
    if not is_mapping(given):
        return isinstance(given, str) or (_are_texts(given) and bool(given))
    if given.get("preset") == "claude_code" and given.get("type", "preset") == "preset":
        return _may_have(
            given, preset=str, append=str, exclude_dynamic_sections=bool, snapshot=bool
        )
    if given.get("type") == "custom":
        prompt = given.get("prompt")
        return (isinstance(prompt, str) or (_are_texts(prompt) and bool(prompt))) and _may_have(
            given, prompt=object, snapshot=bool
        )
    return (
        given.get("type") == "file"
        and isinstance(given.get("path"), str)
        and (
            len(given) == 2 and given["path"] != ""  # noqa: PLR2004 - type and path
        )
    )


def _check_thinking(name: str, given: Any) -> None:
    kind = given.get("type") if is_mapping(given) else None
    if kind not in ("adaptive", "enabled", "disabled"):
        raise UsageError(name, given, "a mapping whose type is adaptive, enabled or disabled")
    allowed = {"adaptive": ("display",), "enabled": ("budget_tokens", "display"), "disabled": ()}
    for key in given:
        if key != "type" and key not in allowed[kind]:
            raise UsageError(f"{name} key", key, ", ".join(("type", *allowed[kind])))
    if kind == "enabled":
        checks.count(f"{name}['budget_tokens']", given.get("budget_tokens"))
    if "display" in given:
        checks.one_of(*DISPLAYS)(f"{name}['display']", given["display"])


def _is_tool_config(given: Any) -> bool:
    question = given.get("askUserQuestion") if is_mapping(given) and len(given) == 1 else None
    return is_mapping(question) and all(
        isinstance(value, bool) if key in _QUESTION_SWITCHES else (key, value) in _PREVIEWS
        for key, value in question.items()
    )


def _check_tools(name: str, given: Any) -> None:
    if is_mapping(given) and given != PRESET:
        raise UsageError(name, dict(given), f"a list of names, or {PRESET}")
    if not is_mapping(given):
        checks.each(checks.name_of_tool)(name, given)


def _check_servers(name: str, given: Any) -> None:
    if is_mapping(given):
        checks.mapping_of(checks.KEY, _KEY_SAID, checks.server)(name, given)
    elif not checks.is_path_or_json(given):
        raise UsageError(
            name, f"a {type(given).__name__}", "a mapping, or the path of a configuration file"
        )


def _check_fallback(name: str, given: Any) -> None:
    if isinstance(given, str):
        checks.word(name, given)
        return
    if not given:
        raise UsageError(name, given, "a model, or a list of at least one")
    checks.each(_MODEL_NAME)(name, given)


_MODEL_NAME = checks.must_be(
    "a model's name, without commas and spaces",
    lambda given: (
        isinstance(given, str)
        and _MODEL.fullmatch(given) is not None
        and given.isprintable()
        and len(given) <= checks.LONGEST_WORD
    ),
)


def _is_policy(given: Any) -> bool:
    # Loaded only by those who have one.
    module = sys.modules.get("steersman.permissions.policy")
    return module is not None and isinstance(given, module.Policy)


def _is_inbox(given: Any) -> bool:
    return callable(getattr(given, "open", None)) and callable(getattr(given, "close", None))


def _check_skills(name: str, given: Any) -> None:
    if given not in (None, "all"):
        checks.each(checks.skill_name)(name, given)


def _check_agent(place: str, given: Any) -> None:
    from steersman.options.agents import agent_of  # noqa: PLC0415 - most programs have none

    agent_of(place, given)


def _check_plugin(place: str, given: Any) -> None:
    from steersman.options.plugins import plugin_of  # noqa: PLC0415 - most programs have none

    plugin_of(place, given)


CHECKS: Mapping[str, checks.Check] = {
    "model": checks.optional(checks.word),
    "fallback_model": checks.optional(_check_fallback),
    "system_prompt": checks.optional(
        checks.must_be(
            'a text, a list of texts, {"type": "preset", "preset": "claude_code", "append": ...},'
            ' {"type": "custom", "prompt": ...} or {"type": "file", "path": ...}',
            _is_prompt,
        )
    ),
    "append_system_prompt": checks.optional(checks.text),
    "exclude_dynamic_sections": checks.flag,
    "thinking": checks.optional(_check_thinking),
    "max_thinking_tokens": checks.optional(checks.whole),
    "effort": checks.optional(checks.effort),
    "betas": checks.each(_MODEL_NAME),
    "max_turns": checks.optional(checks.count),
    "max_budget_usd": checks.optional(checks.positive),
    "task_budget": checks.optional(
        checks.must_be(
            '{"total": N}, a whole number of tokens above 0',
            lambda given: (
                is_mapping(given) and list(given) == ["total"] and checks.is_count(given["total"])
            ),
        )
    ),
    "output_format": checks.optional(
        checks.must_be(
            '{"type": "json_schema", "schema": {...}}',
            lambda given: (
                _has(given, type="json_schema") and isinstance(given.get("schema"), Mapping)
            ),
        )
    ),
    "tools": _check_tools,
    "allowed_tools": checks.each(checks.rule),
    "disallowed_tools": checks.each(checks.rule),
    "tool_aliases": checks.mapping_of(checks.KEY, "a tool's name", checks.name_of_tool),
    "tool_config": checks.optional(
        checks.must_be(
            '{"askUserQuestion": {"previewFormat": "markdown" or "html"}}', _is_tool_config
        )
    ),
    "functions": checks.each(checks.callable_),
    "mcp_servers": _check_servers,
    "require": checks.must_be(
        "True, False, or a list of names of tool servers",
        lambda given: (
            isinstance(given, bool)
            or (_are_texts(given) and all(checks.KEY.fullmatch(each) for each in given))
        ),
    ),
    "strict_mcp_config": checks.flag,
    "permission_mode": checks.optional(checks.permission_mode),
    "allow_dangerously_skip_permissions": checks.flag,
    "permission_prompt_tool_name": checks.optional(checks.name_of_tool),
    "permission_prompts": checks.optional(checks.one_of("host", "none")),
    "policy": checks.optional(checks.must_be("a Policy value", _is_policy)),
    "can_use_tool": checks.optional(checks.callable_),
    "ask_every_call": checks.flag,
    "on_question": checks.optional(checks.callable_),
    "inbox": checks.optional(checks.must_be("an Inbox", _is_inbox)),
    "plan_mode_instructions": checks.optional(checks.text),
    "hooks": checks.must_be("a Hooks value", _is_hooks),
    "on_elicitation": checks.optional(checks.callable_),
    "on_user_dialog": checks.optional(checks.callable_),
    "supported_dialog_kinds": checks.each(checks.word),
    "agents": checks.mapping_of(checks.KEY, _KEY_SAID, _check_agent),
    "agent": checks.optional(checks.word),
    "skills": _check_skills,
    "plugins": checks.each(_check_plugin),
    "plugin_delivery": checks.one_of("argv", "initialize"),
    "sandbox": checks.optional(checks.mapping),
    "cwd": checks.optional(checks.path),
    "add_dirs": checks.each(checks.path),
    "project_config_root": checks.optional(checks.path),
    "cli_path": checks.optional(checks.path),
    "user": checks.optional(checks.word),
    "env": checks.mapping_of(_VARIABLE_NAME, "a variable's name", checks.variable_value),
    "inherit_env": checks.must_be(
        "None, True, False, or a list of names",
        lambda given: given is None or isinstance(given, bool) or _are_texts(given),
    ),
    "client_app": checks.optional(checks.header),
    "setting_sources": checks.each(checks.one_of("user", "project", "local")),
    "settings": checks.optional(
        checks.must_be(
            "a path, a text of JSON, or a mapping",
            lambda given: isinstance(given, Mapping) or checks.is_path_or_json(given),
            private=True,
        )
    ),
    "managed_settings": checks.optional(checks.mapping),
    "extra_args": checks.mapping_of(_FLAG_NAME, "a flag's name without dashes", checks.flag_value),
    "session_id": checks.optional(checks.uuid),
    "resume": checks.optional(checks.word),
    "continue_conversation": checks.flag,
    "fork_session": checks.flag,
    "resume_session_at": checks.optional(checks.uuid),
    "resume_drops_turn": checks.optional(checks.uuid),
    "persist_session": checks.flag,
    "title": checks.optional(checks.word),
    "enable_file_checkpointing": checks.flag,
    "include_partial_messages": checks.flag,
    "include_hook_events": checks.flag,
    "forward_subagent_text": checks.flag,
    "agent_progress_summaries": checks.flag,
    "prompt_suggestions": checks.flag,
    "per_task_stop_affordance": checks.flag,
    "verbatim_prompts": checks.flag,
    "debug": checks.must_be(
        "True, False, or categories such as 'hooks,mcp'",
        lambda given: (
            isinstance(given, bool)
            or (isinstance(given, str) and re.fullmatch(r"[\w!,:-]{1,200}", given) is not None)
        ),
    ),
    "debug_file": checks.optional(checks.path),
    "stderr": checks.optional(checks.callable_),
    "startup": checks.must_be(
        "a StartupLimits value", lambda given: isinstance(given, StartupLimits)
    ),
    "request_timeout": checks.positive,
    "close_grace": checks.not_negative,
    "watchdog": checks.optional(
        checks.must_be("a Watchdog value, or None", lambda given: isinstance(given, Watchdog))
    ),
    "limits": checks.must_be("a Limits value", lambda given: isinstance(given, Limits)),
    "revive": checks.must_be(
        "True, False or a Revival value", lambda given: isinstance(given, bool | Revival)
    ),
    "journal": checks.optional(checks.path),
    "journal_memory": checks.count,
    "flight_recorder": checks.optional(checks.path),
    "max_buffer_size": checks.count,
}
