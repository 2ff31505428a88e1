"""What the table of releases says about a release."""

from __future__ import annotations

import pytest

from steersman import _release_table as measured
from steersman._releases import MEANINGS, TABLE, ReleaseTable, numbers

SINCE = {"old": "2.1.100", "young": "2.1.200"}
UNSAFE = (("2.1.150", "2.1.160", "nothing asks"), ("2.1.155", "2.1.155", "hooks are lost"))
GIVEN = ReleaseTable(
    floor="2.1.100",
    newest="2.1.210",
    tested=("2.1.100", "2.1.150", "2.1.210"),
    holds_since=SINCE,
    unsafe=UNSAFE,
)


@pytest.mark.parametrize(
    ("version", "keeps", "lacks"),
    [
        ("2.1.99", set(), ("old", "young")),
        ("2.1.100", {"old"}, ("young",)),
        ("2.1.199 (Claude Code)", {"old"}, ("young",)),
        ("2.1.200", {"old", "young"}, ()),
        ("2.2.0", {"old", "young"}, ()),
        ("", set(), ()),
    ],
)
def test_a_promise_holds_from_its_first_release_on(
    version: str, keeps: set[str], lacks: tuple[str, ...]
) -> None:
    found = GIVEN.find(version)

    assert (set(found.keeps), found.lacks) == (keeps, lacks)


@pytest.mark.parametrize(
    ("version", "broken"),
    [
        ("2.1.149", ""),
        ("2.1.150", "nothing asks"),
        ("2.1.155", "nothing asks; hooks are lost"),
        ("2.1.160", "nothing asks"),
        ("2.1.161", ""),
        ("", ""),
    ],
)
def test_a_release_in_an_unsafe_range_is_broken(version: str, broken: str) -> None:
    assert GIVEN.find(version).broken == broken


def test_a_release_above_the_newest_tested_is_newer() -> None:
    assert [GIVEN.find(each).is_newer for each in ("2.1.209", "2.1.210", "2.1.211")] == [
        *(False, False, True)
    ]


def test_the_good_release_is_the_newest_tested_one_that_is_safe() -> None:
    unsafe = ReleaseTable(newest="2.1.210", tested=("2.1.9", "2.1.100", "2.1.210"), unsafe=UNSAFE)
    broken = ReleaseTable(tested=GIVEN.tested, unsafe=(("2.1.150", "2.1.210", "all"),))

    assert (unsafe.good(), broken.good()) == ("2.1.210", "2.1.100")


def test_the_generated_table_makes_sense() -> None:
    tested = [numbers(each) for each in measured.TESTED]

    assert tested == sorted(tested)
    assert (measured.TESTED[0], measured.TESTED[-1]) == (measured.FLOOR, measured.NEWEST_TESTED)
    assert measured.HOLDS_SINCE.keys() == MEANINGS.keys()
    assert TABLE.find(measured.NEWEST_TESTED).lacks == ()
