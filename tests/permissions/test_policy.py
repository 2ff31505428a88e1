"""A policy decides by the first rule that covers a call, and names it."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.errors import UsageError
from steersman.permissions import Explanation, Policy, RecordedCall, ToolCall, allow, ask, deny

POLICY = Policy(
    deny("Bash(rm *)", because="files are removed by hand here"),
    ask("Bash(git push *)"),
    allow("Bash(git *)"),
    allow("Edit(docs/**)", agents="writer"),
    available=["Bash", "Edit", "Read", "Write"],
    auto_approve=["Read"],
    forbid=["Bash(sudo *)"],
)


@pytest.mark.parametrize(
    ("tool", "given", "verdict", "rule"),
    [
        ("Bash", {"command": "rm a"}, "deny", "deny Bash(rm *)"),
        ("Bash", {"command": "git push"}, "ask", "ask Bash(git push *)"),
        ("Bash", {"command": "git log"}, "allow", "allow Bash(git *)"),
        ("Bash", {"command": "make"}, "cli", ""),
        ("Bash", {"command": "sudo git log"}, "deny", "forbid Bash(sudo *)"),
        ("Bash", {"command": "bash -c 'rm a'"}, "ask", "deny Bash(rm *)"),
        ("Read", {"file_path": "/a"}, "allow", "auto_approve Read"),
        ("WebFetch", {"url": "http://a"}, "deny", "available"),
        ("mcp__box__ping", {}, "cli", ""),
        ("Write", {"file_path": "/w/docs/a"}, "cli", ""),
    ],
)
def test_the_first_rule_that_covers_a_call_decides_and_is_named(
    tool: str, given: dict[str, Any], verdict: str, rule: str
) -> None:
    found = POLICY.explain(tool, given, cwd="/w")

    assert (found.verdict, found.rule) == (verdict, rule)


PART, HIDDEN = "git log && make", "bash -c 'git log'"
"""Lines that `Bash(git *)` may cover: one command of two, and a command in a text for a shell."""


@pytest.mark.parametrize(
    ("policy", "command", "verdict"),
    [
        (Policy(allow("Bash(git *)")), PART, "cli"),
        (Policy(allow("Bash(git *)")), HIDDEN, "cli"),
        (Policy(auto_approve=["Bash(git *)"]), PART, "cli"),
        (Policy(auto_approve=["Bash(git *)"]), HIDDEN, "cli"),
        (Policy(ask("Bash(git *)"), allow("Bash")), HIDDEN, "ask"),
        (Policy(deny("Bash(git *)"), allow("Bash")), HIDDEN, "ask"),
        (Policy(forbid=["Bash(git *)"], auto_approve=["Bash"]), HIDDEN, "ask"),
        (Policy(forbid=["Bash(git *)"], auto_approve=["Bash"]), PART, "deny"),
    ],
)
def test_a_rule_that_may_cover_a_call_never_allows_it_and_makes_a_denial_ask(
    policy: Policy, command: str, verdict: str
) -> None:
    assert policy.explain("Bash", {"command": command}).verdict == verdict


@pytest.mark.parametrize("command", ["rm docs/a", "echo x > docs/a", "cat docs/a"])
def test_an_approval_of_edits_covers_no_command_line(command: str) -> None:
    policy = Policy(allow("Edit(docs/**)", "Read(docs/**)"))

    assert policy.explain("Bash", {"command": command}, cwd="/w").verdict == "cli"


@pytest.mark.parametrize("rule", [allow, ask, deny])
def test_a_pattern_covers_no_folder_beside_the_session_s(rule: Any) -> None:
    policy = Policy(rule("Edit(*.md)"))

    def verdict(path: str) -> str:
        return policy.explain("Write", {"file_path": path}, cwd="/project").verdict

    assert verdict("/project/a.md") == rule.__name__
    assert verdict("/project-secret/a.md") == "cli"
    assert verdict("/projec/a.md") == "cli"


def test_the_reason_of_a_rule_is_in_the_explanation() -> None:
    found = POLICY.explain("Bash", {"command": "rm a"})

    assert found == Explanation("deny", "deny Bash(rm *)", "files are removed by hand here")


def test_a_rule_may_count_for_some_agents_only() -> None:
    given = {"file_path": "/w/docs/a"}

    assert POLICY.explain("Write", given, cwd="/w", agent="writer").verdict == "allow"
    assert POLICY.explain("Write", given, cwd="/w", agent="reader").verdict == "cli"
    main = Policy(deny("Bash", agents="main"))
    assert main.explain("Bash").verdict == "deny"
    assert main.explain("Bash", agent="writer").verdict == "cli"


def broken(_: ToolCall) -> bool:
    raise RuntimeError("no luck")


@pytest.mark.parametrize("rule", [allow, ask, deny])
def test_a_predicate_decides_whether_a_rule_applies(rule: Any) -> None:
    policy = Policy(rule("Bash", when=lambda call: "x" in call.input["command"]))

    assert policy.explain("Bash", {"command": "x"}).verdict == rule.__name__
    assert policy.explain("Bash", {"command": "y"}).verdict == "cli"


@pytest.mark.parametrize(("rule", "verdict"), [(allow, "cli"), (ask, "ask"), (deny, "deny")])
def test_a_predicate_that_fails_lets_nothing_through(rule: Any, verdict: str) -> None:
    assert Policy(rule("Bash", when=broken)).explain("Bash").verdict == verdict


@pytest.mark.parametrize("otherwise", ["ask", "deny"])
def test_what_no_rule_covers_may_be_decided_as_a_whole(otherwise: Any) -> None:
    found = Policy(otherwise=otherwise).explain("Bash", {"command": "ls"})

    assert (found.verdict, found.rule) == (otherwise, f"otherwise {otherwise}")


@pytest.mark.parametrize(
    ("tool", "given", "mode", "is_final"),
    [
        ("Write", {"file_path": "/w/a"}, "default", True),
        ("Write", {"file_path": "/w/a"}, "plan", False),
        ("Read", {"file_path": "/w/a"}, "plan", True),
        ("Write", {"file_path": "/w/.git/a"}, "default", False),
        ("Bash", {"command": "git log"}, "default", True),
        ("Bash", {"command": "rm -r /"}, "default", False),
    ],
)
def test_an_approval_shows_whether_the_cli_may_still_be_stricter(
    tool: str, given: dict[str, Any], mode: str, *, is_final: bool
) -> None:
    found = Policy(allow(tool)).explain(tool, given, mode=mode)

    assert (found.verdict, found.is_final) == ("allow", is_final)


def test_where_the_cli_would_run_it_unasked_an_ask_is_a_denial() -> None:
    """Seen: in bypassPermissions a hook's ask about a guarded path lets the tool run."""
    policy = Policy(ask("Write"))
    guarded = {"file_path": "/w/.git/hooks/x"}

    assert policy.explain("Write", guarded, mode="default").verdict == "ask"
    assert policy.explain("Write", guarded, mode="bypassPermissions").verdict == "deny"


