"""What is public stays as it is: names, signatures, documented paths, and kept journals."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from tests.house.scenario_journals import PLAYS, kept, played
from tests.house.surface import (
    additions,
    broken_promises,
    describe,
    documented,
    is_kept,
    kept_surface,
    missing,
    surface,
)

UPDATE = "python -m tests.house.surface --update"


@pytest.fixture
def quiet() -> Iterator[None]:
    """Callbacks of the scenarios fail on purpose, and that is logged."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


def test_no_public_name_is_removed_or_changed() -> None:
    rooms = kept_surface()["rooms"]

    assert broken_promises(rooms, surface(rooms)) == []


def test_every_public_name_is_in_the_data() -> None:
    assert additions(kept_surface()["rooms"], surface()) == [], f"add them: {UPDATE}"


def test_every_path_that_a_page_named_can_be_imported() -> None:
    assert missing(kept_surface()["documented"]) == []


def test_every_path_that_a_page_names_is_in_the_data() -> None:
    new = set(documented()) - set(kept_surface()["documented"])

    assert new == set(), f"add them: {UPDATE}"


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("name", PLAYS)
def test_a_kept_scenario_has_the_same_journal(name: str) -> None:
    assert played(name) == kept()[name]


def test_no_kept_journal_is_forgotten() -> None:
    assert set(kept()) == set(PLAYS)


class _Before:
    def move(self, to: int, *, fast: bool = False) -> None:
        """Move."""


class _After:
    def move(self, to: int, *, fast: bool = True) -> None:
        """Move."""


def test_a_changed_default_is_a_broken_promise() -> None:
    before, after = describe(_Before.move), describe(_After.move)

    (broken,) = broken_promises({"room": {"move": before}}, {"room": {"move": after}})

    assert "fast=False" in broken
    assert "fast=True" in broken


@pytest.mark.parametrize(
    ("before", "now", "works"),
    [
        ("def (a, *, b=1)", "def (a, *, b=1, c=(1, 2))", True),
        ("def (a)", "def (a, b=1)", True),
        ("def (a)", "def (a, *, b=1)", True),
        ("def (a)", "def (a, b)", False),
        ("def (a, b=1)", "def (a, c=2, b=1)", False),
        ("def (a, b=1)", "def (a, *, b=1)", False),
        ("def (a)", "async def (a)", False),
        ("def (a, *, b=1)", "def (a)", False),
        ({"members": {"a": "field"}}, {"members": {"a": "field", "b": "field"}}, True),
        ({"members": {"a": "field"}}, {"members": {"b": "field"}}, False),
        ({"is": ["OSError"]}, {"is": ["OSError", "ValueError"]}, True),
        ({"required": ["a"]}, {"required": ["a", "b"]}, False),
        ("Literal['a']", "Literal['a', 'b']", False),
    ],
)
def test_what_only_grows_keeps_its_promise(before: object, now: object, *, works: bool) -> None:
    assert is_kept(before, now) is works


def test_a_removed_name_is_a_broken_promise() -> None:
    assert broken_promises({"room": {"gone": "def ()"}}, {"room": {}}) == [
        "room.gone: is no longer there"
    ]


def test_an_annotation_spelled_in_another_way_is_none() -> None:
    def one(value: int | None = None) -> list[str]:
        raise NotImplementedError

    def other(value: object = None) -> object:
        raise NotImplementedError

    assert describe(one) == describe(other) == "def (value=None)"
