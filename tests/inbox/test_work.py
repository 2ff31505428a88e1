"""The leases and turns of every store: SQLite and PostgreSQL."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from steersman.errors import LeaseLost, SessionInUse, StoreError, UsageError
from steersman.inbox import Inbox
from steersman.permissions import Allow, CanUseTool, Deny, Elicitation, ElicitationAnswer
from steersman.ports import Conversation, DurableWork, StoredAsk, StoredTurn, SupportsStore
from tests.inbox.places import LIMIT, TOOL, Place, Session, an_ask, in_postgres, in_sqlite

LONG, SHORT = 60.0, 0.02
TURN = StoredTurn("u1", "invoice 7", [{"type": "text", "text": "pay\x00 \ud800"}], {"a": 1}, "next")
OTHER = StoredTurn("u2", None, "and then?")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.process)])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    if request.param == "sqlite":
        made = in_sqlite(tmp_path / "work.db")
    else:
        made = in_postgres(request.getfixturevalue("postgres_url"))
    yield made
    await made.aclose()


async def taken(
    work: DurableWork, token: str, seconds: float = LONG, session: str = "s1", key: str = "c 7"
) -> Conversation | None:
    """What `take` returns; a lease that is about to end is waited for."""
    async with asyncio.timeout(LIMIT):
        while True:
            try:
                return await work.take(
                    *(session,),
                    key=key,
                    owner=f"worker {token}",
                    token=token,
                    machine=f"machine of {token}",
                    seconds=seconds,
                )
            except SessionInUse as error:
                if (error.until or 0.0) > time.time() + LONG / 2:
                    raise


async def ended(work: DurableWork, token: str) -> None:
    """Return once the lease has ended."""
    async with asyncio.timeout(LIMIT):
        while await work.renew("s1", token, SHORT / 4):  # noqa: ASYNC110 - the database's time
            await asyncio.sleep(SHORT / 4)


def test_an_inbox_of_a_store_keeps_work_and_one_in_memory_does_not(tmp_path: Path) -> None:
    assert isinstance(in_sqlite(tmp_path / "a.db").inbox(), SupportsStore)
    assert not isinstance(Inbox(), SupportsStore)


async def test_one_has_the_lease_and_the_second_learns_who_and_until_when(place: Place) -> None:
    first, second = place.store().work, place.store().work
    assert await taken(first, "a") is None

    with pytest.raises(SessionInUse) as refused:
        await taken(second, "b")

    assert refused.value.owner == "worker a"
    assert refused.value.until == pytest.approx(time.time() + LONG, abs=LIMIT)
    assert "'c 7'" in str(refused.value)
    assert "worker a" in str(refused.value)


async def test_of_two_that_take_at_once_one_wins(place: Place) -> None:
    works = [place.store().work for _ in range(4)]

    found = await asyncio.gather(
        *(taken(work, f"t{number}") for number, work in enumerate(works)), return_exceptions=True
    )

    assert [each for each in found if not isinstance(each, SessionInUse)] == [None]


async def test_a_lease_is_free_when_it_is_released_and_when_it_has_expired(place: Place) -> None:
    first, second = place.store().work, place.store().work
    await taken(first, "a")
    await first.release("s1", "a")
    await taken(second, "b", SHORT)

    await taken(first, "c")

    assert not await second.renew("s1", "b", LONG)
    assert await first.renew("s1", "c", LONG)


async def test_a_renewed_lease_lasts_longer_and_an_expired_one_is_lost(place: Place) -> None:
    work = place.store().work
    await taken(work, "a", SHORT)
    await ended(work, "a")

    assert not await work.renew("s1", "a", LONG)
    await taken(work, "b", LIMIT)
    assert await work.renew("s1", "b", LONG)
    with pytest.raises(SessionInUse):
        await taken(work, "c")


async def test_to_take_again_with_the_same_token_is_the_same_lease(place: Place) -> None:
    work = place.store().work
    assert await taken(work, "a") is None
    assert await taken(work, "a") is None
    await work.begin("s1", "a", TURN)

    assert await taken(work, "a") == Conversation("c 7", "s1", "machine of a", (TURN,), 1)


async def test_a_conversation_is_found_again_with_its_turns_and_where_they_were(
    place: Place,
) -> None:
    first, second = place.store().work, place.store().work
    await taken(first, "a")
    await first.begin("s1", "a", TURN)
    await first.begin("s1", "a", OTHER)
    await first.begin("s1", "a", replace(OTHER, uuid="u3"))
    assert await first.settle("s1", "a", "u1", "parked", "")
    assert await first.settle("s1", "a", "u3", "settled", "completed")
    await first.release("s1", "a")

    parked = replace(TURN, state="parked")
    known = Conversation("c 7", "s1", "machine of a", (parked, OTHER), 3)
    # Opened by its id, and without a turn: nothing of it has moved.
    assert await taken(second, "b", key="s1") == known
    await second.release("s1", "b")
    assert await taken(second, "c", SHORT) == known
    assert await second.unsettled("s1") == [parked, OTHER]
    assert await taken(first, "d") == known
    await first.begin("s1", "d", TURN)
    assert await taken(first, "d") == replace(known, machine="machine of d", turns=(TURN, OTHER))


async def test_a_turn_is_begun_once_and_settled_once(place: Place) -> None:
    work = place.store().work
    await taken(work, "a")
    await work.begin("s1", "a", TURN)
    await work.begin("s1", "a", replace(TURN, content="another", key="another"))
    assert await work.unsettled("s1") == [TURN]

    assert await work.settle("s1", "a", "u1", "settled", "completed")
    assert await work.settle("s1", "a", "u1", "settled", "completed")
    assert not await work.settle("s1", "a", "u1", "settled", "failed")
    assert not await work.settle("s1", "a", "u1", "parked", "")
    assert not await work.settle("s1", "a", "u9", "settled", "completed")
    await work.begin("s1", "a", TURN)
    assert await work.unsettled("s1") == []
    await work.release("s1", "a")
    await taken(work, "b")
    assert not await work.settle("s1", "b", "u1", "settled", "completed")


async def test_who_has_lost_the_lease_changes_nothing(place: Place) -> None:
    first, second = place.store().work, place.store().work
    await taken(first, "a", SHORT)
    await taken(second, "b")
    await second.begin("s1", "b", TURN)

    with pytest.raises(LeaseLost):
        await first.begin("s1", "a", OTHER)
    assert not await first.settle("s1", "a", "u1", "settled", "completed")
    assert not await first.renew("s1", "a", LONG)
    await first.release("s1", "a")

    assert await second.unsettled("s1") == [TURN]
    assert await second.renew("s1", "b", LONG)


async def test_an_expired_lease_writes_nothing_even_if_nobody_has_taken_it(place: Place) -> None:
    work = place.store().work
    await taken(work, "a", SHORT)
    await ended(work, "a")

    with pytest.raises(LeaseLost):
        await work.begin("s1", "a", TURN)


async def test_leases_of_other_conversations_are_their_own(place: Place) -> None:
    work = place.store().work
    await taken(work, "a")
    assert await taken(work, "b", session="s2", key="s2") is None

    await work.begin("s2", "b", TURN)

    with pytest.raises(LeaseLost):
        await work.begin("s2", "a", TURN)
    assert await work.unsettled("s1") == []
    await work.release("s2", "b")
    assert await taken(work, "c", session="s2", key="c 8") == Conversation(
        "s2", "s2", "machine of b", (TURN,), 1
    )
    await work.release("s2", "c")
    assert (await taken(work, "d", session="s2", key="s2") or Conversation("", "", "")).key == "c 8"


@pytest.mark.parametrize(
    ("payload", "answer", "expected"),
    [
        (TOOL, None, {}),
        (TOOL, Allow(), {"decision": "allow"}),
        (
            TOOL,
            Allow({"command": "pwd"}),
            {"decision": "allow", "updated_input": {"command": "pwd"}},
        ),
        (TOOL, Deny("not today"), {"decision": "deny", "reason": "not today"}),
        (Elicitation(mcp_server_name="m"), ElicitationAnswer("accept"), {"decision": "allow"}),
        (Elicitation(mcp_server_name="m"), ElicitationAnswer("cancel"), {"decision": "deny"}),
    ],
)
async def test_the_asks_of_a_turn_say_what_waits_and_what_was_decided(
    place: Place, payload: Any, answer: Any, expected: dict[str, Any]
) -> None:
    inbox = place.inbox()
    session = Session(inbox)
    ask = session.open(an_ask(payload))
    session.open(an_ask(payload, turn="another turn", id_=f"{ask.id} of another"))
    await session.shown(2)
    inbox.close_ask(ask, "parked", may_return=True)
    if answer is not None:
        await inbox.answer(ask.id, answer, by="ann")

    (found,) = await place.store().work.asks_of("s1", "u1")

    is_tool = isinstance(payload, CanUseTool)
    waiting = StoredAsk(ask.id, ask.kind, "open", ask.tool_name, "t1" if is_tool else None)
    waiting = replace(waiting, input=ask.tool_input)
    if answer is not None:
        waiting = replace(waiting, state="answered", by="ann")
    assert found == replace(waiting, **expected)


async def test_an_answer_that_was_used_is_no_longer_told(place: Place) -> None:
    session = Session(place.inbox())
    ask = session.open(an_ask())
    await session.shown()
    await session.inbox.answer(ask.id, Allow(), by="ann")
    await session.answers()

    assert await place.store().work.asks_of("s1", "u1") == []


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf")])
async def test_the_time_of_a_lease_must_be_a_time(tmp_path: Path, seconds: float) -> None:
    work = in_sqlite(tmp_path / "a.db").store().work

    with pytest.raises(UsageError, match="seconds"):
        await taken(work, "a", seconds)
    with pytest.raises(UsageError, match="seconds"):
        await work.renew("s1", "a", seconds)
    with pytest.raises(UsageError, match="state"):
        await work.settle("s1", "a", "u1", "done", "")


async def test_a_store_that_cannot_be_reached_says_so(tmp_path: Path) -> None:
    place = in_sqlite(tmp_path / "missing" / "work.db")
    work = place.store().work

    for call in (
        taken(work, "a"),
        work.renew("s1", "a", LONG),
        work.release("s1", "a"),
        work.begin("s1", "a", TURN),
        work.settle("s1", "a", "u1", "parked", ""),
        work.unsettled("s1"),
        work.asks_of("s1", "u1"),
    ):
        with pytest.raises(StoreError, match=r"work\.db"):
            await call
    await place.aclose()
