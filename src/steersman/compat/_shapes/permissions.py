"""Permission modes, rules and answers, under the official names."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

__all__ = [
    "CanUseTool",
    "CanUseToolShadowedWarning",
    "PermissionBehavior",
    "PermissionMode",
    "PermissionResult",
    "PermissionResultAllow",
    "PermissionResultDeny",
    "PermissionRuleValue",
    "PermissionUpdate",
    "PermissionUpdateDestination",
    "ToolPermissionContext",
]


PermissionMode: TypeAlias = Literal[
    "default", "acceptEdits", "plan", "bypassPermissions", "dontAsk", "auto"
]
"""How the CLI decides about tool calls that no rule names."""


PermissionUpdateDestination: TypeAlias = Literal[
    "userSettings", "projectSettings", "localSettings", "session"
]
"""Where a change of permissions is kept."""


PermissionBehavior: TypeAlias = Literal["allow", "deny", "ask"]
"""What a permission rule does with a call that matches."""


@dataclass
class PermissionRuleValue:
    """A permission rule: a tool, and what its call must match."""

    tool_name: str
    rule_content: str | None = None


@dataclass
class PermissionUpdate:
    """A change of permissions, as the CLI proposes it and as an answer may ask for it."""

    type: Literal[
        "addRules",
        "replaceRules",
        "removeRules",
        "setMode",
        "addDirectories",
        "removeDirectories",
    ]
    rules: list[PermissionRuleValue] | None = None
    behavior: PermissionBehavior | None = None
    mode: PermissionMode | None = None
    directories: list[str] | None = None
    destination: PermissionUpdateDestination | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the change as the CLI takes it: only what belongs to its type, and is set."""
        given = {
            "rules": None if self.rules is None else [_rule_on_the_wire(it) for it in self.rules],
            "behavior": self.behavior,
            "mode": self.mode,
            "directories": self.directories,
        }
        found: dict[str, Any] = {"type": self.type}
        if self.destination is not None:
            found["destination"] = self.destination
        for name in FIELDS_OF_UPDATES.get(self.type, ()):
            if given[name] is not None:
                found[name] = given[name]
        return found

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "PermissionUpdate":
        """Return the change that the CLI sent as `data`."""
        rules = data.get("rules")
        return cls(
            type=data["type"],
            rules=rules
            if rules is None
            else [PermissionRuleValue(rule["toolName"], rule.get("ruleContent")) for rule in rules],
            behavior=data.get("behavior"),
            mode=data.get("mode"),
            directories=data.get("directories"),
            destination=data.get("destination"),
        )


def _rule_on_the_wire(rule: PermissionRuleValue) -> dict[str, str | None]:
    return {"toolName": rule.tool_name, "ruleContent": rule.rule_content}


FIELDS_OF_UPDATES: Final = {
    "addRules": ("rules", "behavior"),
    "replaceRules": ("rules", "behavior"),
    "removeRules": ("rules", "behavior"),
    "setMode": ("mode",),
    "addDirectories": ("directories",),
    "removeDirectories": ("directories",),
}
"""What each type of `PermissionUpdate` sends beside its destination."""


@dataclass
class ToolPermissionContext:
    """What `can_use_tool` gets beside the tool and its input."""

    signal: Any | None = None
    suggestions: list[PermissionUpdate] = field(default_factory=list[PermissionUpdate])
    tool_use_id: str | None = None
    agent_id: str | None = None
    blocked_path: str | None = None
    decision_reason: str | None = None
    title: str | None = None
    display_name: str | None = None
    description: str | None = None


@dataclass
class PermissionResultAllow:
    """The call may run, with another input or further permissions if given."""

    behavior: Literal["allow"] = "allow"
    updated_input: dict[str, Any] | None = None
    updated_permissions: list[PermissionUpdate] | None = None


@dataclass
class PermissionResultDeny:
    """The call may not run; the model reads `message`."""

    behavior: Literal["deny"] = "deny"
    message: str = ""
    interrupt: bool = False


PermissionResult: TypeAlias = PermissionResultAllow | PermissionResultDeny
"""The answer of `can_use_tool`."""


CanUseTool: TypeAlias = Callable[
    [str, dict[str, Any], ToolPermissionContext], Awaitable[PermissionResult]
]
"""A callback that decides about one tool call: name, input, context."""


class CanUseToolShadowedWarning(UserWarning):
    """A rule of `allowed_tools` allows calls before `can_use_tool` is asked."""
