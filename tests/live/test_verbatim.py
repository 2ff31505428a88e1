"""A prompt is text; a command is a command."""

from __future__ import annotations

import asyncio
import uuid

import pytest

from steersman.messages import CompactBoundary
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import say
from tests.live.staging import LIMIT, MakeScripted, collect

pytestmark = pytest.mark.live

PROMPTS = (
    "@/etc/hostname",
    "/cost",
    "/compact",
    "/clear now",
    "!ls",
    "# remember this",
    "see @secret.txt and @/etc/passwd, please",
    "line one\n/cost\n@secret.txt",
    'ünïcödé 🚢 \u2028 \x07 and "quotes" \\ {json}',
)


async def test_prompts_reach_the_model_word_by_word(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    (sandbox.project / "secret.txt").write_text("CANARY")
    agent, model = scripted(*(say(f"answer {n}") for n in range(len(PROMPTS) + 1)))
    blocks = [{"type": "text", "text": "/cost"}, {"type": "text", "text": "@secret.txt"}]

    async with asyncio.timeout(LIMIT), agent.session() as session:
        answers = [(await (await session.send(prompt))).text for prompt in (*PROMPTS, blocks)]

    assert answers == [f"answer {n}" for n in range(len(PROMPTS) + 1)]
    assert [request.last_text for request in model.asked[:-1]] == list(PROMPTS)
    assert [each["text"] for each in model.asked[-1].body["messages"][-1]["content"]] == [
        "/cost",
        "@secret.txt",
    ]
    said = str([request.body["messages"] for request in model.asked])
    assert "CANARY" not in said
    assert "root:x:" not in said


async def test_the_cli_takes_the_callers_uuid_and_an_empty_prompt(scripted: MakeScripted) -> None:
    agent, model = scripted(say("one"), say("two"))
    own = str(uuid.uuid4())

    async with asyncio.timeout(LIMIT), agent.session() as session:
        first = await (await session.send("hi", uuid=own, fields={"session_id": "default"}))
        second = await (await session.send(""))

    assert first.result is not None
    assert first.result.user_message_uuids == [own]
    assert (first.text, second.text) == ("one", "two")
    assert len(model.asked) == 2


async def test_commands_are_run_by_the_cli(scripted: MakeScripted) -> None:
    agent, model = scripted(say("one"), say("two"), say("three"))

    async with asyncio.timeout(LIMIT), agent.session() as session:
        for prompt in ("first", "second"):
            await (await session.send(prompt))
        before = session.id
        compacting = await session.command("/compact")
        compacted = await compacting
        boundaries = [
            each
            for each in await collect(compacting.messages())
            if isinstance(each, CompactBoundary)
        ]
        cost = await (await session.command("/cost"))
        after = await (await session.send("third"))
        same = session.id
        cleared = await (await session.command("/clear"))
        other = session.id

    assert compacted.outcome == cost.outcome == cleared.outcome == "completed"
    assert len(boundaries) == 1
    assert "cost" in cost.answer.lower()
    assert (after.outcome, after.text) == ("completed", "three")
    assert "A scripted summary." in str(model.asked[-1].body["messages"])
    assert before == same != other
    assert [request.last_text for request in model.asked[:2]] == ["first", "second"]
