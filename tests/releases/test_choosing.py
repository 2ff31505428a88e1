"""The search for changes finds each of them, with few questions; the choice is that of the day."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.releases.choosing import (
    changes_in,
    chosen,
    find_changes,
    holds_since,
    ordered,
    runs_of,
    since,
)

VERSIONS = [f"2.1.{number}" for number in range(95, 195)]


async def searched(verdicts: list[str], points: list[str]) -> tuple[dict[str, str], list[str]]:
    """What was found out about releases that do this, and which were asked, in order."""
    asked: list[str] = []

    async def ask(version: str) -> str:
        asked.append(version)
        return verdicts[VERSIONS.index(version)]

    return await find_changes(VERSIONS, points, ask), asked


@given(
    first=st.integers(1, 98), second=st.integers(1, 99), third=st.sampled_from(["yes", "in part"])
)
async def test_each_change_is_found_if_a_point_lies_between_them(
    first: int, second: int, third: str
) -> None:
    first, second = sorted((first, second))
    verdicts = ["no"] * first + ["yes"] * (second - first) + [third] * (100 - second)
    points = [VERSIONS[0], VERSIONS[first], VERSIONS[-1]]

    found, asked = await searched(verdicts, points)

    true = dict(zip(VERSIONS, verdicts, strict=True))
    assert changes_in(found) == changes_in(true)
    assert found == {version: true[version] for version in found}
    assert len(asked) == len(set(asked)) <= 3 + 2 * 7


async def test_where_the_ends_agree_nothing_else_is_asked() -> None:
    found, asked = await searched(["yes"] * 100, [VERSIONS[0], VERSIONS[-1]])

    assert asked == [VERSIONS[0], VERSIONS[-1]]
    assert changes_in(found) == []


async def test_the_ends_of_a_hole_that_is_seen_by_chance_are_found_without_asking_again() -> None:
    verdicts = ["yes"] * 40 + ["no"] * 10 + ["yes"] * 50
    known = {VERSIONS[0]: "yes", VERSIONS[45]: "no", VERSIONS[-1]: "yes"}
    asked: list[str] = []

    async def ask(version: str) -> str:
        asked.append(version)
        return verdicts[VERSIONS.index(version)]

    found = await find_changes(VERSIONS, [], ask, known)

    assert changes_in(found) == [VERSIONS[40], VERSIONS[50]]
    assert runs_of(found, "yes") == [(VERSIONS[40], VERSIONS[49])]
    assert not set(asked) & set(known)


def test_versions_are_put_in_order_by_their_numbers() -> None:
    assert ordered(["2.1.100", "2.1.99", "0.0.0", "2.1.99"]) == ["0.0.0", "2.1.99", "2.1.100"]
    assert since("2.1.99", ["2.1.100", "0.0.0", "2.1.98", "2.1.99"]) == ["2.1.99", "2.1.100"]


def test_a_promise_holds_from_the_release_after_the_last_that_did_not_keep_it() -> None:
    verdicts = {"2.1.9": "yes", "2.1.10": "no", "2.1.11": "yes", "2.1.12": "yes"}

    assert holds_since(verdicts, "yes") == "2.1.11"
    assert holds_since({**verdicts, "2.1.13": "in part"}, "yes") is None
    assert holds_since({"2.1.9": "yes"}, "yes") == "2.1.9"


def test_the_ranges_that_are_not_good_have_their_ends() -> None:
    verdicts = dict(zip(VERSIONS, ["no", "no", "yes", "in part", "yes", "no"], strict=False))

    assert runs_of(verdicts, "yes") == [
        (VERSIONS[0], VERSIONS[1]),
        (VERSIONS[3], VERSIONS[3]),
        (VERSIONS[5], VERSIONS[5]),
    ]
    assert runs_of({}, "yes") == []


def test_the_choice_has_what_must_be_there_and_is_the_same_all_day() -> None:
    wanted = {VERSIONS[0]: "the floor", VERSIONS[-1]: "the newest", VERSIONS[50]: "it changes"}

    monday = chosen(VERSIONS, wanted, count=12, by_chance=3, day="2026-11-16")

    assert list(monday) == ordered(monday)
    assert len(monday) == 12
    assert {version: monday[version] for version in wanted} == wanted
    assert monday == chosen(VERSIONS, wanted, count=12, by_chance=3, day="2026-11-16")
    assert monday != chosen(VERSIONS, wanted, count=12, by_chance=3, day="2026-11-17")


def test_all_that_must_be_there_are_there_however_many_and_three_are_by_chance() -> None:
    wanted = dict.fromkeys(VERSIONS[20:40], "it changes")

    found = chosen(VERSIONS, wanted, count=12, by_chance=3, day="2026-11-16")

    assert list(found.values()).count("by chance") == 3
    assert [version for version in found if version in wanted] == VERSIONS[20:40]
