"""Asks on the stock CLI: they wait as data, and are answered from anywhere."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from steersman import Allow, Ask, Deny, Inbox
from steersman.errors import AlreadyAnswered, AskGone
from steersman.journal import Kind
from steersman.messages import Init
from steersman.permissions import PermissionContext, QuestionAnswer, QuestionAsk
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import Script, Step, call, calls, say, when
from tests.live.staging import LIMIT, MakeScripted, entries_of

pytestmark = pytest.mark.live

QUESTION = {
    "question": "Which colour?",
    "header": "Colour",
    "multiSelect": False,
    "options": [
        {"label": "red", "description": "warm"},
        {"label": "blue", "description": "cold"},
    ],
}
ASK = call("AskUserQuestion", questions=[QUESTION], id_="toolu_ask")


def write(box: CliSandbox, name: str) -> Step:
    return call("Write", file_path=str(box.project / name), content="x", id_=f"toolu_{name}")


def files_in(box: CliSandbox) -> set[str]:
    return {path.name for path in box.project.iterdir()}


async def next_ask(inbox: Inbox) -> Ask:
    """The first ask that waits, or comes."""
    watch = inbox.watch()
    async for change in watch:
        if change.what == "opened":
            await watch.aclose()
            return change.ask
    raise AssertionError("nobody asked")


async def test_a_permission_waits_in_the_inbox_and_the_first_answer_counts(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    inbox = Inbox()
    agent, _ = scripted(write(sandbox, "wanted"), say("done"), inbox=inbox)

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turn = await session.send("go")
        ask = await next_ask(inbox)
        state = session.state
        answers = await asyncio.gather(
            inbox.answer(ask.id, Allow(), by="ann"),
            inbox.answer(ask.id, Deny("no"), by="bob"),
            return_exceptions=True,
        )
        result = await turn
        decided = [each.details for each in await entries_of(session) if each.kind is Kind.DECIDED]

    assert state == "waiting_permission"
    assert (ask.kind, ask.tool_name, ask.turn) == ("permission", "Write", turn.uuid)
    assert isinstance(answers[1], AlreadyAnswered)
    assert answers[1].by == "ann"
    assert (result.outcome, files_in(sandbox)) == ("completed", {"wanted"})
    assert [(each["source"], each["by"]) for each in decided] == [("person", "ann")]


async def test_an_ask_that_expires_is_denied_and_the_turn_goes_on(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    inbox = Inbox(expires_after=0.05)
    agent, model = scripted(write(sandbox, "late"), say("a pity"), inbox=inbox)

    async with asyncio.timeout(LIMIT):
        result = await agent.run("go")

    assert (result.text, files_in(sandbox)) == ("a pity", set())
    assert "no answer came in time" in model.asked[-1].tool_results["toolu_late"]


async def test_an_ask_is_gone_after_an_interrupt_and_after_its_session(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    inbox = Inbox()
    agent, _ = scripted(
        when("first", write(sandbox, "one")),
        when("second", write(sandbox, "two"), say("unheard")),
        inbox=inbox,
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turn = await session.send("first")
        first = await next_ask(inbox)
        await session.interrupt()
        stopped = await turn
        await session.send("second")
        second = await next_ask(inbox)

    assert stopped.outcome == "interrupted"
    for ask in (first, second):
        with pytest.raises(AskGone):
            await inbox.answer(ask.id, Allow(), by="ann")
    assert files_in(sandbox) == set()


async def test_several_sessions_share_an_inbox(scripted: MakeScripted, sandbox: CliSandbox) -> None:
    inbox = Inbox()
    agent, _ = scripted(
        when("ann", write(sandbox, "ann"), say("done")),
        when("bob", write(sandbox, "bob"), say("done")),
        inbox=inbox,
    )

    async with (
        asyncio.timeout(LIMIT),
        agent.session() as first,
        agent.session() as second,
    ):
        turns = [await first.send("ann"), await second.send("bob")]
        watch = inbox.watch()
        asks = [(await anext(watch)).ask for _ in range(2)]
        await watch.aclose()
        by_session = {ask.session: ask for ask in asks}
        await inbox.answer(by_session[str(first.id)].id, Allow(), by="ann")
        await inbox.answer(by_session[str(second.id)].id, Deny("no"), by="bob")
        for turn in turns:
            await turn

    assert files_in(sandbox) == {"ann"}


async def test_a_question_reaches_its_handler_and_the_answer_the_model(
    scripted: MakeScripted,
) -> None:
    seen: list[QuestionAsk] = []

    async def answer(asked: QuestionAsk) -> list[QuestionAnswer]:
        seen.append(asked)
        await asyncio.sleep(0)
        return asked.answer("blue")

    agent, model = scripted(ASK, say("blue it is"), on_question=answer)

    async with asyncio.timeout(LIMIT):
        await agent.run("ask me")

    (asked,) = seen
    assert [choice.label for choice in asked.questions[0].options] == ["red", "blue"]
    told = model.asked[-1].tool_results["toolu_ask"]
    assert "Which colour?" in told
    assert "blue" in told


@pytest.mark.parametrize(
    "options",
    [
        {"on_question": lambda asked: asked.skip()},
        {"can_use_tool": lambda *_: Allow()},
    ],
    ids=["skipped", "merely allowed"],
)
async def test_an_unanswered_question_never_becomes_an_empty_answer(
    scripted: MakeScripted, options: dict[str, Any]
) -> None:
    agent, model = scripted(ASK, say("then I guess"), **options)

    async with asyncio.timeout(LIMIT):
        await agent.run("ask me")

    assert model.asked[-1].tool_results["toolu_ask"] == QuestionAsk.UNANSWERED


async def test_with_nobody_to_answer_the_model_has_no_tool_to_ask_with(
    scripted: MakeScripted,
) -> None:
    agent, _ = scripted(say("hello"), say("hello"))

    async with asyncio.timeout(LIMIT):
        without = [each async for each in agent.query("hi")]
        with_handler = [each async for each in agent.query("hi", on_question=print)]

    tools = [each.tools for each in (*without, *with_handler) if isinstance(each, Init)]
    assert ["AskUserQuestion" in each for each in tools] == [False, True]


async def test_a_plan_is_approved_through_the_inbox_and_the_mode_changes(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    inbox = Inbox()
    agent, _ = scripted(
        call("ExitPlanMode", plan="Write it.", id_="toolu_plan"),
        write(sandbox, "planned"),
        say("done"),
        inbox=inbox,
        permission_mode="plan",
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turn = await session.send("plan it")
        plan = await next_ask(inbox)
        await inbox.answer(plan.id, Allow(), by="ann")
        writing = await next_ask(inbox)
        await inbox.answer(writing.id, Allow(), by="ann")
        await turn

    assert (plan.tool_name, plan.kind) == ("ExitPlanMode", "permission")
    assert writing.tool_name == "Write"
    assert files_in(sandbox) == {"planned"}


async def test_asks_of_a_subagent_carry_their_agent(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    inbox = Inbox()
    task = call(
        "Agent",
        subagent_type="general-purpose",
        description="write",
        prompt="helper: write it",
        run_in_background=False,
        id_="toolu_agent",
    )
    script = Script(calls(write(sandbox, "mine"), task), say("done"))
    script.branch("helper", write(sandbox, "helped"), say("written"))
    agent, _ = scripted(script, inbox=inbox)
    asks: list[Ask] = []

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turn = await session.send("go")
        for _ in range(2):
            asks.append(await next_ask(inbox))
            await inbox.answer(asks[-1].id, Allow(), by="ann")
        await turn
        decided = [each.details for each in await entries_of(session) if each.kind is Kind.DECIDED]

    by_file = {ask.tool_input["file_path"].rpartition("/")[2]: ask for ask in asks}
    assert by_file["mine"].agent is None
    assert by_file["helped"].agent
    agents = {each["tool_use_id"]: each.get("agent") for each in decided}
    assert agents["toolu_helped"] == by_file["helped"].agent
    assert agents["toolu_mine"] is None
    assert files_in(sandbox) == {"mine", "helped"}


async def test_what_is_always_allowed_is_not_asked_again(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    """Of its own accord the CLI would write a settings file that this session does not read."""
    asked: list[str] = []

    def decide(_name: str, given: dict[str, Any], context: PermissionContext) -> Allow:
        asked.append(given["command"])
        assert json.dumps(context.question.permission_suggestions).count("localSettings") == 1
        return context.always("keep")

    agent, _ = scripted(
        call("Bash", command="mkfifo a"),
        call("Bash", command="mkfifo a b"),
        say("done"),
        can_use_tool=decide,
    )

    async with asyncio.timeout(LIMIT):
        await agent.run("go")

    assert asked == ["mkfifo a"]
    assert files_in(sandbox) == {"a", "b"}
