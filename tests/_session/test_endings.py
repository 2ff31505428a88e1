"""Whatever ends a session ends it once: every turn settles, and no waiter is needed for that."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest

from steersman.agent import Agent, Session, Turn
from steersman.errors import ChannelClosed, CliExited, SteersmanError
from steersman.hooks import Hooks, SessionEnd
from steersman.journal import Kind
from steersman.options import Revival
from steersman.permissions import Allow
from steersman.ports import Channel, JsonObject, Launch, Receiver
from steersman.testing.faults import VirtualClockLoop, rounds
from steersman.testing.script import Script, call, say, stall
from steersman.testing.scripted.cli import ScriptedCLI
from tests._session.peers import Frame, FramePeer, entries_of, opened
from tests._session.plays import Peers, begin, begin_and_die, silent

T = TypeVar("T")

STEPS = 16
"""More rounds than a restart takes to reach the handshake that is never answered."""


def in_virtual_time(doing: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
        return runner.run(doing)


def now() -> float:
    return asyncio.get_running_loop().time()


def crash(peer: FramePeer, frame: Frame) -> None:
    """It ends before the handshake."""
    if frame.get("request", {}).get("subtype") == "initialize":
        peer.wire.exit(1)


def abandon(session: Session) -> None:
    session.abandon()


def cancel_the_close(session: Session) -> None:
    closing = asyncio.ensure_future(session.aclose())
    asyncio.get_running_loop().call_soon(closing.cancel)


def close_and_close_again(session: Session) -> None:
    session.abandon()
    cancel_the_close(session)
    asyncio.get_running_loop().call_soon(session.abandon)


async def settled_once(session: Session, *turns: Turn) -> list[str]:
    """The outcomes of turns that settle without anyone who waits for the close."""
    async with asyncio.timeout(20):
        results = [await turn for turn in turns]
        entries = await entries_of(session)
    told = [uuid for each in entries if each.kind is Kind.SETTLED for uuid in each.turns]
    assert sorted(told) == sorted(turn.uuid for turn in turns)
    assert session.phase.is_over
    return [each.outcome for each in results]


ENDINGS = [abandon, cancel_the_close, close_and_close_again]


# --- Why it is over -----------------------------------------------------------------------


async def test_the_cause_of_a_session_that_failed_is_that_of_its_turns() -> None:
    session = await Agent(transport=FramePeer(begin_and_die).transport, revive=False).start()
    assert session.cause is None
    turn = await session.send("go")

    async with asyncio.timeout(5):
        messages = [each async for each in session.messages()]
        result = await turn

    assert messages == []
    assert session.state == "failed"
    assert isinstance(session.cause, CliExited)
    assert result.cause is session.cause
    with pytest.raises(CliExited) as raised:
        await session.send("more")
    assert raised.value is session.cause


async def test_a_session_that_did_not_start_has_the_error_of_its_start_as_its_cause() -> None:
    session = Agent(transport=FramePeer(crash, greets=False).transport).session()

    with pytest.raises(SteersmanError) as raised:
        await session.start()

    assert session.cause is raised.value


@pytest.mark.parametrize("end", [Session.aclose, Session.cancel])
async def test_a_session_that_was_closed_has_no_cause(
    end: Callable[[Session], Coroutine[Any, Any, None]],
) -> None:
    session = await Agent(transport=FramePeer(begin).transport).start("go")

    async with asyncio.timeout(5):
        await end(session)

    assert session.phase.is_over
    assert session.cause is None


# --- During a restart -------------------------------------------------------------------


@pytest.mark.parametrize("end", ENDINGS)
@pytest.mark.parametrize("steps", range(0, STEPS, 2))
async def test_a_session_that_is_left_at_any_step_of_a_restart_settles_its_turns(
    end: Callable[[Session], None], steps: int
) -> None:
    place = Peers(begin_and_die, silent)
    session = await Agent(transport=place, revive=Revival(backoff=0.0)).session().start()
    turn, queued = await session.send("go"), await session.send("and then")
    await turn.begun()
    await rounds(steps)

    end(session)
    outcomes = await settled_once(session, turn, queued)
    await session.aclose()

    assert outcomes == ["cancelled", "cancelled"]
    assert session.state == "completed"
    assert [each.was_killed for each in place.peers[1 : len(place.launches)]] in ([], [True])
    assert len(asyncio.all_tasks()) == 1


@pytest.mark.parametrize("end", ENDINGS)
def test_a_session_that_is_left_between_two_restarts_ends_at_once(
    end: Callable[[Session], None],
) -> None:
    async def leave() -> tuple[list[str], str, float]:
        place = Peers(begin_and_die, crash, begin)
        agent = Agent(transport=place, revive=Revival(backoff=1000.0))
        session = await agent.session().start()
        turn = await session.send("go")
        await turn.begun()
        await rounds(100)
        begun = now()
        end(session)
        outcomes = await settled_once(session, turn)
        return outcomes, session.state, now() - begun

    outcomes, state, took = in_virtual_time(leave())

    assert (outcomes, state, took) == (["cancelled"], "completed", 0.0)


async def test_a_session_that_is_cancelled_while_it_restarts_is_cancelled() -> None:
    place = Peers(begin_and_die, silent)
    session = await Agent(transport=place, revive=Revival(backoff=0.0)).session().start()
    turn = await session.send("go")
    await turn.begun()
    await rounds(STEPS)

    async with asyncio.timeout(5):
        await session.cancel()

    assert (session.state, (await turn).outcome) == ("cancelled", "cancelled")


# --- Transports, handlers and waiters that do not do their part ---------------------------


class Undying:
    """A place whose CLIs never report their exit."""

    def __init__(self, *plays: Callable[[FramePeer, Frame], None]) -> None:
        self._inner = Peers(*plays)

    async def open(self, launch: Launch, receiver: Receiver) -> Channel:
        return await self._inner.open(launch, _Deaf(receiver))


class _Deaf:
    def __init__(self, receiver: Receiver) -> None:
        self.data_received = receiver.data_received
        self.stderr_received = receiver.stderr_received

    def exited(self, status: int) -> None:
        """Keep it to itself."""


@pytest.mark.parametrize("end", ENDINGS)
def test_a_transport_that_never_reports_the_exit_does_not_keep_a_session_open(
    end: Callable[[Session], None],
) -> None:
    async def leave() -> tuple[list[str], str, float]:
        session = await Agent(transport=Undying(begin), close_grace=1.0).session().start()
        turn = await session.send("go")
        await turn.begun()
        begun = now()
        end(session)
        outcomes = await settled_once(session, turn)
        return outcomes, session.state, now() - begun

    outcomes, state, took = in_virtual_time(leave())

    assert (outcomes, state) == (["cancelled"], "completed")
    assert took <= 3 * 1.0 + 10


class Slow:
    """A place whose CLIs take a while to exit, and to report it."""

    def __init__(self, seconds: float, *plays: Callable[[FramePeer, Frame], None]) -> None:
        self._seconds = seconds
        self._inner = Peers(*plays)

    async def open(self, launch: Launch, receiver: Receiver) -> Channel:
        is_first = not self._inner.launches
        late = receiver if is_first else _Late(receiver, self._seconds)
        return await self._inner.open(launch, late)


class _Late:
    def __init__(self, receiver: Receiver, seconds: float) -> None:
        self.data_received = receiver.data_received
        self.stderr_received = receiver.stderr_received
        self._exited = receiver.exited
        self._seconds = seconds

    def exited(self, status: int) -> None:
        asyncio.get_running_loop().call_later(self._seconds, self._exited, status)


@pytest.mark.parametrize(("seconds", "expected"), [(5.0, 5.0), (50.0, 10.0)])
def test_a_session_that_is_closed_twice_while_it_restarts_ends_once_and_after_its_cli(
    seconds: float, expected: float
) -> None:
    """It waits for the exit, but not for ever; an exit that is reported later changes nothing."""
    completed: list[float] = []

    async def leave() -> float:
        place = Slow(seconds, begin_and_die, silent)
        session = await Agent(transport=place, revive=Revival(backoff=0.0)).session().start()
        session.on("complete", lambda _: completed.append(now()))
        turn = await session.send("go")
        await turn.begun()
        await rounds(STEPS)
        begun = now()
        session.abandon()
        await rounds(3)
        close_and_close_again(session)
        await settled_once(session, turn)
        took = now() - begun
        await asyncio.sleep(100.0)
        return took

    assert in_virtual_time(leave()) == expected
    assert len(completed) == 1


def test_what_answers_the_cli_is_cancelled_when_the_close_begins_and_not_when_the_cli_exits() -> (
    None
):
    ended: list[float] = []

    def ask(peer: FramePeer, frame: Frame) -> None:
        request = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {}, "tool_use_id": "t"}
        if frame["type"] == "user":
            peer.say({"type": "control_request", "request_id": "q", "request": request})

    async def think(*_: object) -> Allow:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(now())
        return Allow()

    async def close_beside_it() -> tuple[float, float]:
        agent = Agent(transport=Lingering(ask), can_use_tool=think, close_grace=20.0)
        session = await agent.start("go")
        while session.state != "waiting_permission":  # noqa: ASYNC110 - rounds of the loop
            await asyncio.sleep(0)
        begun = now()
        await session.aclose()
        return begun, now()

    begun, closed = in_virtual_time(close_beside_it())

    assert ended == [begun]
    assert closed == begun + 20.0


class Lingering:
    """A place whose CLIs exit when their time is over, and not before."""

    def __init__(self, *plays: Callable[[FramePeer, Frame], None]) -> None:
        self._inner = Peers(*plays)

    async def open(self, launch: Launch, receiver: Receiver) -> Channel:
        channel = await self._inner.open(launch, receiver)
        close = channel.close

        def close_later(grace: float) -> None:
            asyncio.get_running_loop().call_later(grace, close, 0.0)

        channel.close = close_later  # type: ignore[method-assign]  # the peer knows no delays
        return channel


def test_a_tool_that_ignores_its_cancellation_delays_the_close_by_the_grace_only() -> None:
    async def stay() -> str:
        """Ignore the cancellation."""
        until = now() + 1000.0
        while now() < until:
            try:
                await asyncio.sleep(until - now())
            except asyncio.CancelledError:
                continue
        return "stayed"

    async def close_beside_it() -> float:
        cli = ScriptedCLI(Script(call("mcp__functions__stay"), say("done")))
        session = await Agent(transport=cli, functions=[stay], close_grace=2.0).start("go")
        while session.state != "waiting_tool_call":  # noqa: ASYNC110 - rounds of the loop
            await asyncio.sleep(0)
        begun = now()
        await session.aclose()
        took = now() - begun
        # Let the tool end, so that its loop can.
        await asyncio.sleep(1000.0)
        return took

    assert in_virtual_time(close_beside_it()) <= 2 * 2.0


async def test_a_cancelled_close_lets_hooks_and_servers_hear_of_the_end() -> None:
    heard: list[str] = []
    begun, release = asyncio.Event(), asyncio.Event()

    async def part(_event: SessionEnd) -> None:
        begun.set()
        await release.wait()
        heard.append("hook")

    class Server:
        tool_names = ()

        async def attach(self, caller: Any) -> None:
            pass

        async def detach(self, caller: Any) -> None:
            heard.append("server")

        async def handle(self, message: JsonObject, caller: Any) -> JsonObject:
            return {"jsonrpc": "2.0", "id": message.get("id"), "result": {"tools": []}}

    hooks = Hooks()
    hooks.on(SessionEnd)(part)
    agent = Agent(transport=ScriptedCLI(), hooks=hooks, mcp_servers={"mine": Server()})
    async with asyncio.timeout(5):
        session = await agent.session().start()
        closing = asyncio.create_task(session.aclose())
        await begun.wait()
        closing.cancel()
        await asyncio.wait([closing])
        release.set()
        await session.aclose()

    assert closing.cancelled()
    assert heard == ["hook", "server"]


# --- Rewinding -----------------------------------------------------------------------------


@pytest.mark.parametrize("steps", range(0, 60, 5))
async def test_a_rewind_whose_caller_is_cancelled_leaves_a_session_that_answers(
    steps: int,
) -> None:
    cli = ScriptedCLI(Script(say("one"), say("two"), say("three")))

    async with opened(cli) as session:
        await (await session.send("first"))
        checkpoint = session.checkpoint()
        await (await session.send("second"))
        await session.wait_idle(5)
        going_back = asyncio.create_task(session.rewind(checkpoint))
        await rounds(steps)
        going_back.cancel()
        await asyncio.wait([going_back])
        again = await (await session.send("third"))
        state = session.phase

    assert again.outcome == "completed"
    assert not state.is_over
    assert session.state == "completed"


@pytest.mark.parametrize("steps", range(0, 40, 4))
async def test_a_session_that_is_closed_during_a_rewind_is_completed(steps: int) -> None:
    cli = ScriptedCLI(Script(say("one"), say("two") + stall()))

    async with opened(cli) as session:
        await (await session.send("first"))
        await session.wait_idle(5)
        going_back = asyncio.create_task(session.rewind(session.checkpoint()))
        await rounds(steps)
        session.abandon()
        await asyncio.wait([going_back])
        _ = [entry async for entry in session.journal()]

    assert session.state == "completed"
    assert isinstance(going_back.exception(), ChannelClosed | None)
