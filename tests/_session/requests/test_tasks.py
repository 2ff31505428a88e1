from __future__ import annotations

import asyncio
from typing import Any

from steersman import Allow, Session
from steersman.journal import Kind
from steersman.testing.script import Script, call, say
from steersman.testing.scripted.cli import ScriptedCLI
from tests._session.peers import LIMIT, Frame, FramePeer, entries_of, opened


class SlowApprover:
    """A callback that never answers, and takes time to clean up after its cancellation."""

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


async def test_a_cancelled_request_is_not_waited_for_while_its_task_cleans_up() -> None:
    approver = SlowApprover()
    cli = ScriptedCLI(Script(call("Write", file_path="/x", content="x"), say("fresh")))

    async with opened(cli, can_use_tool=approver) as session:
        turn = await session.send("go")
        await approver.was_asked.wait()
        before = seen(session)
        await turn.interrupt()
        await approver.is_stopped.wait()
        after = seen(session)
        fresh = await (await session.send("next"))
        approver.may_leave.set()

    assert before == ("waiting_permission", 1)
    assert after in {("running", 0), ("idle", 0)}
    assert fresh.text == "fresh"
    states = [
        each.details["after"] for each in await entries_of(session) if "after" in each.details
    ]
    assert states.count("waiting_permission") == 1


async def test_an_answered_request_is_closed_before_the_next_iteration_of_the_loop() -> None:
    open_asks: list[int] = []

    async def approver(*_: Any) -> Allow:
        loop = asyncio.get_running_loop()
        loop.call_soon(lambda: open_asks.append(len(session.snapshot().open_asks)))
        return Allow()

    cli = ScriptedCLI(Script(call("Write", file_path="/x", content="x"), say("done")))

    async with opened(cli, can_use_tool=approver) as session:
        done = await (await session.send("go"))

    assert done.outcome == "completed"
    assert open_asks == [0]


async def test_a_handler_that_cancels_itself_is_a_refusal_to_the_cli() -> None:
    async def approver(*_: Any) -> Allow:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.Event().wait()
        return Allow()

    cli = ScriptedCLI(Script(call("Write", file_path="/x", content="x"), say("continued")))

    async with opened(cli, can_use_tool=approver) as session:
        done = await (await session.send("go"))
    answers = [each.line for each in await entries_of(session) if each.kind is Kind.SENT]

    assert done.text.endswith("continued")
    assert sum(b'"error":"cancelled"' in line for line in answers) == 1


def permission(request_id: str) -> Frame:
    request = {
        "subtype": "can_use_tool",
        "tool_name": "Write",
        "input": {"file_path": request_id},
        "tool_use_id": f"toolu_{request_id}",
    }
    return {"type": "control_request", "request_id": request_id, "request": request}


class Answers:
    """Records the ids of the answers that a `FramePeer` receives."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self._has_more = asyncio.Event()

    def __call__(self, _peer: FramePeer, frame: Frame) -> None:
        if frame["type"] == "control_response":
            self.ids.append(frame["response"]["request_id"])
            self._has_more.set()

    async def first(self, number: int) -> list[str]:
        """Wait for `number` answers and return their request ids."""
        while len(self.ids) < number:
            self._has_more.clear()
            await self._has_more.wait()
        return list(self.ids)


async def test_a_request_that_is_cancelled_in_the_same_chunk_reaches_no_callback() -> None:
    asked: list[str] = []

    def approver(_tool: str, given: dict[str, Any], _: Any) -> Allow:
        asked.append(given["file_path"])
        return Allow()

    received = Answers()
    peer = FramePeer(received)
    async with opened(peer.transport, can_use_tool=approver) as session:
        cancelled = {"type": "control_cancel_request", "request_id": "q1"}
        peer.say(permission("q1"), permission("q2"), cancelled)
        answers = await received.first(1)
        is_open = session.snapshot().open_asks

    assert asked == ["q2"]
    assert answers == ["q2"]
    assert is_open == ()


async def test_requests_of_one_chunk_are_answered_in_order_and_the_slow_one_last() -> None:
    may_answer = asyncio.Event()

    async def approver(_tool: str, given: dict[str, Any], _: Any) -> Allow:
        if given["file_path"] == "q2":
            await may_answer.wait()
        return Allow()

    received = Answers()
    peer = FramePeer(received)
    async with opened(peer.transport, can_use_tool=approver) as session:
        peer.say(permission("q1"), permission("q2"), permission("q3"))
        first = await received.first(2)
        waits = session.snapshot().open_asks
        may_answer.set()
        last = await received.first(3)

    assert first == ["q1", "q3"]
    assert waits == ("q2",)
    assert last == ["q1", "q3", "q2"]


async def test_a_callback_may_cancel_the_session_in_its_first_step() -> None:
    was_asked = asyncio.Event()

    async def approver(*_: Any) -> Allow:
        was_asked.set()
        await session.cancel()
        return Allow()

    peer = FramePeer()
    async with opened(peer.transport, can_use_tool=approver) as session:
        peer.say(permission("q1"))
        await was_asked.wait()
        last = await session.finish(LIMIT)

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
