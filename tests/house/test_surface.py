"""What is public stays as it is: names, signatures, documented paths, and kept journals."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from difflib import unified_diff

import pytest

from tests.house.scenario_journals import PLAYS, kept, played
from tests.house.surface import (
    DATA,
    describe,
    described_in,
    documented,
    missing,
    surface,
    unannounced,
    written,
)

UPDATE = "python -m tests.house.surface --update"


@pytest.fixture
def quiet() -> Iterator[None]:
    """Callbacks of the scenarios fail on purpose, and that is logged."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


def test_every_public_name_is_in_the_data_as_it_is() -> None:
    kept, now = DATA.read_text(encoding="utf-8").splitlines(), written(surface()).splitlines()

    changed = [line for line in unified_diff(kept, now, n=0, lineterm="") if line[:2] != "@@"]

    assert changed[2:] == [], f"write it anew, and read the difference: {UPDATE}"


def test_every_path_that_a_page_names_can_be_imported() -> None:
    assert missing(documented()) == []


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("name", PLAYS)
def test_a_kept_scenario_has_the_same_journal(name: str) -> None:
    assert played(name) == kept()[name]


def test_no_kept_journal_is_forgotten() -> None:
    assert set(kept()) == set(PLAYS)


TEXT = """
[one]
Base(to, *, fast=False): ready
  async move(to)
Word = Literal['a']
[other]
Other is Base
from one: Base
"""


def test_a_name_is_written_once_and_listed_where_it_is_shown_again() -> None:
    base: dict[str, object] = {"is": [], "new": "(to, *, fast=False)"}
    members = {"to": "attribute", "ready": "attribute", "move": "async def (self, to)"}
    one: dict[str, object] = {"Base": {**base, "members": members}, "Word": "Literal['a']"}
    other = {"Base": one["Base"], "Other": {"is": ["Base"], "members": members}}

    text = written({"one": one, "other": other})  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]

    assert [line for line in text.splitlines() if line and line[0] != "#"] == TEXT.split("\n")[1:-1]


def test_what_is_written_is_read_by_room_and_name() -> None:
    assert described_in(TEXT) == {
        ("one", "Base"): ["Base(to, *, fast=False): ready", "  async move(to)"],
        ("one", "Word"): ["Word = Literal['a']"],
        ("other", "Other"): ["Other is Base"],
        ("other", "Base"): [],
    }


@pytest.mark.parametrize(
    ("before", "after", "name"),
    [
        ("fast=False", "fast=True", "one.Base"),
        ("  async move(to)\n", "", "one.Base"),
        ("Word = Literal['a']\n", "", "one.Word"),
        ("from one: Base\n", "", "other.Base"),
    ],
)
def test_what_is_gone_or_changed_is_named_by_a_fragment(before: str, after: str, name: str) -> None:
    now = TEXT.replace(before, after)

    assert unannounced(TEXT, now, "") == [name]
    assert unannounced(TEXT, now, f"`{name.partition('.')[2]}` is another one.") == []


def test_what_is_added_needs_no_fragment() -> None:
    more = TEXT.replace("[other]", "More()\n[other]").replace("fast=False", "fast=False, far=1")

    assert unannounced(TEXT, more, "") == []


def test_an_annotation_spelled_in_another_way_is_none() -> None:
    def one(value: int | None = None) -> list[str]:
        raise NotImplementedError

    def other(value: object = None) -> object:
        raise NotImplementedError

    assert describe(one) == describe(other) == "def (value=None)"
