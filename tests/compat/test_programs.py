"""Programs for the official package go the same way on ours, but for what is listed.

`python -m tests.compat.programs.keep` keeps what the official package does.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from steersman.testing.older_cli import OLDER_VERSION, find_older_cli
from steersman.testing.sandbox import find_stock_cli
from tests.compat.programs import keeping
from tests.compat.programs.catalogue import load
from tests.compat.programs.comparing import complaints, difference
from tests.compat.programs.playing import OFFICIAL, OURS, WAYS, cli_version, play
from tests.compat.programs.reasons import REASONS
from tests.compat.programs.traces import Normalizer
from tests.live.test_harness import stock_cli

pytestmark = [pytest.mark.timeout(300)]

Find = Callable[[], Path]

PROGRAMS = load()
GROUPS = sorted({each.group for each in PROGRAMS.values()})
IN_SUITE = (
    "agent_in_the_foreground",
    "client_before_it_is_connected",
    "client_clearing_its_conversation",
    "client_connected_with_an_iterable",
    "client_interrupting",
    "client_rewinding_files",
    "client_setting_the_model",
    "client_steering_in_mid_turn",
    "client_stopping_a_task",
    "client_whose_cli_is_killed_between_turns",
    "client_whose_reader_is_cancelled",
    "client_with_the_replay_flag",
    "client_with_three_prompts_at_once",
    "hook_that_changes_the_input",
    "hook_that_raises",
    "hooks_after_tools",
    "hooks_of_compaction_and_start",
    "hooks_with_matchers",
    "one_shot_cancelled",
    "one_shot_of_two_prompts",
    "one_shot_that_the_api_refuses",
    "one_shot_up_to_max_turns",
    "one_shot_whose_prompts_raise",
    "one_shot_with_a_result_of_1_5_mb",
    "one_shot_with_background_work",
    "one_shot_with_partial_messages",
    "one_shot_with_structured_output",
    "one_shot_without_permission",
    "options_that_others_refuse",
    "permission_as_an_answer_to_the_model",
    "permission_callback_that_raises",
    "permission_denied_with_an_interrupt",
    "permission_with_a_new_rule",
    "permission_with_another_input",
    "session_in_a_store",
    "sessions_read",
    "start_in_a_folder_that_is_not_there",
    "start_of_a_cli_that_ends_at_once",
    "start_with_a_session_that_is_not_there",
    "start_without_a_cli",
    "tool_with_a_picture",
    "tool_with_a_simple_schema",
    "tool_with_wrong_arguments",
    "tools_of_two_servers",
    "tools_that_fail",
    *(name for name, each in PROGRAMS.items() if each.group == "on_transports"),
)
"""Those that differ most from each other."""
IS_WHOLE = "STEERSMAN_WHOLE" in os.environ
PLAYED = IN_SUITE if IS_WHOLE else IN_SUITE[int(os.environ["STEERSMAN_THIRD"]) % 3 :: 3]
"""`make test` plays a third of those, another one each day; `.ci/run` plays all of them."""
SHARDS = 4 if IS_WHOLE else 2
"""Tests that share the programs, so that two workers have something to do."""
LIVE = (
    "client_interrupting",
    "hook_that_changes_the_input",
    "one_shot_up_to_max_turns",
)
"""Few programs that show most kinds of lines, to prove the comparing itself."""


DIFFERING = ("client_with_three_prompts_at_once", "hook_that_changes_the_input")
"""The first goes another way on the official package, which shows that ours was there."""


def named(group: str) -> list[str]:
    return [name for name, each in PROGRAMS.items() if each.group == group]


def on_ours(cli: Path, names: list[str], way: str | None = None) -> dict[str, list[str]]:
    """Run programs on ours, and return those that go otherwise than is kept."""
    version = cli_version(cli)
    known = keeping.differences(version)
    found = play(OURS if way is None else OFFICIAL, cli, names, way=way)
    return complaints(keeping.kept(version)["programs"], found, known)


# --- In the suite ------------------------------------------------------------------------


@pytest.mark.live
@pytest.mark.process
@pytest.mark.parametrize("shard", range(SHARDS))
def test_programs_go_the_same_way_on_ours(shard: int) -> None:
    assert on_ours(stock_cli(), list(PLAYED[shard::SHARDS])) == {}


@pytest.mark.live
@pytest.mark.process
@pytest.mark.parametrize("way", WAYS)
def test_programs_go_the_same_way_however_they_get_ours(way: str) -> None:
    """As they stand: they import the official package."""
    assert on_ours(stock_cli(), list(IN_SUITE if IS_WHOLE else DIFFERING), way) == {}


@pytest.mark.live
@pytest.mark.process
@pytest.mark.ci_only
def test_what_was_kept_is_what_the_official_package_does() -> None:
    cli = stock_cli()

    found = play(OFFICIAL, cli, LIVE)

    official = keeping.kept(cli_version(cli))["programs"]
    assert {name: difference(official[name], trace) for name, trace in found.items()} == {
        name: [] for name in LIVE
    }


def test_there_are_ninety_programs_and_what_each_does_is_kept() -> None:
    for version in (keeping.newest(), OLDER_VERSION):
        kept = keeping.kept(version)

        assert len(PROGRAMS) >= 90
        assert set(kept["programs"]) == set(PROGRAMS)
        assert kept["official"] == keeping.official_version(), "run tests.compat.programs.keep"
        assert kept["cli"] == version


def test_the_programs_of_the_suite_are_there_and_of_all_kinds() -> None:
    assert set(IN_SUITE) <= set(PROGRAMS)
    assert {PROGRAMS[name].group for name in IN_SUITE} == set(GROUPS)


def test_every_difference_has_a_reason_and_every_reason_a_difference() -> None:
    differing = {
        name
        for version in (keeping.newest(), OLDER_VERSION)
        for name in keeping.differences(version)
    }

    assert differing == set(REASONS)


# --- With much more time -----------------------------------------------------------------


@pytest.mark.live
@pytest.mark.process
@pytest.mark.soak_only
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("find", [find_stock_cli, find_older_cli])
def test_all_programs_go_the_same_way_on_ours_with_both_clis(group: str, find: Find) -> None:
    assert on_ours(stock_cli(find), named(group)) == {}


@pytest.mark.live
@pytest.mark.process
@pytest.mark.soak_only
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("find", [find_stock_cli, find_older_cli])
def test_the_official_package_still_does_what_was_kept(group: str, find: Find) -> None:
    cli = stock_cli(find)

    found = play(OFFICIAL, cli, named(group))

    official = keeping.kept(cli_version(cli))["programs"]
    differing = {
        name: difference(official[name], {**trace, "left": []}) for name, trace in found.items()
    }
    assert {name: lines for name, lines in differing.items() if lines} == {}


# --- The comparing itself ----------------------------------------------------------------


def test_another_text_is_a_difference() -> None:
    official = {"messages": [{"is": "TextBlock", "text": "one"}], "raises": None}
    ours = {"messages": [{"is": "TextBlock", "text": "two"}], "left": 1}

    assert difference(official, ours) == [
        '- messages {"is": "TextBlock", "text": "one"}',
        '+ messages {"is": "TextBlock", "text": "two"}',
        "- raises null",
        "+ left 1",
    ]


def test_a_difference_without_a_reason_is_a_complaint_and_so_is_one_that_is_gone() -> None:
    one, two = {"notes": [["a", 1]]}, {"notes": [["a", 2]]}
    lines = ['- notes ["a", 1]', '+ notes ["a", 2]']

    assert complaints({"p": one}, {"p": two}, {}) == {"p": lines}
    assert complaints({"p": one}, {"p": one}, {}) == {}
    assert list(complaints({"p": one}, {"p": two}, {"p": lines})) == ["p"]
    assert list(complaints({"p": one}, {"p": one}, {"p": lines})) == ["p"]


def test_ids_times_and_paths_are_named_and_own_uuids_are_kept() -> None:
    own = "00000000-0000-4000-8000-000000000001"
    other = "1b4e28ba-2fa1-11d2-883f-0016d3cca427"
    normal = Normalizer({"/tmp/box": "<root>"})

    found = normal({"uuid": other, "session_id": own, "text": f"/tmp/box/a {other} {own}"})

    assert found == {"uuid": "<uuid>", "session_id": own, "text": f"<root>/a <uuid> {own}"}
