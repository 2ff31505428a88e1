"""The rows of turns: stored before a prompt is sent, and settled in the background."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from steersman._background import BackgroundTasks
from steersman.durable.leases import SessionWork
from steersman.durable.turns import DurableTurns
from steersman.errors import LeaseLost, StoreError
from steersman.ports import Conversation, StoredAsk, StoredTurn
from steersman.testing.faults import VirtualClockLoop

LOG = logging.getLogger("steersman.tests")


class Rows:
    """A store that fails as often as it is told to."""

    def __init__(self) -> None:
        self.written: list[tuple[str, ...]] = []
        self.failures: list[Exception] = []
        self.is_hanging = False

    async def take(
        self, session: str, *, key: str, owner: str, token: str, machine: str, seconds: float
    ) -> Conversation | None:
        raise AssertionError((session, key, owner, token, machine, seconds))

    async def renew(self, session: str, token: str, seconds: float) -> bool:
        raise AssertionError((session, token, seconds))

    async def release(self, session: str, token: str) -> None:
        raise AssertionError((session, token))

    async def begin(self, session: str, token: str, turn: StoredTurn) -> None:
        await self._fail()
        self.written.append(("begin", session, token, turn.uuid))

    async def settle(
        self, session: str, token: str, uuid: str, state: str, outcome: str, *, since: float = 0.0
    ) -> bool:
        del since
        await self._fail()
        self.written.append((session, token, uuid, state, outcome))
        return True

    async def unsettled(self, session: str) -> list[StoredTurn]:
        raise AssertionError(session)

    async def asks_of(self, session: str, turn: str) -> list[StoredAsk]:
        raise AssertionError((session, turn))

    async def _fail(self) -> None:
        if self.is_hanging:
            await asyncio.Event().wait()
        if self.failures:
            raise self.failures.pop(0)


class Stage:
    """The turns of a session, and what they wrote and reported."""

    def __init__(self, *known: str) -> None:
        self.rows = Rows()
        turns = tuple(StoredTurn(uuid, None, "pay") for uuid in known)
        before = Conversation("customer 7", "s", "here", turns, len(turns))
        work = SessionWork(self.rows, None, "me", "here", "token", 30.0, before)
        self.faults: list[str] = []
        self.background = BackgroundTasks(LOG)
        self.turns = DurableTurns(
            work, lambda: "s", lambda where, _: self.faults.append(where), self.background
        )

    async def begin(self, *uuids: str) -> None:
        for uuid in uuids:
            await self.turns.begin(StoredTurn(uuid, None, "pay"))


def run(work: Any) -> None:
    """Run it on a loop whose clock jumps."""
    with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
        runner.run(work)


async def test_turns_settle_in_their_order_and_a_parked_one_stays_unsettled() -> None:
    stage = Stage()
    await stage.begin("u1", "u2")

    stage.turns.settled("u1", "completed")
    stage.turns.settled("u2", "parked")
    stage.turns.settled("unknown", "completed")
    await stage.turns.close()

    assert stage.rows.written[2:] == [
        ("s", "token", "u1", "settled", "completed"),
        ("s", "token", "u2", "parked", "parked"),
    ]
    assert ([*stage.turns.endings], stage.faults) == ([], [])


def test_a_store_that_fails_is_tried_again_and_one_fault_is_reported() -> None:
    stage = Stage()

    async def work() -> None:
        await stage.begin("u1")
        stage.rows.failures = [StoreError("away")] * 5
        stage.turns.settled("u1", "completed")
        await asyncio.sleep(3600)

    run(work())

    assert stage.rows.written[1:] == [("s", "token", "u1", "settled", "completed")]
    assert stage.faults == ["store"]


def test_a_defect_of_the_store_loses_no_end_of_a_turn() -> None:
    stage = Stage()
    shown: list[dict[str, str]] = []

    async def work() -> None:
        await stage.begin("u1")
        stage.rows.failures = [RuntimeError("no such column"), ValueError("not a number")]
        stage.turns.settled("u1", "completed")
        while not stage.background.faults:  # noqa: ASYNC110 - the time is virtual
            await asyncio.sleep(0.1)
        shown.append(stage.background.faults)
        await stage.turns.close()

    run(work())

    assert shown == [{"the ends of turns of the conversation": "RuntimeError: no such column"}]
    assert stage.rows.written[1:] == [("s", "token", "u1", "settled", "completed")]
    assert stage.faults == ["store"]


def test_a_store_that_does_not_answer_does_not_keep_a_session_from_ending() -> None:
    stage = Stage()

    async def work() -> None:
        await stage.begin("u1")
        stage.rows.is_hanging = True
        stage.turns.settled("u1", "completed")
        async with asyncio.timeout(5):
            await stage.turns.close()

    run(work())

    assert stage.turns.endings
    assert stage.faults == ["store"]


async def test_a_lease_that_is_lost_is_reported_and_not_tried_again() -> None:
    stage = Stage()
    await stage.begin("u1")
    stage.rows.failures = [LeaseLost("s", "gone")]

    stage.turns.settled("u1", "completed")
    await stage.turns.close()

    assert (len(stage.rows.written), stage.faults) == (1, ["store"])


@pytest.mark.parametrize(
    ("known", "written"),
    [((), [("s", "token", "u1", "settled", "cancelled")]), (("u1",), [])],
    ids=["a new turn", "one of an earlier session"],
)
async def test_a_turn_that_may_be_stored_although_that_failed_is_cancelled(
    known: tuple[str, ...], written: list[tuple[str, ...]]
) -> None:
    stage = Stage(*known)
    stage.rows.failures = [StoreError("no answer")]

    with pytest.raises(StoreError):
        await stage.begin("u1")
    await stage.turns.close()

    assert stage.rows.written == written


@pytest.mark.parametrize(
    ("key", "written"),
    [(None, ("settled", "cancelled")), ("invoice 7", ("parked", "parked"))],
    ids=["withdrawn", "promised"],
)
async def test_a_prompt_whose_sender_is_cancelled_is_promised_by_its_key(
    key: str | None, written: tuple[str, ...]
) -> None:
    stage = Stage()
    stage.rows.is_hanging = True
    sending = asyncio.create_task(stage.turns.begin(StoredTurn("u1", key, "pay")))
    await asyncio.sleep(0)
    stage.rows.is_hanging = False

    sending.cancel()
    await asyncio.wait([sending])
    await stage.turns.close()

    assert sending.cancelled()
    assert stage.rows.written == [("s", "token", "u1", *written)]
