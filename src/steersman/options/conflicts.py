"""Options that cannot be meant together, told before anything is started."""

from __future__ import annotations

import warnings
from typing import Any, TypeAlias

from steersman import _json
from steersman.errors import UsageError

__all__ = ["ShadowedCallbackWarning", "check_conflicts"]


OptionsValue: TypeAlias = Any
"""An `Options`. Its module imports this one, so naming the class would be an import cycle."""


class ShadowedCallbackWarning(UserWarning):
    """A permission callback is given, and another option keeps it from being called."""


def check_conflicts(options: OptionsValue) -> None:
    """Raise `UsageError` for the first pair that cannot be meant."""
    _check_conversation(options)
    _check_history(options)
    _check_models(options)
    _check_permissions(options)
    _check_deciders(options)
    _warn_of_shadows(options)
    _check_required(options)
    _check_prompt(options)
    _check_log(options)
    _check_sinks(options)


def _check_conversation(options: OptionsValue) -> None:
    """Which conversation is meant must be one thing."""
    if options.resume is not None and options.continue_conversation:
        raise UsageError("resume", options.resume, "not together with continue_conversation=True")
    if options.fork_session and not options.goes_on:
        raise UsageError(
            "fork_session", "True", "only together with resume= or continue_conversation="
        )
    if options.session_id is not None and options.goes_on and not options.fork_session:
        raise UsageError(
            "session_id",
            options.session_id,
            "not together with resume= or continue_conversation=, unless fork_session=True",
        )


def _check_history(options: OptionsValue) -> None:
    if options.resume_session_at is not None and options.resume is None:
        raise UsageError("resume_session_at", options.resume_session_at, "only with resume=")
    if options.resume_drops_turn is not None and options.resume_session_at is None:
        raise UsageError(
            "resume_drops_turn", options.resume_drops_turn, "only with resume_session_at="
        )
    if not options.persist_session and options.goes_on:
        raise UsageError(
            "persist_session",
            "False",
            "True with resume= or continue_conversation=",
            hint="what is not written cannot be gone on with; fork it if the old one must stay",
        )


def _check_models(options: OptionsValue) -> None:
    fallbacks = options.fallback_model or ()
    names = fallbacks.split(",") if isinstance(fallbacks, str) else fallbacks
    if options.model is not None and options.model in [name.strip() for name in names]:
        raise UsageError("fallback_model", options.fallback_model, "another model than model=")
    if options.thinking is not None and options.max_thinking_tokens is not None:
        raise UsageError("max_thinking_tokens", options.max_thinking_tokens, "not with thinking=")


def _check_permissions(options: OptionsValue) -> None:
    tool = options.permission_prompt_tool_name
    if tool is not None and options.can_use_tool is not None:
        raise UsageError("permission_prompt_tool_name", tool, "not together with can_use_tool=")
    if options.permission_prompts == "none" and (tool or options.can_use_tool is not None):
        raise UsageError(
            "permission_prompts",
            "none",
            "'host' with can_use_tool= or permission_prompt_tool_name=",
        )
    if options.permission_mode == "bypassPermissions" and options.permission_prompts == "none":
        raise UsageError(
            "permission_prompts", "none", "left out: bypassPermissions never asks anyone"
        )
    if options.supported_dialog_kinds and options.on_user_dialog is None:
        raise UsageError(
            "supported_dialog_kinds", options.supported_dialog_kinds, "only with on_user_dialog="
        )


def _check_deciders(options: OptionsValue) -> None:
    """Whoever is to decide must be able to, and be asked."""
    has_decider = options.can_use_tool is not None or options.inbox is not None
    if options.ask_every_call and not has_decider:
        raise UsageError("ask_every_call", "True", "only with can_use_tool= or inbox=")
    if options.inbox is not None and options.permission_prompts == "none":
        raise UsageError("permission_prompts", "none", "'host' with inbox=")
    policy = options.policy
    if policy is None:
        return
    if policy.available is not None and options.tools is not None:
        raise UsageError("tools", options.tools, "left out: policy.available says it")
    asks = policy.otherwise == "ask" or any(each.behavior == "ask" for each in policy.rules)
    if asks and options.permission_prompts == "none":
        raise UsageError(
            "policy", "a rule that asks", "no such rule with permission_prompts='none'"
        )


def _warn_of_shadows(options: OptionsValue) -> None:
    """A callback that can hardly ever be called is not what anybody means."""
    if options.can_use_tool is None or options.ask_every_call or options.policy is not None:
        return
    shadow = ""
    if options.permission_mode in ("bypassPermissions", "dontAsk"):
        shadow = f"permission_mode={options.permission_mode!r} asks nobody"
    elif _are_all_approved(options):
        shadow = "allowed_tools approves all that there is in tools"
    if shadow:
        warnings.warn(
            f"can_use_tool will hardly be called: {shadow}; ask_every_call=True changes that",
            ShadowedCallbackWarning,
            stacklevel=5,
        )


def _are_all_approved(options: OptionsValue) -> bool:
    has_others = options.mcp_servers or options.plugins
    return options.tools and not has_others and set(options.tools) <= set(options.allowed_tools)


def _check_required(options: OptionsValue) -> None:
    # What a configuration file holds is not known here.
    if isinstance(options.require, bool) or not _json.is_mapping(options.mcp_servers):
        return
    known = [*options.mcp_servers, *(["functions"] if options.functions else [])]
    for name in options.require:
        if name not in known:
            raise UsageError("require", name, f"a key of mcp_servers: {', '.join(known) or 'none'}")


def _check_prompt(options: OptionsValue) -> None:
    is_own = options.system_prompt is None or (
        not isinstance(options.system_prompt, str | tuple) and "preset" in options.system_prompt
    )
    if options.exclude_dynamic_sections and not is_own:
        raise UsageError(
            "exclude_dynamic_sections", "True", "only with the CLI's own system prompt"
        )


def _check_log(options: OptionsValue) -> None:
    if isinstance(options.debug, str) and options.debug_file is not None:
        raise UsageError("debug", options.debug, "True or left out, with debug_file=")


def _check_sinks(options: OptionsValue) -> None:
    """Refuse the same sink twice: it would get every entry twice."""
    sinks = options.sinks
    if sinks and len({id(each) for each in (options.journal, *sinks)}) <= len(sinks):
        raise UsageError("sinks", "the same sink twice", "each sink once, in journal= or sinks=")
