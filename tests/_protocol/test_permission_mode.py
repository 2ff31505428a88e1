"""Which changes of the permission mode the CLI may make by itself, and which it may not.

`tests/live/test_modes.py` has the same changes on the stock CLI.
"""

from __future__ import annotations

from typing import get_args

import pytest

from steersman._protocol.permission_mode import ModeCheck, modes_in
from steersman.options.checks import PermissionMode

MODES = get_args(PermissionMode)


@pytest.mark.parametrize("told", MODES)
@pytest.mark.parametrize("reported", [*MODES, "", "manual"])
def test_a_start_in_another_mode_is_refused_unless_the_mode_was_not_available(
    told: str, reported: str
) -> None:
    check = ModeCheck(told)
    check.is_reported = True

    is_stricter = reported == "default" and told in ("auto", "bypassPermissions")
    assert check.starts_in(reported) is (reported == told or is_stricter)


def test_a_peer_of_an_unknown_release_need_not_report_a_mode() -> None:
    assert ModeCheck("default").starts_in("")


@pytest.mark.parametrize("told", MODES)
@pytest.mark.parametrize("reported", ["acceptEdits", "auto", "bypassPermissions", "new"])
def test_the_cli_does_not_loosen_its_mode_by_itself(told: str, reported: str) -> None:
    if told != reported:
        assert not ModeCheck(told).changes_to(reported)
        assert not ModeCheck(told).starts_in(reported)


@pytest.mark.parametrize("told", MODES)
def test_plan_mode_is_entered_and_left_again(told: str) -> None:
    check = ModeCheck(told)

    assert check.changes_to("plan")
    assert check.starts_in("plan")
    assert check.changes_to("default" if told == "plan" else told)
    assert not check.starts_in("plan")


@pytest.mark.parametrize("mode", MODES)
def test_a_mode_that_was_set_is_expected_from_then_on(mode: str) -> None:
    check = ModeCheck("default")
    check.asks_for(mode)
    check.is_set(mode)

    assert check.given == mode
    assert check.changes_to(mode)
    assert check.starts_in(mode)
    assert check.starts_in("default") is (mode in ("default", "auto", "bypassPermissions"))


def test_a_mode_that_was_asked_for_may_be_reported_before_the_answer() -> None:
    check = ModeCheck("default")
    check.asks_for("acceptEdits")

    assert check.changes_to("acceptEdits")
    assert check.given == "acceptEdits"


def test_a_mode_that_the_cli_has_refused_is_not_expected() -> None:
    check = ModeCheck("default")
    check.asks_for("bypassPermissions")
    check.was_refused("bypassPermissions")

    assert not check.changes_to("bypassPermissions")


def test_a_mode_that_was_set_before_plan_mode_comes_back() -> None:
    check = ModeCheck("default")
    for mode in ("acceptEdits", "plan"):
        check.asks_for(mode)
        check.is_set(mode)

    assert check.changes_to("acceptEdits")


def test_a_turn_may_not_open_in_the_mode_before_plan_mode_without_a_report() -> None:
    check = ModeCheck("acceptEdits")
    check.asks_for("plan")
    check.is_set("plan")

    assert not check.starts_in("acceptEdits")


def test_where_a_tool_decides_it_may_change_the_mode_in_the_open() -> None:
    check = ModeCheck("default", others_decide=True)

    assert not check.starts_in("acceptEdits")
    assert check.changes_to("acceptEdits")
    assert check.starts_in("acceptEdits")


SET = [{"type": "setMode", "mode": "acceptEdits", "destination": "session"}]


@pytest.mark.parametrize(
    ("response", "modes"),
    [
        ({"behavior": "allow", "updatedPermissions": SET}, ["acceptEdits"]),
        ({"hookSpecificOutput": {"decision": {"updatedPermissions": SET}}}, ["acceptEdits"]),
        ({"updatedPermissions": [{"type": "addRules", "rules": []}]}, []),
        ({"updatedPermissions": "setMode"}, []),
        ({"hookSpecificOutput": "setMode"}, []),
        ({}, []),
        (None, []),
    ],
)
def test_the_modes_in_an_answer_are_found(response: object, modes: list[str]) -> None:
    assert list(modes_in(response)) == modes
