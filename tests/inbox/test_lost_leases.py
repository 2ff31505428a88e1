"""Who has lost the lease of a conversation changes nothing about its asks: SQLite, PostgreSQL."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from steersman._json import JsonDict
from steersman.errors import AskGone
from steersman.inbox.rows import AskRow
from steersman.permissions import Allow, CanUseTool
from steersman.ports import StoredTurn
from steersman.stores import PostgresStore, SqliteStore
from steersman.stores._sql.asks import AskTable
from steersman.stores._sql.store import SqlStore
from tests.inbox.places import LIMIT, OTHER, TOOL, Session, an_ask

LONG = 60.0
SUBAGENT = CanUseTool(tool_name="Bash", input={}, tool_use_id="t2", agent_id="a1")
THIRD = CanUseTool(tool_name="Bash", input={"command": "pwd"}, tool_use_id="t3")
TURN = StoredTurn("u1", "invoice 7", "pay")

MakeStore = Callable[[], SqlStore]


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.process)])
def make_store(request: pytest.FixtureRequest, tmp_path: Path) -> MakeStore:
    if request.param == "sqlite":
        return lambda: SqliteStore(tmp_path / "work.db", timeout=5.0)
    url = request.getfixturevalue("postgres_url")
    return lambda: PostgresStore(url, timeout=5.0)


@pytest.fixture
async def store(make_store: MakeStore) -> AsyncIterator[SqlStore]:
    async with make_store() as made:
        yield made


async def take(store: SqlStore, token: str) -> None:
    given = {"key": "c", "owner": token, "token": token, "machine": "m", "seconds": LONG}
    await store.work.take("s1", **cast("Any", given))


async def answered(store: SqlStore, row: AskRow) -> AskRow:
    return await store.asks.end(row.number, "answered", "ann", '{"behavior":"allow"}', "m")


async def opened(store: SqlStore, payload: Any = TOOL, token: str = "") -> AskRow:
    row = await store.asks.open(an_ask(payload), None, (), token)
    assert row is not None
    return row


async def test_an_ask_is_stored_only_with_the_lease(store: SqlStore) -> None:
    await take(store, "a")
    stored = await opened(store, token="a")
    await store.work.release("s1", "a")

    refused = [await store.asks.open(an_ask(OTHER), None, (), token) for token in ("a", "b")]

    assert refused == [None, None]
    assert [each.number for each in await store.asks.open_ones()] == [stored.number]


async def test_an_answer_is_used_only_with_the_lease(store: SqlStore) -> None:
    await take(store, "a")
    row = await answered(store, await opened(store, token="a"))
    await store.work.release("s1", "a")
    await take(store, "b")

    lost = await store.asks.use(row.number, "mark of a", "a")
    kept = await store.asks.use(row.number, "mark of b", "b")

    assert (lost.used_mark, kept.used_mark) == (None, "mark of b")


async def test_an_ask_is_closed_unless_another_has_the_conversation(store: SqlStore) -> None:
    await take(store, "a")
    first, second = [await opened(store, each, token="a") for each in (TOOL, OTHER)]
    await store.work.release("s1", "a")
    await store.asks.close(first.number, "withdrawn", "mark", "a")
    await take(store, "b")

    await store.asks.close(second.number, "withdrawn late", "mark", "a")

    assert [each.number for each in await store.asks.open_ones()] == [second.number]


async def test_closing_an_ask_that_was_answered_meanwhile_spends_its_answer(
    store: SqlStore,
) -> None:
    row = await answered(store, await opened(store))

    await store.asks.close(row.number, "withdrawn", "mark")

    assert (await store.asks.use(row.number, "another")).used_mark == "mark"


async def test_an_ask_of_a_turn_that_has_ended_is_not_stored(store: SqlStore) -> None:
    await take(store, "a")
    await store.work.begin("s1", "a", TURN)
    await store.work.settle("s1", "a", "u1", "settled", "cancelled")

    late = await store.asks.open(replace(an_ask(TOOL), turn="u1"), None, (), "a")
    await store.work.begin("s1", "a", TURN)
    again = await store.asks.open(replace(an_ask(TOOL), turn="u1"), None, (), "a")

    assert late is None
    assert again is not None


async def test_the_ask_of_a_background_subagent_is_stored_behind_its_turn(store: SqlStore) -> None:
    await take(store, "a")
    await store.work.begin("s1", "a", TURN)
    await store.work.settle("s1", "a", "u1", "settled", "completed")

    late = [
        await store.asks.open(replace(an_ask(each), turn="u1"), None, (), "a")
        for each in (SUBAGENT, TOOL)
    ]

    assert [each is not None for each in late] == [True, False]


@pytest.mark.parametrize("outcome", ["cancelled", "interrupted", "failed", "completed"])
async def test_the_asks_of_a_turn_are_closed_with_it(store: SqlStore, outcome: str) -> None:
    await take(store, "a")
    await store.work.begin("s1", "a", TURN)
    waiting = await opened(store, TOOL, "a")
    decided = await answered(store, await opened(store, OTHER, "a"))
    other = await store.asks.open(an_ask(THIRD, turn="u2"), None, (), "a")

    await store.work.settle("s1", "a", "u1", "settled", outcome)

    assert other is not None
    assert [each.number for each in await store.asks.open_ones()] == [other.number]
    assert (await store.asks.use(decided.number, "mark")).used_mark != "mark"
    assert await store.asks.of_turn("s1", "u1") == []
    with pytest.raises(AskGone, match=f"the turn was {outcome}"):
        raise (await store.asks.find(waiting.ask.id, "s1"))[0].error()


async def test_an_input_that_looks_like_a_subagent_does_not_keep_an_ask_open(
    store: SqlStore,
) -> None:
    await take(store, "a")
    await store.work.begin("s1", "a", TURN)
    given: JsonDict = {"agent_id": "a1", "at": [{"agent_id": "a2"}]}
    await opened(store, CanUseTool(tool_name="mcp__far__find", input=given, tool_use_id="t9"), "a")

    await store.work.settle("s1", "a", "u1", "settled", "completed")

    assert await store.asks.open_ones() == []


@pytest.mark.parametrize(
    ("state", "outcome", "payload"),
    [("parked", "parked", TOOL), ("settled", "completed", SUBAGENT)],
    ids=["a parked turn waits for it", "a background subagent outlives its turn"],
)
async def test_an_ask_that_is_still_needed_stays_open(
    store: SqlStore, state: str, outcome: str, payload: CanUseTool
) -> None:
    await take(store, "a")
    await store.work.begin("s1", "a", TURN)
    row = await opened(store, payload, "a")

    await store.work.settle("s1", "a", "u1", state, outcome)

    assert [each.number for each in await store.asks.open_ones()] == [row.number]


async def test_the_asks_of_subagents_that_were_lost_with_their_owner_are_closed_with_the_turn(
    store: SqlStore,
) -> None:
    await take(store, "a")
    await store.work.begin("s1", "a", TURN)
    await opened(store, SUBAGENT, "a")
    await store.work.release("s1", "a")
    await take(store, "b")

    await store.work.settle("s1", "b", "u1", "settled", "completed")

    assert await store.asks.open_ones() == []


async def test_the_ask_of_a_subagent_that_was_lost_with_its_cli_is_closed_with_the_turn(
    store: SqlStore,
) -> None:
    await take(store, "a")
    await store.work.begin("s1", "a", TURN)
    lost = await opened(store, SUBAGENT, "a")
    began = lost.ask.created + 1
    again = CanUseTool(tool_name="Bash", input={"a": 1}, tool_use_id="t8", agent_id="a2")
    later = replace(an_ask(again), created=began)
    row = await store.asks.open(later, None, (), "a")

    await store.work.settle("s1", "a", "u1", "settled", "completed", since=began)

    assert row is not None
    assert [each.number for each in await store.asks.open_ones()] == [row.number]


class SlowToUse:
    """Rows that hold each use of an answer, in the thread of an inbox, until a test goes on."""

    def __init__(self, rows: AskTable) -> None:
        self._rows = rows
        self.is_used = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._may_return: asyncio.Event | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rows, name)

    async def use(self, *given: Any) -> AskRow:
        self._loop, self._may_return = asyncio.get_running_loop(), asyncio.Event()
        row = await self._rows.use(*given)
        self.is_used.set()
        await self._may_return.wait()
        return row

    def go_on(self) -> None:
        assert self._loop is not None
        assert self._may_return is not None
        self._loop.call_soon_threadsafe(self._may_return.set)


@pytest.mark.parametrize("may_return", [True, False], ids=["left", "withdrawn"])
async def test_an_answer_that_is_used_while_its_request_is_let_go_is_given_back_or_spent(
    make_store: MakeStore, *, may_return: bool
) -> None:
    store, other_store = make_store(), make_store()
    slow = SlowToUse(store.asks)
    store.asks = cast("AskTable", slow)
    inbox, other = store.inbox(), other_store.inbox()
    first, second = Session(inbox), Session(other)
    ask = first.open(an_ask())
    await first.shown()

    async with asyncio.timeout(LIMIT):
        await other.answer(ask.id, Allow(), by="ann")
        await asyncio.to_thread(slow.is_used.wait, LIMIT)
        inbox.close_ask(ask, "its session is parked", may_return=may_return)
        # A call in the same thread: `close_ask` has come there before it.
        await inbox.list()
        slow.go_on()
        await store.aclose()
        second.open(an_ask(id_="again"))
        if may_return:
            await second.answers()
        else:
            await second.shown()
        await other_store.aclose()

    assert first.got == []
    assert [by for _, by in second.got] == (["ann"] if may_return else [])
    assert first.faults == []
