from __future__ import annotations

import asyncio
from typing import Any

from steersman import Allow, Session
from steersman.journal import Kind
from steersman.testing.script import Script, call, say
from steersman.testing.scripted.cli import ScriptedCLI
from tests._session.peers import entries_of, opened


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
