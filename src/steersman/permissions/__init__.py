"""What the CLI asks a person or a policy, and the answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steersman._lazy import by_name

if TYPE_CHECKING:
    from steersman.permissions.asks import Ask, AskKind, Payload
    from steersman.permissions.decisions import (
        Allow,
        Classification,
        Decision,
        Deny,
        DialogAnswer,
        ElicitationAnswer,
    )
    from steersman.permissions.paths import Place
    from steersman.permissions.policy import (
        MAIN,
        Explanation,
        Policy,
        PolicyRule,
        Verdict,
        allow,
        ask,
        deny,
    )
    from steersman.permissions.questions import (
        CanUseTool,
        Elicitation,
        PermissionContext,
        Scope,
        UserDialog,
    )
    from steersman.permissions.recorded import RecordedCall, WouldBe
    from steersman.permissions.rules import Match, Rule, ToolCall, parse_rule
    from steersman.permissions.updates import (
        AddDirectories,
        AddRules,
        Behavior,
        Destination,
        PermissionUpdate,
        RemoveDirectories,
        RemoveRules,
        ReplaceRules,
        SetMode,
        ToolRule,
        where_it_counts,
    )
    from steersman.permissions.user_questions import (
        ASK_USER_QUESTION,
        Choice,
        Question,
        QuestionAnswer,
        QuestionAsk,
    )
else:
    __getattr__, __dir__ = by_name(
        __name__,
        {
            "asks": ("Ask", "AskKind", "Payload"),
            "decisions": (
                "Allow",
                "Classification",
                "Decision",
                "Deny",
                "DialogAnswer",
                "ElicitationAnswer",
            ),
            "paths": ("Place",),
            "policy": (
                "MAIN",
                "Explanation",
                "Policy",
                "PolicyRule",
                "Verdict",
                "allow",
                "ask",
                "deny",
            ),
            "questions": ("CanUseTool", "Elicitation", "PermissionContext", "Scope", "UserDialog"),
            "recorded": ("RecordedCall", "WouldBe"),
            "rules": ("Match", "Rule", "ToolCall", "parse_rule"),
            "updates": (
                "AddDirectories",
                "AddRules",
                "Behavior",
                "Destination",
                "PermissionUpdate",
                "RemoveDirectories",
                "RemoveRules",
                "ReplaceRules",
                "SetMode",
                "ToolRule",
                "where_it_counts",
            ),
            "user_questions": (
                "ASK_USER_QUESTION",
                "Choice",
                "Question",
                "QuestionAnswer",
                "QuestionAsk",
            ),
        },
    )

__all__ = [
    "ASK_USER_QUESTION",
    "MAIN",
    "AddDirectories",
    "AddRules",
    "Allow",
    "Ask",
    "AskKind",
    "Behavior",
    "CanUseTool",
    "Choice",
    "Classification",
    "Decision",
    "Deny",
    "Destination",
    "DialogAnswer",
    "Elicitation",
    "ElicitationAnswer",
    "Explanation",
    "Match",
    "Payload",
    "PermissionContext",
    "PermissionUpdate",
    "Place",
    "Policy",
    "PolicyRule",
    "Question",
    "QuestionAnswer",
    "QuestionAsk",
    "RecordedCall",
    "RemoveDirectories",
    "RemoveRules",
    "ReplaceRules",
    "Rule",
    "Scope",
    "SetMode",
    "ToolCall",
    "ToolRule",
    "UserDialog",
    "Verdict",
    "WouldBe",
    "allow",
    "ask",
    "deny",
    "parse_rule",
    "where_it_counts",
]
