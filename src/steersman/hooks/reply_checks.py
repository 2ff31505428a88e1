"""Checks what a callback returned and converts it into the reply that is sent.

The CLI treats a reply that it cannot read as no reply and lets the action happen. So every reply is
checked here first, and whether a call may be deferred: one that the CLI loses would neither run nor
be asked about again. The CLI loses calls of subagents, calls of tools whose MCP server is not there
when it resumes, and the first of two calls that are deferred in one turn. A CLI that does not wait
for our hooks on resume could run the tool before they are known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable

import msgspec

from steersman import _json
from steersman.hooks.events import (
    Elicitation,
    HookEvent,
    PermissionRequest,
    PreModelSwitch,
    PreToolUse,
)
from steersman.hooks.replies import (
    AsyncReply,
    CommonReply,
    Context,
    ElicitationOutput,
    ModelSwitchVerdict,
    Output,
    PermissionRequestOutput,
    PermissionVerdict,
    Reply,
    ToolVerdict,
    deny,
)

NAMES = {"continue_": "continue", "async_": "async"}
"""Fields that are reserved in Python, as the official Python SDK writes them."""

ATTRIBUTES = {
    "additionalContext": "additional_context",
    "permissionDecisionReason": "permission_decision_reason",
}

REFUSALS = ("decline", "cancel")

COMMON = frozenset({*CommonReply.__struct_encode_fields__, "hookSpecificOutput"})
ASYNC = frozenset(AsyncReply.__struct_encode_fields__)
"""The keys of a reply, and of one with which the CLI does not wait."""

IN_SUBAGENT = (
    "Denied: {tool} cannot be deferred in a subagent, because the CLI would lose the call. Report"
    " this to the main agent, which can call it."
)
OWN_TOOL = (
    "Denied: {tool} cannot be deferred, because it is a tool of the program itself, which the CLI"
    " does not find when it resumes."
)
CANNOT_WAIT = (
    "Denied: {tool} cannot be deferred, because this CLI would run it on resume before it knows the"
    " hooks. The author can update the CLI."
)
ONE_AT_A_TIME = "Denied for now: another tool was deferred in this turn. Ask for it again later."


class InvalidReply(Exception):
    """A callback returned something that is not a reply to its event; the text describes it."""


def blocking_reply(event: type[HookEvent], reason: str) -> Reply:
    """Return the reply that stops the action of `event`."""
    return _fit(event, deny(reason))


def parse_reply(
    event: type[HookEvent], given: object, *, guard: str = ""
) -> Reply | AsyncReply | None:
    """Return what a callback returned as a reply to `event`; None for no opinion.

    `guard` is the name of the callback if it is a guard. The CLI ignores keys that it does not
    know, so a misplaced or misspelt verdict would let the action happen: from a guard, such a key
    is an error, and so is a reply without a verdict that has one to come or a reason for one. Other
    callbacks may use keys that this release does not know. Raises `InvalidReply`.
    """
    if given is None:
        return None
    reply = _read(event, given, guard)
    return _decided(event, reply, guard) if guard and reply is not None else reply


def _read(event: type[HookEvent], given: object, guard: str) -> Reply | AsyncReply | None:
    if isinstance(given, AsyncReply):
        return given
    if isinstance(given, Reply):
        if guard and _json.is_mapping(given.hook_specific_output):
            _refuse_unknown_output(event, given.hook_specific_output, guard)
        return _make_effective(event, _fit(event, given))
    if _json.is_mapping(given):
        if guard:
            _refuse_unknown_keys(event, given, guard)
        return _read_mapping(event, given) if given else None
    raise InvalidReply(f"returned {type(given).__name__}")


def encode_reply(reply: Reply | AsyncReply | None) -> bytes:
    """Return the reply as JSON. Raises `InvalidReply` if a value in it cannot be encoded."""
    if reply is None:
        return b"{}"
    try:
        return _json.dumps(reply)
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise InvalidReply(f"returned a value that is not JSON: {error}") from error


def changed_input(reply: Reply) -> tuple[str | None, _json.JsonDict | None]:
    """Return the decision of a reply about a tool, and the input that it changes; None for none."""
    specific = reply.hook_specific_output
    if isinstance(specific, PermissionRequestOutput):
        return specific.decision.behavior, specific.decision.updated_input
    if isinstance(specific, ToolVerdict):
        return _decision_of(reply, specific.permission_decision), specific.updated_input
    if not _json.is_mapping(specific):
        return None, None
    about = specific.get("decision")
    if _json.is_mapping(about):
        return about.get("behavior"), about.get("updatedInput")
    return _decision_of(reply, specific.get("permissionDecision")), specific.get("updatedInput")


def _decision_of(reply: Reply, decision: str | None) -> str | None:
    """Return the decision; that of a reply in the older form is `approve` or `block`."""
    older = {"approve": "allow", "block": "deny"}
    return decision or older.get(reply.decision or "")


def _refuse_unknown_keys(event: type[HookEvent], given: _json.JsonObject, guard: str) -> None:
    is_async = bool(given.get("async") or given.get("async_"))
    known = ASYNC if is_async else COMMON | ASYNC
    _refuse_others([NAMES.get(key, key) for key in given], known, guard)
    specific = given.get("hookSpecificOutput")
    if _json.is_mapping(specific):
        _refuse_unknown_output(event, specific, guard)


def _refuse_unknown_output(event: type[HookEvent], given: _json.JsonObject, guard: str) -> None:
    fields = () if event.OUTPUT is None else event.OUTPUT.__struct_encode_fields__
    _refuse_others(given, {*fields, "hookEventName"}, guard)
    decision = given.get("decision")
    if event is PermissionRequest and _json.is_mapping(decision):
        _refuse_others(decision, PermissionVerdict.__struct_encode_fields__, guard)


def _refuse_others(given: Iterable[object], known: Container[object], guard: str) -> None:
    for key in given:
        if key not in known:
            raise InvalidReply(f"returned the unknown key {key!r} (from {guard})")


def _decided(event: type[HookEvent], reply: Reply | AsyncReply, guard: str) -> Reply:
    """Return the reply of a guard. Raises `InvalidReply` if it leaves a verdict out.

    The CLI would let the action happen: it does not wait for an async reply, ignores a reason
    without a decision, and ends the turn only after the tool has run.
    """
    if isinstance(reply, AsyncReply):
        late = f"returned 'async' (from {guard}): the CLI does not wait for such a verdict;"
        raise InvalidReply(f"{late} register the hook with run_async=True or kind='advise'")
    decision, changed = changed_input(reply)
    if decision or reply.decision or changed is not None:
        return reply
    if not reply.continue_:
        return _block_too(event, reply)
    about = reply.hook_specific_output
    reasons = {
        "reason": reply.reason,
        "stopReason": reply.stop_reason,
        "permissionDecisionReason": _field_of(about, "permissionDecisionReason"),
    }
    for key, reason in reasons.items():
        if reason:
            raise InvalidReply(f"returned {key!r} without a decision (from {guard})")
    return reply


def _block_too(event: type[HookEvent], reply: Reply) -> Reply:
    """Return a reply that ends the turn as one that also stops the action."""
    blocking = blocking_reply(event, reply.stop_reason or reply.reason or "stopped by a hook")
    output = blocking.hook_specific_output
    added = _field_of(reply.hook_specific_output, "additionalContext")
    if isinstance(output, ToolVerdict) and isinstance(added, str):
        output = msgspec.structs.replace(output, additional_context=added)
    return msgspec.structs.replace(
        reply, hook_specific_output=output, decision=blocking.decision, reason=blocking.reason
    )


def _field_of(specific: object, key: str) -> object:
    """Return a field of a `hookSpecificOutput` by its name on the wire; None if it has none."""
    if _json.is_mapping(specific):
        return specific.get(key)
    return getattr(specific, ATTRIBUTES[key]) if isinstance(specific, ToolVerdict) else None


def _fit(event: type[HookEvent], reply: Reply) -> Reply:
    specific = reply.hook_specific_output
    if specific is None:
        return reply
    if isinstance(specific, Output) and type(specific) is event.OUTPUT:
        _check_values(event, specific)
        return reply
    if isinstance(specific, ToolVerdict):
        return _convert_verdict(event, reply, specific)
    if isinstance(specific, Context):
        return _replace(reply, _context_output(event, specific))
    if _json.is_mapping(specific):
        return _replace(reply, _check_specific(event, specific))
    raise InvalidReply(f"answered with {type(specific).__name__}")


def _convert_verdict(event: type[HookEvent], reply: Reply, verdict: ToolVerdict) -> Reply:
    """Convert a verdict about a tool into the form that another event needs."""
    decision, reason = verdict.permission_decision, verdict.permission_decision_reason
    if event is PermissionRequest and decision in ("allow", "deny"):
        about = PermissionVerdict(
            behavior=decision, updated_input=verdict.updated_input, message=reason
        )
        return _replace(reply, PermissionRequestOutput(decision=about))
    if event is PreModelSwitch and decision in ("allow", "deny"):
        switch = ModelSwitchVerdict(permission_decision=decision, permission_decision_reason=reason)
        return _replace(reply, switch)
    if decision == "deny":
        return msgspec.structs.replace(
            reply, hook_specific_output=None, decision="block", reason=reason
        )
    if decision == "allow" and verdict.updated_input is None:
        return _replace(reply, None)
    raise InvalidReply(f"answered {decision or 'with other input'}, which is for PreToolUse")


def _context_output(event: type[HookEvent], context: Context) -> Output:
    output = event.OUTPUT
    if output is None or "additional_context" not in output.__struct_fields__:
        raise InvalidReply(f"answered with context, which {event.event_name()} does not take")
    return msgspec.convert({"additionalContext": context.additional_context, **_tag(event)}, output)


def _read_mapping(event: type[HookEvent], given: _json.JsonObject) -> Reply | AsyncReply:
    fields = {NAMES.get(name, name): value for name, value in given.items() if value is not None}
    specific = fields.pop("hookSpecificOutput", None)
    try:
        if fields.get("async"):
            return msgspec.convert(fields, AsyncReply)
        common = msgspec.convert(fields, CommonReply)
    except msgspec.ValidationError as error:
        raise InvalidReply(f"returned a mapping that is not a reply: {error}") from None
    output = None if specific is None else _check_specific(event, specific)
    reply = Reply(**msgspec.structs.asdict(common), hook_specific_output=output)
    return _make_effective(event, reply)


def _check_specific(event: type[HookEvent], given: object) -> _json.JsonDict | None:
    """Check a `hookSpecificOutput`. Fields that this release does not know are kept."""
    if not _json.is_mapping(given):
        raise InvalidReply(f"returned {type(given).__name__} as hookSpecificOutput")
    fields = {name: value for name, value in given.items() if value is not None}
    if fields.get("hookEventName") != event.event_name():
        raise InvalidReply(f"answered {fields.get('hookEventName')!r}, not {event.event_name()!r}")
    if event.OUTPUT is not None:
        try:
            msgspec.convert(fields, event.OUTPUT)
        except msgspec.ValidationError as error:
            raise InvalidReply(f"returned an invalid hookSpecificOutput: {error}") from None
    return fields


def _make_effective(event: type[HookEvent], reply: Reply) -> Reply:
    """Add what the CLI needs to obey a refusal that it would otherwise ignore."""
    specific = reply.hook_specific_output
    if event is PermissionRequest and reply.decision == "block" and specific is None:
        return _replace(
            reply, blocking_reply(event, reply.reason or "blocked").hook_specific_output
        )
    if event is Elicitation and reply.decision is None and _action_in(specific) in REFUSALS:
        return msgspec.structs.replace(reply, decision="block")
    return reply


def _action_in(specific: object) -> object:
    if _json.is_mapping(specific):
        return specific.get("action")
    return specific.action if isinstance(specific, ElicitationOutput) else None


def _check_values(event: type[HookEvent], specific: Output) -> None:
    """Check the field values of an output, which its class accepts unchecked."""
    if isinstance(specific, ToolVerdict):
        # `ToolVerdict` checks its values when it is made: it is the most frequent output.
        return
    try:
        msgspec.convert(msgspec.to_builtins(specific), type(specific))
    except (msgspec.ValidationError, TypeError) as error:
        raise InvalidReply(f"answered {event.event_name()} with invalid values: {error}") from None
    except UnicodeEncodeError:
        # A lone surrogate from the model's own text, which `encode_reply` can send.
        return


def _replace(reply: Reply, specific: Output | Context | _json.JsonDict | None) -> Reply:
    return msgspec.structs.replace(reply, hook_specific_output=specific)


def _tag(event: type[HookEvent]) -> dict[str, str]:
    return {"hookEventName": event.event_name()}


class DeferralCheck:
    """Allows one deferred tool per turn: of the main agent, and not one of this process."""

    def __init__(
        self,
        waits_on_resume: Callable[[], bool] = lambda: True,
        own_servers: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        """`own_servers` returns the keys of the MCP servers that run in this process."""
        self._waits_on_resume = waits_on_resume
        self._own_servers = own_servers
        self._last: tuple[str, str] | None = None

    def objection(self, event: PreToolUse, reply: Reply) -> str | None:
        """Return why this reply may not defer the tool, or None if the reply can be sent."""
        if _verdict_of(reply.hook_specific_output) != "defer":
            return None
        if event.agent_id is not None:
            return IN_SUBAGENT.format(tool=event.tool_name)
        if is_own_tool(event.tool_name, self._own_servers()):
            return OWN_TOOL.format(tool=event.tool_name)
        if not self._waits_on_resume():
            return CANNOT_WAIT.format(tool=event.tool_name)
        prompt, tool_use = event.prompt_id, event.tool_use_id
        if self._last is not None and self._last[0] == prompt and self._last[1] != tool_use:
            return ONE_AT_A_TIME
        self._last = (prompt, tool_use)
        return None


def is_own_tool(tool: str, servers: Iterable[str]) -> bool:
    """Return whether a tool is one of the MCP servers with these keys, as the CLI names it."""
    if not tool.startswith("mcp__"):
        return False
    names = (re.sub(r"[^A-Za-z0-9_-]", "_", key) for key in servers)
    return any(tool.startswith(f"mcp__{name}__") for name in names)


def _verdict_of(specific: object) -> object:
    if isinstance(specific, ToolVerdict):
        return specific.permission_decision
    return specific.get("permissionDecision") if _json.is_mapping(specific) else None
