"""Policy: ordered rules that decide about tool calls, and can say why.

Rules are read from the top; the first that covers a call decides. `forbid` and `available` come
before them, `auto_approve` after. What nothing decides is left to the CLI, unless `otherwise` says
more. Pure: what a session does with the verdict is the session's business.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

from steersman._json import JsonObject, is_sequence
from steersman.errors import UsageError
from steersman.permissions.paths import Place, is_protected
from steersman.permissions.policy_file import PolicyTable, read_table
from steersman.permissions.rules import EDITING, READING, Match, Rule, ToolCall, parse_rule
from steersman.permissions.shell import commands_in
from steersman.permissions.updates import Behavior

__all__ = [
    "MAIN",
    "Explanation",
    "Policy",
    "PolicyRule",
    "RecordedCall",
    "Verdict",
    "WouldBe",
    "allow",
    "ask",
    "deny",
]

Verdict = Literal["allow", "deny", "ask", "cli"]
"""`cli`: nothing here decides, the CLI does by its own rules and mode."""

MAIN = "main"
"""The name of the main agent in `agents=`."""

Predicate = Callable[[ToolCall], bool]


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """One rule: what it says, about which calls, of which agents."""

    behavior: Behavior
    rule: Rule
    because: str = ""
    when: Predicate | None = None
    agents: tuple[str, ...] | None = None

    def __str__(self) -> str:
        whose = "" if self.agents is None else f" for {', '.join(self.agents)}"
        return f"{self.behavior} {self.rule}{whose}{' when ...' if self.when else ''}"

    @property
    def is_plain(self) -> bool:
        """Whether the CLI could read it: no predicate, no agents."""
        return self.when is None and self.agents is None

    def match(self, call: ToolCall) -> Match:
        """Whether it covers the call; a predicate that fails counts against the call."""
        if self.agents is not None and (call.agent or MAIN) not in self.agents:
            return Match.NO
        found = self.rule.match(call, self.behavior)
        if found is Match.NO or self.when is None:
            return found
        try:
            return found if self.when(call) else Match.NO
        except Exception:  # noqa: BLE001 - the caller's own code; a broken guard must not let anything through
            return Match.NO if self.behavior == "allow" else found


@dataclass(frozen=True, slots=True)
class Explanation:
    """What becomes of a call, and which rule says so."""

    verdict: Verdict
    rule: str
    """The deciding rule, or the word that stands for it; empty where nothing decides."""
    reason: str = ""
    is_final: bool = True
    """Whether the CLI cannot be stricter: it guards some paths and, in plan mode, every change."""


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A call as a journal tells of it."""

    tool_use_id: str
    call: ToolCall
    ran: bool
    """Whether it was let through, however that came."""
    source: str = ""
    """Who decided: rule, callback, hook, cli, person; empty if nobody is on record."""
    by: str = ""


@dataclass(frozen=True, slots=True)
class WouldBe:
    """What a policy would have made of a recorded call."""

    recorded: RecordedCall
    verdict: Verdict
    rule: str
    changes: bool
    """Whether something else would have happened: `ask` counts if nobody was asked then."""


def allow(*rules: str, **fields: Any) -> tuple[PolicyRule, ...]:
    """Let calls that these rules cover run; `when=`, `agents=` and `because=` as in `deny`."""
    return _make_rules("allow", rules, **fields)


def deny(*rules: str, **fields: Any) -> tuple[PolicyRule, ...]:
    """Stop calls that these rules cover.

    `when` takes a `ToolCall` and says whether the rule counts; `agents` are the kinds of subagents
    that it counts for, `main` among them; `because` is told to the model.
    """
    return _make_rules("deny", rules, **fields)


def ask(*rules: str, **fields: Any) -> tuple[PolicyRule, ...]:
    """Put calls that these rules cover to `can_use_tool` or the inbox, in every mode."""
    return _make_rules("ask", rules, **fields)


