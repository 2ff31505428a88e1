"""Options that exclude or need each other, checked before anything is started."""

from __future__ import annotations

import re
import warnings
from typing import Any, TypeAlias

from steersman import _json
from steersman.errors import Described, UsageError
from steersman.options.checks import UUID

_FILE = re.compile(rf"/(.*/)?{UUID.pattern}\.jsonl", re.IGNORECASE | re.DOTALL)

OptionsValue: TypeAlias = Any
"""An `Options`. Its module imports this one, so naming the class would be an import cycle."""


class ShadowedCallbackWarning(UserWarning):
    """`can_use_tool` is set, but other options prevent that it is called."""


def check_conflicts(options: OptionsValue) -> None:
    """Raise `UsageError` for the first conflict; warn of a callback that is never called."""
    _check_conversation(options)
    _check_history(options)
    _check_store(options)
    _check_models(options)
    _check_permissions(options)
    _check_deciders(options)
    _check_agent(options)
    _warn_of_shadows(options)
    _check_required(options)
    _check_prompt(options)
    _check_log(options)
    _check_sinks(options)


def _check_conversation(options: OptionsValue) -> None:
    """Check that the options name one conversation."""
    if options.resume is not None and options.continue_conversation:
        raise UsageError(
            "resume",
            options.resume,
            "resume= or continue_conversation=True, not both",
            hint="leave out continue_conversation, which resumes the latest conversation",
        )
    resumed = options.resume or ""
    if resumed.endswith(".jsonl") and not _FILE.fullmatch(resumed):
        raise UsageError(
            "resume",
            resumed,
            "the id of a conversation, or the absolute path of its file: /…/<session id>.jsonl",
            hint="a file keeps the name that the CLI gave it: the CLI appends to the file of that"
            " name in the same directory",
        )
    if options.fork_session and not options.goes_on:
        raise UsageError(
            "fork_session",
            options.fork_session,
            "True only with resume= or continue_conversation=",
            hint="pass the id of the conversation to fork as resume=",
        )
    if options.session_id is not None and options.goes_on and not options.fork_session:
        raise UsageError(
            "session_id",
            options.session_id,
            "no session_id= with resume= or continue_conversation=, unless fork_session=True",
            hint="to resume under a new id, pass fork_session=True; otherwise leave out session_id",
        )


def _check_agent(options: OptionsValue) -> None:
    """Check that `agent` is not a misspelt key of `agents`; it may also name an agent in a file."""
    given, known = options.agent, {key.lower(): key for key in options.agents}
    if given is None or not known or given in options.agents:
        return
    from difflib import get_close_matches  # noqa: PLC0415 - rarely needed

    near = get_close_matches(given.lower(), list(known), n=1, cutoff=0.85)
    if near:
        hint = f"did you mean {known[near[0]]}?"
        raise UsageError("agent", given, "a key of agents=, or another agent", hint=hint)


def _check_history(options: OptionsValue) -> None:
    """Check the options that drop a part of a resumed conversation, or do not save it."""
    if options.resume_session_at is not None and options.resume is None:
        raise UsageError("resume_session_at", options.resume_session_at, "a UUID only with resume=")
    if options.resume_drops_turn is not None and options.resume_session_at is None:
        raise UsageError(
            "resume_drops_turn", options.resume_drops_turn, "a UUID only with resume_session_at="
        )
    if not options.persist_session and options.goes_on:
        raise UsageError(
            "persist_session",
            options.persist_session,
            "True with resume= or continue_conversation=",
            hint="leave out persist_session; to leave the original conversation unchanged, pass"
            " fork_session=True",
        )


def _check_store(options: OptionsValue) -> None:
    """Check the options that a session store needs, or excludes."""
    store = options.session_store
    if store is None:
        return
    if not options.persist_session:
        raise UsageError(
            "session_store",
            Described(f"a {type(store).__name__}"),
            "no store with persist_session=False",
            hint="the store gets what the CLI saves; leave out persist_session or session_store",
        )
    if options.enable_file_checkpointing:
        raise UsageError(
            "session_store",
            Described(f"a {type(store).__name__}"),
            "no store with enable_file_checkpointing=True",
            hint="copies of files are not part of the conversation, so the store does not have"
            " them; leave out one of the two",
        )
    if options.continue_conversation and not _can_list(store):
        raise UsageError(
            "continue_conversation",
            "True",
            "a session_store with list_sessions(), which finds the latest conversation",
            hint="pass resume= with the id of the conversation, or give the store list_sessions()",
        )


def _can_list(store: object) -> bool:
    from steersman.ports import SessionStore  # noqa: PLC0415 - few sessions have a store

    listing = getattr(type(store), "list_sessions", None) or getattr(store, "list_sessions", None)
    return callable(listing) and listing is not SessionStore.list_sessions


def _check_models(options: OptionsValue) -> None:
    fallbacks = options.fallback_model or ()
    names = fallbacks.split(",") if isinstance(fallbacks, str) else fallbacks
    if options.model is not None and options.model in [name.strip() for name in names]:
        raise UsageError("fallback_model", options.fallback_model, "other models than model=")
    if options.thinking is not None and options.max_thinking_tokens is not None:
        raise UsageError(
            "max_thinking_tokens",
            options.max_thinking_tokens,
            "thinking= or max_thinking_tokens=, not both",
            hint='pass thinking={"type": "enabled", "budget_tokens": N}',
        )


