"""Changes of rules: read as the CLI offers them, written as it takes them."""

from __future__ import annotations

from typing import Any

import pytest

from steersman import _json
from steersman.errors import UsageError
from steersman.permissions import (
    AddDirectories,
    AddRules,
    Allow,
    CanUseTool,
    PermissionContext,
    Policy,
    RemoveDirectories,
    RemoveRules,
    ReplaceRules,
    SetMode,
    ToolRule,
    make_effective,
)

RULE = {"toolName": "Bash", "ruleContent": "git *"}
WIRE: list[tuple[Any, dict[str, Any]]] = [
    (
        AddRules(rules=[ToolRule("Bash", "git *")], destination="localSettings"),
        {"type": "addRules", "destination": "localSettings", "rules": [RULE], "behavior": "allow"},
    ),
    (
        ReplaceRules(rules=[ToolRule("Read")], behavior="deny"),
        {
            "type": "replaceRules",
            "destination": "session",
            "rules": [{"toolName": "Read"}],
            "behavior": "deny",
        },
    ),
    (
        RemoveRules(rules=[ToolRule("Read")], behavior="ask"),
        {
            "type": "removeRules",
            "destination": "session",
            "rules": [{"toolName": "Read"}],
            "behavior": "ask",
        },
    ),
    (SetMode(mode="plan"), {"type": "setMode", "destination": "session", "mode": "plan"}),
    (
        AddDirectories(directories=["/a"]),
        {"type": "addDirectories", "destination": "session", "directories": ["/a"]},
    ),
    (
        RemoveDirectories(directories=["/a"]),
        {"type": "removeDirectories", "destination": "session", "directories": ["/a"]},
    ),
]


@pytest.mark.parametrize(("update", "wire"), WIRE)
def test_a_change_is_written_and_read_as_the_cli_does(update: Any, wire: dict[str, Any]) -> None:
    assert _json.loads(_json.dumps(Allow(updated_permissions=[update]))) == {
        "behavior": "allow",
        "updatedPermissions": [wire],
    }
    assert context(wire).suggestions == [update]


def context(*suggestions: dict[str, Any], **fields: Any) -> PermissionContext:
    question = CanUseTool(
        tool_name="Bash",
        input={"command": "ls -l"},
        permission_suggestions=list(suggestions),
        **fields,
    )
    return PermissionContext("q", "s", question)


def test_a_change_of_an_unknown_kind_stays_where_it_came() -> None:
    strange = {"type": "addWishes", "wishes": 3}
    mode = {"type": "setMode", "mode": "plan", "destination": "session"}

    found = context(strange, mode)

    assert found.suggestions == [SetMode(mode="plan")]
    assert found.question.permission_suggestions[0] == strange


ADD_RULES, ADD_DIRECTORIES = WIRE[0][1], WIRE[4][1]
ACCEPT = {"type": "setMode", "mode": "acceptEdits", "destination": "session"}


@pytest.mark.parametrize(
    ("offered", "scope", "taken"),
    [
        # Rules are narrower than a mode, which the CLI offers beside them.
        (
            [ADD_RULES, ADD_DIRECTORIES, ACCEPT],
            "session",
            [
                AddRules(rules=[ToolRule("Bash", "git *")], destination="session"),
                AddDirectories(directories=["/a"]),
            ],
        ),
        (
            [ADD_RULES],
            "keep",
            [AddRules(rules=[ToolRule("Bash", "git *")], destination="localSettings")],
        ),
        ([ACCEPT], "session", [SetMode(mode="acceptEdits")]),
        ([], "session", [AddRules(rules=[ToolRule("Bash", "ls -l")])]),
        ([], "keep", [AddRules(rules=[ToolRule("Bash", "ls -l")], destination="localSettings")]),
    ],
)
def test_always_takes_what_the_cli_offers(
    offered: list[dict[str, Any]], scope: Any, taken: list[Any]
) -> None:
    assert context(*offered).always(scope) == Allow(updated_permissions=taken)


