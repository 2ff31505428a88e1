"""Applies `Options.policy` as a `PreToolUse` hook that runs before the caller's own hooks.

The hook is a guard: if it fails, the tool does not run.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Literal

from steersman._json import JsonObject
from steersman._session.requests.decision_log import DecisionLog
from steersman._session.requests.permissions import PermissionResponder
from steersman._session.requests.real_paths import readings_of
from steersman.errors import UsageError
from steersman.hooks.events import PreToolUse
from steersman.options import Options
from steersman.permissions import AddRules, Allow
from steersman.permissions.paths import Place
from steersman.permissions.policy import Explanation, Policy
from steersman.permissions.rules import Match, Rule, ToolCall, parse_rule

__all__ = ["PolicyHook"]

NO_OPINION: JsonObject = {}
STRICTNESS = {"allow": 0, "cli": 1, "ask": 2, "deny": 3}


class PolicyHook:
    """Decides by the policy, and remembers the rules that a user allowed for the session."""

    def __init__(self, options: Options) -> None:
        self.decisions: DecisionLog | None = None
        """Set by `connect` when the session is built."""
        self._policy = options.policy or Policy()
        self._asks_for_all = options.ask_every_call
        self._listed = _listed(options)
        self._remembered: list[Rule] = []
        self._home = options.env.get("HOME") or os.environ.get("HOME", "")
        self._cwd = ""

    def connect(self, permissions: PermissionResponder, decisions: DecisionLog) -> None:
        """Record decisions in `decisions`, and remember lasting approvals of `permissions`."""
        self.decisions = decisions
        permissions.on_remembered = self.remember

    def __call__(self, event: PreToolUse) -> JsonObject:
        """Return the policy's decision about the call as a hook output."""
        # `cd` in Bash changes the CLI's directory. Relative rules begin at the first directory,
        # and relative paths at the current one.
        self._cwd = self._cwd or event.cwd
        call = ToolCall(
            event.tool_name,
            event.tool_input,
            event.agent_type,
            event.permission_mode or "default",
            Place(self._cwd or "/", self._home, event.cwd),
        )
        found = self._decide(call)
        if found.verdict == "cli":
            return NO_OPINION
        if found.verdict != "ask" and self.decisions is not None:
            self.decisions.record(
                event.tool_use_id,
                event.tool_name,
                found.verdict,
                "rule",
                by=found.rule,
                reason=found.reason,
                agent=event.agent_id,
            )
        return _reply(found.verdict, _reason(found))

    def remember(self, approval: Allow) -> None:
        """Allow from now on what the updates of `approval` allow."""
        for update in approval.updated_permissions or ():
            if isinstance(update, AddRules) and update.behavior == "allow":
                self._remembered += _parsed(map(str, update.rules))

    def _decide(self, call: ToolCall) -> Explanation:
        """Return the stricter decision: about the path as written, or the file that it leads to."""
        readings = readings_of(call)
        found = max(map(self._decide_one, readings), key=lambda each: STRICTNESS[each.verdict])
        if found.verdict == "ask":
            for rule in self._remembered:
                if all(rule.match(each, "allow") is Match.YES for each in readings):
                    return Explanation("allow", f"remembered {rule}")
        return found

    def _decide_one(self, call: ToolCall) -> Explanation:
        found = self._policy.decide(call)
        if found.verdict == "cli" and self._asks_for_all and not self._covers(self._listed, call):
            return Policy(otherwise="ask").decide(call)
        return found

    def _covers(self, rules: list[Rule], call: ToolCall) -> bool:
        return any(rule.match(call, "allow") is not Match.NO for rule in rules)


def _listed(options: Options) -> list[Rule]:
    """Return rules for tools that the options approve by name; `ask_every_call` skips them."""
    rules = _parsed(options.allowed_tools)
    if options.functions:
        rules.append(Rule("mcp__functions"))
    if options.skills:
        rules.append(Rule("Skill"))
    return rules


def _parsed(texts: Iterable[str]) -> list[Rule]:
    found: list[Rule] = []
    for text in texts:
        try:
            found.append(parse_rule(text))
        except UsageError:
            # Only the CLI can read this rule, so its calls are asked about again.
            continue
    return found


def _reason(found: Explanation) -> str:
    if found.verdict == "deny":
        return f"Denied by policy ({found.rule})" + (f": {found.reason}" if found.reason else ".")
    return f"policy: {found.rule}"


def _reply(verdict: Literal["allow", "deny", "ask"], reason: str) -> JsonObject:
    return {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": verdict,
            "permissionDecisionReason": reason,
        }
    }
