"""Checks whether a tool may be deferred until the session is resumed.

A CLI that is resumed by another program can run the tool before any hook is registered, so only a
rule in the CLI's own settings keeps the tool from running. A CLI that does not wait for our hooks
on resume must not defer at all. Of two tools deferred in one turn the CLI forgets the first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from steersman import _json
from steersman.hooks.events import PreToolUse
from steersman.hooks.outputs import ToolVerdict
from steersman.hooks.replies import Reply

__all__ = ["DeferralCheck", "ask_rules"]

WHOLE_TOOL = re.compile(r"([^()]+)(\(\*?\))?")

NO_RULE = (
    "Denied: {tool} cannot be deferred, because no rule of the CLI would ask about it on resume."
    ' The author can add settings={{"permissions": {{"ask": ["{tool}"]}}}}.'
)
CANNOT_WAIT = (
    "Denied: {tool} cannot be deferred, because this CLI would run it on resume before it knows the"
    " hooks. The author can update the CLI."
)
ONE_AT_A_TIME = "Denied for now: another tool was deferred in this turn. Ask for it again later."


class DeferralCheck:
    """Allows one deferred tool per turn, and only tools that an `ask` rule covers."""

    def __init__(
        self, rules: Iterable[str], waits_on_resume: Callable[[], bool] = lambda: True
    ) -> None:
        self._rules = tuple(rules)
        self._waits_on_resume = waits_on_resume
        self._last: tuple[str, str] | None = None

    def objection(self, event: PreToolUse, reply: Reply) -> str | None:
        """Return why this reply may not defer the tool, or None if the reply can be sent."""
        if _decision_of(reply.hook_specific_output) != "defer":
            return None
        if not any(_covers(rule, event.tool_name) for rule in self._rules):
            return NO_RULE.format(tool=event.tool_name)
        if not self._waits_on_resume():
            return CANNOT_WAIT.format(tool=event.tool_name)
        prompt, tool_use = event.prompt_id, event.tool_use_id
        if self._last is not None and self._last[0] == prompt and self._last[1] != tool_use:
            return ONE_AT_A_TIME
        self._last = (prompt, tool_use)
        return None


def ask_rules(*settings: object) -> tuple[str, ...]:
    """Return the `permissions.ask` rules of settings that are mappings or JSON, not paths."""
    rules: list[str] = []
    for given in settings:
        permissions = _object_of(given).get("permissions")
        asked = permissions.get("ask") if _json.is_mapping(permissions) else None
        if _json.is_sequence(asked):
            rules += [rule for rule in asked if isinstance(rule, str)]
    return tuple(rules)


def _object_of(settings: object) -> _json.JsonObject:
    if isinstance(settings, str) and settings.lstrip().startswith("{"):
        try:
            settings = _json.loads(settings.encode("utf-8", "surrogatepass"))
        except ValueError:
            return {}
    return settings if _json.is_mapping(settings) else {}


def _decision_of(specific: object) -> object:
    if isinstance(specific, ToolVerdict):
        return specific.permission_decision
    return specific.get("permissionDecision") if _json.is_mapping(specific) else None


def _covers(rule: str, tool: str) -> bool:
    """Return whether a rule covers every call of a tool."""
    found = WHOLE_TOOL.fullmatch(rule.strip())
    if found is None:
        return False
    name = found[1]
    return name == tool or (
        name.startswith("mcp__") and tool.startswith(name.removesuffix("*").rstrip("_") + "__")
    )
