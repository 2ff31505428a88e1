"""Edges of rules and policies: what is uncertain, whose rule it is, and what a tool call names."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.permissions.paths import Place
from steersman.permissions.policy import (
    DryRun,
    Explanation,
    Policy,
    PolicyRule,
    RecordedCall,
    allow,
    ask,
    compare,
    deny,
)
from steersman.permissions.rules import Match, ToolCall, parse_rule
from steersman.permissions.updates import Behavior
from steersman.permissions.writes import may_write

LIMIT = 16_384
UNSURE = "Bash", {"command": "$(x) y"}
"""A command of which no rule can tell whether it covers it."""


def call(tool: str, agent: str | None = None, **given: Any) -> ToolCall:
    return ToolCall(tool, given, agent, place=Place("/srv/project", "/home/ann"))


# What is uncertain


@pytest.mark.parametrize(
    ("policy", "found"),
    [
        (Policy(allow("Bash(git *)")), Explanation("cli", "", is_final=False)),
        (Policy(auto_approve=["Bash(git *)"]), Explanation("cli", "", is_final=False)),
        (
            Policy(deny("Bash(git *)", because="b")),
            Explanation("ask", "deny Bash(git *)", "the rule may cover this command"),
        ),
        (
            Policy(ask("Bash(git *)", because="b")),
            Explanation("ask", "ask Bash(git *)", "b"),
        ),
        (
            Policy(forbid=["Bash(git *)"]),
            Explanation("ask", "forbid Bash(git *)", "this call may be forbidden"),
        ),
        (Policy(available=["Read"]), Explanation("deny", "available", "Bash is not available")),
        (Policy(forbid=["Bash"]), Explanation("deny", "forbid Bash")),
        (Policy(otherwise="deny"), Explanation("deny", "otherwise deny")),
    ],
)
def test_what_may_be_covered_is_never_allowed_and_never_passes_a_denial(
    policy: Policy, found: Explanation
) -> None:
    tool, given = UNSURE

    assert parse_rule("Bash(git *)").match(call(tool, **given), "deny") is Match.MAYBE
    assert policy.explain(tool, given) == found


@pytest.mark.parametrize("behavior", ["allow", "deny", "ask"])
def test_a_rule_with_content_for_another_tool_only_may_cover_it(behavior: Behavior) -> None:
    assert parse_rule("Other(x)").match(call("Other"), behavior) is Match.MAYBE
    assert parse_rule("Other(x)").match(call("Third"), behavior) is Match.NO


# Whose rule it is


@pytest.mark.parametrize(
    ("agents", "agent", "is_main", "concerns"),
    [
        (None, "writer", None, "both"),
        ("writer", "writer", None, "both"),
        ("writer", "reader", None, "none"),
        ("writer", None, None, "none"),
        ("main", None, None, "both"),
        ("main", "main", None, "both"),
        ("main", "writer", None, "none"),
        ("main", "main", False, "none"),
        ("main", "writer", True, "both"),
        ("writer", "writer", True, "both"),
        ("writer", "reader", True, "none"),
        ("writer", "writer", False, "both"),
        ("writer", None, False, "denial"),
        ("main", None, False, "none"),
        (("main", "writer"), None, False, "denial"),
    ],
)
def test_a_rule_concerns_the_agents_that_it_names(
    agents: Any,
    agent: str | None,
    concerns: str,
    *,
    is_main: bool | None,
) -> None:
    given = ToolCall("Read", {}, agent, is_main=is_main)

    found = [rule("Read", agents=agents)[0].match(given) for rule in (allow, deny, ask)]

    assert (
        found
        == {
            "both": [Match.YES, Match.YES, Match.YES],
            "none": [Match.NO, Match.NO, Match.NO],
            "denial": [Match.NO, Match.YES, Match.YES],
        }[concerns]
    )


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (deny("Bash"), "deny Bash"),
        (allow("Bash(git *)", agents="writer"), "allow Bash(git *) for writer"),
        (ask("Read", agents=["a", "b"], when=lambda _: True), "ask Read for a, b when ..."),
    ],
)
def test_a_rule_reads_as_it_was_made(rule: tuple[PolicyRule, ...], text: str) -> None:
    assert [str(each) for each in rule] == [text]


def test_only_a_rule_without_conditions_is_plain() -> None:
    made = [deny("Bash"), deny("Bash", agents="a"), deny("Bash", when=lambda _: True)]

    assert [each[0].is_plain for each in made] == [True, False, False]


@pytest.mark.parametrize(
    ("result", "allows", "denies"),
    [(True, True, True), (1, False, True), (0, False, False), (None, False, False)],
)
def test_an_approval_needs_true_itself(result: Any, *, allows: bool, denies: bool) -> None:
    def when(_call: ToolCall) -> Any:
        return result

    assert (allow("Read", when=when)[0].match(call("Read")) is Match.YES) is allows
    assert (deny("Read", when=when)[0].match(call("Read")) is Match.YES) is denies


async def test_a_predicate_that_must_be_awaited_decides_against_the_call() -> None:
    async def when(_call: ToolCall) -> bool:
        return True

    condition: Any = when

    assert allow("Read", when=condition)[0].match(call("Read")) is Match.NO
    assert deny("Read", when=condition)[0].match(call("Read")) is Match.YES


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_the_end_of_the_program_is_not_an_error_of_a_predicate(stop: Any) -> None:
    def when(_call: ToolCall) -> bool:
        raise stop

    with pytest.raises(stop):
        deny("Read", when=when)[0].match(call("Read"))


# What would have been


@pytest.mark.parametrize(
    ("verdict", "ran", "source", "changes"),
    [
        ("allow", True, "rule", False),
        ("allow", False, "rule", True),
        ("allow", True, "person", True),
        ("allow", True, "callback", True),
        ("deny", True, "rule", True),
        ("deny", False, "rule", False),
        ("ask", True, "person", False),
        ("ask", True, "callback", False),
        ("ask", True, "hook", True),
        ("cli", True, "rule", False),
    ],
)
def test_a_decision_changes_what_happened_or_does_not(
    verdict: Any, source: str, *, ran: bool, changes: bool
) -> None:
    recorded = RecordedCall("t", call("Read"), ran, source)

    assert compare(recorded, Explanation(verdict, "r")) == DryRun(recorded, verdict, "r", changes)


# What a call names


@pytest.mark.parametrize(
    ("rule", "tool", "given", "behavior", "found"),
    [
        ("Edit(*.md)", "Edit", {"file_path": "a.md"}, "allow", Match.YES),
        ("Edit(*.md)", "Edit", {"file_path": "/srv/project-secret/a.md"}, "allow", Match.NO),
        ("Edit(*.md)", "Bash", {"command": "touch a.md"}, "allow", Match.NO),
        ("Edit(*.md)", "Bash", {"command": "touch a.md"}, "deny", Match.YES),
        ("Edit(*.md)", "Bash", {"command": "cat a.md"}, "deny", Match.NO),
        ("Edit(*.md)", "Bash", {"command": "cat a.md > b"}, "deny", Match.YES),
        ("Edit(*.md)", "Bash", {"command": "tool a.md"}, "deny", Match.MAYBE),
        ("Edit(*.md)", "Bash", {"command": "tool a.txt"}, "deny", Match.NO),
        ("Edit(*.md)", "Bash", {"command": "a.md"}, "deny", Match.NO),
        ("Edit(*.md)", "Bash", {"command": "x" * 100_000}, "deny", Match.MAYBE),
        ("Read(*.md)", "Bash", {"command": "tool a.md"}, "deny", Match.YES),
        ("Read(*.md)", "Edit", {"file_path": "a.md"}, "deny", Match.YES),
        ("Read(*.md)", "Edit", {"file_path": "a.md"}, "ask", Match.NO),
        ("Read(*.md)", "Edit", {"file_path": "a.md"}, "allow", Match.NO),
        ("Edit(*.md)", "Edit", {}, "allow", Match.NO),
        ("Edit(*.md)", "Edit", {"file_path": ""}, "deny", Match.NO),
        ("Edit(*.md)", "NotebookEdit", {"notebook_path": "a.md"}, "deny", Match.YES),
        ("Read(a/**)", "Grep", {"path": "a/b"}, "allow", Match.YES),
        ("Read(a/**)", "Grep", {"path": "b", "file_path": "a/b"}, "allow", Match.NO),
        ("Read(a/**)", "Grep", {"path": "b", "file_path": "a/b"}, "deny", Match.YES),
        ("Read(//srv/project/**)", "Grep", {}, "allow", Match.NO),
        ("Read(//srv/**)", "Grep", {}, "allow", Match.YES),
        ("Read(a/**)", "NotebookRead", {"notebook_path": "a/b"}, "allow", Match.YES),
        ("Read(a/**)", "LS", {"path": "a/b"}, "allow", Match.YES),
        ("Read(//srv/**)", "Glob", {"pattern": "*.py"}, "allow", Match.YES),
        ("Read(//srv/**)", "Glob", {"pattern": "/etc/*"}, "allow", Match.NO),
        ("Read(//srv/**)", "Glob", {"pattern": "../../etc/*"}, "allow", Match.NO),
        ("Read(//srv/**)", "Glob", {"pattern": "~/x"}, "allow", Match.NO),
        ("Read(a/**)", "Glob", {"path": "a/b", "pattern": "../x"}, "allow", Match.YES),
        ("Read(a/**)", "Glob", {"path": "a/b", "pattern": "../../x"}, "allow", Match.NO),
        ("Read(//srv/**)", "Glob", {"pattern": 5}, "allow", Match.YES),
        ("Read(//srv/**)", "Grep", {"pattern": "/etc"}, "allow", Match.YES),
        ("Skill(a)", "Skill", {"skill": "a"}, "allow", Match.YES),
        ("Skill(a)", "Skill", {"skill": "a:b"}, "allow", Match.NO),
        ("Skill(ab:*)", "Skill", {"skill": "ab:c"}, "allow", Match.YES),
        ("Skill(ab:*)", "Skill", {"skill": "ab"}, "allow", Match.YES),
        ("Skill(ab:*)", "Skill", {"skill": "abc"}, "allow", Match.NO),
        ("Skill(ab:*)", "Skill", {"skill": "a:c"}, "allow", Match.NO),
        ("Skill(a)", "Skill", {}, "allow", Match.NO),
        ("Task(x)", "Agent", {"subagent_type": "x"}, "allow", Match.YES),
        ("Agent(x)", "Task", {"subagent_type": "y"}, "deny", Match.NO),
        ("mcp__box", "mcp__box__add", {}, "allow", Match.YES),
        ("mcp__box", "mcp__boxes__add", {}, "allow", Match.NO),
        ("mcp__box__add", "mcp__box__add_all", {}, "allow", Match.NO),
        ("mcp__box__*", "mcp__box__add", {}, "allow", Match.YES),
        ("mcp__box__a*d", "mcp__box__add", {}, "deny", Match.YES),
        ("mcp__box__a*d", "mcp__box__adds", {}, "deny", Match.NO),
        ("mcp__b*", "mcp__box__add", {}, "deny", Match.YES),
        ("mcp__b*", "mcp__box__add", {}, "allow", Match.NO),
        ("Bash", "Monitor", {"command": "x"}, "deny", Match.YES),
        ("Bash", "Monitor", {"command": "x", "ws": {}}, "allow", Match.NO),
        ("Bash(x)", "Read", {"command": "x"}, "deny", Match.NO),
        ("WebFetch(domain:a.com)", "WebFetch", {"url": "https://a.com/x"}, "allow", Match.YES),
        ("WebFetch(domain:a.com)", "WebFetch", {"url": "https://b.com/x"}, "deny", Match.NO),
    ],
)
def test_a_rule_covers_these_calls(
    rule: str, tool: str, given: dict[str, Any], behavior: Behavior, found: Match
) -> None:
    assert parse_rule(rule).match(call(tool, **given), behavior) is found


@pytest.mark.parametrize(
    ("tool", "given", "command"),
    [
        ("Bash", {"command": "ls"}, "ls"),
        ("Bash", {}, ""),
        # Not a text: counts as one that is too long.
        ("Bash", {"command": 5}, " " * 16_385),
        ("Read", {"command": "ls"}, None),
    ],
)
def test_a_tool_that_runs_commands_has_a_command_line(
    tool: str, given: dict[str, Any], command: str | None
) -> None:
    assert call(tool, **given).command == command


@pytest.mark.parametrize("text", ["Bash()", "Bash(*)", "Bash"])
def test_a_rule_for_every_call_has_no_content(text: str) -> None:
    assert str(parse_rule(text)) == "Bash"


def test_white_space_matters_only_in_a_pattern_of_paths() -> None:
    assert str(parse_rule("Bash( git)")) == "Bash( git)"


@pytest.mark.parametrize(
    ("tool", "given", "writes"),
    [
        ("Write", {}, True),
        ("Read", {"file_path": "x"}, False),
        ("Bash", {}, True),
        ("Bash", {"command": 5}, True),
        ("Bash", {"command": "ls x"}, False),
        ("Bash", {"command": " ls"}, False),
        ("Bash", {"command": "rm x"}, True),
        ("Bash", {"command": "ls > x"}, True),
        ("Bash", {"command": ""}, True),
        ("Bash", {"command": "ls " + "x" * (LIMIT - 3)}, False),
        ("Bash", {"command": "ls " + "x" * (LIMIT - 2)}, True),
        ("Monitor", {"command": "rm x"}, True),
        ("Monitor", {}, False),
        ("mcp__box__run", {"command": "rm x"}, False),
    ],
)
def test_a_call_may_write_unless_it_is_certain_that_it_does_not(
    tool: str, given: dict[str, Any], *, writes: bool
) -> None:
    assert may_write(tool, given) is writes


@pytest.mark.parametrize(
    ("tool", "given", "mode", "is_final"),
    [
        ("Bash", {"command": "git log"}, "default", True),
        ("Bash", {"command": "git log"}, "plan", False),
        ("Read", {"file_path": "a"}, "plan", True),
        ("Bash", {"command": "rm a"}, "default", False),
        ("Bash", {"command": "rmdir a"}, "default", False),
        ("Bash", {"command": "cat .git/config"}, "default", False),
        ("Bash", {"command": "x" * 100_000}, "default", False),
        ("Edit", {"file_path": "a"}, "default", True),
        ("Edit", {"file_path": ".git/config"}, "default", False),
        ("NotebookEdit", {"notebook_path": ".git/config"}, "default", False),
        ("Edit", {}, "default", True),
    ],
)
def test_an_approval_is_final_unless_the_cli_guards_the_call(
    tool: str, given: dict[str, Any], mode: str, *, is_final: bool
) -> None:
    policy = Policy(allow(tool))

    assert policy.explain(tool, given, mode=mode) == Explanation(
        "allow", f"allow {tool}", is_final=is_final
    )


def test_an_ask_is_final_in_plan_mode_too() -> None:
    assert Policy(ask("Bash")).explain("Bash", {"command": "git log"}, mode="plan").is_final


def test_where_the_cli_would_not_ask_an_ask_is_a_denial_that_says_so() -> None:
    policy = Policy(ask("Write"), ask("Bash"), ask("WebFetch"))
    reason = "the CLI does not ask about writes in this mode"

    found = [
        policy.explain(tool, given, mode="bypassPermissions")
        for tool, given in (
            ("Write", {"file_path": "a"}),
            ("Bash", {"command": "cat .git/config"}),
            ("Bash", {"command": "cat a"}),
        )
    ]

    assert found == [
        Explanation("deny", "ask Write", reason),
        Explanation("deny", "ask Bash", reason),
        Explanation("ask", "ask Bash"),
    ]


@pytest.mark.parametrize(
    ("rule", "verdict"),
    [("Edit(secret/**)", "deny"), ("Read(secret/**)", "deny"), ("Edit(other/**)", "cli")],
)
def test_a_word_that_leads_to_a_file_of_a_rule_is_covered_like_the_file(
    rule: str, verdict: str
) -> None:
    given, place = {"command": "touch up/x"}, Place("/p")
    led = ToolCall("Bash", given, place=place, links={"up/x": "/p/secret/x"})
    plain = ToolCall("Bash", given, place=place)
    policy = Policy(deny(rule))

    assert policy.decide(led).verdict == verdict
    assert policy.decide(plain).verdict == "cli"
