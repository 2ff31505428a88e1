"""The front door, live: one prompt in, messages or a result out."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pytest

import steersman
from steersman import Agent, Assistant, Result, StreamEvent, tool
from steersman.errors import TurnFailed
from steersman.journal import Kind
from steersman.messages import Init, Status, User
from steersman.options import Watchdog
from steersman.stores import read_journal
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import call, say, when
from tests.live.staging import LIMIT, MakeScripted, inhabitants, texts_of

pytestmark = pytest.mark.live


async def test_query_gives_typed_messages_and_leaves_nothing_behind(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    agent, _model = scripted(say("four"))

    async with asyncio.timeout(LIMIT):
        messages = [
            message async for message in steersman.query("What is 2+2?", options=agent.options)
        ]

    assert isinstance(messages[0], Init)
    # The CLI reports each request to the API, because we always have it stream.
    assert Status not in map(type, messages)
    assert texts_of(messages) == ["four"]
    assert [type(each) for each in messages].count(Assistant) == 1
    assert isinstance(messages[-1], Result)
    assert inhabitants(sandbox.root) == {}


@pytest.mark.parametrize(
    ("options", "kind"),
    [({}, Kind.MESSAGE), ({"watchdog": Watchdog(first_token=60)}, Kind.PARTIAL)],
    ids=["plain", "watched"],
)
async def test_a_run_has_the_cli_stream_only_for_those_who_notice(
    scripted: MakeScripted, sandbox: CliSandbox, options: dict[str, Any], kind: Kind
) -> None:
    journal = sandbox.root / "run.jsonl"
    agent, _model = scripted(say("one two three", chunks=3), journal=journal, **options)

    async with asyncio.timeout(LIMIT):
        result = await agent.run("count")

    kinds = {entry.kind for entry in read_journal(journal)}
    assert result.text == "one two three"
    assert kinds & {Kind.MESSAGE, Kind.PARTIAL} == {Kind.MESSAGE, kind}


async def test_flags_that_every_session_has_may_be_given_again(scripted: MakeScripted) -> None:
    own = str(uuid.uuid4())
    agent, _model = scripted(
        say("four"),
        extra_args={
            "replay-user-messages": None,
            "include-partial-messages": None,
            "verbose": None,
            "print": None,
            "session-id": own,
        },
    )

    async with asyncio.timeout(LIMIT):
        messages = [message async for message in agent.query("What is 2+2?")]

    kinds = {type(each) for each in messages}
    replays = [each for each in messages if isinstance(each, User)]
    assert [(each.message.content, each.is_replay) for each in replays] == [("What is 2+2?", True)]
    assert kinds >= {Status, StreamEvent}
    assert isinstance(messages[-1], Result)
    assert messages[-1].session_id == own


async def test_run_gives_a_result_or_says_why_not(scripted: MakeScripted) -> None:
    agent, _model = scripted(
        when("fine", say("all well")),
        when("long", say("I try.") + call("Bash", command="true"), say("too late")),
        allowed_tools=["Bash"],
    )

    async with asyncio.timeout(LIMIT):
        result = await steersman.run("fine", options=agent.options)
        with pytest.raises(TurnFailed) as caught:
            await agent.run("long", max_turns=1)

    assert (result.outcome, result.text, result.answer) == ("completed", "all well", "all well")
    assert result.cost_usd > 0
    assert result.usage.output_tokens > 0
    assert caught.value.outcome == "failed"
    assert "max" in caught.value.reason
    assert caught.value.text == "I try."


async def test_sessions_of_one_agent_do_not_mix(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    calls: list[str] = []

    @tool
    async def note(word: str) -> str:
        """Note a word."""
        calls.append(word)
        return f"noted {word}"

    names = [f"guest-{n}" for n in range(4)]
    agent, model = scripted(
        *(
            when(name, call("mcp__functions__note", word=name), say(f"hello {name}"))
            for name in names
        ),
        functions=[note],
    )

    async def visit(agent: Agent, name: str) -> tuple[str, str | None]:
        async with agent.session() as session:
            return (await (await session.send(f"I am {name}"))).text, session.id

    async with asyncio.timeout(LIMIT):
        visits = await asyncio.gather(*(visit(agent, name) for name in names))

    assert [text for text, _ in visits] == [f"hello {name}" for name in names]
    assert len({session_id for _, session_id in visits}) == len(names)
    assert sorted(calls) == names
    assert len(model.asked) == 2 * len(names)
    assert inhabitants(sandbox.root) == {}
