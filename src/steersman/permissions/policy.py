"""Policy: ordered rules that decide about tool calls, and explain the decision.

The first rule that covers a call decides. `forbid` and `available` come before the rules,
`auto_approve` after them. A call that nothing covers is left to the CLI, unless `otherwise` is set.
Pure: a session applies the verdict.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Self, TypedDict, cast

from steersman._arguments import check_callback
from steersman._effort import MOST_STEPS
from steersman._json import JsonObject, is_sequence
from steersman._tool_names import MAIN_AGENT
from steersman.errors import Described, UsageError
from steersman.permissions.paths import Place, is_protected
from steersman.permissions.policy_file import PolicyTable, read_table
from steersman.permissions.rules import (
    EDITING,
    READING,
    Match,
    Rule,
    ToolCall,
    is_fence,
    may_overlap,
    parse_rule,
)
from steersman.permissions.shell import commands_in, is_readable
from steersman.permissions.updates import Behavior
from steersman.permissions.writes import may_write

if TYPE_CHECKING:
    from typing import Unpack

__all__ = [
    "MAIN",
    "DryRun",
    "Explanation",
    "Policy",
    "PolicyRule",
    "Predicate",
    "RecordedCall",
    "RuleWords",
    "Verdict",
    "allow",
    "ask",
    "deny",
]

Verdict = Literal["allow", "deny", "ask", "cli"]
"""`cli`: the policy does not decide; the CLI does, by its own rules and mode."""

MAIN = MAIN_AGENT
"""The name of the main agent in `agents=`."""

WALLS = (
    "walls are a closed list (allow only the commands that are needed, otherwise='ask') and"
    " isolation (run the CLI where what it must not reach is not)"
)

Predicate = Callable[[ToolCall], bool]
"""Whether a rule applies to a call: `when=` of a rule."""


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """One rule of a policy: its behavior, and the calls and agents that it covers."""

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
        """True if the CLI can read the rule too: it has no predicate and no agents."""
        return self.when is None and self.agents is None

    def match(self, call: ToolCall) -> Match:
        """Return whether the rule covers the call; a predicate that raises counts against it."""
        if not self._concerns(call):
            return Match.NO
        found = self.rule.match(call, self.behavior)
        if found is Match.NO or self.when is None:
            return found
        try:
            applies = _result(self.when, call)
            if self.behavior == "allow":
                if applies is True:
                    return found
            elif not hasattr(applies, "__await__"):
                return found if applies else Match.NO
        except (KeyboardInterrupt, SystemExit):
            # The hook that applies the policy denies the call, and then ends the program.
            raise
        except BaseException:  # noqa: BLE001, S110 - the caller's own code; a broken guard must not let anything through
            pass
        else:
            _discard(applies)
        return Match.NO if self.behavior == "allow" else found

    def _concerns(self, call: ToolCall) -> bool:
        """Return whether the rule is for the agent that calls."""
        if self.agents is None:
            return True
        is_main = call.agent in (None, MAIN) if call.is_main is None else call.is_main
        if is_main:
            return MAIN in self.agents or call.agent in self.agents
        if call.agent is None:
            # A subagent of an unknown type.
            return self.behavior != "allow" and self.agents != (MAIN,)
        return call.agent != MAIN and call.agent in self.agents


@dataclass(frozen=True, slots=True)
class Explanation:
    """The decision about a call, and the rule that made it."""

    verdict: Verdict
    rule: str
    """The deciding rule, or the argument of `Policy` that decided; empty if nothing decided."""
    reason: str = ""
    is_final: bool = True
    """False if the CLI may be stricter: it guards some paths and, in plan mode, every change."""


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A tool call as it was recorded in a journal."""

    tool_use_id: str
    call: ToolCall
    ran: bool
    """True if the tool ran."""
    source: str = ""
    """What decided: `rule`, `callback`, `hook`, `cli` or `person`; empty if not recorded."""
    by: str = ""


@dataclass(frozen=True, slots=True)
class DryRun:
    """The decision that a policy would have made about a recorded call."""

    recorded: RecordedCall
    verdict: Verdict
    rule: str
    changes: bool
    """True if the outcome would differ; `ask` differs if no permission was requested then."""


