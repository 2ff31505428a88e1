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
from steersman.inbox import StoredInbox
from steersman.inbox.keeper import AskKeeper
from steersman.inbox.rows import AskRow, AskRows
from steersman.permissions import Allow, CanUseTool
from steersman.ports import StoredTurn
from steersman.stores.ask_table import AskTable
from steersman.stores.sqlite_asks import sqlite_asks
from tests.inbox.places import LIMIT, OTHER, TOOL, Session, an_ask

LONG = 60.0
SUBAGENT = CanUseTool(tool_name="Bash", input={}, tool_use_id="t2", agent_id="a1")
THIRD = CanUseTool(tool_name="Bash", input={"command": "pwd"}, tool_use_id="t3")
TURN = StoredTurn("u1", "invoice 7", "pay")

MakeRows = Callable[[], AskTable]


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.process)])
def make_rows(request: pytest.FixtureRequest, tmp_path: Path) -> MakeRows:
    if request.param == "sqlite":
        return lambda: sqlite_asks(tmp_path / "work.db", 5.0)
    # The fast tests on newer Pythons have no driver.
    from steersman.stores.postgres_asks import postgres_asks  # noqa: PLC0415

    url = request.getfixturevalue("postgres_url")
    return lambda: postgres_asks(url, 5.0, 3)


@pytest.fixture
async def rows(make_rows: MakeRows) -> AsyncIterator[AskTable]:
    made = make_rows()
    yield made
    await made.aclose()


async def take(rows: AskRows, token: str) -> None:
    given = {"key": "c", "owner": token, "token": token, "machine": "m", "seconds": LONG}
    await rows.work.take("s1", **cast("Any", given))


async def answered(rows: AskRows, row: AskRow) -> AskRow:
    return await rows.end(row.number, "answered", "ann", '{"behavior":"allow"}', "m")


async def opened(rows: AskRows, payload: Any = TOOL, token: str = "") -> AskRow:
    row = await rows.open(an_ask(payload), None, (), token)
    assert row is not None
    return row


async def test_an_ask_is_stored_only_with_the_lease(rows: AskTable) -> None:
    await take(rows, "a")
    stored = await opened(rows, token="a")
    await rows.work.release("s1", "a")

    refused = [await rows.open(an_ask(OTHER), None, (), token) for token in ("a", "b")]

    assert refused == [None, None]
    assert [each.number for each in await rows.open_ones()] == [stored.number]


async def test_an_answer_is_used_only_with_the_lease(rows: AskTable) -> None:
    await take(rows, "a")
    row = await answered(rows, await opened(rows, token="a"))
    await rows.work.release("s1", "a")
    await take(rows, "b")

    lost = await rows.use(row.number, "mark of a", "a")
    kept = await rows.use(row.number, "mark of b", "b")

    assert (lost.used_mark, kept.used_mark) == (None, "mark of b")


async def test_an_ask_is_closed_unless_another_has_the_conversation(rows: AskTable) -> None:
    await take(rows, "a")
    first, second = [await opened(rows, each, token="a") for each in (TOOL, OTHER)]
    await rows.work.release("s1", "a")
    await rows.close(first.number, "withdrawn", "mark", "a")
    await take(rows, "b")

    await rows.close(second.number, "withdrawn late", "mark", "a")

    assert [each.number for each in await rows.open_ones()] == [second.number]


async def test_closing_an_ask_that_was_answered_meanwhile_spends_its_answer(rows: AskTable) -> None:
    row = await answered(rows, await opened(rows))

    await rows.close(row.number, "withdrawn", "mark")

    assert (await rows.use(row.number, "another")).used_mark == "mark"


async def test_an_ask_of_a_turn_that_has_ended_is_not_stored(rows: AskTable) -> None:
    await take(rows, "a")
    await rows.work.begin("s1", "a", TURN)
    await rows.work.settle("s1", "a", "u1", "settled", "cancelled")

    late = await rows.open(replace(an_ask(TOOL), turn="u1"), None, (), "a")
    await rows.work.begin("s1", "a", TURN)
    again = await rows.open(replace(an_ask(TOOL), turn="u1"), None, (), "a")

    assert late is None
    assert again is not None


