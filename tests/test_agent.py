"""Which conversation a session is about, when several options and arguments could say it."""

from __future__ import annotations

import asyncio
import copy
import sys
from dataclasses import dataclass

import pytest

from steersman import Agent, Options
from steersman.errors import ApiFailed, ResumeNotFound, TurnFailed, UsageError
from steersman.options import OptionKwargs
from steersman.ports import Channel, Launch, Receiver
from steersman.testing.plugin import MakeAgent
from steersman.testing.script import Script, call, fail, say
from steersman.testing.scripted.cli import ScriptedCLI

KEY, OTHER, MESSAGE = (f"{n}2345678-1234-4234-8234-123456789abc" for n in (1, 2, 3))
CHOICES = ("--resume", "--session-id", "--continue", "--fork-session", "--resume-session-at")


class Gone:
    """The channel to a CLI that has exited."""

    pid = None

    def write(self, data: bytes) -> None: ...
    def end_input(self) -> None: ...
    def suspend(self) -> None: ...
    def resume(self) -> None: ...
    def close(self, grace: float) -> None: ...
    def kill(self) -> None: ...


class Recording:
    """A transport whose CLI finds no conversation; it records which one it was started for."""

    def __init__(self) -> None:
        self.chosen: list[list[str]] = []

    async def open(self, launch: Launch, receiver: Receiver) -> Channel:
        flags = [each for each in launch.argv if isinstance(each, str)]
        self.chosen.append([each for each in flags if each.startswith(CHOICES)])
        receiver.stderr_received(b"No conversation found with that session ID\n")
        asyncio.get_running_loop().call_soon(receiver.exited, 1)
        return Gone()


@pytest.mark.parametrize(
    "words",
    [
        OptionKwargs(resume=OTHER),
        OptionKwargs(session_id=OTHER),
        OptionKwargs(continue_conversation=True),
        OptionKwargs(),
    ],
    ids=str,
)
async def test_a_key_chooses_the_conversation_and_not_the_options_of_the_agent(
    words: OptionKwargs,
) -> None:
    transport = Recording()

    with pytest.raises(ResumeNotFound):
        await Agent(transport=transport, **words).open(KEY, resume=None, fork_session=False)

    assert transport.chosen == [[f"--resume={KEY}"], [f"--session-id={KEY}"]]


@pytest.mark.parametrize(
    "words",
    [
        OptionKwargs(resume=OTHER, resume_session_at=MESSAGE),
        OptionKwargs(resume=OTHER, resume_session_at=MESSAGE, resume_drops_turn=MESSAGE),
        OptionKwargs(session_id=OTHER),
    ],
    ids=str,
)
def test_a_fork_continues_from_the_end_of_its_session(words: OptionKwargs) -> None:
    for session in (
        Agent(transport=Recording(), **words).session(),
        Agent(transport=Recording()).session(**words),
    ):
        fork = session.fork(model="haiku", fork_session=True)

        assert fork.options == Options(model="haiku", resume=OTHER, fork_session=True)


def test_a_fork_can_have_an_id_and_begin_earlier() -> None:
    session = Agent(transport=Recording()).session(resume=OTHER)

    fork = session.fork(session_id=KEY, resume_session_at=MESSAGE)

    assert fork.options == Options(
        resume=OTHER, fork_session=True, session_id=KEY, resume_session_at=MESSAGE
    )


def test_options_are_replaced_by_what_may_be_given() -> None:
    options = Options(model="opus", allowed_tools=["Read"])

    assert options.replace(allowed_tools=["Edit"]) == Options(model="opus", allowed_tools=["Edit"])
    assert options.replace() is options
    assert options.__replace__(model=None) == Options(allowed_tools=["Read"])


@pytest.mark.skipif(sys.version_info < (3, 13), reason="`copy.replace` is new in Python 3.13")
def test_options_can_be_replaced_by_the_standard_library() -> None:
    replaced = copy.replace(Options(model="opus"), allowed_tools=["Edit"])  # type: ignore[attr-defined,unused-ignore]

    assert replaced == Options(model="opus", allowed_tools=["Edit"])


async def test_a_scripted_agent_takes_options_as_a_value(scripted_agent: MakeAgent) -> None:
    agent = scripted_agent(options=Options(model="haiku", env={"A": "b"}), max_turns=3)

    assert (agent.options.model, agent.options.max_turns) == ("haiku", 3)
    assert agent.options.env == {"A": "b"}
    assert (await agent.run("hi")).outcome == "completed"


async def test_a_conversation_is_opened_by_a_block_by_await_and_by_a_task() -> None:
    agent = Agent(transport=ScriptedCLI(Script(*[say("hello")] * 4)))

    async with asyncio.timeout(10):
        async with agent.open("one") as first:
            texts = [(await first.run("hi")).text]
        second = await agent.open("two")
        async with second:
            texts.append((await second.run("hi")).text)
        third = await asyncio.create_task(agent.open("three"))
        texts.append((await third.run("hi")).text)
        await third.aclose()

    assert texts == ["hello"] * 3
    assert [each.state for each in (first, second, third)] == ["completed"] * 3
    assert first.id != second.id


async def test_a_session_that_has_ended_is_not_entered_again() -> None:
    session = Agent(transport=ScriptedCLI(Script())).session()
    async with session:
        pass

    with pytest.raises(UsageError, match="not started before"):
        async with session:
            pass


async def test_a_typed_answer_comes_with_its_cost() -> None:
    @dataclass
    class Answer:
        number: int

    cli = ScriptedCLI(Script(*[call("StructuredOutput", number=4), say("")] * 2))

    async with asyncio.timeout(10):
        typed = await Agent(transport=cli).run_result("2 + 2", output=Answer)
        plain = await Agent(transport=cli).run("2 + 2", output=Answer)

    assert typed.output == plain == Answer(4)
    assert typed.result.outcome == "completed"
    assert typed.result.cost_usd > 0


async def test_run_of_a_session_raises_what_run_of_an_agent_raises() -> None:
    cli = ScriptedCLI(Script(fail(400), say("fine")))

    async with asyncio.timeout(10), Agent(transport=cli).session() as session:
        with pytest.raises(TurnFailed) as failed:
            await session.run("one")
        again = await session.run("two", key="two")

    assert isinstance(failed.value.__cause__, ApiFailed)
    assert again.text == "fine"
