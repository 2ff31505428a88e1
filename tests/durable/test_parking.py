"""Parking a session: at any moment, by anyone, and with a store that is away."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, cast

import pytest

import steersman._factory as factory
from steersman import Agent, Allow, Hooks, Session
from steersman.durable.durability import refuse_other_machine
from steersman.durable.leases import SessionWork
from steersman.errors import ChannelClosed, StoreError, UsageError
from steersman.hooks import PreToolUse
from steersman.inbox import Inbox, StoredInbox
from steersman.journal import Entry, Kind
from steersman.messages import User
from steersman.options import Park
from steersman.permissions import Ask, Policy
from steersman.ports import (
    Channel,
    Conversation,
    DurableWork,
    Launch,
    Receiver,
    StoredAsk,
    StoredTurn,
    Transport,
)
from steersman.stores import SqliteStore
from steersman.testing.faults import VirtualClockLoop
from steersman.testing.script import Script, call, say, stall
from steersman.testing.scripted.cli import FakeTool, ScriptedCLI

LIMIT = 10.0
WRITE = call("Write", file_path="paid", content="x", id_="toolu_1")


def cli(*steps: Any) -> ScriptedCLI:
    return ScriptedCLI(Script(*steps))


class Killable:
    """A place whose CLIs can be killed from outside."""

    def __init__(self, *steps: Any, tools: Mapping[str, FakeTool] | None = None) -> None:
        self._inner = ScriptedCLI(Script(*steps), tools=tools)
        self._channel: Channel | None = None
        self.lines = self._inner.stage.memory.lines

    async def open(self, launch: Launch, receiver: Receiver) -> Channel:
        self._channel = await self._inner.open(launch, receiver)
        return self._channel

    def kill(self) -> None:
        assert self._channel is not None
        self._channel.kill()


@asynccontextmanager
async def asking(path: Path, place: Killable | None = None) -> AsyncGenerator[tuple[Session, Ask]]:
    """A session whose turn waits for an ask in a store."""
    async with asyncio.timeout(LIMIT), SqliteStore(path) as store:
        agent = Agent(transport=place or cli(WRITE, say("Paid.")))
        async with agent.open("customer 7", inbox=store.inbox()) as session:
            await session.send("pay", key="invoice 7")
            yield session, await next_ask(store.inbox())


async def next_ask(inbox: StoredInbox) -> Ask:
    watch = inbox.watch()
    change = await anext(watch)
    await watch.aclose()
    return change.ask


async def left(path: Path, session: Session) -> list[tuple[str, str]]:
    """The prompts and states of the turns that nobody has settled."""
    async with SqliteStore(path) as store:
        turns = await store.work.unsettled(session.id or "")
    return [(str(each.content), each.state) for each in turns]


async def faults_of(session: Session) -> list[Any]:
    entries = [each async for each in session.journal() if isinstance(each, Entry)]
    return [each.details["where"] for each in entries if each.kind is Kind.FAULT]


# --- At the caller's request -------------------------------------------------------------


async def test_a_session_with_nothing_open_is_only_closed(tmp_path: Path) -> None:
    async with asyncio.timeout(LIMIT), SqliteStore(tmp_path / "work.db") as store:
        agent = Agent(transport=cli(say("Hello.")), inbox=store.inbox())
        async with agent.open("customer 7") as session:
            result = await session.run("hello")
            asks = await session.park()

    assert (asks, result.outcome, session.state) == ((), "completed", "completed")
    assert await left(tmp_path / "work.db", session) == []


@pytest.mark.parametrize("inbox", [None, Inbox()], ids=["none", "in memory"])
async def test_asks_that_end_with_their_process_cannot_be_parked(inbox: Inbox | None) -> None:
    async with asyncio.timeout(LIMIT), Agent(transport=cli(), inbox=inbox).session() as session:
        with pytest.raises(UsageError, match="inbox"):
            await session.park()
        with pytest.raises(UsageError, match="inbox"):
            await session.resume_turns()

        assert session.state == "idle"


async def test_a_session_that_was_not_started_cannot_be_parked(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "work.db") as store:
        session = Agent(transport=cli(), inbox=store.inbox()).session()

        with pytest.raises(ChannelClosed, match="not started"):
            await session.park()


async def test_a_session_is_parked_once_however_often_it_is_parked_and_closed(
    tmp_path: Path,
) -> None:
    async with asking(tmp_path / "work.db") as (session, ask):
        first, second, _ = await asyncio.gather(session.park(), session.park(), session.aclose())
        third = await session.park()
        (result,) = [await turn for turn in session.turns]

    assert first == second == third == result.waits_for == (ask.id,)
    assert await left(tmp_path / "work.db", session) == [("pay", "parked")]


async def test_a_session_that_is_being_parked_takes_no_prompt(tmp_path: Path) -> None:
    async with asking(tmp_path / "work.db") as (session, _):
        parking = asyncio.create_task(session.park())
        await asyncio.sleep(0)
        with pytest.raises(ChannelClosed, match="parked"):
            await session.send("more")
        await parking

    assert await left(tmp_path / "work.db", session) == [("pay", "parked")]


async def test_a_parking_that_was_begun_ends_although_its_caller_was_cancelled(
    tmp_path: Path,
) -> None:
    async with asking(tmp_path / "work.db") as (session, _):
        parking = asyncio.create_task(session.park())
        await asyncio.sleep(0)
        parking.cancel()
        with suppress(asyncio.CancelledError):
            await parking
        (result,) = [await turn for turn in session.turns]

    assert (result.outcome, session.state) == ("parked", "completed")


@pytest.mark.parametrize("timeout", [0, -1, True, "10"])
async def test_a_time_that_is_none_is_refused(tmp_path: Path, timeout: Any) -> None:
    async with asking(tmp_path / "work.db") as (session, _):
        with pytest.raises(UsageError, match="timeout"):
            await session.park(timeout)

        assert session.state == "waiting_permission"


# --- At any moment -----------------------------------------------------------------------


async def test_a_paused_session_is_parked(tmp_path: Path) -> None:
    async with asking(tmp_path / "work.db") as (session, ask):
        await session.send("second")
        await session.pause()
        asks = await session.park()

    assert asks == (ask.id,)
    assert await left(tmp_path / "work.db", session) == [("pay", "parked"), ("second", "parked")]


async def test_a_session_whose_cli_restarts_is_parked(tmp_path: Path) -> None:
    place = Killable(WRITE, say("Paid."))
    async with asking(tmp_path / "work.db", place) as (session, _):
        place.kill()
        async for entry in session.journal():
            if isinstance(entry, Entry) and entry.kind is Kind.RESTARTED:
                break
        await session.park()
        (result,) = [await turn for turn in session.turns]

    assert (result.outcome, session.restarts) == ("parked", 0)
    assert await left(tmp_path / "work.db", session) == [("pay", "parked")]


async def test_a_cli_that_is_lost_while_it_is_parked_is_not_restarted(tmp_path: Path) -> None:
    place = Killable(WRITE, say("Paid."))
    async with asking(tmp_path / "work.db", place) as (session, _):
        parking = asyncio.create_task(session.park())
        await asyncio.sleep(0)
        place.kill()
        await parking
        (result,) = [await turn for turn in session.turns]

    assert (result.outcome, session.restarts) == ("parked", 0)


@pytest.mark.parametrize(("grace", "fate"), [(5.0, "finished"), (0.05, "lost")])
async def test_an_own_hook_that_runs_is_finished_first_and_lost_after_the_grace(
    tmp_path: Path, grace: float, fate: str
) -> None:
    fates: list[str] = []
    hooks, begun, may_end = Hooks(), asyncio.Event(), asyncio.Event()

    @hooks.on(PreToolUse)
    async def slow(_: PreToolUse) -> None:
        begun.set()
        try:
            await may_end.wait()
        except asyncio.CancelledError:
            fates.append("lost")
            raise
        fates.append("finished")

    async with asyncio.timeout(LIMIT), SqliteStore(tmp_path / "work.db") as store:
        agent = Agent(
            transport=cli(WRITE, say("Paid.")),
            inbox=store.inbox(),
            hooks=hooks,
            park=Park(grace=grace),
        )
        async with agent.open("customer 7") as session:
            turn = await session.send("pay")
            await begun.wait()
            parking = asyncio.create_task(session.park())
            await asyncio.sleep(0)
            if fate == "finished":
                may_end.set()
            await parking
            result = await turn

    assert (result.outcome, fates) == ("parked", [fate])


@pytest.mark.soak
@pytest.mark.parametrize("steps", range(0, 6000, 50 if os.environ.get("STEERSMAN_SOAK") else 3000))
async def test_an_answer_is_not_lost_to_a_parking_that_comes_with_it(
    tmp_path: Path, steps: int
) -> None:
    async with asking(tmp_path / "work.db") as (session, ask):
        (turn,) = session.turns
        async with SqliteStore(tmp_path / "work.db") as other:
            answering = asyncio.create_task(other.inbox().answer(ask, Allow(), by="ann"))
            for _ in range(steps):
                await asyncio.sleep(0)
            await session.park()
            await answering
            unused = await other.work.asks_of(session.id or "", turn.uuid)
        result = await turn

    # The answer was used by a call that has run, or waits for the next session.
    ran = [each for each in result.tool_calls if not each.is_running]
    assert len(unused) + len(ran) == 1


class Kept:
    """A durable inbox that answers nothing."""

    def __init__(self) -> None:
        self.asks: list[Ask] = []

    def open(self, ask: Ask, settle: object) -> None:
        self.asks.append(ask)

    def keep(self, ask: Ask, settle: object, report: object) -> None:
        self.asks.append(ask)

    def close(self, ask_id: str, reason: str) -> None:
        raise AssertionError((ask_id, reason))

    def close_ask(self, ask: Ask, reason: str, *, may_return: bool = False) -> None:
        assert (ask in self.asks, may_return) == (True, True), reason


@pytest.mark.parametrize(
    ("steps", "is_parked"),
    [((WRITE,), True), ((say("half") + stall(),), False)],
    ids=["asks", "writes"],
)
def test_only_a_session_that_waits_for_asks_parks_by_itself(
    steps: tuple[Any, ...], *, is_parked: bool
) -> None:
    async def work() -> bool:
        agent = Agent(transport=cli(*steps), inbox=Kept(), park=Park(after=60.0), watchdog=None)
        async with agent.session() as session:
            turn = await session.send("pay")
            await asyncio.sleep(3600)
            return turn.is_settled and (await turn).outcome == "parked"

    with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
        assert runner.run(work()) is is_parked


def test_a_program_that_ends_without_closing_leaves_its_turn_for_the_next(tmp_path: Path) -> None:
    sessions: list[Session] = []

    async def main() -> None:
        store = SqliteStore(tmp_path / "work.db")
        agent = Agent(transport=cli(WRITE, say("Paid.")), inbox=store.inbox())
        sessions.append(await agent.open("customer 7"))
        await sessions[0].send("pay")
        await next_ask(store.inbox())

    asyncio.run(main())

    assert asyncio.run(left(tmp_path / "work.db", sessions[0])) == [("pay", "parked")]
    assert sessions[0].state == "completed"


class LateFile:
    """A CLI whose file has the result of a tool only after some looks at it."""

    def __init__(self, looks: int) -> None:
        self._inner = ScriptedCLI(Script(call("Bash", command="pay"), stall()))
        self._looks = looks
        self.was_whole: list[bool] = []
        """Whether the file had the result when a CLI was killed."""

    def read(self, session_id: str) -> list[bytes] | None:
        lines = self._inner.stage.memory.lines(session_id)
        if lines is None or not any(b"tool_result" in each for each in lines):
            return lines
        self._looks -= 1
        return [each for each in lines if self._looks < 0 or b"tool_result" not in each]

    async def open(self, launch: Launch, receiver: Receiver) -> Channel:
        return _Watched(await self._inner.open(launch, receiver), self)

    def killed(self) -> None:
        self.was_whole.append(self._looks < 0)


class _Watched:
    """A channel that reports when its CLI is killed."""

    def __init__(self, inner: Channel, place: LateFile) -> None:
        self._inner, self._place = inner, place

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def kill(self) -> None:
        self._place.killed()
        self._inner.kill()


@pytest.fixture
def late() -> Generator[LateFile]:
    place, before = LateFile(looks=5), factory.transcript_reader
    factory.transcript_reader = lambda env: place.read
    yield place
    factory.transcript_reader = before


async def test_a_session_is_left_only_when_the_last_result_is_in_the_file(
    tmp_path: Path, late: LateFile
) -> None:
    place = late
    async with asyncio.timeout(LIMIT), SqliteStore(tmp_path / "work.db") as store:
        agent = Agent(transport=cast("Transport", place), inbox=store.inbox())
        async with agent.open("customer 7", can_use_tool=lambda *_: Allow()) as session:
            turn = await session.send("pay", key="invoice 7")
            async for message in turn:
                if isinstance(message, User):
                    break
            await session.park()
            result = await turn

    assert (result.outcome, place.was_whole[:1]) == ("parked", [True])


@pytest.fixture
def place() -> Generator[tuple[Killable, asyncio.Event, asyncio.Event]]:
    """A CLI whose tool begins and may end, and whose file is read."""
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def pay(_given: object) -> str:
        begun.set()
        await may_end.wait()
        return "receipt"

    place = Killable(call("Bash", command="pay"), say("Paid."), tools={"Bash": pay})
    before, factory.transcript_reader = factory.transcript_reader, lambda env: place.lines
    yield place, begun, may_end
    factory.transcript_reader = before


async def left_with_an_ask(cli: Killable, store: SqliteStore) -> tuple[Agent, Ask]:
    """An agent whose session has ended with an ask that waits."""
    agent = Agent(transport=cli, inbox=store.inbox(), policy=Policy(otherwise="ask"))
    async with agent.open("customer 7") as session:
        await session.send("pay", key="invoice 7")
        return agent, await next_ask(store.inbox())


async def park_while_the_tool_ends(session: Session, may_end: asyncio.Event) -> None:
    """The tool ends only when parking waits for it."""
    parking = asyncio.create_task(session.park())
    for _ in range(1000):
        await asyncio.sleep(0)
    may_end.set()
    await parking


async def test_a_call_of_an_earlier_session_is_finished_first_although_its_cli_died(
    tmp_path: Path, place: tuple[Killable, asyncio.Event, asyncio.Event]
) -> None:
    cli, begun, may_end = place
    async with asyncio.timeout(LIMIT), SqliteStore(tmp_path / "work.db") as store:
        agent, ask = await left_with_an_ask(cli, store)
        async with agent.open("customer 7") as session:
            (turn,) = await session.resume_turns()
            cli.kill()
            await store.inbox().answer(ask, Allow(), by="ann")
            await begun.wait()
            await park_while_the_tool_ends(session, may_end)
            result = await turn

    assert [each.input for each in result.tool_calls if not each.is_running] == [{"command": "pay"}]


async def test_a_call_of_a_turn_that_was_not_taken_up_is_finished_first(
    tmp_path: Path, place: tuple[Killable, asyncio.Event, asyncio.Event]
) -> None:
    cli, begun, may_end = place
    async with asyncio.timeout(LIMIT), SqliteStore(tmp_path / "work.db") as store:
        agent, ask = await left_with_an_ask(cli, store)
        async with agent.open("customer 7") as session:
            await session.send("pay", key="invoice 8")
            await store.inbox().answer(ask, Allow(), by="ann")
            await begun.wait()
            await park_while_the_tool_ends(session, may_end)

    assert any(b"receipt" in each for each in cli.lines(session.id or "") or ())


# --- With a store that is away -----------------------------------------------------------


class AwayWork:
    """The work of a store, which can be away."""

    def __init__(self, work: DurableWork) -> None:
        self._work = work
        self.is_away = False

    async def take(
        self, session: str, *, key: str, owner: str, token: str, machine: str, seconds: float
    ) -> Conversation | None:
        return await self._work.take(
            session, key=key, owner=owner, token=token, machine=machine, seconds=seconds
        )

    async def renew(self, session: str, token: str, seconds: float) -> bool:
        return await self._work.renew(session, token, seconds)

    async def release(self, session: str, token: str) -> None:
        await self._work.release(session, token)

    async def begin(self, session: str, token: str, turn: StoredTurn) -> None:
        self._check()
        await self._work.begin(session, token, turn)

    async def settle(
        self, session: str, token: str, uuid: str, state: str, outcome: str, *, since: float = 0.0
    ) -> bool:
        del since
        self._check()
        return await self._work.settle(session, token, uuid, state, outcome)

    async def unsettled(self, session: str) -> list[StoredTurn]:
        self._check()
        return await self._work.unsettled(session)

    async def asks_of(self, session: str, turn: str) -> list[StoredAsk]:
        self._check()
        return await self._work.asks_of(session, turn)

    def _check(self) -> None:
        if self.is_away:
            raise StoreError("the store is away")


class Away:
    """An inbox whose turns cannot be written while the store is away."""

    def __init__(self, inbox: StoredInbox) -> None:
        self.work = AwayWork(inbox.store.work)
        self.store = self
        self.open, self.keep = inbox.open, inbox.keep
        self.close, self.close_ask = inbox.close, inbox.close_ask


async def test_a_session_is_parked_although_its_store_is_away(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    async with asyncio.timeout(LIMIT), SqliteStore(path) as store:
        inbox = Away(store.inbox())
        agent = Agent(transport=cli(WRITE, say("Paid.")), inbox=inbox)
        async with agent.open("customer 7") as session:
            turn = await session.send("pay")
            ask = await next_ask(store.inbox())
            inbox.work.is_away = True
            await session.park()
            result = await turn
        faults = await faults_of(session)

    assert (result.outcome, result.waits_for) == ("parked", (ask.id,))
    assert (await left(path, session), faults) == ([("pay", "open")], ["store"])


async def test_a_prompt_that_cannot_be_stored_is_not_sent(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    async with asyncio.timeout(LIMIT), SqliteStore(path) as store:
        inbox = Away(store.inbox())
        script = Script(say("Hello."))
        agent = Agent(transport=ScriptedCLI(script), inbox=inbox)
        async with agent.open("customer 7") as session:
            inbox.work.is_away = True
            with pytest.raises(StoreError):
                await session.send("pay", key="invoice 7")
            with pytest.raises(StoreError):
                await session.resume_turns()
            turns = session.turns
            inbox.work.is_away = False
            result = await session.run("hello", key="invoice 7")

    assert (turns, result.text) == ((), "Hello.")
    assert await left(path, session) == []


async def test_sends_at_once_are_stored_in_their_order_and_a_key_once(tmp_path: Path) -> None:
    async with asyncio.timeout(LIMIT), SqliteStore(tmp_path / "work.db") as store:
        agent = Agent(transport=cli(WRITE, say("Paid.")), inbox=store.inbox())
        async with agent.open("customer 7") as session:
            words = ["pay", "second", "third", "second"]
            turns = await asyncio.gather(*(session.send(each, key=each) for each in words))
            await next_ask(store.inbox())
            await session.park()

    assert turns[1] is turns[3]
    assert await left(tmp_path / "work.db", session) == [
        (each, "parked") for each in ("pay", "second", "third")
    ]


# --- Another machine ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("machine", "begun", "is_here", "is_refused"),
    [
        ("here", 1, False, False),
        ("there", 1, False, True),
        ("there", 1, True, False),
        ("there", 1, None, False),
        ("there", 0, False, False),
        ("", 1, False, False),
    ],
)
def test_a_conversation_whose_file_is_on_another_machine_is_refused(
    machine: str, begun: int, *, is_here: bool | None, is_refused: bool
) -> None:
    before = Conversation("customer 7", "id", machine, begun=begun)
    work = SessionWork(AwayWork.__new__(AwayWork), None, "me", "here", "token", 30.0, before)

    if is_refused:
        with pytest.raises(UsageError, match="those of id are on there"):
            refuse_other_machine(work, "id", is_here=is_here)
    else:
        refuse_other_machine(work, "id", is_here=is_here)