async def test_the_ask_of_a_background_subagent_is_stored_behind_its_turn(rows: AskTable) -> None:
    await take(rows, "a")
    await rows.work.begin("s1", "a", TURN)
    await rows.work.settle("s1", "a", "u1", "settled", "completed")

    late = [
        await rows.open(replace(an_ask(each), turn="u1"), None, (), "a")
        for each in (SUBAGENT, TOOL)
    ]

    assert [each is not None for each in late] == [True, False]


@pytest.mark.parametrize("outcome", ["cancelled", "interrupted", "failed", "completed"])
async def test_the_asks_of_a_turn_are_closed_with_it(rows: AskTable, outcome: str) -> None:
    await take(rows, "a")
    await rows.work.begin("s1", "a", TURN)
    waiting = await opened(rows, TOOL, "a")
    decided = await answered(rows, await opened(rows, OTHER, "a"))
    other = await rows.open(an_ask(THIRD, turn="u2"), None, (), "a")

    await rows.work.settle("s1", "a", "u1", "settled", outcome)

    assert other is not None
    assert [each.number for each in await rows.open_ones()] == [other.number]
    assert (await rows.use(decided.number, "mark")).used_mark != "mark"
    assert await rows.of_turn("s1", "u1") == []
    with pytest.raises(AskGone, match=f"the turn was {outcome}"):
        raise (await rows.find(waiting.ask.id, "s1"))[0].error()


async def test_an_input_that_looks_like_a_subagent_does_not_keep_an_ask_open(
    rows: AskTable,
) -> None:
    await take(rows, "a")
    await rows.work.begin("s1", "a", TURN)
    given: JsonDict = {"agent_id": "a1", "at": [{"agent_id": "a2"}]}
    await opened(rows, CanUseTool(tool_name="mcp__far__find", input=given, tool_use_id="t9"), "a")

    await rows.work.settle("s1", "a", "u1", "settled", "completed")

    assert await rows.open_ones() == []


@pytest.mark.parametrize(
    ("state", "outcome", "payload"),
    [("parked", "parked", TOOL), ("settled", "completed", SUBAGENT)],
    ids=["a parked turn waits for it", "a background subagent outlives its turn"],
)
async def test_an_ask_that_is_still_needed_stays_open(
    rows: AskTable, state: str, outcome: str, payload: CanUseTool
) -> None:
    await take(rows, "a")
    await rows.work.begin("s1", "a", TURN)
    row = await opened(rows, payload, "a")

    await rows.work.settle("s1", "a", "u1", state, outcome)

    assert [each.number for each in await rows.open_ones()] == [row.number]


async def test_the_asks_of_subagents_that_were_lost_with_their_owner_are_closed_with_the_turn(
    rows: AskTable,
) -> None:
    await take(rows, "a")
    await rows.work.begin("s1", "a", TURN)
    await opened(rows, SUBAGENT, "a")
    await rows.work.release("s1", "a")
    await take(rows, "b")

    await rows.work.settle("s1", "b", "u1", "settled", "completed")

    assert await rows.open_ones() == []


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
    make_rows: MakeRows, *, may_return: bool
) -> None:
    slow = SlowToUse(make_rows())
    keeper = AskKeeper(lambda: cast("AskRows", slow))
    inbox, other = StoredInbox(keeper), StoredInbox(AskKeeper(make_rows))
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
        await keeper.aclose()
        second.open(an_ask(id_="again"))
        if may_return:
            await second.answers()
        else:
            await second.shown()
        await other._keeper.aclose()

    assert first.got == []
    assert [by for _, by in second.got] == (["ann"] if may_return else [])
    assert first.faults == []
