"""Leases and turns, whatever two processes do in any order: one owner, each turn settled once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from steersman.errors import LeaseLost, SessionInUse
from steersman.ports import StoredTurn
from steersman.stores._sql.asks import AskTable
from steersman.stores._sql.work import WorkTable
from steersman.stores.sqlite import SqliteDatabase

SECONDS = 10.0
STEPS = ("take", "take", "renew", "release", "begin", "begin", "settle", "settle", "park", "wait")
UUIDS = ("u1", "u2")


class Process:
    """A process that has a new token for each lease, and knows until when it has it."""

    def __init__(self, database: SqliteDatabase, name: str) -> None:
        self.database, self.name = database, name
        self.work = WorkTable(database, AskTable(database))
        self.token = f"{name} 0"
        self.until = 0.0
        self.count = 0


class Life:
    """Two processes on one file, and what must come of it."""

    def __init__(self, path: Path) -> None:
        self.now = 100.0
        self.processes = [
            Process(SqliteDatabase(path, 5.0, lambda: self.now), name) for name in ("a", "b")
        ]
        self.turns: dict[str, tuple[str, str, str]] = {}
        """State, outcome and token of each turn."""
        self.settled: list[str] = []

    def owner(self) -> Process | None:
        valid = [each for each in self.processes if each.until > self.now]
        assert len(valid) <= 1, "two owners at once"
        return valid[0] if valid else None

    async def play(self, step: str, which: int, uuid: str, times: int) -> None:
        process = self.processes[which]
        act: dict[str, Callable[[], Awaitable[object]]] = {
            "take": lambda: self.take(process),
            "renew": lambda: self.renew(process),
            "release": lambda: self.release(process),
            "begin": lambda: self.begin(process, uuid),
            "settle": lambda: self.settle(process, uuid, "settled", f"by {process.token}"),
            "park": lambda: self.settle(process, uuid, "parked", ""),
            "wait": self.wait,
        }
        # Twice if the confirmation was lost, so that the process does it again.
        for _ in range(times):
            await act[step]()
        self.owner()

    async def take(self, process: Process) -> None:
        owner = self.owner()
        if process.until <= self.now:
            process.count += 1
            process.token = f"{process.name} {process.count}"
        try:
            await process.work.take(
                "s1",
                key="c",
                owner=process.name,
                token=process.token,
                machine="m",
                seconds=SECONDS,
            )
        except SessionInUse as error:
            refused = [(error.owner, error.until)]
        else:
            process.until = self.now + SECONDS
            refused = []
        others = [each for each in self.processes if each is owner and each is not process]
        assert refused == [(each.name, each.until) for each in others]

    async def renew(self, process: Process) -> None:
        is_kept = await process.work.renew("s1", process.token, SECONDS)
        assert is_kept == (self.owner() is process)
        if is_kept:
            process.until = self.now + SECONDS

    async def release(self, process: Process) -> None:
        await process.work.release("s1", process.token)
        process.until = 0.0

    async def begin(self, process: Process, uuid: str) -> None:
        turn = StoredTurn(uuid, None, "pay")
        if self.owner() is not process:
            with pytest.raises(LeaseLost):
                await process.work.begin("s1", process.token, turn)
            return
        await process.work.begin("s1", process.token, turn)
        state, outcome, token = self.turns.get(uuid, ("open", "", ""))
        if state == "parked":
            state, outcome, token = "open", "", ""
        self.turns[uuid] = state, outcome, token
        unsettled = {each.uuid: each.state for each in await process.work.unsettled("s1")}
        assert unsettled.get(uuid, "settled") == state

    async def settle(self, process: Process, uuid: str, state: str, outcome: str) -> None:
        known = self.turns.get(uuid)
        wanted = state, outcome, process.token
        may = self.owner() is process and known is not None
        is_open = known is not None and known[0] != "settled"
        found = await process.work.settle("s1", process.token, uuid, state, outcome)
        assert found == (may and (is_open or known == wanted))
        if found and is_open:
            self.turns[uuid] = wanted
            if state == "settled":
                self.settled.append(uuid)

    async def wait(self) -> None:
        self.now += SECONDS / 2

    async def check(self) -> None:
        for process in self.processes:
            found = await process.work.unsettled("s1")
            expected = [
                (uuid, state) for uuid, (state, *_) in self.turns.items() if state != "settled"
            ]
            assert [(turn.uuid, turn.state) for turn in found] == expected
        assert len(set(self.settled)) == len(self.settled)


Step = tuple[str, int, str, int]
"""What is done, by which process, with which turn, and how often."""
STEP = st.tuples(
    st.sampled_from(STEPS), st.integers(0, 1), st.sampled_from(UUIDS), st.integers(1, 2)
)
TAKEN_OVER: list[Step] = [
    ("take", 0, "u1", 1),
    ("begin", 0, "u1", 1),
    ("wait", 0, "u1", 1),
    ("wait", 0, "u1", 1),
    ("take", 1, "u1", 2),
    ("settle", 1, "u1", 2),
]


@example([*TAKEN_OVER, ("settle", 0, "u1", 1), ("renew", 0, "u1", 1)])
@example([*TAKEN_OVER, ("release", 0, "u1", 1), ("begin", 1, "u1", 1)])
@given(
    st.lists(
        st.tuples(
            st.sampled_from(STEPS), st.integers(0, 1), st.sampled_from(UUIDS), st.integers(1, 2)
        ),
        min_size=4,
        max_size=30,
    )
)
def test_there_is_one_owner_at_a_time_and_a_turn_is_settled_at_most_once(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Step]
) -> None:
    path = tmp_path_factory.mktemp("life") / "work.db"

    async def live() -> None:
        life = Life(path)
        try:
            for step in steps:
                await life.play(*step)
                await life.check()
        finally:
            for process in life.processes:
                await process.database.aclose()

    asyncio.run(live())
