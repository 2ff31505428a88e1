"""Permission requests, decisions about them, rules and policies.

Names are loaded on first use: only a session with a policy loads the policy and its rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steersman._lazy import by_name

if TYPE_CHECKING:
    from steersman.permissions.asks import *
    from steersman.permissions.decisions import *
    from steersman.permissions.json_form import *
    from steersman.permissions.paths import Place as Place
    from steersman.permissions.policy import *
    from steersman.permissions.questions import *
    from steersman.permissions.rules import *
    from steersman.permissions.updates import *

    __all__: list[str]
else:
    # Each entry equals the `__all__` of its file, except `paths`, which exports only `Place`.
    _HOMES = {
        "asks": "Answer Ask AskKind EarlierAnswer Payload",
        "decisions": "Allow Classification Decision Deny DialogAnswer ElicitationAnswer",
        "json_form": "answer_from_json answer_to_json ask_from_json ask_to_json",
        "paths": "Place",
        "policy": (
            "MAIN Explanation Policy PolicyRule Predicate RecordedCall RuleWords Verdict"
            " DryRun allow ask deny"
        ),
        "questions": (
            "ASK_USER_QUESTION CanUseTool Choice Elicitation PermissionContext Question"
            " QuestionAnswer QuestionAsk Scope UserDialog"
        ),
        "rules": "Match Rule ToolCall parse_rule",
        "updates": (
            "AddDirectories AddRules Behavior Destination PermissionUpdate RemoveDirectories"
            " RemoveRules ReplaceRules SetMode ToolRule make_effective"
        ),
    }
    _NAMES = {home: tuple(names.split()) for home, names in _HOMES.items()}
    __getattr__, __dir__ = by_name(__name__, _NAMES)
    __all__ = [name for names in _NAMES.values() for name in names]
