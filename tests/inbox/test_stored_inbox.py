"""Asks in a store outlive their process: known again, answered from anywhere, used once."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from steersman.errors import AlreadyAnswered, AskGone, AskNotFound, StoreError
from steersman.inbox import StoredInbox
from steersman.permissions import Allow, Ask, CanUseTool, Deny
from steersman.stores import SqliteStore
from tests.inbox.places import (
    LIMIT,
    OTHER,
    TOOL,
    Place,
    Session,
    an_ask,
    in_postgres,
    in_sqlite,
    listed,
    until,
)

AGAIN = msgspec.structs.replace(TOOL, tool_use_id="t2")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.process)])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    if request.param == "sqlite":
        made = in_sqlite(tmp_path / "asks.db")
    else:
        made = in_postgres(request.getfixturevalue("postgres_url"))
    yield made
    await made.aclose()


async def left_open(place: Place, ask: Ask | None = None) -> Ask:
    """An ask whose process has ended."""
    session = Session(place.inbox())
    opened = session.open(ask or an_ask())
    await session.shown()
    session.inbox.close_ask(opened, "its session has ended", may_return=True)
    (shown,) = await session.shown()
    return shown


@pytest.mark.parametrize("payload", [TOOL, AGAIN])
async def test_an_answer_without_a_session_is_used_when_the_ask_is_opened_again(
    place: Place, payload: CanUseTool
) -> None:
    left = await left_open(place)
    await place.inbox().answer(left, Allow(), by="ann", seen=left.digest)

    session = Session(place.inbox())
    session.open(an_ask(payload))

    assert await session.answers() == [(Allow(), "ann")]
    with pytest.raises(AlreadyAnswered, match="ann"):
        await place.inbox().answer(left.id, Deny("no"), by="bob")


async def test_an_open_ask_that_is_opened_again_keeps_its_id_and_leads_to_the_new_request(
    place: Place,
) -> None:
    left = await left_open(place)
    session = Session(place.inbox())
    again = session.open(an_ask(AGAIN))

    await place.inbox().answer(left.id, Allow(), by="ann")

    assert again.id != left.id
    assert await session.answers() == [(Allow(), "ann")]
    assert await listed(session.inbox) == []


@pytest.mark.parametrize(
    ("payload", "turn", "of"),
    [
        (OTHER, "u1", "s1"),
        (AGAIN, "u2", "s1"),
        (AGAIN, None, "s1"),
        (TOOL, "u1", "s2"),
        (msgspec.structs.replace(TOOL, tool_name="Other"), "u1", "s1"),
    ],
    ids=["another input", "another turn", "no turn", "another session", "another tool"],
)
async def test_another_ask_waits_again(
    place: Place, payload: CanUseTool, turn: str | None, of: str
) -> None:
    left = await left_open(place)
    await place.inbox().answer(left, Allow(), by="ann")

    session = Session(place.inbox())
    other = session.open(an_ask(payload, turn=turn, session=of))
    (shown,) = await session.shown()

    assert shown.id == other.id
    assert session.got == []


async def test_an_answer_is_used_once(place: Place) -> None:
    left = await left_open(place)
    await place.inbox().answer(left, Allow(), by="ann")
    first = Session(place.inbox())
    first.open(an_ask(TOOL))
    await first.answers()

    second = Session(place.inbox())
    again = second.open(an_ask(TOOL))
    (shown,) = await second.shown()

    assert (shown.id, second.got) == (again.id, [])


async def test_of_two_sessions_that_wait_for_one_ask_one_gets_the_answer_and_one_waits_on(
    place: Place,
) -> None:
    left = await left_open(place)
    sessions = [Session(place.inbox()) for _ in range(2)]
    for session in sessions:
        session.open(an_ask(AGAIN))

    await place.inbox().answer(left, Allow(), by="ann")
    (shown,) = await sessions[0].shown()
    await until(lambda: any(session.got for session in sessions))

    assert shown.id != left.id
    assert sorted(len(session.got) for session in sessions) == [0, 1]
    await place.inbox().answer(shown, Deny("enough"), by="ann")
    for session in sessions:
        await session.answers()
    assert sorted(str(session.got[0][0]) for session in sessions) == sorted(
        [str(Allow()), str(Deny("enough"))]
    )


async def test_two_equal_calls_of_one_message_are_two_asks_also_after_a_restart(
    place: Place,
) -> None:
    session = Session(place.inbox())
    asks = [session.open(an_ask(each)) for each in (TOOL, AGAIN)]
    shown = await session.shown(2)
    for ask in asks:
        session.inbox.close_ask(ask, "its session has ended", may_return=True)
    await place.inbox().answer(shown[0], Allow(), by="ann")

    later = Session(place.inbox())
    for name in ("t3", "t4"):
        later.open(an_ask(msgspec.structs.replace(TOOL, tool_use_id=name)))

    assert await later.answers() == [(Allow(), "ann")]
    assert [each.id for each in await later.shown()] == [shown[1].id]


async def test_an_ask_that_expired_meanwhile_is_denied_at_once(place: Place) -> None:
    session = Session(place.inbox(expires_after=0.3))
    ask = session.open(an_ask())
    await session.shown()
    session.inbox.close_ask(ask, "its session has ended", may_return=True)
    await session.shown(0)

    later = Session(place.inbox())
    later.open(an_ask(AGAIN))

    assert await later.answers() == [(Deny("Denied: no answer came in time."), "expiry")]
    with pytest.raises(AskGone, match="expired"):
        await place.inbox().answer(ask.id, Allow(), by="ann")


async def test_an_ask_that_expired_is_asked_anew_after_the_denial_was_used(place: Place) -> None:
    session = Session(place.inbox(expires_after=0.02))
    session.open(an_ask())
    await session.answers()

    patient = Session(place.inbox())
    again = patient.open(an_ask(AGAIN))

    assert [each.id for each in await patient.shown()] == [again.id]


async def test_an_answer_to_a_request_that_was_withdrawn_meanwhile_is_never_used(
    place: Place,
) -> None:
    session = Session(place.inbox())
    ask = session.open(an_ask())
    await session.shown()
    answering = asyncio.ensure_future(place.inbox().answer(ask.id, Allow(), by="ann"))
    session.inbox.close_ask(ask, "the CLI withdrew the request")
    await asyncio.wait({answering})
    await session.shown(0)

    later = Session(place.inbox())
    again = later.open(an_ask(AGAIN))

    assert [each.id for each in await later.shown()] == [again.id]
    assert (session.got, later.got) == ([], [])


async def test_an_id_that_the_session_had_before_gets_a_number(place: Place) -> None:
    first = Session(place.inbox())
    first.open(an_ask(id_="q"))
    await first.shown()

    second = Session(place.inbox())
    second.open(an_ask(OTHER, id_="q"))
    shown = await second.shown(2)
    await second.inbox.answer("q~2", Allow(), by="ann")

    assert [each.id for each in shown] == ["q", "q~2"]
    assert (await second.answers(), first.got) == ([(Allow(), "ann")], [])


async def test_a_watcher_sees_what_other_processes_do(place: Place) -> None:
    watch = place.inbox().watch()
    session = Session(place.inbox())

    async with asyncio.timeout(LIMIT):
        ask = session.open(an_ask())
        opened = await anext(watch)
        await place.inbox().answer(ask.id, Deny("no"), by="ann")
        answered = await anext(watch)
        await watch.aclose()

    assert (opened.what, opened.ask.id) == ("opened", ask.id)
    assert answered.outcome is not None
    assert (answered.what, answered.outcome.by) == ("answered", "ann")


async def test_a_closed_inbox_allows_nothing_and_reports(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "asks.db")
    inbox = store.inbox()
    await store.aclose()
    session = Session(inbox)

    session.open(an_ask())

    ((answer, by),) = session.got
    assert (answer, by) == (Deny("Denied: the store of the inbox is closed."), "inbox")
    with pytest.raises(StoreError, match="closed"):
        await inbox.list()
    with pytest.raises(StoreError, match="closed"):
        inbox.watch()


# What is in the file


async def test_who_answered_what_and_when_stays_in_the_row(tmp_path: Path) -> None:
    path = tmp_path / "asks.db"
    place = in_sqlite(path)
    session = Session(place.inbox())
    ask = session.open(an_ask())
    await session.shown()
    await session.inbox.answer(ask.id, Deny("not today"), by="ann")
    await session.answers()
    await place.aclose()

    with closing(sqlite3.connect(path)) as file, file:
        ((state, by, answer, digest, ended, used),) = file.execute(
            "SELECT state, answered_by, answer, digest, ended_at, used_at FROM steersman_asks"
        ).fetchall()
    assert (state, by, digest) == ("answered", "ann", ask.digest)
    assert "not today" in answer
    assert 0 < ended <= used
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "answer",
    ["", "no JSON", "{}", '{"behavior":"allow","updatedInput":5}', '{"action":"accept"}'],
)
async def test_an_answer_that_cannot_be_read_denies(tmp_path: Path, answer: str) -> None:
    place = in_sqlite(tmp_path / "asks.db")
    await left_open(place)
    with closing(sqlite3.connect(tmp_path / "asks.db")) as file, file:
        file.execute("UPDATE steersman_asks SET state = 'answered', answer = ?", (answer,))

    session = Session(place.inbox())
    session.open(an_ask(AGAIN))

    ((got, _),) = await session.answers()
    assert got == Deny("Denied: the stored answer cannot be read.")
    await place.aclose()


@pytest.mark.parametrize("change", ["version = 2", "state = 'parked'", "ask = '{'"])
async def test_a_row_of_a_later_release_is_left_alone(tmp_path: Path, change: str) -> None:
    path = tmp_path / "asks.db"
    place = in_sqlite(path)
    left = await left_open(place)
    with closing(sqlite3.connect(path)) as file, file:
        file.execute(f"UPDATE steersman_asks SET expires = 1.0, {change}")
        before = file.execute("SELECT * FROM steersman_asks").fetchall()

    session = Session(place.inbox())
    again = session.open(an_ask(AGAIN))
    shown = await session.shown()
    with pytest.raises((AskGone, AskNotFound)):
        await session.inbox.answer(left.id, Allow(), by="ann")

    assert [each.id for each in shown] == [again.id]
    if "ask" not in change:
        with closing(sqlite3.connect(path)) as file, file:
            rows = file.execute("SELECT * FROM steersman_asks ORDER BY number").fetchall()
        assert rows[:1] == before
    await place.aclose()


async def test_while_the_file_is_away_asks_wait_and_one_fault_is_reported(tmp_path: Path) -> None:
    path, away = tmp_path / "here" / "asks.db", tmp_path / "away"
    path.parent.mkdir()
    place = in_sqlite(path)
    inbox = place.inbox()
    await inbox.list()
    path.parent.rename(away)
    session = Session(inbox)
    first, second = session.open(an_ask()), session.open(an_ask(OTHER))
    await until(lambda: session.faults)
    with pytest.raises(StoreError):
        await inbox.answer(first.id, Allow(), by="ann")
    assert session.got == []

    shutil.move(away, path.parent)
    shown = await session.shown(2)
    await inbox.answer(first.id, Allow(), by="ann")

    assert await session.answers() == [(Allow(), "ann")]
    assert [each.id for each in shown] == [first.id, second.id]
    assert len(session.faults) == 1
    await place.aclose()


async def test_asks_are_stored_again_if_the_file_is_replaced(tmp_path: Path) -> None:
    path, other = tmp_path / "asks.db", tmp_path / "other.db"
    place = in_sqlite(path)
    session = Session(place.inbox())
    ask = session.open(an_ask())
    await session.shown()
    async with SqliteStore(other) as empty:
        await empty.inbox().list()

    put_in_place(other, path)
    await session.shown()
    await place.inbox().answer(ask.id, Allow(), by="ann")

    assert await session.answers() == [(Allow(), "ann")]
    await place.aclose()


def put_in_place(other: Path, path: Path) -> None:
    for name in ("-wal", "-shm"):
        Path(f"{path}{name}").unlink(missing_ok=True)
    other.replace(path)


async def test_a_session_learns_that_the_store_was_closed_while_its_ask_waits(
    tmp_path: Path,
) -> None:
    store = SqliteStore(tmp_path / "asks.db")
    session = Session(store.inbox())
    session.open(an_ask())
    await session.shown()

    await store.aclose()

    assert [str(each).partition("\n")[0] for each in session.faults] == [
        "the store of the inbox was closed while an ask waits"
    ]
    assert session.got == []


async def test_the_thread_ends_when_nothing_waits(tmp_path: Path) -> None:
    store, before = SqliteStore(tmp_path / "asks.db"), set(threads())

    await store.inbox().list()
    (thread,) = set(threads()) - before

    async with asyncio.timeout(LIMIT):
        await asyncio.to_thread(thread.join, LIMIT)
        assert await store.inbox().list() == []


def threads() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == "steersman-inbox"]


async def test_a_settle_after_the_end_of_its_loop_gives_the_answer_back(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "asks.db")
    inbox: StoredInbox = store.inbox()
    ask = an_ask()
    got: list[Any] = []

    async def open_and_leave() -> None:
        inbox.open(ask, lambda answer, _by: got.append(answer))
        await Session(inbox).shown()

    await asyncio.to_thread(asyncio.run, open_and_leave())
    await inbox.answer(ask.id, Allow(), by="ann")
    session = Session(SqliteStore(tmp_path / "asks.db").inbox())
    session.open(an_ask(AGAIN))

    assert await session.answers() == [(Allow(), "ann")]
    assert got == []
    await store.aclose()