@pytest.mark.parametrize(
    ("tool", "given", "rule"),
    [
        ("Write", {"file_path": "/w/a"}, ToolRule("Edit", "//w/a")),
        ("Read", {"file_path": "/w/a"}, ToolRule("Read", "//w/a")),
        ("NotebookEdit", {"notebook_path": "/w/a"}, ToolRule("Edit", "//w/a")),
        ("mcp__box__ping", {}, ToolRule("mcp__box__ping")),
        # What would read as a pattern, or as a wider rule than the input, is not made one.
        ("Bash", {"command": "ls *"}, None),
        ("Bash", {}, None),
        ("Write", {"file_path": "a"}, None),
        ("WebFetch", {"url": "http://a"}, None),
    ],
)
def test_where_the_cli_offers_nothing_only_this_very_input_is_allowed_again(
    tool: str, given: dict[str, Any], rule: ToolRule | None
) -> None:
    question = CanUseTool(tool_name=tool, input=given)

    found = PermissionContext("q", "s", question).always()

    updates = None if rule is None else [AddRules(rules=[rule])]
    assert found == Allow(updated_permissions=updates)


@pytest.mark.parametrize("flag", ["suppress_always_allow_rule", "requires_user_interaction"])
def test_what_must_be_asked_each_time_cannot_be_allowed_for_good(flag: str) -> None:
    assert context(ADD_RULES, **{flag: True}).always() == Allow()


def test_for_how_long_is_one_of_two_words() -> None:
    scope: Any = "forever"

    with pytest.raises(UsageError):
        context(ADD_RULES).always(scope)


@pytest.mark.parametrize(
    ("destination", "sources", "counts_in"),
    [
        ("localSettings", (), "session"),
        ("localSettings", ("user",), "session"),
        ("localSettings", ("local",), "localSettings"),
        ("userSettings", (), "session"),
        ("projectSettings", ("project",), "projectSettings"),
        ("session", (), "session"),
        ("cliArg", (), "cliArg"),
    ],
)
def test_a_change_to_a_file_that_is_not_read_is_made_to_the_session(
    destination: Any, sources: tuple[str, ...], counts_in: str
) -> None:
    typed = make_effective(SetMode(mode="plan", destination=destination), sources)
    plain = make_effective({"type": "x", "destination": destination}, sources)

    assert typed == SetMode(mode="plan", destination=counts_in)  # type: ignore[arg-type]
    assert plain == {"type": "x", "destination": counts_in}


def test_what_is_no_change_is_refused() -> None:
    changes: Any = ["plan"]

    with pytest.raises(UsageError):
        Allow(updated_permissions=changes)


def test_a_rule_reads_as_one_text() -> None:
    assert [str(ToolRule("Bash", "git *")), str(ToolRule("Read"))] == ["Bash(git *)", "Read"]


@pytest.mark.parametrize("update", [AddRules, ReplaceRules, RemoveRules])
def test_rules_may_be_given_as_text(update: Any) -> None:
    rules = [ToolRule("Write"), ToolRule("Bash", "git *"), ToolRule("mcp__box")]

    given = update(rules=("Write", "Bash(git *)", ToolRule("mcp__box")))

    assert given == update(rules=rules)
    assert _json.loads(_json.dumps(given))["rules"][:2] == [{"toolName": "Write"}, RULE]


@pytest.mark.parametrize("rules", ["Write", ["Bash(git"], [""], [5], [{"toolName": "Bash"}], None])
def test_a_rule_that_is_none_is_refused(rules: Any) -> None:
    with pytest.raises(UsageError):
        AddRules(rules=rules)


def test_a_policy_file_that_is_nested_too_deeply_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="nested too deeply"):
        Policy.from_toml("rules = " + "[" * 5000)


@pytest.mark.parametrize("behavior", ["allow", "deny", "ask"])
def test_added_rules_have_the_behavior_that_they_were_given(behavior: Any) -> None:
    added = AddRules(rules=[ToolRule("Read")], behavior=behavior)

    written = _json.loads(_json.dumps(added))

    assert (added.behavior, written["behavior"]) == (behavior, behavior)