TEXT = """
available = ["Bash", "Read"]
forbid = ["WebFetch"]
repeatable = ["Bash(git status)"]
otherwise = "deny"

[[rules]]
deny = ["Bash(rm *)", "Bash(sudo *)"]
because = "not here"

[[rules]]
allow = "Bash(git *)"
agents = ["main", "writer"]
"""


def test_a_policy_can_be_read_from_toml() -> None:
    assert Policy.from_toml(TEXT) == Policy(
        deny("Bash(rm *)", "Bash(sudo *)", because="not here"),
        allow("Bash(git *)", agents=["main", "writer"]),
        available=["Bash", "Read"],
        forbid=["WebFetch"],
        repeatable=["Bash(git status)"],
        otherwise="deny",
    )


@pytest.mark.parametrize(
    ("text", "argument"),
    [
        ("rules = ", "text"),
        ("rule = 1", "policy key"),
        ("rules = 1", "rules"),
        ("rules = [1]", "rules[0]"),
        ("[[rules]]\nbecause = 'x'", "rules[0]"),
        ("[[rules]]\nallow = 'Bash'\ndeny = 'Bash'", "rules[0]"),
        ("[[rules]]\nallow = 'Bash'\nwhen = 'x'", "rules[0] key"),
        ("[[rules]]\nallow = 5", "rules[0].allow"),
        ("[[rules]]\nallow = 'Bash'\nbecause = 5", "rules[0].because"),
        ("[[rules]]\nallow = 'Write(src/**)'", "rule"),
        ("forbid = 'Bash('", "rule"),
        ("otherwise = 'allow'", "otherwise"),
        ("remember = 'always'", "remember"),
    ],
)
def test_what_is_no_policy_is_refused_by_its_place(text: str, argument: str) -> None:
    with pytest.raises(UsageError) as caught:
        Policy.from_toml(text)

    assert caught.value.argument == argument


