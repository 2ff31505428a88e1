"""Exceptions and shapes with methods do what those of the installed official package do."""

from __future__ import annotations

import pickle
from importlib import import_module
from typing import Any

import pytest

import steersman.compat
from steersman.compat import (
    ClaudeAgentOptions,
    ClaudeSDKError,
    HookMatcher,
    PermissionUpdate,
    ResultError,
    SessionStore,
    _errors,
    types,
)

Given = tuple[tuple[Any, ...], dict[str, Any]]


def given(*values: Any, **named: Any) -> Given:
    return values, named


FAILED = {
    "subtype": "error_max_turns",
    "errors": [" a ", "", "  ", 5, None, "b\n"],
    "result": "r",
    "api_error_status": 429,
    "terminal_reason": "max_turns",
    "session_id": "s",
    "uuid": "u",
}

ODD_ERRORS: list[Any] = [" x ", " ", None, {}, ("x",), []]
ODD_FIELDS: list[Any] = [5, 1.5, True, "", []]

RAISED: list[tuple[str, Given]] = [
    ("ClaudeSDKError", given()),
    ("ClaudeSDKError", given("a", "b")),
    ("CLIConnectionError", given("a")),
    ("CLINotFoundError", given()),
    ("CLINotFoundError", given("a", "")),
    ("CLINotFoundError", given("a", "/p")),
    ("CLINotFoundError", given(cli_path="/p")),
    ("ProcessError", given("a")),
    ("ProcessError", given("a", 0)),
    ("ProcessError", given("a", exit_code=1, stderr="b")),
    ("ProcessError", given("a", None, "b")),
    ("ProcessError", given("a", None, "")),
    ("ResultError", given("a")),
    ("ResultError", given("a", {}, 0)),
    ("ResultError", given("a", FAILED, exit_code=1)),
    *(("ResultError", given("a", {"errors": each})) for each in ODD_ERRORS),
    *(("ResultError", given("a", dict.fromkeys(FAILED, each))) for each in ODD_FIELDS),
    ("CLIJSONDecodeError", given("{", ValueError("why"))),
    ("CLIJSONDecodeError", given("x" * 300, ValueError("why"))),
    ("MessageParseError", given("a")),
    ("MessageParseError", given("a", {"b": 1})),
]


@pytest.mark.parametrize(("name", "arguments"), RAISED, ids=str)
def test_an_exception_has_the_official_text_and_attributes(name: str, arguments: Given) -> None:
    official = import_module(pytest.importorskip("claude_agent_sdk").__name__ + "._errors")

    there, here = (
        getattr(home, name)(*arguments[0], **arguments[1]) for home in (official, _errors)
    )

    ours, theirs = vars(here), vars(there)
    assert (str(here), repr(here), here.args) == (str(there), repr(there), there.args)
    assert {k: repr(v) for k, v in ours.items()} == {k: repr(v) for k, v in theirs.items()}


def test_one_except_clause_catches_every_exception() -> None:
    names = [name for name in _errors.__all__ if name != "ClaudeSDKError"]

    assert all(issubclass(getattr(_errors, name), ClaudeSDKError) for name in names)


UPDATES: list[dict[str, Any]] = [
    {
        "type": "addRules",
        "rules": [{"toolName": "Bash", "ruleContent": "ls"}, {"toolName": "Read"}],
        "behavior": "allow",
        "destination": "session",
    },
    {"type": "setMode", "mode": "plan", "rules": [{"toolName": "Bash"}], "more": 1},
    {"type": "addDirectories", "directories": ["/a"], "behavior": "deny"},
    {"type": "removeDirectories", "directories": []},
    {"type": "replaceRules", "rules": []},
    {"type": "removeRules", "rules": None, "behavior": ""},
    {
        "type": "of_a_later_release",
        "rules": [{"toolName": "B"}],
        "mode": "plan",
        "destination": "x",
    },
]


@pytest.mark.parametrize("update", UPDATES, ids=lambda update: update["type"])
def test_a_permission_update_goes_both_ways_as_the_official_one(update: dict[str, Any]) -> None:
    official = pytest.importorskip("claude_agent_sdk")

    here, there = PermissionUpdate.from_dict(update), official.PermissionUpdate.from_dict(update)

    assert repr(here) == repr(there)
    assert here.to_dict() == there.to_dict()
    assert list(here.to_dict()) == list(there.to_dict())


async def test_the_optional_methods_of_a_store_say_that_they_are_not_there() -> None:
    class Store(SessionStore):
        async def append(self, key: Any, entries: Any) -> None: ...

        async def load(self, key: Any) -> None: ...

    store = Store()  # type: ignore[abstract]  # as the official one

    for call in (
        store.list_sessions("p"),
        store.list_session_summaries("p"),
        store.delete({"project_key": "p", "session_id": "s"}),
        store.list_subkeys({"project_key": "p", "session_id": "s"}),
    ):
        with pytest.raises(NotImplementedError):
            await call


def test_two_options_share_no_lists() -> None:
    first, second = ClaudeAgentOptions(), ClaudeAgentOptions()

    first.allowed_tools.append("Bash")
    first.env["A"] = "b"

    assert (second.allowed_tools, second.env) == ([], {})
    assert HookMatcher().hooks is not HookMatcher().hooks


def test_the_modules_can_be_reached_as_attributes() -> None:
    assert steersman.compat.types is types
    assert steersman.compat.types.HookEvent == types.HookEvent


def test_exceptions_and_shapes_can_be_sent_to_another_process() -> None:
    options = ClaudeAgentOptions(max_turns=3, debug_stderr=None)
    update = PermissionUpdate.from_dict(UPDATES[0])

    assert pickle.loads(pickle.dumps([options, update])) == [options, update]
    error = pickle.loads(pickle.dumps(ResultError("a", {"subtype": "x"})))
    assert (str(error), error.subtype) == ("a", "x")
