"""`can_use_tool` of the official form → the approver of a session.

Whatever is not an approval denies the call: an exception, and a value that is no permission result.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, cast

from steersman.compat._calling import Call, call_here
from steersman.compat._shapes.permissions import (
    CanUseToolShadowedWarning,
    PermissionUpdate,
    ToolPermissionContext,
)
from steersman.compat._warnings import warn
from steersman.permissions.decisions import Allow, Decision, Deny
from steersman.permissions.questions import PermissionContext

Approve = Callable[[str, dict[str, Any], PermissionContext], Awaitable[Decision]]


def native_approver(can_use_tool: Callable[..., Any], call: Call = call_here) -> Approve:
    """Return the approver that asks `can_use_tool`; `call` calls it."""

    async def approve(tool: str, given: dict[str, Any], context: PermissionContext) -> Decision:
        return _decision(await call(can_use_tool, tool, given, _context(context)))

    return approve


def _context(context: PermissionContext) -> ToolPermissionContext:
    asked = context.question
    return ToolPermissionContext(
        suggestions=[PermissionUpdate.from_dict(each) for each in asked.permission_suggestions],
        tool_use_id=asked.tool_use_id or None,
        agent_id=asked.agent_id,
        blocked_path=asked.blocked_path,
        decision_reason=asked.decision_reason,
        title=asked.title or None,
        display_name=asked.display_name or None,
        description=asked.description or None,
    )


def _decision(given: Any) -> Decision:
    """Return the decision that a permission result is. Raises `TypeError` for anything else.

    Recognized by its attributes, so that results of the official package's own classes work too.
    """
    behavior = getattr(given, "behavior", None)
    if behavior == "allow" and hasattr(given, "updated_input"):
        updates = given.updated_permissions
        return Allow(given.updated_input, None if updates is None else [*map(_update, updates)])
    if behavior == "deny" and hasattr(given, "message"):
        return Deny(given.message, bool(given.interrupt))
    raise TypeError(
        "can_use_tool must return PermissionResultAllow or PermissionResultDeny, not"
        f" {type(given).__name__}"
    )


def _update(given: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", given if isinstance(given, dict) else given.to_dict())


def warn_of_shadows(mode: str | None, rules: Iterable[str]) -> None:
    """Warn if the CLI will not ask about some calls, for which `can_use_tool` is not called."""
    if mode == "bypassPermissions":
        warn(
            "can_use_tool will not be called: permission_mode='bypassPermissions' allows every call"
            " that no rule denies. A PreToolUse hook is called for every tool call.",
            CanUseToolShadowedWarning,
        )
        return
    whole = [_whole_tool(each) for each in rules]
    shadowed = [*dict.fromkeys(tool for tool in whole if tool)]
    if shadowed:
        warn(
            f"can_use_tool will not be called for {', '.join(shadowed)}: allowed_tools allows them"
            " without a request. A PreToolUse hook is called for every tool call.",
            CanUseToolShadowedWarning,
        )


def _whole_tool(rule: str) -> str:
    """Return the tool that a rule allows altogether; empty if it allows some calls only."""
    tool, bracket, content = rule.strip().partition("(")
    return tool if not bracket or content in (")", "*)") else ""