class RuleWords(TypedDict, total=False):
    """What `allow`, `deny` and `ask` take by keyword."""

    because: str
    when: Predicate | None
    agents: Iterable[str] | str | None


def allow(*rules: str, **words: Unpack[RuleWords]) -> tuple[PolicyRule, ...]:
    """Allow calls that these rules cover; `when=`, `agents=` and `because=` as in `deny`."""
    return _make_rules("allow", rules, words)


def deny(*rules: str, **words: Unpack[RuleWords]) -> tuple[PolicyRule, ...]:
    """Deny calls that these rules cover.

    `when` takes a `ToolCall` and returns whether the rule applies; `allow` needs `True` itself.
    `agents` are the types of subagents to which the rule applies; `main` is the main agent,
    whatever its type, and never a subagent. `because` is the reason that the model reads.
    """
    return _make_rules("deny", rules, words)


def ask(*rules: str, **words: Unpack[RuleWords]) -> tuple[PolicyRule, ...]:
    """Send calls that these rules cover to `can_use_tool` or the inbox, in every mode."""
    return _make_rules("ask", rules, words)


def _make_rules(
    behavior: Behavior, rules: Iterable[str], words: RuleWords
) -> tuple[PolicyRule, ...]:
    for name in words:
        if name not in RuleWords.__annotations__:
            known = ", ".join(RuleWords.__annotations__)
            raise UsageError(
                name,
                Described("an unknown keyword"),
                known,
                what=f"there is no such keyword; there are {known}",
                hint="rules are given without a name",
            )
    because, when, agents = words.get("because", ""), words.get("when"), words.get("agents")
    if not isinstance(because, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError("because", because, "a text")
    if when is not None:
        check_callback("when", when, "a ToolCall")
    whose = None if agents is None else _agent_names(agents)
    made = tuple(PolicyRule(behavior, parse_rule(each), because, when, whose) for each in rules)
    if not made:
        raise UsageError(behavior, Described("no rule"), "at least one rule")
    return made


@dataclass(frozen=True, slots=True, init=False)
class Policy:
    """An immutable set of rules about tool calls; pass it to an agent with `policy=`."""

    rules: tuple[PolicyRule, ...]
    available: tuple[str, ...] | None
    auto_approve: tuple[str, ...]
    forbid: tuple[str, ...]
    repeatable: tuple[str, ...]
    otherwise: Literal["cli", "ask", "deny"]
    remember: Literal["session", "keep"] | None

    def __init__(
        self,
        *rules: Iterable[PolicyRule],
        available: Iterable[str] | None = None,
        auto_approve: Iterable[str] = (),
        forbid: Iterable[str] = (),
        repeatable: Iterable[str] = (),
        otherwise: Literal["cli", "ask", "deny"] = "cli",
        remember: Literal["session", "keep"] | None = None,
    ) -> None:
        """Make a policy of `allow(...)`, `ask(...)` and `deny(...)`, in order of precedence.

        `available`: the built-in tools that exist. `auto_approve`: rules for calls that run without
        a permission request. `forbid`: rules for calls that never run; they come first.
        `repeatable`: rules for calls that may run twice; after a host was lost, one that was
        allowed before is allowed again without an ask. `remember`: what the user allows is not
        requested again, in this `session` or permanently (`keep`).
        """
        fields = {
            "rules": _flatten(rules),
            "available": None if available is None else _rule_texts("available", available),
            "auto_approve": _rule_texts("auto_approve", auto_approve),
            "forbid": _rule_texts("forbid", forbid),
            "repeatable": _rule_texts("repeatable", repeatable),
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
        """Read a policy from TOML; docs/permissions.md describes it. Raises `UsageError`."""
        table: PolicyTable = read_table(text)
        made = [
            _make_rules(each.behavior, each.rules, {"because": each.because, "agents": each.agents})
            for each in table.rules
        ]
        return cls(*made, **table.fields)

    def explain(
        self,
        tool: str,
        input: JsonObject | None = None,  # noqa: A002 - the CLI's own name for it
        *,
        agent: str | None = None,
        mode: str = "default",
        cwd: str = "/",
        home: str = "",
    ) -> Explanation:
        """Return the decision about a call, and the rule that made it.

        If a rule allows the call beside which another one is only a fence, the reason names both.
        """
        found = self.decide(ToolCall(tool, input or {}, agent, mode, Place(cwd, home)))
        if found.verdict != "allow" or found.reason:
            return found
        near = [text for approval, text in self._fences() if approval == found.rule]
        return replace(found, reason=near[0] if near else "")

    def check(self) -> list[str]:
        """Return what this policy does not stop although a rule may look as if it did.

        Each text names a denial or an ask that is a fence beside an approval, and what is a wall.
        """
        return [f"{text}; {WALLS}" for _, text in self._fences()]

    def _fences(self) -> list[tuple[str, str]]:
        """Return each guard that is only a fence, as text, with the approval that makes it one."""
        found: list[tuple[str, str]] = []
        guards = [(f"forbid {text}", parse_rule(text)) for text in self.forbid]
        listed = [(f"auto_approve {text}", parse_rule(text)) for text in self.auto_approve]
        rules = [(str(each), each.rule, each.behavior == "allow") for each in self.rules]
        for name, rule, allows in (*rules, *((name, rule, True) for name, rule in listed)):
            if not allows:
                guards.append((name, rule))
                continue
            near = [guard for guard, about in guards if is_fence(about, rule)]
            found += [(name, f"{guard} is a fence, not a wall, beside {name}") for guard in near]
        return found

    def decide(self, call: ToolCall) -> Explanation:
        """Return the decision about a `ToolCall`, and the rule that made it."""
        call.effort.left = MOST_STEPS
        found = self._decide_by_rules(call)
        is_skipped = call.mode == "bypassPermissions" and (
            may_write(call.tool, call.input) or _may_be_guarded(call)
        )
        if found.verdict == "ask" and is_skipped:
            # In this mode the CLI runs writes to guarded paths unasked, even if a hook replies
            # `ask`. Links can lead from every path to a guarded one.
            return Explanation("deny", found.rule, "the CLI does not ask about writes in this mode")
        if found.verdict in ("allow", "ask"):
            return replace(found, is_final=_is_final(found.verdict, call))
        return found

    def may_repeat(self, call: ToolCall) -> bool:
        """Return whether `repeatable` covers the call with certainty."""
        rules = map(parse_rule, self.repeatable)
        return any(rule.match(call, "allow") is Match.YES for rule in rules)

    def dry_run(self, calls: Iterable[RecordedCall]) -> list[DryRun]:
        """Return what this policy would have decided about recorded calls, and what would change.

        `steersman.journal.decisions.recorded_calls(entries)` reads the calls of a journal.
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
                return Explanation("ask", str(each), "the rule may cover this command")
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
                return Explanation("ask", f"forbid {text}", "this call may be forbidden")
        is_own = call.tool.startswith("mcp__")
        if self.available is not None and not is_own and call.tool not in self.available:
            return Explanation("deny", "available", f"{call.tool} is not available")
        return None

    def _check_lists(self) -> None:
        for text in (*self.auto_approve, *self.forbid, *self.repeatable):
            parse_rule(text)
        for name in self.available or ():
            if parse_rule(name).content is not None or name.startswith("mcp__"):
                raise UsageError("available", name, "the name of a built-in tool")
        both = set(self.auto_approve) & set(self.forbid)
        if both:
            raise UsageError("forbid", sorted(both), "rules that auto_approve does not have")


def settings_rules(policy: Policy) -> tuple[list[str], list[str]]:
    """Return the deny and allow rules that the CLI can apply too, with the same decisions.

    For the CLI a denial beats all other rules in any order, so it gets the denials that no
    earlier rule could overrule. The CLI applies approvals to calls that no rule of this policy
    covered. It gets an approval only if no earlier ask and no earlier denial, other than those
    it has too, could be about the same call; the policy's hook applies the other approvals.
    `ask` rules are not passed on: for the CLI they beat every hook, so it would ask again about
    calls that the user has allowed, and deny unasked in the mode `dontAsk`, which a session may
    enter at any time.
    """
    denials: list[Rule] = []
    approvals: list[Rule] = []
    guards: list[Rule] = []
    overruling: list[Rule] = []
    for each in policy.rules:
        is_plain = each.is_plain and not _is_read_otherwise(each.rule)
        if each.behavior == "deny" and is_plain and _may_pass_on(each.rule, overruling):
            denials.append(each.rule)
            continue
        if each.behavior != "deny":
            overruling.append(each.rule)
        if each.behavior != "allow":
            guards.append(each.rule)
        elif is_plain and not _meets(each.rule, guards):
            approvals.append(each.rule)
    listed = [parse_rule(text) for text in policy.auto_approve]
    approvals += [rule for rule in listed if not (_is_read_otherwise(rule) or _meets(rule, guards))]
    if policy.otherwise != "cli":
        # The policy's hook then decides about every call.
        approvals = []
    return list(map(str, denials)), list(dict.fromkeys(map(str, approvals)))


def guards_files(policy: Policy) -> bool:
    """Return whether a denial or an ask is about paths, which commands may name too."""
    rules = [each.rule for each in policy.rules if each.behavior != "allow"]
    rules += [parse_rule(text) for text in policy.forbid]
    return any(rule.content and rule.tool in ("Edit", "Read") for rule in rules)


def _result(predicate: Callable[[ToolCall], object], call: ToolCall) -> object:
    """Return what a predicate returns, which may be anything."""
    return predicate(call)


def _discard(awaitable: object) -> None:
    """Close what an `async def` predicate returned: it was not awaited and decides nothing."""
    if isinstance(awaitable, Coroutine):
        awaitable.close()


def compare(recorded: RecordedCall, found: Explanation) -> DryRun:
    """Compare what happened to a recorded call with what a policy decides about it."""
    was_asked = recorded.source in ("callback", "person")
    changes = {
        "allow": not recorded.ran or was_asked,
        "deny": recorded.ran,
        "ask": not was_asked,
        "cli": False,
    }[found.verdict]
    return DryRun(recorded, found.verdict, found.rule, changes)


def _is_read_otherwise(rule: Rule) -> bool:
    """Return whether the CLI reads a rule in another way: to it, `[!a]` is `!` or `a`."""
    is_path = rule.tool in ("Edit", "Read")
    return is_path and re.search(r"\[[!^]", rule.content or "") is not None


def _meets(rule: Rule, others: Iterable[Rule]) -> bool:
    return any(may_overlap(rule, other) for other in others)


def _may_pass_on(denial: Rule, earlier: list[Rule]) -> bool:
    """Return whether the CLI may get a denial that stands behind these asks and approvals.

    A bare name removes the tool, and then no call of it is recorded: only a leading one does that.
    """
    return not earlier or (denial.content is not None and not _meets(denial, earlier))


def _flatten(groups: Iterable[object]) -> tuple[PolicyRule, ...]:
    members = [each for group in groups for each in (group if is_sequence(group) else (group,))]
    rules = tuple(each for each in members if isinstance(each, PolicyRule))
    if len(rules) < len(members):
        raise UsageError("rules", members, "what allow(...), ask(...) and deny(...) return")
    return rules


def _agent_names(given: object) -> tuple[str, ...]:
    named = (given,) if isinstance(given, str) else given
    if not isinstance(named, Iterable):
        raise UsageError("agents", given, "a name, or a list of names")
    names: list[str] = []
    for each in cast("Iterable[object]", named):
        if not isinstance(each, str):
            # It would be the name of no agent, and the rule would never apply.
            raise UsageError("agents", each, "a name, or a list of names")
        names.append(each)
    return tuple(names)


def _rule_texts(name: str, given: Iterable[str]) -> tuple[str, ...]:
    if isinstance(given, str) or not isinstance(given, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(name, given, "a list of rules")
    return tuple(given)


def _is_final(verdict: Verdict, call: ToolCall) -> bool:
    if _may_be_guarded(call):
        return False
    return verdict == "ask" or call.mode != "plan" or call.tool in READING


def _may_be_guarded(call: ToolCall) -> bool:
    """Return whether the CLI may decide differently: about dotted paths and removals."""
    if call.tool in EDITING:
        path = call.input.get("file_path") or call.input.get("notebook_path") or ""
        return is_protected(str(path))
    if call.command is not None:
        commands = commands_in(call.command)
        return not is_readable(call.command) or any(
            word in ("rm", "rmdir") or is_protected(word) for words in commands for word in words
        )
    return False
