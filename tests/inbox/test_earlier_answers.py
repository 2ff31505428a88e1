"""An answer is good for one call at most: an ask that is opened again shows it, on every store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from steersman.inbox.rows import AskRow
from steersman.permissions import Allow, Answer, Ask, Deny, answer_to_json
from steersman.permissions.json_form import ask_from_json, ask_to_json
from steersman.stores.ask_table import AskTable
from steersman.stores.sqlite_asks import sqlite_asks
from tests.inbox.places import OTHER, an_ask
from tests.inbox.test_lost_leases import take


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.process)])
async def rows(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[AskTable]:
    if request.param == "sqlite":
        made = sqlite_asks(tmp_path / "work.db", 5.0)
    else:
        # The fast tests on newer Pythons have no driver.
        from steersman.stores.postgres_asks import postgres_asks  # noqa: PLC0415

        made = postgres_asks(request.getfixturevalue("postgres_url"), 5.0, 3)
    yield made
    await made.aclose()


async def opened(rows: AskTable, ask: Ask, token: str) -> AskRow:
    row = await rows.open(ask, None, (), token)
    assert row is not None
    return row


async def used(rows: AskTable, ask: Ask, answer: Answer, token: str = "a") -> AskRow:
    """Open an ask, answer it, and use the answer, as a host that is then lost."""
    row = await opened(rows, ask, token)
    await rows.end(row.number, "answered", "ann", answer_to_json(answer).decode(), "m")
    return await rows.use(row.number, "mark", token)


async def test_an_ask_that_is_opened_again_shows_who_answered_it_before(rows: AskTable) -> None:
    await take(rows, "a")
    first = await used(rows, an_ask(), Allow({"command": "pwd"}))

    again = await opened(rows, an_ask(), "a")

    earlier = again.ask.earlier
    assert (again.state, again.number == first.number) == ("open", False)
    assert earlier is not None
    assert (earlier.by, earlier.answer) == ("ann", Allow({"command": "pwd"}))
    assert ask_from_json(ask_to_json(again.ask)).earlier == earlier
    (listed,) = await rows.open_ones()
    assert listed.ask.earlier == earlier


async def test_another_turn_or_input_has_no_earlier_answer(rows: AskTable) -> None:
    await take(rows, "a")
    await used(rows, an_ask(), Allow())

    others = [await opened(rows, each, "a") for each in (an_ask(turn="u2"), an_ask(OTHER))]

    assert [each.ask.earlier for each in others] == [None, None]


async def test_the_answers_of_a_turn_that_was_cancelled_are_not_shown(rows: AskTable) -> None:
    await take(rows, "a")
    row = await opened(rows, an_ask(), "a")
    await rows.end(row.number, "answered", "ann", '{"behavior":"allow"}', "m")
    await rows.work.settle("s1", "a", "u1", "settled", "cancelled")

    assert (await opened(rows, an_ask(), "a")).ask.earlier is None


async def test_a_tool_that_may_run_again_is_allowed_again_after_its_host_was_lost(
    rows: AskTable,
) -> None:
    ask = replace(an_ask(), is_repeatable=True)
    await take(rows, "a")
    await used(rows, ask, Allow())
    await rows.work.release("s1", "a")
    await take(rows, "b")

    again = await opened(rows, replace(ask, id="again"), "b")

    assert (again.state, again.by, again.reply(), again.can_be_used) == (
        *("answered", "ann", Allow()),
        True,
    )
    # Used once, as any answer: the next call of this owner waits.
    await rows.use(again.number, "mark of b", "b")
    third = await opened(rows, replace(ask, id="third"), "b")
    assert (third.state, third.ask.earlier is not None) == ("open", True)


@pytest.mark.parametrize(
    ("answer", "is_repeatable", "owner"),
    [(Allow(), False, "b"), (Deny("no"), True, "b"), (Allow(), True, "a")],
    ids=["not declared", "denied", "the same host"],
)
async def test_any_other_call_is_asked_about_again(
    rows: AskTable, answer: Answer, owner: str, *, is_repeatable: bool
) -> None:
    ask = replace(an_ask(), is_repeatable=is_repeatable)
    await take(rows, "a")
    await used(rows, ask, answer)
    if owner != "a":
        await rows.work.release("s1", "a")
        await take(rows, owner)

    again = await opened(rows, replace(ask, id="again"), owner)

    assert (again.state, again.ask.earlier is not None) == ("open", True)
