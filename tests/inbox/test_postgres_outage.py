"""PostgreSQL falls while an ask is open, and while it is answered: it waits, and is not lost."""

from __future__ import annotations

import asyncio

import pytest

from steersman.errors import StoreError
from steersman.permissions import Allow, Deny
from tests.inbox.places import LIMIT, OTHER, Session, an_ask, in_postgres, until
from tests.postgres import PostgresServer

pytestmark = pytest.mark.process


async def test_while_the_server_is_down_nothing_is_allowed_and_afterwards_nothing_is_lost(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    place = in_postgres(postgres_url)
    session, person = Session(place.inbox()), place.inbox()
    before = session.open(an_ask())
    await session.shown()

    async with asyncio.timeout(6 * LIMIT):
        postgres_server.stop(immediate=True)
        try:
            with pytest.raises(StoreError):
                await person.answer(before.id, Allow(), by="ann")
            during = session.open(an_ask(OTHER))
            await until(lambda: session.faults)
        finally:
            postgres_server.start()
        shown = await session.shown(2)
        assert session.got == []
        await person.answer(before.id, Allow(), by="ann")
        await person.answer(during.id, Deny("no"), by="bob")
        answers = await session.answers(2)
    await place.aclose()

    assert [each.id for each in shown] == [before.id, during.id]
    assert sorted(by for _, by in answers) == ["ann", "bob"]
    assert len(session.faults) == 1


async def test_an_answer_that_was_given_while_the_server_fell_is_used_or_refused(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    place = in_postgres(postgres_url)
    session, person = Session(place.inbox()), place.inbox()
    asks = [session.open(an_ask(session=f"s{n}")) for n in range(8)]
    await session.shown(8)

    async with asyncio.timeout(6 * LIMIT):
        answering = asyncio.gather(
            *(person.answer(each, Allow(), by="ann") for each in asks), return_exceptions=True
        )
        await session.answers()
        # In this thread: the server ends with the thread that has started it.
        postgres_server.restart()
        found = await answering
        failed = [ask for ask, each in zip(asks, found, strict=True) if isinstance(each, Exception)]
        for ask in failed:
            # It was stored, and only the confirmation was lost; or it was not.
            again = await asyncio.gather(
                person.answer(ask, Allow(), by="ann"), return_exceptions=True
            )
            assert getattr(again[0], "by", None) == "ann"
        answers = await session.answers(8)
    await place.aclose()

    assert answers == [(Allow(), "ann")] * 8
