"""Verbs that a running CLI takes."""

from __future__ import annotations

import asyncio

import pytest

from steersman.control import SetModel
from steersman.errors import RequestRefused, RequestTimeout
from steersman.journal import Kind
from steersman.messages import Init
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import Step, call, say, stall
from tests.live.staging import LIMIT, MakeScripted, entries_of, first_words

pytestmark = pytest.mark.live


async def test_another_model_answers_from_the_next_request_on(scripted: MakeScripted) -> None:
    agent, model = scripted(
        say("one"),
        say("two") + stall() + call("Bash", command="true"),
        say("three"),
        say("four"),
        model="claude-sonnet-4-5",
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await (await session.send("first"))
        answers = [await session.set_model("claude-haiku-4-5")]
        turn = await session.send("second")
        await first_words(turn, "two")
        answers.append(await session.call(SetModel(model="claude-sonnet-4-5")))
        model.release()
        await turn
        await session.set_model(None)
        last = await (await session.send("third"))

    models = [request.model for request in model.asked]
    assert [each.model for each in answers] == ["claude-haiku-4-5", "claude-sonnet-4-5"]
    assert models[:3] == ["claude-sonnet-4-5", "claude-haiku-4-5", "claude-sonnet-4-5"]
    assert last.text == "four"


async def test_another_permission_mode_is_in_force_at_once(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    def write(name: str) -> Step:
        return call("Write", file_path=str(sandbox.project / name), content=name)

    agent, model = scripted(
        write("asked"), say("no"), write("accepted"), say("yes"), write("planned"), say("no")
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        first = await (await session.send("write"))
        accepting = await session.set_permission_mode("acceptEdits")
        second = await session.send("write")
        await second
        planning = await session.set_permission_mode("plan")
        await (await session.send("write"))
        modes = [each.permission_mode async for each in second.messages() if isinstance(each, Init)]

    assert (accepting.mode, planning.mode) == ("acceptEdits", "plan")
    assert modes == ["acceptEdits"]
    assert [each["tool_name"] for each in first.permission_denials] == ["Write"]
    assert sorted(path.name for path in sandbox.project.iterdir()) == ["accepted"]
    model.script.assert_complete()


async def test_requests_without_a_class_and_requests_without_a_meaning(
    scripted: MakeScripted,
) -> None:
    agent, _model = scripted(say("still here"))

    async with asyncio.timeout(LIMIT), agent.session() as session:
        cost = await session.control("get_session_cost")
        many = await asyncio.gather(*(session.control("get_binary_version") for _ in range(20)))
        with pytest.raises(RequestRefused) as unknown:
            await session.control("make_coffee", sugar=2)
        with pytest.raises(RequestRefused) as bypass:
            await session.set_permission_mode("bypassPermissions")
        result = await (await session.send("anyone?"))

    assert "Total cost" in cost["text"]
    assert len(many) == 20
    assert all(each == many[0] and each for each in many)
    assert unknown.value.error_code == "unsupported_request"
    assert unknown.value.operation == "make_coffee"
    assert "make_coffee" in str(unknown.value)
    assert bypass.value.operation == "set_permission_mode"
    assert result.text == "still here"


async def test_a_request_that_is_given_up_is_taken_back(scripted: MakeScripted) -> None:
    agent, model = scripted(say("fine"))
    model.script.branch(lambda request: "side question" in request.latest, stall())

    async with asyncio.timeout(LIMIT), agent.session() as session:
        with pytest.raises(RequestTimeout) as late:
            await session.control("side_question", timeout=0.5, question="why?")
        asking = asyncio.create_task(session.control("side_question", question="why?"))
        await asyncio.sleep(0)
        asking.cancel()
        await asyncio.wait([asking])
        result = await (await session.send("go on"))
        sent = [each.line for each in await entries_of(session) if each.kind is Kind.SENT]

    assert late.value.operation == "side_question"
    assert asking.cancelled()
    assert sum(b"control_cancel_request" in line for line in sent) == 2
    assert result.text == "fine"
