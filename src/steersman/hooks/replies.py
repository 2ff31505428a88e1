"""What a hook may answer."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct, field

__all__ = ["Reply", "ToolVerdict", "allow", "deny"]


class ToolVerdict(
    Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    rename="camel",
    tag_field="hookEventName",
    tag="PreToolUse",
):
    """Let the tool run, stop it, or ask."""

    permission_decision: Literal["allow", "deny", "ask"] | None = None
    permission_decision_reason: str | None = None
    updated_input: dict[str, Any] | None = None
    additional_context: str | None = None


class Reply(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Carry on, or not; and what to tell the model and the person."""

    continue_: bool = field(default=True, name="continue")
    stop_reason: str | None = None
    system_message: str | None = None
    decision: Literal["block"] | None = None
    reason: str | None = None
    hook_specific_output: ToolVerdict | dict[str, Any] | None = None


def allow(*, updated_input: dict[str, Any] | None = None) -> Reply:
    """Let the tool of a `PreToolUse` run without asking, perhaps with other input."""
    verdict = ToolVerdict(permission_decision="allow", updated_input=updated_input)
    return Reply(hook_specific_output=verdict)


def deny(reason: str) -> Reply:
    """Stop the tool of a `PreToolUse`; the model reads `reason`."""
    verdict = ToolVerdict(permission_decision="deny", permission_decision_reason=reason)
    return Reply(hook_specific_output=verdict)
