"""A conversation can be gone on with by its key, branched off, and taken back to a checkpoint."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from steersman import Session
from steersman.errors import ResumeNotFound, UsageError
from steersman.messages import Assistant
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import call, say
from tests.live.staging import LIMIT, MakeScripted, texts_of

pytestmark = pytest.mark.live


async def ask(session: Session, prompt: str) -> str:
    """Send `prompt` and give the answer."""
    return (await (await session.send(prompt))).text


async def test_a_key_opens_a_conversation_and_then_goes_on_with_it(scripted: MakeScripted) -> None:
    agent, model = scripted(say("first"), say("second"))

    async with asyncio.timeout(LIMIT):
        session = await agent.open("customer 7")
        one, first_id = await ask(session, "one"), session.id
        await session.aclose()
        session = await agent.open("customer 7", missing="fail")
        two, second_id = await ask(session, "two"), session.id
        await session.aclose()

    assert (one, two) == ("first", "second")
    assert first_id == second_id
    assert "first" in str(model.asked[-1].body["messages"])


async def test_a_key_that_nobody_has_used_can_be_refused(scripted: MakeScripted) -> None:
    agent, _model = scripted()

    async with asyncio.timeout(LIMIT):
        with pytest.raises(ResumeNotFound):
            await agent.open("customer 8", missing="fail")


async def test_a_fork_goes_its_own_way(scripted: MakeScripted) -> None:
    agent, model = scripted(say("one"), say("left"), say("right"))

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await ask(session, "begin")
        async with session.fork() as branch:
            left = await ask(branch, "go left")
            branch_id = branch.id
        right = await ask(session, "go right")

    assert (left, right) == ("left", "right")
    assert branch_id != session.id
    assert "go left" not in str(model.asked[-1].body["messages"])


async def test_rewinding_takes_back_what_was_said_and_what_was_written(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    file = sandbox.project / "notes.txt"
    file.write_text("before\n")
    agent, model = scripted(
        say("ready"),
        call("Read", file_path=str(file)),
        call("Write", file_path=str(file), content="after\n"),
        say("written"),
        say("again"),
        enable_file_checkpointing=True,
        allowed_tools=["Read", "Write"],
        permission_mode="acceptEdits",
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await ask(session, "begin")
        place = session.checkpoint()
        await ask(session, "write it down")
        written = file.read_text()
        await session.wait_idle(LIMIT)
        await session.rewind(place)
        answer, session_id = await ask(session, "once more"), session.id

    assert (written, file.read_text()) == ("after\n", "before\n")
    assert answer == "again"
    assert session_id == place.session_id
    assert "write it down" not in str(model.asked[-1].body["messages"])


async def test_only_a_checkpoint_of_this_conversation_will_do(scripted: MakeScripted) -> None:
    agent, _model = scripted(say("one"), say("two"))

    async with asyncio.timeout(LIMIT), agent.session() as one, agent.session() as two:
        with pytest.raises(UsageError, match="checkpoint"):
            one.checkpoint()
        await ask(one, "begin")
        with pytest.raises(UsageError, match="of this conversation"):
            await two.rewind(one.checkpoint())


async def test_prompts_can_come_as_a_stream(scripted: MakeScripted) -> None:
    agent, _model = scripted(say("one"), say("two"))

    async def prompts() -> AsyncIterator[str]:
        yield "first"
        yield "second"

    async with asyncio.timeout(LIMIT):
        messages = [message async for message in agent.query(prompts())]

    assert texts_of(each for each in messages if isinstance(each, Assistant)) == ["one", "two"]
