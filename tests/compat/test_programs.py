"""Programs for the official package go the same way on ours, but for what is listed.

`python -m tests.compat.programs.keep` keeps what the official package does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from steersman.testing.older_cli import OLDER_VERSION, find_older_cli
from tests.compat.programs import keeping
from tests.compat.programs.catalogue import load
from tests.compat.programs.comparing import complaints, difference
from tests.compat.programs.playing import OFFICIAL, OURS, cli_version, play
from tests.compat.programs.reasons import REASONS
from tests.compat.programs.traces import Normalizer
from tests.live.test_harness import stock_cli

pytestmark = [pytest.mark.timeout(300)]

PROGRAMS = load()
GROUPS = sorted({each.group for each in PROGRAMS.values()})
LIVE = (
    "client_interrupting",
    "hook_that_denies",
    "one_shot_up_to_max_turns",
)
"""Few programs that show most kinds of lines, to prove the comparing itself."""


def named(group: str) -> list[str]:
    return [name for name, each in PROGRAMS.items() if each.group == group]


def on_ours(cli: Path, names: list[str]) -> dict[str, list[str]]:
    """Run programs on ours, and return those that go otherwise than is kept."""
    version = cli_version(cli)
    known = keeping.differences(version)
    return complaints(keeping.kept(version)["programs"], play(OURS, cli, names), known)


# --- In the suite ------------------------------------------------------------------------


@pytest.mark.live
@pytest.mark.process
@pytest.mark.parametrize("group", GROUPS)
def test_programs_go_the_same_way_on_ours(group: str) -> None:
    assert on_ours(stock_cli(), named(group)) == {}


@pytest.mark.live
@pytest.mark.process
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
def test_programs_go_the_same_way_on_ours_with_an_older_cli(group: str) -> None:
    assert on_ours(stock_cli(find_older_cli), named(group)) == {}


@pytest.mark.live
@pytest.mark.process
@pytest.mark.soak_only
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("find", [stock_cli, find_older_cli])
def test_the_official_package_still_does_what_was_kept(group: str, find: Any) -> None:
    cli = find()

    found = play(OFFICIAL, cli, named(group))

    official = keeping.kept(cli_version(cli))["programs"]
    for trace in found.values():
        trace.pop("left", None)
    differing = {name: difference(official[name], trace) for name, trace in found.items()}
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
