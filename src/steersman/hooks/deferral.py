"""When a tool may be put off until the session is resumed.

A resumed CLI can run the tool before our hooks are registered, so only a rule in its own settings
keeps it from running; and of two tools put off at once it forgets the first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from steersman import _json
from steersman.hooks.events import PreToolUse
from steersman.hooks.outputs import ToolVerdict
from steersman.hooks.replies import Reply

__all__ = ["DeferralCheck", "ask_rules"]

WHOLE_TOOL = re.compile(r"([^()]+)(\(\*?\))?")

NO_RULE = (
    "Denied: {tool} cannot be put off, because no rule of the CLI would ask about it on resume."
    ' The author can add settings={{"permissions": {{"ask": ["{tool}"]}}}}.'
)
ONE_AT_A_TIME = "Denied for now: another tool was put off in this turn. Ask for it again later."


class DeferralCheck:
    """Lets one tool of a turn be put off, where a rule stands behind it."""

    def __init__(self, rules: Iterable[str]) -> None:
        self._rules = tuple(rules)
        self._last: tuple[str, str] | None = None

    def objection(self, event: PreToolUse, reply: Reply) -> str | None:
        """Why this reply cannot be sent, if it puts the tool off."""
        if _decision_of(reply.hook_specific_output) != "defer":
            return None
        if not any(_covers(rule, event.tool_name) for rule in self._rules):
            return NO_RULE.format(tool=event.tool_name)
        prompt, tool_use = event.prompt_id, event.tool_use_id
        if self._last is not None and self._last[0] == prompt and self._last[1] != tool_use:
            return ONE_AT_A_TIME
        self._last = (prompt, tool_use)
        return None


def ask_rules(*settings: object) -> tuple[str, ...]:
    """The rules under `permissions.ask` in settings that are given as such, not by a path."""
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
    """Whether a rule is about every call of a tool."""
    found = WHOLE_TOOL.fullmatch(rule.strip())
    if found is None:
        return False
    name = found[1]
    return name == tool or (
        name.startswith("mcp__") and tool.startswith(name.removesuffix("*").rstrip("_") + "__")
    )