def _check_permissions(options: OptionsValue) -> None:
    tool = options.permission_prompt_tool_name
    if tool is not None and options.can_use_tool is not None:
        raise UsageError(
            "permission_prompt_tool_name",
            tool,
            "permission_prompt_tool_name= or can_use_tool=, not both",
            hint="the tool would decide in place of the callback; leave out one of them",
        )
    if options.permission_prompts == "none" and (tool or options.can_use_tool is not None):
        raise UsageError(
            "permission_prompts",
            "none",
            "'host' with can_use_tool= or permission_prompt_tool_name=",
            hint="with 'none' the CLI denies such calls itself; leave out permission_prompts",
        )
    if options.permission_mode == "bypassPermissions" and options.permission_prompts == "none":
        raise UsageError(
            "permission_prompts",
            "none",
            "'host' with permission_mode='bypassPermissions'",
            hint="in this mode the CLI requests no permissions; leave out permission_prompts",
        )
    if options.supported_dialog_kinds and options.on_user_dialog is None:
        raise UsageError(
            "supported_dialog_kinds",
            options.supported_dialog_kinds,
            "kinds of dialogs only with on_user_dialog=",
            hint="pass the callback that shows these dialogs as on_user_dialog=",
        )


def _check_deciders(options: OptionsValue) -> None:
    """Check that whatever is to decide about tool calls exists and gets them."""
    has_decider = options.can_use_tool is not None or options.inbox is not None
    if options.ask_every_call and not has_decider:
        raise UsageError(
            "ask_every_call",
            options.ask_every_call,
            "True only with can_use_tool= or inbox=",
            hint="pass the callback that decides as can_use_tool=, or an Inbox as inbox=",
        )
    if options.inbox is not None and options.permission_prompts == "none":
        raise UsageError(
            "permission_prompts",
            "none",
            "'host' with inbox=",
            hint="with 'none' the inbox gets no permission requests; leave out permission_prompts",
        )
    if options.park.after is not None:
        _check_can_park(options)
    policy = options.policy
    if policy is None:
        return
    if policy.available is not None and options.tools is not None:
        raise UsageError(
            "tools",
            options.tools,
            "tools= or Policy(available=...), not both",
            hint="both name the tools that exist; leave out tools",
        )
    asks = policy.otherwise == "ask" or any(each.behavior == "ask" for each in policy.rules)
    if asks and options.permission_prompts == "none":
        raise UsageError(
            "policy",
            Described("a rule that asks"),
            "rules that allow or deny, with permission_prompts='none'",
            hint="leave out permission_prompts, or make the rule deny",
        )


def _check_can_park(options: OptionsValue) -> None:
    """Check that asks stay when the session ends its CLI by itself."""
    from steersman.ports import DurableAsks  # noqa: PLC0415 - few sessions park

    if not isinstance(options.inbox, DurableAsks):
        raise UsageError(
            "park",
            options.park,
            "Park(after=...) only with an inbox in a store",
            hint='pass inbox=SqliteStore("work.db").inbox(); other asks end with their process',
        )


def _warn_of_shadows(options: OptionsValue) -> None:
    """Warn if `can_use_tool` is set and other options prevent that it is called."""
    if options.can_use_tool is None or options.ask_every_call or options.policy is not None:
        return
    shadow = ""
    if options.permission_mode in ("bypassPermissions", "dontAsk"):
        shadow = (
            f"with permission_mode={options.permission_mode!r} the CLI requests no permissions."
            " Pass ask_every_call=True to have it called nevertheless."
        )
    elif _are_all_approved(options):
        shadow = (
            "allowed_tools allows every tool in tools. Remove from it what must be asked about."
        )
    if shadow:
        warnings.warn(
            f"can_use_tool will hardly ever be called: {shadow}",
            ShadowedCallbackWarning,
            stacklevel=5,
        )


def _are_all_approved(options: OptionsValue) -> bool:
    has_others = options.mcp_servers or options.plugins
    return options.tools and not has_others and set(options.tools) <= set(options.allowed_tools)


def _check_required(options: OptionsValue) -> None:
    # The servers in a configuration file are not known here.
    if isinstance(options.require, bool) or not _json.is_mapping(options.mcp_servers):
        return
    known = [*options.mcp_servers, *(["functions"] if options.functions else [])]
    for name in options.require:
        if name not in known:
            raise UsageError(
                "require", name, f"keys of mcp_servers, which are: {', '.join(known) or 'none'}"
            )


def _check_prompt(options: OptionsValue) -> None:
    is_own = options.system_prompt is None or (
        not isinstance(options.system_prompt, str | tuple) and "preset" in options.system_prompt
    )
    if options.exclude_dynamic_sections and not is_own:
        raise UsageError(
            "exclude_dynamic_sections",
            options.exclude_dynamic_sections,
            "True only with the CLI's own system prompt",
            hint="a system prompt of yours has no such sections; leave the option out",
        )


def _check_log(options: OptionsValue) -> None:
    if isinstance(options.debug, str) and options.debug_file is not None:
        raise UsageError(
            "debug",
            options.debug,
            "True or False with debug_file=",
            hint="the file gets all categories; leave out debug",
        )


def _check_sinks(options: OptionsValue) -> None:
    """Refuse the same sink twice: it would get every entry twice."""
    sinks = options.sinks
    if sinks and len({id(each) for each in (options.journal, *sinks)}) <= len(sinks):
        raise UsageError(
            "sinks", Described("the same sink twice"), "each sink once, in journal= or sinks="
        )
