"""Calls the hook callbacks of the host."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import cast

from steersman._json import Json, JsonDict, JsonObject, is_array, is_object
from steersman.hooks.matchers import fits_tool, shown_to
from steersman.testing.scripted.host import (
    Host,
    HostClosed,
    HostPreempted,
    HostRefused,
    Output,
    new_id,
)

MALFORMED = (
    "initialize: hooks must map hook events to arrays of matchers carrying hookCallbackIds arrays"
)
DEFAULT_TIMEOUT = 600.0
BEFORE = ("PreToolUse", "PermissionRequest")
"""The events at which the command of a `Monitor` is shown to hooks of `Bash` too."""
DECISIONS = ("deny", "ask", "allow", "defer")
"""The decisions of a PreToolUse hook; earlier ones take precedence."""


@dataclass(frozen=True, slots=True)
class Registration:
    """One callback of the host, and the events that it is called for."""

    event: str
    callback_id: str
    matcher: str
    timeout: float
    blocks_on_failure: bool

    def fits(self, event: str, name: str) -> bool:
        """Return whether the callback is called for this event and the tool `name`."""
        return event == self.event and (not name or fits_tool(self.matcher, name))

    def shown(self, event: str, given: JsonDict) -> JsonDict | None:
        """Return the fields of an event as the callback is called with them; None if it is not."""
        tool, input_ = str(given.get("tool_name", "")), given.get("tool_input")
        if event not in BEFORE or event != self.event or not is_object(input_):
            return given if self.fits(event, tool) else None
        found = shown_to(self.matcher, tool, input_)
        return None if found is None else {**given, "tool_name": found[0], "tool_input": found[1]}


@dataclass(frozen=True, slots=True)
class HookReply:
    """The answer of one callback, or its failure."""

    output: JsonObject
    failure: str | None = None
    blocks: bool = False
    """True if the callback failed and was registered to block the action in that case."""
    timed_out: bool = False

    @property
    def specific(self) -> JsonObject:
        """The `hookSpecificOutput` of the answer."""
        found = self.output.get("hookSpecificOutput")
        return cast("JsonObject", found) if isinstance(found, Mapping) else {}

    @property
    def stops(self) -> bool:
        """True if the turn must stop."""
        return self.output.get("continue") is False

    @property
    def note(self) -> str:
        """The `systemMessage` for the user."""
        return str(self.output.get("systemMessage") or "")

    @property
    def block_reason(self) -> str | None:
        """The reason of a `block` decision; None if the action may happen."""
        if self.output.get("decision") == "block":
            return str(self.output.get("reason") or "")
        return None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The combined decision of all PreToolUse hooks about a tool call."""

    decision: str | None = None
    reason: str = ""
    updated_input: JsonDict | None = None
    timed_out: bool = False


class HookRunner:
    """Calls the host's callbacks, all callbacks of one event at once."""

    def __init__(self, host: Host, output: Output) -> None:
        self.registered: tuple[Registration, ...] = ()
        self.prompt_id = new_id()
        self.permission_mode = "default"
        self._host = host
        self._output = output

    async def fire(
        self,
        event: str,
        fields: JsonObject,
        *,
        tool_name: str = "",
        tool_use_id: str | None = None,
        before_notes: Callable[[], None] = lambda: None,
    ) -> list[HookReply]:
        """Call the callbacks that fit, and return their replies in the order of registration."""
        shown = ((each, each.shown(event, dict(fields))) for each in self.registered)
        fitting = [(each, given) for each, given in shown if given is not None]
        if not fitting:
            return []
        common, asked_for = self._common(event), tool_use_id or new_id()
        calls = (self._call(each, {**common, **given}, asked_for) for each, given in fitting)
        replies = await asyncio.gather(*calls)
        before_notes()
        for reply in replies:
            # Notes about a tool call are sent with its result.
            if reply.note and not tool_name:
                content = f"{event} says: {reply.note}"
                self._output.system("informational", content=content, level="notice")
        return replies

    async def permit(self, request: JsonObject) -> Json:
        """Return the host's answer to a permission request, or that of a hook that is faster."""
        given = {"tool_name": request["tool_name"], "tool_input": request["input"]}
        if all(each.shown("PermissionRequest", given) is None for each in self.registered):
            return await self._host.ask(request)
        decided: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        looking = asyncio.ensure_future(self._look(request, decided))
        try:
            return await self._host.ask(request, until=decided)
        except HostPreempted:
            return decided.result()
        finally:
            looking.cancel()

    async def _look(self, request: JsonObject, decided: asyncio.Future[Json]) -> None:
        names = ("tool_name", "permission_suggestions", "mcp_server")
        given = {name: request[name] for name in names if name in request}
        replies = await self.fire(
            "PermissionRequest",
            {**given, "tool_input": request["input"]},
            tool_name=request["tool_name"],
            tool_use_id=request["tool_use_id"],
        )
        for reply in replies:
            decision = reply.specific.get("decision")
            if reply.blocks:
                decided.set_result({"behavior": "deny", "message": reply.failure})
                return
            if is_object(decision):
                decided.set_result({"message": "Permission denied by hook", **decision})
                return

    async def _call(self, hook: Registration, given: JsonObject, tool_use_id: str) -> HookReply:
        request = {"subtype": "hook_callback", "callback_id": hook.callback_id, "input": given}
        try:
            output = await self._host.ask(
                {**request, "tool_use_id": tool_use_id}, timeout=hook.timeout
            )
        except TimeoutError:
            return HookReply({}, "did not respond before its timeout", timed_out=True)
        except (HostRefused, HostClosed):
            return self._failed(hook)
        if not _is_valid(hook.event, output):
            return self._failed(hook)
        # An asynchronous hook continues on its own; its output is ignored.
        return HookReply({} if output.get("async") is True else output)

    def _failed(self, hook: Registration) -> HookReply:
        what = "failed: the SDK host replied with an error or an invalid hook response"
        after = "; blocking the action" if hook.blocks_on_failure else ""
        self._output.system(
            "informational",
            content=f"{hook.event}: Hook callback {hook.callback_id} {what}{after}",
            level="warning",
            tag="hook_callback_failed",
        )
        reason = '[callback]: failed; blocking because onFailure is "block"'
        return HookReply({}, reason, blocks=hook.blocks_on_failure)

    def _common(self, event: str) -> JsonDict:
        settings = self._output.settings
        return {
            "session_id": settings.session_id,
            "transcript_path": f"/scripted/{settings.session_id}.jsonl",
            "cwd": settings.cwd,
            "prompt_id": self.prompt_id,
            "permission_mode": self.permission_mode,
            # Before the first request to the model, the CLI sends no effort level.
            **({} if event == "UserPromptSubmit" else {"effort": {"level": "medium"}}),
            "hook_event_name": event,
        }


