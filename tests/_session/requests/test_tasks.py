from __future__ import annotations

import asyncio
from typing import Any

from steersman import Allow, Session
from steersman.journal import Kind
from steersman.testing.script import Script, call, say
from steersman.testing.scripted.cli import ScriptedCLI
from tests._session.peers import LIMIT, Frame, FramePeer, entries_of, opened


class SlowPerson:
    """Somebody who is asked, and takes time to notice that nobody waits any more."""

    def __init__(self) -> None:
        self.was_asked = asyncio.Event()
        self.is_stopped = asyncio.Event()
        self.may_leave = asyncio.Event()

    async def __call__(self, *_: Any) -> Allow:
        self.was_asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.is_stopped.set()
            await self.may_leave.wait()
        return Allow()


def seen(session: Session) -> tuple[str, int]:
    return session.state, len(session.snapshot().open_asks)


async def test_a_question_that_was_taken_back_is_not_waited_for_while_it_is_cleaned_up() -> None:
    person = SlowPerson()
    cli = ScriptedCLI(Script(call("Write", file_path="/x", content="x"), say("fresh")))

    async with opened(cli, can_use_tool=person) as session:
        turn = await session.send("go")
        await person.was_asked.wait()
        before = seen(session)
        await turn.interrupt()
        await person.is_stopped.wait()
        after = seen(session)
        fresh = await (await session.send("next"))
        person.may_leave.set()

    assert before == ("waiting_permission", 1)
    assert after in {("running", 0), ("idle", 0)}
    assert fresh.text == "fresh"
    states = [
        each.details["after"] for each in await entries_of(session) if "after" in each.details
    ]
    assert states.count("waiting_permission") == 1


async def test_a_question_that_was_answered_is_closed_before_the_loop_goes_round_again() -> None:
    open_when_told: list[int] = []

    async def person(*_: Any) -> Allow:
        loop = asyncio.get_running_loop()
        loop.call_soon(lambda: open_when_told.append(len(session.snapshot().open_asks)))
        return Allow()

    cli = ScriptedCLI(Script(call("Write", file_path="/x", content="x"), say("done")))

    async with opened(cli, can_use_tool=person) as session:
        done = await (await session.send("go"))

    assert done.outcome == "completed"
    assert open_when_told == [0]


async def test_a_handler_that_cancels_itself_is_a_refusal_to_the_cli() -> None:
    async def person(*_: Any) -> Allow:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.Event().wait()
        return Allow()

    cli = ScriptedCLI(Script(call("Write", file_path="/x", content="x"), say("went on")))

    async with opened(cli, can_use_tool=person) as session:
        done = await (await session.send("go"))
    answers = [each.line for each in await entries_of(session) if each.kind is Kind.SENT]

    assert done.text.endswith("went on")
    assert sum(b'"error":"cancelled"' in line for line in answers) == 1


def permission(request_id: str) -> Frame:
    request = {
        "subtype": "can_use_tool",
        "tool_name": "Write",
        "input": {"file_path": request_id},
        "tool_use_id": f"toolu_{request_id}",
    }
    return {"type": "control_request", "request_id": request_id, "request": request}


class Hearing:
    """What a CLI by hand is answered."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self._has_more = asyncio.Event()

    def __call__(self, _peer: FramePeer, frame: Frame) -> None:
        if frame["type"] == "control_response":
            self.ids.append(frame["response"]["request_id"])
            self._has_more.set()

    async def first(self, number: int) -> list[str]:
        """Whose answers they are, once there are so many."""
        while len(self.ids) < number:
            self._has_more.clear()
            await self._has_more.wait()
        return list(self.ids)


async def test_a_question_that_is_taken_back_in_the_same_breath_is_asked_of_nobody() -> None:
    asked: list[str] = []

    def person(_tool: str, given: dict[str, Any], _: Any) -> Allow:
        asked.append(given["file_path"])
        return Allow()

    hearing = Hearing()
    peer = FramePeer(hearing)
    async with opened(peer.transport, can_use_tool=person) as session:
        taken_back = {"type": "control_cancel_request", "request_id": "q1"}
        peer.say(permission("q1"), permission("q2"), taken_back)
        answers = await hearing.first(1)
        is_open = session.snapshot().open_asks

    assert asked == ["q2"]
    assert answers == ["q2"]
    assert is_open == ()


async def test_questions_of_one_chunk_are_answered_in_their_order_and_the_slow_one_last() -> None:
    may_answer = asyncio.Event()

    async def person(_tool: str, given: dict[str, Any], _: Any) -> Allow:
        if given["file_path"] == "q2":
            await may_answer.wait()
        return Allow()

    hearing = Hearing()
    peer = FramePeer(hearing)
    async with opened(peer.transport, can_use_tool=person) as session:
        peer.say(permission("q1"), permission("q2"), permission("q3"))
        first = await hearing.first(2)
        waits = session.snapshot().open_asks
        may_answer.set()
        last = await hearing.first(3)

    assert first == ["q1", "q3"]
    assert waits == ("q2",)
    assert last == ["q1", "q3", "q2"]


async def test_one_who_is_asked_may_end_the_session_before_ever_waiting() -> None:
    was_asked = asyncio.Event()

    async def person(*_: Any) -> Allow:
        was_asked.set()
        await session.cancel()
        return Allow()

    peer = FramePeer()
    async with opened(peer.transport, can_use_tool=person) as session:
        peer.say(permission("q1"))
        await was_asked.wait()
        last = await session.wait(LIMIT)

    assert (last.state, last.open_asks) == ("cancelled", ())
    assert not any(b'"allow"' in each.line for each in await entries_of(session))


async def states_of(session: Session) -> list[str]:
    return [each.details["after"] for each in await entries_of(session) if each.kind is Kind.PHASE]


async def test_a_permission_that_is_answered_at_once_is_recorded_and_changes_no_state() -> None:
    async def at_once(*_: Any) -> Allow:
        return Allow()

    changes: list[str] = []
    cli = ScriptedCLI(Script(call("Write", file_path="/x", content="x"), say("done")))

    async with opened(cli, can_use_tool=at_once) as session:
        session.on("state_change", lambda change: changes.append(change.after))
        done = await (await session.send("go"))

    decided = [each for each in await entries_of(session) if each.kind is Kind.DECIDED]
    assert done.outcome == "completed"
    assert len(decided) == 1
    assert "waiting_permission" not in changes
    assert "waiting_permission" not in await states_of(session)


async def test_a_tool_call_changes_the_state_only_if_it_waits() -> None:
    async def at_once() -> str:
        """Return without waiting."""
        return "done"

    async def waits() -> str:
        """Wait for one round of the event loop."""
        await asyncio.sleep(0)
        return "done"

    states: dict[str, list[str]] = {}
    for name in ("at_once", "waits"):
        cli = ScriptedCLI(Script(call(f"mcp__functions__{name}"), say("done")))
        async with opened(cli, functions=[at_once, waits]) as session:
            await (await session.send("go"))
        states[name] = await states_of(session)

    assert "waiting_tool_call" not in states["at_once"]
    assert states["waits"].count("waiting_tool_call") == 1
