"""All checks together."""

from __future__ import annotations

import json
from typing import Any

import pytest

from steersman.errors import UsageError
from steersman.testing.older_cli import OLDER_VERSION
from steersman_conformance import baselines
from steersman_conformance.catalogue import ALL, chosen
from steersman_conformance.checks import Check, Kind

CHECKS: list[Check[Any]] = [check for scene in ALL for check in scene.checks]
SECTIONS = {"1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "14", "15", "16", "19"}


def test_there_are_many_checks_and_each_has_a_name_of_its_own() -> None:
    names = [check.name for check in CHECKS]

    assert len(names) >= 60
    assert len(set(names)) == len(names)
    assert "tool-use-ids-are-unique" in names


def test_each_check_says_what_it_states_and_where_that_is_written() -> None:
    assert [check.name for check in CHECKS if not check.states.endswith(".")] == []
    assert {check.section.split(".")[0] for check in CHECKS} >= SECTIONS


def test_each_feature_and_each_fault_says_what_we_do_about_it() -> None:
    assert [
        check.name for check in CHECKS if check.kind is not Kind.MUST and not check.remedy
    ] == []
    assert sum(check.kind is Kind.CANARY for check in CHECKS) >= 6


def test_what_is_expected_can_be_written_down() -> None:
    assert all(json.loads(json.dumps(check.expected)) == check.expected for check in CHECKS)


@pytest.mark.parametrize("version", ["2.1.325", OLDER_VERSION])
def test_each_check_was_recorded_for_both_versions(version: str) -> None:
    recorded = baselines.load(baselines.SHIPPED / f"{version}.json")

    assert recorded.version == version
    assert sorted(recorded.observed) == sorted(check.name for check in CHECKS)


def test_the_newest_recorded_version_shows_everything_that_is_expected() -> None:
    observed = baselines.load(baselines.SHIPPED / "2.1.325.json").observed

    assert {
        each.name: observed[each.name] for each in CHECKS if each.expected != observed[each.name]
    } == {}


def test_checks_are_chosen_by_name_by_scene_and_by_pattern() -> None:
    def names(*given: str) -> list[str]:
        return [name for scene in chosen(given) for name in scene.names]

    assert names("tool-use-ids-are-unique") == ["tool-use-ids-are-unique"]
    assert names("tools-side-by-side") == [
        "read-only-tools-run-side-by-side",
        "tool-use-ids-are-unique",
    ]
    assert names("tool-use-*", "deny-wins-*") == ["deny-wins-over-allow", "tool-use-ids-are-unique"]
    assert len(names()) == len(CHECKS)


def test_a_name_that_stands_for_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="no-such-check"):
        chosen(["tool-use-*", "no-such-check"])