def read_hooks(given: Json) -> tuple[Registration, ...]:
    """Return the callbacks that an initialize request registers. Raises `ValueError`."""
    if given is None:
        return ()
    if not is_object(given):
        raise ValueError(MALFORMED)
    return tuple(
        each for event, matchers in given.items() for each in _read_matchers(event, matchers)
    )


def verdict_of(tool_name: str, replies: Iterable[HookReply]) -> Verdict:
    """Combine replies: deny before ask before allow, and the last changed input."""
    found = [_verdict_of_one(tool_name, reply) for reply in replies]
    inputs = [each.updated_input for each in found if each.updated_input is not None]
    for decision in DECISIONS:
        for each in found:
            if each.decision == decision:
                updated = inputs[-1] if inputs else None
                return Verdict(decision, each.reason, updated, each.timed_out)
    return Verdict(updated_input=inputs[-1] if inputs else None)


def _verdict_of_one(tool_name: str, reply: HookReply) -> Verdict:
    where = f"PreToolUse:{tool_name} hook error"
    if reply.timed_out:
        reason = (
            "PreToolUse hook did not respond before its timeout"
            " (host client may be unreachable); the tool was not run."
        )
        return Verdict("deny", reason, timed_out=True)
    if reply.blocks:
        return Verdict("deny", f"{where}: {reply.failure}")
    if reply.block_reason is not None:
        return Verdict("deny", f"{where}: {reply.block_reason}")
    specific = reply.specific
    decision = specific.get("permissionDecision")
    reason = str(specific.get("permissionDecisionReason") or "")
    shown = f"{where}: {reason}" if decision == "deny" else reason
    return Verdict(decision, shown, specific.get("updatedInput"))


def _read_matchers(event: str, matchers: Json) -> Iterable[Registration]:
    if not is_array(matchers):
        raise ValueError(MALFORMED)
    for fields in matchers:
        if not (is_object(fields) and is_array(ids := fields.get("hookCallbackIds"))):
            raise ValueError(MALFORMED)
        for callback_id in ids:
            yield Registration(
                event,
                str(callback_id),
                fields.get("matcher") or "",
                float(fields.get("timeout") or DEFAULT_TIMEOUT),
                fields.get("onFailure") == "block",
            )


def _is_valid(event: str, output: Json) -> bool:
    """Return whether the CLI accepts a hook output; it rejects nulls and unknown values."""
    match output:
        case dict() if None in output.values():
            return False
        case {"continue": value} if not isinstance(value, bool):
            return False
        case {"decision": value} if value not in ("approve", "block"):
            return False
        case {"hookSpecificOutput": specific}:
            return _is_specific(event, specific)
        case dict():
            return True
        case _:
            return False


def _is_specific(event: str, specific: Json) -> bool:
    match specific:
        case {"hookEventName": name} if name != event:
            return False
        case {"permissionDecision": value} if value not in DECISIONS:
            return False
        case {"updatedInput": value} if not is_object(value):
            return False
        case {"hookEventName": _}:
            return None not in specific.values()
        case _:
            return False
