"""Replies of hooks, and functions that make them.

`allow`, `deny`, `ask` and `context` work at every event that has such a reply: `reply_checks`
converts them into the form that the event needs.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from steersman._json import JsonDict, is_mapping
from steersman.errors import UsageError
from steersman.hooks.outputs import Context, Output, ToolVerdict

__all__ = [
    "AsyncReply",
    "CommonReply",
    "Reply",
    "allow",
    "ask",
    "block",
    "context",
    "defer",
    "deny",
    "modify",
]


class CommonReply(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """The fields that a reply may have at every event."""

    continue_: bool = field(default=True, name="continue")
    """False ends the turn, and from a guard without a decision of its own it stops the action.

    From another hook at `PreToolUse` the tool still runs: use `deny()` to stop it."""
    suppress_output: bool = False
    stop_reason: str | None = None
    system_message: str | None = None
    """A message that the CLI shows to the user."""
    terminal_sequence: str | None = None
    decision: Literal["approve", "block"] | None = None
    reason: str | None = None


class Reply(CommonReply, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """The reply of a hook: the common fields, and those of its event."""

    hook_specific_output: Output | Context | JsonDict | None = None

    def __post_init__(self) -> None:
        if self.decision not in (None, "approve", "block"):
            raise UsageError("decision", self.decision, "approve, block, or None")
        if not isinstance(self.continue_, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError("continue_", self.continue_, "True or False")


class AsyncReply(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A reply with which the CLI does not wait for the hook, and ignores what it decides.

    From a guard it stops the action.
    """

    async_: Literal[True] = field(name="async")
    async_timeout: int | None = None
    """In milliseconds, as on the wire."""


def allow(*, updated_input: JsonDict | None = None, reason: str | None = None) -> Reply:
    """Allow the action without a permission request, optionally with changed input."""
    _check_input(updated_input, may_be_none=True)
    _check_reason(reason, may_be_none=True)
    verdict = ToolVerdict(
        permission_decision="allow",
        permission_decision_reason=reason,
        updated_input=updated_input,
    )
    return Reply(hook_specific_output=verdict)


def modify(updated_input: JsonDict) -> Reply:
    """Change the input and leave the decision to others, who see the changed input."""
    _check_input(updated_input)
    return Reply(hook_specific_output=ToolVerdict(updated_input=updated_input))


def deny(reason: str) -> Reply:
    """Stop the action. The model reads `reason`; at a prompt, the user does."""
    return _decided("deny", reason)


def ask(reason: str | None = None) -> Reply:
    """Make the CLI request a permission, in every mode and against every rule (`PreToolUse`)."""
    return _decided("ask", reason)


def defer(reason: str | None = None) -> Reply:
    """Defer the tool of a `PreToolUse`: the turn ends, and the resumed session asks again.

    Works for the main agent, not for tools of this process, and once per turn; otherwise the tool
    is denied, because the CLI would lose the call.
    """
    return _decided("defer", reason)


def block(reason: str) -> Reply:
    """Reply with the CLI's `decision: block`.

    At `Stop` the turn then continues, with `reason` as its next prompt.
    """
    _check_reason(reason)
    return Reply(decision="block", reason=reason)


def context(text: str) -> Reply:
    """Add a text for the model."""
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError("text", text, "a text for the model")
    return Reply(hook_specific_output=Context(text))


def _decided(decision: Literal["deny", "ask", "defer"], reason: str | None) -> Reply:
    _check_reason(reason, may_be_none=decision != "deny")
    verdict = ToolVerdict(permission_decision=decision, permission_decision_reason=reason)
    return Reply(hook_specific_output=verdict)


def _check_reason(reason: object, *, may_be_none: bool = False) -> None:
    if not (isinstance(reason, str) or (may_be_none and reason is None)):
        raise UsageError("reason", reason, "a text" + (", or None" if may_be_none else ""))


def _check_input(given: object, *, may_be_none: bool = False) -> None:
    if not (is_mapping(given) or (may_be_none and given is None)):
        raise UsageError("updated_input", given, "a mapping" + (", or None" if may_be_none else ""))