@pytest.mark.parametrize(
    "make",
    [
        lambda: Policy("Bash"),  # type: ignore[arg-type]
        lambda: Policy(available=["mcp__box__ping"]),
        lambda: Policy(available=["Bash(git *)"]),
        lambda: Policy(forbid="Bash"),
        lambda: Policy(repeatable="Bash"),
        lambda: Policy(repeatable=["Bash("]),
        lambda: Policy(forbid=["Bash"], auto_approve=["Bash"]),
        deny,
        lambda: deny("Bash", when="x"),  # type: ignore[arg-type]
        lambda: deny("Bash", because=5),  # type: ignore[arg-type]
        lambda: deny("Bash", agents=5),  # type: ignore[arg-type]
        lambda: deny("Bash", becuase="x"),  # type: ignore[call-arg]
    ],
)
def test_a_policy_that_means_nothing_cannot_be_made(make: Any) -> None:
    with pytest.raises(UsageError):
        make()


def recorded(command: str, *, ran: bool, source: str) -> RecordedCall:
    return RecordedCall("toolu_1", ToolCall("Bash", {"command": command}), ran, source)


@pytest.mark.parametrize(
    ("command", "ran", "source", "verdict", "changes"),
    [
        ("rm a", True, "cli", "deny", True),
        ("rm a", False, "callback", "deny", False),
        ("git push", True, "cli", "ask", True),
        ("git push", True, "person", "ask", False),
        ("git log", True, "rule", "allow", False),
        ("git log", True, "callback", "allow", True),
        ("git log", False, "cli", "allow", True),
        ("make", True, "cli", "cli", False),
    ],
)
def test_a_dry_run_shows_what_would_have_been_decided_and_what_would_change(
    command: str, source: str, verdict: str, *, ran: bool, changes: bool
) -> None:
    (found,) = POLICY.dry_run([recorded(command, ran=ran, source=source)])

    assert (found.verdict, found.changes) == (verdict, changes)


@pytest.mark.parametrize(
    ("policy", "fences"),
    [
        (
            Policy(deny("Bash(touch *)", "Read(.env)"), allow("Bash")),
            ["deny Bash(touch *)", "deny Read(.env)"],
        ),
        (Policy(forbid=["Bash(touch *)"], auto_approve=["Bash"]), ["forbid Bash(touch *)"]),
        (Policy(ask("Bash(git push *)"), allow("Bash(git *)")), ["ask Bash(git push *)"]),
        (Policy(ask("Bash(git push *)"), allow("Bash(git:*)")), ["ask Bash(git push *)"]),
        (Policy(ask("Bash(git push *)"), allow("Bash(git status *)", "Bash(ls)")), []),
        (Policy(deny("Bash(touch *)"), allow("Bash(ls *)", "Read", "Edit(src/**)")), []),
        (Policy(deny("Bash"), allow("Read")), []),
        (Policy(allow("Bash"), deny("Bash(touch *)")), []),
    ],
)
def test_a_guard_beside_a_broad_approval_is_reported_as_a_fence(
    policy: Policy, fences: list[str]
) -> None:
    found = policy.check()

    assert [each.partition(" is a fence, not a wall, beside ")[0] for each in found] == fences
    assert all("closed list" in each and "isolation" in each for each in found)


def test_an_explanation_names_the_guard_that_is_only_a_fence() -> None:
    policy = Policy(deny("Bash(touch *)"), allow("Bash"))

    found = policy.explain("Bash", {"command": "make"})

    assert found.reason == "deny Bash(touch *) is a fence, not a wall, beside allow Bash"
    assert policy.explain("Bash", {"command": "touch M"}).reason == ""


@pytest.mark.parametrize(
    ("tool", "given", "expected"),
    [
        ("Bash", {"command": "git status"}, True),
        ("Bash", {"command": "git status; rm x"}, False),
        ("Bash", {"command": "git status $(rm x)"}, False),
        ("mcp__shop__price", {}, True),
        ("mcp__bank__pay", {}, False),
    ],
)
def test_a_call_may_be_repeated_only_if_a_rule_covers_all_of_it(
    tool: str, given: dict[str, str], *, expected: bool
) -> None:
    policy = Policy(repeatable=["Bash(git status)", "mcp__shop"])

    assert policy.may_repeat(ToolCall(tool, given)) is expected
    assert policy.explain(tool, given).verdict == "cli"
