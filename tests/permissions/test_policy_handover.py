"""Which rules of a policy the CLI gets too, and which tools a rule for `Bash` is about."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.permissions import Policy, allow, ask, deny
from steersman.permissions.policy import settings_rules
from steersman.permissions.rules import Match, ToolCall, may_overlap, parse_rule

TOUCH = allow("Bash(touch *)")


def approvals(policy: Policy) -> list[str]:
    return settings_rules(policy)[1]


def denials(policy: Policy) -> list[str]:
    return settings_rules(policy)[0]


@pytest.mark.parametrize(
    "guard",
    [
        ask("Bash(touch N1*)"),
        ask("Bash"),
        ask("Monitor"),
        ask("Edit(secret/**)"),
        deny("Bash(touch N1*)", when=bool),
        deny("Bash(touch N1*)", agents=["writer"]),
        deny("Read(.env)", agents=["main"]),
    ],
    ids=lambda guard: str(guard[0]),
)
def test_the_cli_gets_no_approval_that_could_skip_an_earlier_ask_or_denial(guard: Any) -> None:
    assert approvals(Policy(guard, TOUCH)) == []
    assert approvals(Policy(TOUCH, guard)) == ["Bash(touch *)"]
    assert approvals(Policy(guard, auto_approve=["Bash(touch *)"])) == []


def test_the_cli_gets_an_approval_beside_a_denial_that_it_has_too() -> None:
    policy = Policy(deny("Bash(rm *)"), TOUCH, auto_approve=["Read"])

    assert settings_rules(policy) == (["Bash(rm *)"], ["Bash(touch *)", "Read"])


@pytest.mark.parametrize("other", ["WebFetch", "Write", "mcp__box", "Agent(Explore)", "Skill(pdf)"])
def test_rules_for_certainly_different_tools_do_not_matter(other: str) -> None:
    assert approvals(Policy(ask(other), TOUCH)) == ["Bash(touch *)"]


@pytest.mark.parametrize("otherwise", ["ask", "deny"])
def test_the_cli_gets_no_approval_if_the_policy_decides_about_every_call(otherwise: Any) -> None:
    assert approvals(Policy(TOUCH, auto_approve=["Read"], otherwise=otherwise)) == []


def test_what_the_cli_does_not_get_is_approved_by_the_policy_itself() -> None:
    policy = Policy(ask("Bash(touch N1*)"), TOUCH, auto_approve=["Bash(ls *)"])

    assert policy.explain("Bash", {"command": "touch a"}).verdict == "allow"
    assert policy.explain("Bash", {"command": "ls a"}).verdict == "allow"
    assert policy.explain("Bash", {"command": "touch N11"}).verdict == "ask"


def test_a_tool_is_removed_only_by_a_leading_denial() -> None:
    assert denials(Policy(deny("mcp__box"), ask("Bash"))) == ["mcp__box"]
    assert denials(Policy(ask("Bash"), deny("mcp__box"))) == []


def test_the_cli_gets_a_denial_that_no_earlier_rule_could_overrule() -> None:
    assert denials(Policy(ask("WebFetch"), deny("Bash(rm *)"))) == ["Bash(rm *)"]
    assert denials(Policy(deny("Bash", when=bool), deny("Bash(rm *)"))) == ["Bash(rm *)"]


@pytest.mark.parametrize("earlier", [ask("Bash(rm x)"), allow("Edit(tmp/**)"), allow("Monitor")])
def test_the_cli_gets_no_denial_that_an_earlier_rule_could_overrule(earlier: Any) -> None:
    assert denials(Policy(earlier, deny("Bash(rm *)"))) == []


@pytest.mark.parametrize(
    ("one", "other", "overlap"),
    [
        ("mcp__box", "mcp__box__ping", True),
        ("mcp__box__p*", "mcp__box__ping", True),
        ("mcp__*__ping", "mcp__box", True),
        ("mcp__box", "mcp__git__push", False),
        ("mcp__box__ping", "mcp__box__pong", False),
        ("B*", "Bash(ls)", True),
        ("Agent", "Task", True),
        ("Read(a)", "Edit(b)", True),
        ("Read", "Bash(ls)", False),
        ("Read(a)", "PowerShell(ls)", True),
    ],
)
def test_rules_may_cover_one_call_unless_their_tools_are_certainly_different(
    one: str, other: str, *, overlap: bool
) -> None:
    assert may_overlap(parse_rule(one), parse_rule(other)) is overlap
    assert may_overlap(parse_rule(other), parse_rule(one)) is overlap


@pytest.mark.parametrize("tool", ["Bash", "Monitor", "PowerShell"])
@pytest.mark.parametrize("rule", ["Bash", "Bash(touch *)", "Edit(x)"])
def test_a_denial_for_bash_is_about_every_tool_that_runs_commands(tool: str, rule: str) -> None:
    call = {"command": "touch x"}

    assert Policy(deny(rule)).explain(tool, call).verdict == "deny"
    assert Policy(ask(rule)).explain(tool, call).verdict == "ask"
    assert Policy(forbid=[rule]).explain(tool, call).verdict == "deny"


@pytest.mark.parametrize("rule", ["Bash", "Bash(touch *)"])
def test_an_approval_for_bash_is_about_tools_with_the_same_shell(rule: str) -> None:
    policy = Policy(allow(rule))

    assert policy.explain("Monitor", {"command": "touch x"}).verdict == "allow"
    assert policy.explain("PowerShell", {"command": "touch x"}).verdict == "cli"
    web_socket = {"command": "touch x", "ws": {"url": "wss://x.test"}}
    assert policy.explain("Monitor", web_socket).verdict == "cli"


def test_a_rule_for_another_tool_than_bash_is_about_that_tool_only() -> None:
    assert Policy(deny("Monitor")).explain("Bash", {"command": "ls"}).verdict == "cli"
    assert parse_rule("Bash").match(ToolCall("Read"), "deny") is Match.NO


def test_where_the_cli_would_run_a_monitor_unasked_an_ask_is_a_denial() -> None:
    found = Policy(ask("Bash")).explain(
        "Monitor", {"command": "rm -r .git"}, mode="bypassPermissions"
    )

    assert found.verdict == "deny"


@pytest.mark.parametrize("tool", ["Edit", "Read"])
@pytest.mark.parametrize("sign", ["!", "^"])
def test_the_cli_gets_no_rule_with_a_negated_set_which_it_reads_otherwise(
    tool: str, sign: str
) -> None:
    rule = f"{tool}(src/[{sign}a]*.py)"

    assert settings_rules(Policy(allow(rule), auto_approve=[rule])) == ([], [])
    assert settings_rules(Policy(deny(rule), allow(tool))) == ([], [])
    assert settings_rules(Policy(allow(f"{tool}(src/[a]*.py)")))[1] == [f"{tool}(src/[a]*.py)"]
