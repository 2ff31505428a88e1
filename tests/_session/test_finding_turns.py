"""A prompt is found again: by its key, and by the uuid of its turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from steersman import Agent, Session
from steersman._session.sent_prompts import KnownTurns
from steersman.errors import KeyTaken, UsageError
from steersman.testing.scripted.cli import ScriptedCLI


@pytest.fixture
async def session() -> AsyncIterator[Session]:
    async with asyncio.timeout(10), Agent(transport=ScriptedCLI()).session() as session:
        yield session


async def test_a_key_is_for_one_prompt(session: Session) -> None:
    turn = await session.send("pay invoice 7", key="invoice 7")
    before = session.last_seq

    with pytest.raises(KeyTaken) as caught:
        await session.send("pay invoice 8", key="invoice 7")
    with pytest.raises(KeyTaken):
        await session.send("pay invoice 7", key="invoice 7", query=False)

    assert (caught.value.argument, caught.value.given) == ("key", "invoice 7")
    assert isinstance(caught.value, UsageError)
    assert "invoice 8" not in str(caught.value)
    assert session.turns == (turn,)
    assert await session.send("pay invoice 7", key="invoice 7", when="next") is turn
    assert session.last_seq == before
    assert (await turn).outcome == "completed"
    assert await session.send("pay invoice 7", key="invoice 7") is turn


async def test_a_turn_is_found_by_its_uuid_also_after_its_end(session: Session) -> None:
    first, second = await session.send("one"), await session.send("two")

    assert session.turns == (first, second)
    assert session.turn(first.uuid) is first
    await second
    assert session.turn(second.uuid) is second
    assert session.turns == (first, second)


@pytest.mark.parametrize("given", ["12345678-1234-4234-8234-123456789abc", "", 5, None])
async def test_a_turn_of_another_session_is_not_found(session: Session, given: object) -> None:
    await session.send("one")

    with pytest.raises(UsageError) as caught:
        session.turn(given)  # type: ignore[arg-type]

    assert caught.value.argument == "uuid"


async def test_a_session_without_prompts_has_no_turns(session: Session) -> None:
    assert session.turns == ()


async def test_settled_turns_are_kept_up_to_a_number_and_open_ones_always(session: Session) -> None:
    known = KnownTurns(most_settled=2)
    turns = [await session.send("hi") for _ in range(5)]
    for turn in turns:
        known.add(turn)
    assert known.all == tuple(turns)

    await turns[-1]
    last = await session.send("one more")
    known.add(last)

    assert known.all == (*turns[-2:], last)
    with pytest.raises(UsageError):
        known.find(turns[0].uuid)
