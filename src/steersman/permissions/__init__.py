"""What the CLI asks a person or a policy, and the answers.

The rules and policies are loaded when they are first used: most programs have none.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from steersman.permissions import asks, decisions, questions, updates, user_questions
from steersman.permissions.asks import *
from steersman.permissions.decisions import *
from steersman.permissions.questions import *
from steersman.permissions.updates import *
from steersman.permissions.user_questions import *

if TYPE_CHECKING:
    from steersman.permissions.paths import Place as Place
    from steersman.permissions.policy import MAIN as MAIN
    from steersman.permissions.policy import Explanation as Explanation
    from steersman.permissions.policy import Policy as Policy
    from steersman.permissions.policy import PolicyRule as PolicyRule
    from steersman.permissions.policy import Verdict as Verdict
    from steersman.permissions.policy import allow as allow
    from steersman.permissions.policy import ask as ask
    from steersman.permissions.policy import deny as deny
    from steersman.permissions.recorded import RecordedCall as RecordedCall
    from steersman.permissions.recorded import WouldBe as WouldBe
    from steersman.permissions.rules import Match as Match
    from steersman.permissions.rules import Rule as Rule
    from steersman.permissions.rules import ToolCall as ToolCall
    from steersman.permissions.rules import parse_rule as parse_rule

_HOMES = {
    "MAIN": "policy",
    "Explanation": "policy",
    "Match": "rules",
    "Place": "paths",
    "Policy": "policy",
    "PolicyRule": "policy",
    "RecordedCall": "recorded",
    "Rule": "rules",
    "ToolCall": "rules",
    "Verdict": "policy",
    "WouldBe": "recorded",
    "allow": "policy",
    "ask": "policy",
    "deny": "policy",
    "parse_rule": "rules",
}

__all__: list[str] = []
__all__ += asks.__all__
__all__ += decisions.__all__
__all__ += questions.__all__
__all__ += updates.__all__
__all__ += user_questions.__all__
__all__ += [
    "MAIN",
    "Explanation",
    "Match",
    "Place",
    "Policy",
    "PolicyRule",
    "RecordedCall",
    "Rule",
    "ToolCall",
    "Verdict",
    "WouldBe",
    "allow",
    "ask",
    "deny",
    "parse_rule",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'steersman.permissions' has no attribute {name!r}")
    value = getattr(import_module(f"steersman.permissions.{home}"), name)
    globals()[name] = value
    return value
