"""Real processes on one store: one is killed, two answer at once, and one goes on."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from steersman.permissions import Allow
from tests.inbox.places import LIMIT, Session, an_ask, in_postgres, in_sqlite
from tests.inbox.programs import line_of, running

pytestmark = pytest.mark.process

PROGRAM = """\
import asyncio, sys
from steersman.errors import AlreadyAnswered
from steersman.permissions import Allow, Deny
from steersman.stores import PostgresStore, SqliteStore
from tests.inbox.places import Session, an_ask

place, act, name = sys.argv[1:4]
store = PostgresStore(place) if place.startswith("postgresql") else SqliteStore(place)

async def main():
    inbox = store.inbox()
    if act == "open":
        session = Session(inbox)
        session.open(an_ask(id_=name))
        watch = inbox.watch()
        async for change in watch:
            print(change.what, change.ask.id, flush=True)
    await inbox.list()
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        await inbox.answer("q", Allow(), by=name)
        print("won", flush=True)
    except AlreadyAnswered as error:
        print("lost to " + error.by, flush=True)

asyncio.run(main())
"""


def program(
    place: str, act: str, name: str = ""
) -> AbstractAsyncContextManager[asyncio.subprocess.Process]:
    return running(PROGRAM, place, act, name)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.process)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "asks.db")
    return str(request.getfixturevalue("postgres_url"))


async def test_the_ask_of_a_killed_process_is_answered_once_and_used_by_the_next(url: str) -> None:
    async with asyncio.timeout(3 * LIMIT):
        async with program(url, "open", "q") as opener:
            assert await line_of(opener) == "opened q"
            opener.kill()
            await opener.wait()
        async with program(url, "answer", "ann") as ann, program(url, "answer", "bob") as bob:
            assert [await line_of(each) for each in (ann, bob)] == ["ready"] * 2
            for each in (ann, bob):
                assert each.stdin is not None
                each.stdin.write(b"now\n")
            said = {"ann": await line_of(ann), "bob": await line_of(bob)}
        place = in_postgres(url) if url.startswith("postgresql") else in_sqlite(Path(url))
        session = Session(place.inbox())
        session.open(an_ask())
        answers = await session.answers()
        await place.aclose()

    (winner,) = [name for name, line in said.items() if line == "won"]
    assert set(said.values()) == {"won", f"lost to {winner}"}
    assert answers == [(Allow(), winner)]
