"""An answer is good for one call at most: an ask that is opened again shows it, on every store."""

from __future__ import annotations

from dataclasses import replace

import pytest

from steersman.inbox.rows import AskRow
from steersman.permissions import Allow, Answer, Ask, Deny, answer_to_json
from steersman.permissions.json_form import ask_from_json, ask_to_json
from steersman.stores._sql.store import SqlStore
from tests.inbox.places import OTHER, an_ask
from tests.inbox.test_lost_leases import make_store, store, take

__all__ = ["make_store", "store"]


async def opened(store: SqlStore, ask: Ask, token: str) -> AskRow:
    row = await store.asks.open(ask, None, (), token)
    assert row is not None
    return row


async def used(store: SqlStore, ask: Ask, answer: Answer, token: str = "a") -> AskRow:
    """Open an ask, answer it, and use the answer, as a host that is then lost."""
    row = await opened(store, ask, token)
    await store.asks.end(row.number, "answered", "ann", answer_to_json(answer).decode(), "m")
    return await store.asks.use(row.number, "mark", token)


async def test_an_ask_that_is_opened_again_shows_who_answered_it_before(store: SqlStore) -> None:
    await take(store, "a")
    first = await used(store, an_ask(), Allow({"command": "pwd"}))

    again = await opened(store, an_ask(), "a")

    earlier = again.ask.earlier
    assert (again.state, again.number == first.number) == ("open", False)
    assert earlier is not None
    assert (earlier.by, earlier.answer) == ("ann", Allow({"command": "pwd"}))
    assert ask_from_json(ask_to_json(again.ask)).earlier == earlier
    (listed,) = await store.asks.open_ones()
    assert listed.ask.earlier == earlier


async def test_another_turn_or_input_has_no_earlier_answer(store: SqlStore) -> None:
    await take(store, "a")
    await used(store, an_ask(), Allow())

    others = [await opened(store, each, "a") for each in (an_ask(turn="u2"), an_ask(OTHER))]

    assert [each.ask.earlier for each in others] == [None, None]


async def test_the_answers_of_a_turn_that_was_cancelled_are_not_shown(store: SqlStore) -> None:
    await take(store, "a")
    row = await opened(store, an_ask(), "a")
    await store.asks.end(row.number, "answered", "ann", '{"behavior":"allow"}', "m")
    await store.work.settle("s1", "a", "u1", "settled", "cancelled")

    assert (await opened(store, an_ask(), "a")).ask.earlier is None


async def test_a_tool_that_may_run_again_is_allowed_again_after_its_host_was_lost(
    store: SqlStore,
) -> None:
    ask = replace(an_ask(), is_repeatable=True)
    await take(store, "a")
    await used(store, ask, Allow())
    await store.work.release("s1", "a")
    await take(store, "b")

    again = await opened(store, replace(ask, id="again"), "b")

    assert (again.state, again.by, again.reply(), again.can_be_used) == (
        *("answered", "ann", Allow()),
        True,
    )
    # Used once, as any answer: the next call of this owner waits.
    await store.asks.use(again.number, "mark of b", "b")
    third = await opened(store, replace(ask, id="third"), "b")
    assert (third.state, third.ask.earlier is not None) == ("open", True)


@pytest.mark.parametrize(
    ("answer", "is_repeatable", "owner"),
    [(Allow(), False, "b"), (Deny("no"), True, "b"), (Allow(), True, "a")],
    ids=["not declared", "denied", "the same host"],
)
async def test_any_other_call_is_asked_about_again(
    store: SqlStore, answer: Answer, owner: str, *, is_repeatable: bool
) -> None:
    ask = replace(an_ask(), is_repeatable=is_repeatable)
    await take(store, "a")
    await used(store, ask, answer)
    if owner != "a":
        await store.work.release("s1", "a")
        await take(store, owner)

    again = await opened(store, replace(ask, id="again"), owner)

    assert (again.state, again.ask.earlier is not None) == ("open", True)
