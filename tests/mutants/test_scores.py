from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants.scores import Key, equivalent, rooms, share

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", rooms())
def test_a_room_has_source_and_tests(name: str) -> None:
    assert (ROOT / "src/steersman" / name).is_dir()
    assert all((ROOT / tests).exists() for tests in rooms()[name]["tests"])


@pytest.mark.parametrize("key", equivalent(), ids=lambda key: f"{key[0]}: {key[1]}")
def test_a_mutant_that_nobody_can_notice_is_of_a_line_that_is_there(key: Key) -> None:
    file, code, _before, _after = key

    assert code in map(str.strip, (ROOT / file).read_text().split("\n"))
    assert equivalent()[key]


def test_a_share_lies_within_its_bounds_and_more_mutants_narrow_them() -> None:
    few, many = share(9, 10), share(900, 1000)

    assert few[0] == many[0] == 90
    assert few[1] < many[1] < 90 < many[2] < few[2]
    assert share(0, 0) == (100, 0, 100)
