"""What a hook may answer, and the words for it.

`allow`, `deny`, `ask` and `context` fit every event that knows such a thing: `answers` turns them
into what that event's reply looks like.
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
    """What a reply may say at every event."""

    continue_: bool = field(default=True, name="continue")
    """False ends the turn; at `PreToolUse` the tool still runs, so say `deny()` as well."""
    suppress_output: bool = False
    stop_reason: str | None = None
    system_message: str | None = None
    """Told to the person."""
    terminal_sequence: str | None = None
    decision: Literal["approve", "block"] | None = None
    reason: str | None = None


class Reply(CommonReply, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Carry on, or not; and what to tell the model and the person."""

    hook_specific_output: Output | Context | JsonDict | None = None

    def __post_init__(self) -> None:
        if self.decision not in (None, "approve", "block"):
            raise UsageError("decision", self.decision, "approve, block, or None")
        if not isinstance(self.continue_, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError("continue_", self.continue_, "True or False")


class AsyncReply(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Do not wait for this hook: it has no say, and works on by itself."""

    async_: Literal[True] = field(name="async")
    async_timeout: int | None = None
    """In milliseconds, as on the wire."""


def allow(*, updated_input: JsonDict | None = None, reason: str | None = None) -> Reply:
    """Let it happen without asking anyone, perhaps with other input."""
    _check_input(updated_input, may_be_none=True)
    _check_reason(reason, may_be_none=True)
    verdict = ToolVerdict(
        permission_decision="allow",
        permission_decision_reason=reason,
        updated_input=updated_input,
    )
    return Reply(hook_specific_output=verdict)


def modify(updated_input: JsonDict) -> Reply:
    """Change the input and leave the decision to others: it is asked about as changed."""
    _check_input(updated_input)
    return Reply(hook_specific_output=ToolVerdict(updated_input=updated_input))


def deny(reason: str) -> Reply:
    """Stop it; whoever wanted it, mostly the model, reads `reason`."""
    return _decided("deny", reason)


def ask(reason: str | None = None) -> Reply:
    """Have the tool of a `PreToolUse` asked about, whatever rules and modes say."""
    return _decided("ask", reason)


def defer(reason: str | None = None) -> Reply:
    """Put the tool of a `PreToolUse` off: the turn ends, and a resumed session asks again.

    Only where a `permissions.ask` rule for the whole tool stands in `settings=`, and once per
    turn; else the tool is denied. Without such a rule the CLI may run it on resume, unasked.
    """
    return _decided("defer", reason)


def block(reason: str) -> Reply:
    """The CLI's `decision: block`: at `Stop` the turn goes on with `reason` as its next prompt."""
    _check_reason(reason)
    return Reply(decision="block", reason=reason)


def context(text: str) -> Reply:
    """Tell the model something more."""
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
