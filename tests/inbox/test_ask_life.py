"""Whatever happens to an ask, in any order, in two processes: its answer is used at most once."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from steersman.errors import StoreError
from steersman.inbox.changes import Watch
from steersman.inbox.keeper import Waiting, WaitingAsks
from steersman.inbox.rows import AskRow, AskRows
from steersman.permissions import Allow, Deny
from steersman.permissions.json_form import answer_to_json
from steersman.stores._sql.asks import AskTable
from steersman.stores.sqlite import SqliteDatabase
from tests.inbox.places import OTHER, TOOL, an_ask

COMMON = ("open", "answer", "step", "race")
RARE = ("open other input", "expire", "crash", "lose", "withdraw", "leave", "wait")
STEPS = (*COMMON * 3, *RARE)
BOTH_WAIT = [("open", 0), ("step", 0), ("open", 1), ("step", 1)]
"""Two processes wait for one row."""
EXPIRES = 10.0

_marks = itertools.count(1)


class Unreliable:
    """Rows whose next write is made, but its confirmation is lost; or that others use first."""

    def __init__(self, rows: AskRows) -> None:
        self._rows = rows
        self.loses = False
        self.meanwhile: Callable[[], Awaitable[object]] | None = None
        """What another process does just before an answer is used here."""

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        async def call(*values: Any) -> Any:
            meanwhile = self.meanwhile
            if name == "use" and meanwhile is not None:
                self.meanwhile = None
                await meanwhile()
            found = await getattr(self._rows, name)(*values)
            if self.loses and name in ("open", "use", "end", "give_back"):
                self.loses = False
                raise StoreError("the confirmation was lost")
            return found

        return call


class Process:
    """A process with sessions of one conversation; `crash` ends it as `kill -9` does."""

    def __init__(self, path: Path, clock: Callable[[], float]) -> None:
        self._path, self._clock = path, clock
        self.got: list[str] = []
        """Who gave the answers that allowed something."""
        self.denied = 0
        self.opened: list[SqliteDatabase] = []
        self.crash()

    def crash(self) -> None:
        self.opened.append(SqliteDatabase(self._path, 5.0, self._clock))
        self.rows = Unreliable(AskTable(self.opened[-1]))
        self.asks = WaitingAsks(cast("Any", self.rows))
        self.waiting: list[Waiting] = []

    def open(self, payload: Any) -> None:
        def settle(answer: Any, by: str) -> None:
            if isinstance(answer, Allow):
                self.got.append(by)
            else:
                self.denied += 1

        self.waiting.append(Waiting(an_ask(payload), settle, lambda _: None, EXPIRES, None))
        self.asks.add(self.waiting[-1])

    def close(self, *, may_return: bool) -> None:
        if self.waiting:
            waiting = self.waiting.pop()
            if waiting.close(may_return=may_return):
                self.asks.let_go(waiting, "withdrawn")


class Life:
    """Two processes and a person who answers, on one file."""

    def __init__(self, path: Path) -> None:
        self.now = 100.0
        self.processes = [Process(path, lambda: self.now) for _ in range(2)]
        self.database = SqliteDatabase(path, 5.0, lambda: self.now)
        self.rows = AskTable(self.database)
        self.answered: dict[str, AskRow] = {}

    async def play(self, step: str, which: int) -> None:  # noqa: C901 - one case per step
        process = self.processes[which]
        match step:
            case "open" | "open other input":
                process.open(TOOL if step == "open" else OTHER)
            case "answer":
                for row in await self.rows.open_ones():
                    by = f"ann {next(_marks)}"
                    allow = answer_to_json(Allow()).decode()
                    ended = await self.rows.end(row.number, "answered", by, allow, by)
                    if ended.mark == by:
                        self.answered[by] = ended
            case "expire":
                for row in (await self.rows.open_ones())[:1]:
                    await self.rows.end(row.number, "expired", "ann", "", f"m{next(_marks)}")
            case "step":
                await process.asks.step()
            case "race":
                process.rows.meanwhile = self.processes[1 - which].asks.step
                await process.asks.step()
                process.rows.meanwhile = None
            case "crash":
                process.crash()
            case "lose":
                process.rows.loses = True
            case "withdraw" | "leave":
                process.close(may_return=step == "leave")
            case _:
                self.now += EXPIRES / 2


@example([*BOTH_WAIT, ("answer", 0)], [("race", 0)])
@example([*BOTH_WAIT, ("answer", 0)], [("lose", 0), ("race", 0), ("crash", 1), ("open", 1)])
@example([*BOTH_WAIT, ("leave", 1)], [("answer", 0), ("lose", 0), ("step", 0), ("step", 0)])
@given(
    st.sampled_from([BOTH_WAIT, [*BOTH_WAIT, ("answer", 0)], []]),
    st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 1)), min_size=2, max_size=20),
)
def test_an_answer_is_used_at_most_once(
    tmp_path_factory: pytest.TempPathFactory,
    first: list[tuple[str, int]],
    steps: list[tuple[str, int]],
) -> None:
    path = tmp_path_factory.mktemp("life") / "asks.db"

    async def live() -> tuple[Life, list[AskRow]]:
        life = Life(path)
        try:
            for step, which in first + steps:
                await life.play(step, which)
            for process in life.processes * 3:
                await process.asks.step()
            return life, await life.rows.open_ones()
        finally:
            opened = (each for one in life.processes for each in one.opened)
            for database in (life.database, *opened):
                await database.aclose()

    life, still_open = asyncio.run(live())

    used = Counter(by for process in life.processes for by in process.got)
    assert set(used) <= set(life.answered)
    assert max(used.values(), default=0) <= 1
    # Nothing is lost either: each request that still waits has an open row of its own.
    unsettled = sum(
        not (each.is_settled or each.is_closed)
        for process in life.processes
        for each in process.waiting
    )
    assert unsettled <= 2 * len(still_open)


async def test_an_ask_that_expires_as_another_is_opened_is_denied_and_shown(tmp_path: Path) -> None:
    now = 100.0
    database = SqliteDatabase(tmp_path / "asks.db", 5.0, lambda: now)
    asks = WaitingAsks(AskTable(database))
    got: list[Any] = []
    watch = Watch(asks.remove_watch)
    asks.add_watch(watch)
    old, new = an_ask(), an_ask(OTHER)
    for ask in (old, new):
        asks.add(Waiting(ask, lambda answer, _: got.append(answer), lambda _: None, EXPIRES, None))
        await asks.step()
        now += 2 * EXPIRES
    await asks.step()
    await database.aclose()

    shown = [await anext(watch) for _ in range(4)]

    assert [(each.what, each.ask.id) for each in shown] == [
        ("opened", old.id),
        ("expired", old.id),
        ("opened", new.id),
        ("expired", new.id),
    ]
    assert [isinstance(answer, Deny) for answer in got] == [True, True]