def _make_rules(
    behavior: Behavior,
    rules: Iterable[str],
    *,
    because: str = "",
    when: Predicate | None = None,
    agents: Iterable[str] | str | None = None,
) -> tuple[PolicyRule, ...]:
    if not isinstance(because, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError("because", because, "a text")
    if not (when is None or callable(when)):
        raise UsageError("when", when, "a function of a ToolCall")
    named = (agents,) if isinstance(agents, str) else agents
    whose = None if named is None else tuple(named)
    made = tuple(PolicyRule(behavior, parse_rule(each), because, when, whose) for each in rules)
    if not made:
        raise UsageError(behavior, "no rule", "at least one rule")
    return made


@dataclass(frozen=True, slots=True, init=False)
class Policy:
    """Who may do what. Frozen; give it to an agent with `policy=`."""

    rules: tuple[PolicyRule, ...]
    available: tuple[str, ...] | None
    auto_approve: tuple[str, ...]
    forbid: tuple[str, ...]
    otherwise: Literal["cli", "ask", "deny"]
    remember: Literal["session", "keep"] | None

    def __init__(
        self,
        *rules: Iterable[PolicyRule],
        available: Iterable[str] | None = None,
        auto_approve: Iterable[str] = (),
        forbid: Iterable[str] = (),
        otherwise: Literal["cli", "ask", "deny"] = "cli",
        remember: Literal["session", "keep"] | None = None,
    ) -> None:
        """Make one of `allow(...)`, `ask(...)` and `deny(...)`, in the order that they count.

        `available`: the built-in tools that exist at all. `auto_approve`: rules for what runs
        unasked. `forbid`: rules for what never runs, first of all. `remember`: what a person allows
        is not asked again, in this `session` or for good (`keep`).
        """
        fields = {
            "rules": _flatten(rules),
            "available": None if available is None else _rule_texts("available", available),
            "auto_approve": _rule_texts("auto_approve", auto_approve),
            "forbid": _rule_texts("forbid", forbid),
            "otherwise": otherwise,
            "remember": remember,
        }
        if otherwise not in ("cli", "ask", "deny"):
            raise UsageError("otherwise", otherwise, "cli, ask or deny")
        if remember not in (None, "session", "keep"):
            raise UsageError("remember", remember, "session, keep or None")
        for name, value in fields.items():
            object.__setattr__(self, name, value)
        self._check_lists()

    @classmethod
    def from_toml(cls, text: str) -> Self:
        """Read one from a text; see docs/permissions.md for its shape. Raises `UsageError`."""
        table: PolicyTable = read_table(text)
        made = [
            _make_rules(each.behavior, each.rules, because=each.because, agents=each.agents)
            for each in table.rules
        ]
        return cls(*made, **table.fields)

    def explain(
        self,
        tool: str,
        input: JsonObject | None = None,  # noqa: A002 - the CLI's own word for it
        *,
        agent: str | None = None,
        mode: str = "default",
        cwd: str = "/",
        home: str = "",
    ) -> Explanation:
        """What becomes of a call, and which rule says so."""
        call = ToolCall(tool, input or {}, agent, mode, Place(cwd, home))
        return self.decide(call)

    def decide(self, call: ToolCall) -> Explanation:
        """The same, for a call that is already put together."""
        found = self._decide_by_rules(call)
        if found.verdict == "ask" and call.mode == "bypassPermissions" and _may_be_guarded(call):
            # The CLI does not ask there in this mode, even if a hook says so: it just runs it.
            return Explanation("deny", found.rule, "nobody can be asked about this path here")
        if found.verdict in ("allow", "ask"):
            return replace(found, is_final=_is_final(found.verdict, call))
        return found

    def dry_run(self, calls: Iterable[RecordedCall]) -> list[WouldBe]:
        """What this policy would have decided about recorded calls, and what would change.

        `steersman.journal.decisions.recorded_calls(entries)` finds them in a journal.
        """
        return [compare(each, self.decide(each.call)) for each in calls]

    def _decide_by_rules(self, call: ToolCall) -> Explanation:
        listed = self._by_lists(call)
        if listed is not None:
            return listed
        for each in self.rules:
            match = each.match(call)
            if match is Match.NO or (match is Match.MAYBE and each.behavior == "allow"):
                continue
            if match is Match.MAYBE and each.behavior == "deny":
                return Explanation("ask", str(each), "it cannot be told whether the rule is meant")
            return Explanation(each.behavior, str(each), each.because)
        for text in self.auto_approve:
            if parse_rule(text).match(call, "allow") is Match.YES:
                return Explanation("allow", f"auto_approve {text}")
        if self.otherwise != "cli":
            return Explanation(self.otherwise, f"otherwise {self.otherwise}")
        return Explanation("cli", "", is_final=False)

    def _by_lists(self, call: ToolCall) -> Explanation | None:
        for text in self.forbid:
            match = parse_rule(text).match(call, "deny")
            if match is Match.YES:
                return Explanation("deny", f"forbid {text}")
            if match is Match.MAYBE:
                return Explanation("ask", f"forbid {text}", "it may be what is forbidden")
        is_own = call.tool.startswith("mcp__")
        if self.available is not None and not is_own and call.tool not in self.available:
            return Explanation("deny", "available", f"{call.tool} is not available")
        return None

    # What the CLI itself can hold, as rules for its settings

    def settings_rules(self) -> tuple[list[str], list[str]]:
        """Denials and approvals that the CLI may hold too, without deciding otherwise than here.

        For the CLI a denial beats all else, whatever the order, so it gets those before which
        nothing else stands. Approvals are safe anywhere: they count only where no rule here
        decides. Questions it does not get: in `dontAsk` it would deny them, and it would ask again
        about what a person has allowed for good.
        """
        first = itertools.takewhile(lambda each: each.behavior == "deny", self.rules)
        denials = [str(each.rule) for each in first if each.is_plain]
        approvals = [
            str(each.rule) for each in self.rules if each.is_plain and each.behavior == "allow"
        ]
        return denials, approvals

    def _check_lists(self) -> None:
        for text in (*self.auto_approve, *self.forbid):
            parse_rule(text)
        for name in self.available or ():
            if parse_rule(name).content is not None or name.startswith("mcp__"):
                raise UsageError("available", name, "the name of a built-in tool")
        both = set(self.auto_approve) & set(self.forbid)
        if both:
            raise UsageError("forbid", sorted(both), "rules that auto_approve does not have")


def compare(recorded: RecordedCall, found: Explanation) -> WouldBe:
    """Hold what happened against what would have been decided."""
    was_asked = recorded.source in ("callback", "person")
    changes = {
        "allow": not recorded.ran or was_asked,
        "deny": recorded.ran,
        "ask": not was_asked,
        "cli": False,
    }[found.verdict]
    return WouldBe(recorded, found.verdict, found.rule, changes)


def _flatten(groups: Iterable[object]) -> tuple[PolicyRule, ...]:
    members = [each for group in groups for each in (group if is_sequence(group) else (group,))]
    rules = tuple(each for each in members if isinstance(each, PolicyRule))
    if len(rules) < len(members):
        raise UsageError("rules", members, "what allow(...), ask(...) and deny(...) give")
    return rules


def _rule_texts(name: str, given: Iterable[str]) -> tuple[str, ...]:
    if isinstance(given, str) or not isinstance(given, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(name, given, "a list of rules")
    return tuple(given)


def _is_final(verdict: Verdict, call: ToolCall) -> bool:
    if _may_be_guarded(call):
        return False
    return verdict == "ask" or call.mode != "plan" or call.tool in READING


def _may_be_guarded(call: ToolCall) -> bool:
    """Whether the CLI may have its own word: on dotted paths, and on removing."""
    if call.tool in EDITING:
        path = call.input.get("file_path") or call.input.get("notebook_path") or ""
        return is_protected(str(path))
    if call.tool == "Bash":
        commands = commands_in(str(call.input.get("command", "")))
        return any(
            word in ("rm", "rmdir") or is_protected(word) for words in commands for word in words
        )
    return False
