"""Calls that are held and deferred, on the stock CLI: the next session asks about the same call."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from steersman import Agent, Allow, Deny
from steersman.hooks import Hooks, PreToolUse, deny
from steersman.inbox import StoredInbox
from steersman.journal import Kind, TurnResult
from steersman.journal.replaying import replay
from steersman.options import Park, Revival
from steersman.permissions import Ask
from steersman.permissions.policy import Policy, ask
from steersman.testing.request import ModelRequest
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import Script, Step, call, calls, say
from tests._session.peers import entries_of
from tests.journal.test_replaying import known
from tests.live.durable import CUSTOMER, INVOICE, another_host, next_ask, stands_in_file, store_at
from tests.live.staging import LIMIT, MakeScripted, entry_where, until

pytestmark = pytest.mark.live

RESUMES = 50 if os.environ.get("STEERSMAN_SOAK") else 1

QUESTIONS: list[dict[str, Any]] = [
    {
        "question": "Which?",
        "header": "Colour",
        "multiSelect": False,
        "options": [{"label": "Red", "description": "r"}, {"label": "Blue", "description": "b"}],
    }
]
ASKING = Policy(ask("Write"))


def write(box: CliSandbox, name: str = "paid", id_: str = "") -> Step:
    path = str(box.project / name)
    return call("Write", file_path=path, content="x", id_=id_ or f"toolu_{name}")


@asynccontextmanager
async def inbox_in(url: str, **given: Any) -> AsyncGenerator[StoredInbox, None]:
    """The inbox of a store, for a test."""
    async with asyncio.timeout(2 * LIMIT), store_at(url) as store:
        yield store.inbox(**given)


async def park(agent: Agent, inbox: StoredInbox, key: str = CUSTOMER) -> tuple[Ask, TurnResult]:
    """Send a prompt, and park the session when it waits for an ask."""
    async with agent.open(key) as session:
        turn = await session.send("pay", key=INVOICE)
        asked = await next_ask(inbox)
        waits_for = await session.park()
    result = await turn
    assert result.waits_for == waits_for == (asked.id,)
    return asked, result


async def resume_turns(agent: Agent, key: str = CUSTOMER, **changed: Any) -> TurnResult:
    async with agent.open(key, **changed) as session:
        (turn,) = await session.resume_turns()
        return await turn


async def test_a_question_is_parked_exactly_and_its_answer_reaches_the_same_call(
    scripted: MakeScripted, work_url: str
) -> None:
    async with inbox_in(work_url) as inbox:
        agent, model = scripted(
            call("AskUserQuestion", questions=QUESTIONS, id_="toolu_q"), say("Blue."), inbox=inbox
        )
        asked, parked = await park(agent, inbox)
        await inbox.answer(asked, asked.questions.questions[0].answer("Blue"), by="ann")
        done = await resume_turns(agent)

    assert (parked.outcome, parked.terminal_reason) == ("parked", "tool_deferred")
    assert (done.outcome, done.text, len(model.asked)) == ("completed", "Blue.", 2)
    assert '"Which?"="Blue"' in model.asked[-1].tool_results["toolu_q"]


async def test_a_plan_is_parked_exactly(scripted: MakeScripted, work_url: str) -> None:
    async with inbox_in(work_url) as inbox:
        agent, model = scripted(
            call("ExitPlanMode", plan="1. Pay.", id_="toolu_p"),
            say("Paid."),
            inbox=inbox,
            permission_mode="plan",
        )
        asked, parked = await park(agent, inbox)
        await inbox.answer(asked, Allow(), by="ann")
        done = await resume_turns(agent)

    assert (parked.terminal_reason, done.outcome, len(model.asked)) == (
        *("tool_deferred", "completed"),
        2,
    )
    assert "approved" in model.asked[-1].tool_results["toolu_p"]


ALIKE = [pytest.param(how, marks=pytest.mark.soak_only) for how in ("denied", "expired")]
"""The answer takes the same way; told parking shows both in the suite."""


@pytest.mark.parametrize("how", ["allowed", "edited", *ALIKE])
async def test_a_permission_is_parked_exactly(
    scripted: MakeScripted, sandbox: CliSandbox, work_url: str, how: str
) -> None:
    elsewhere = {"file_path": str(sandbox.project / "elsewhere"), "content": "x"}
    async with inbox_in(work_url) as inbox:
        agent, model = scripted(write(sandbox), say("Done."), inbox=inbox, policy=ASKING)
        asked, parked = await park(agent, inbox)
        if how == "expired":
            await inbox.expire(asked)
        else:
            answers = {"allowed": Allow(), "denied": Deny("not today"), "edited": Allow(elsewhere)}
            await inbox.answer(asked, answers[how], by="ann", seen=asked.digest)
        done = await resume_turns(agent)
        left = await inbox.list()

    told = model.asked[-1].tool_results["toolu_paid"]
    files = {each.name for each in sandbox.project.iterdir()}
    assert (parked.terminal_reason, done.outcome, left) == ("tool_deferred", "completed", [])
    assert [(each.tool_use_id, each.is_running) for each in done.tool_calls] == [
        ("toolu_paid", False)
    ]
    assert len(model.asked) == 2
    assert {
        "allowed": files == {"paid"},
        "denied": files == set() and "not today" in told,
        "edited": files == {"elsewhere"},
        "expired": files == set() and "no answer came in time" in told,
    }[how]


@pytest.mark.parametrize("policy", [ASKING, None], ids=["exact", "told"])
async def test_the_replay_of_a_turn_that_was_taken_up_gives_what_its_session_gave(
    scripted: MakeScripted, sandbox: CliSandbox, work_url: str, policy: Policy | None
) -> None:
    async with inbox_in(work_url) as inbox:
        steps = (write(sandbox), *(() if policy else (write(sandbox, id_="again"),)), say("Done."))
        agent, _ = scripted(*steps, inbox=inbox, policy=policy, env={"SHOP_TOKEN": "paid-secret"})
        asked, _ = await park(agent, inbox)
        await inbox.answer(asked, Allow(), by="ann")
        async with agent.open(CUSTOMER) as session:
            (turn,) = await session.resume_turns()
            live = await turn

    told = replay(await entries_of(session)).turns[turn.uuid]
    assert (live.outcome, live.text, len(live.tool_calls)) == ("completed", "Done.", 1)
    assert known(told) == known(live)


async def test_a_call_that_is_parked_beside_another_one_is_told(
    scripted: MakeScripted, sandbox: CliSandbox, work_url: str
) -> None:
    async with inbox_in(work_url) as inbox:
        agent, _ = scripted(
            calls(write(sandbox, "one"), write(sandbox, "two")),
            inbox=inbox,
            policy=ASKING,
            park=Park(grace=0.1),
        )
        _, parked = await park(agent, inbox)

    assert (parked.outcome, parked.terminal_reason) == ("parked", None)


async def test_a_call_that_is_not_taken_up_is_still_parked_when_the_session_is_closed(
    scripted: MakeScripted, sandbox: CliSandbox, work_url: str
) -> None:
    async with inbox_in(work_url) as inbox:
        agent, model = scripted(write(sandbox), say("Done."), inbox=inbox, policy=ASKING)
        asked, _ = await park(agent, inbox)
        async with agent.open(CUSTOMER):
            pass
        await inbox.answer(asked, Allow(), by="ann")
        done = await resume_turns(agent)

    assert (done.outcome, done.text, len(model.asked)) == ("completed", "Done.", 2)
    assert (sandbox.project / "paid").read_text() == "x"


@contextmanager
def loaded(count: int) -> Generator[None, None, None]:
    """Keep the machine busy with `count` programs."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for each in busy:
            each.kill()
            each.wait()


@pytest.mark.soak
@pytest.mark.timeout(RESUMES * LIMIT)
async def test_an_approval_does_not_pass_a_hook_that_now_denies(
    scripted: MakeScripted, sandbox: CliSandbox, tmp_path: Path
) -> None:
    def step(request: ModelRequest) -> Step:
        return say("A pity.") if request.tool_results else write(sandbox)

    hooks, told = Hooks(), list[str]()
    hooks.on(PreToolUse, "Write")(lambda _: deny("nothing is written here"))
    with loaded(0 if RESUMES == 1 else 4):
        for number in range(RESUMES):
            async with inbox_in(f"sqlite://{tmp_path / str(number)}.db") as inbox:
                agent, model = scripted(Script(step, step), inbox=inbox, policy=ASKING)
                asked, _ = await park(agent, inbox, f"customer {number}")
                await inbox.answer(asked, Allow(), by="ann")
                done = await resume_turns(agent, f"customer {number}", hooks=hooks)
                told.append(f"{done.text} {model.asked[-1].tool_results['toolu_paid']}")

    assert len(told) == RESUMES
    assert all("A pity." in each and "nothing is written here" in each for each in told)
    assert list(sandbox.project.iterdir()) == []


@pytest.mark.parametrize("was_parked", [False, True], ids=["first session", "taken up"])
async def test_a_held_call_outlives_its_cli(
    scripted: MakeScripted, sandbox: CliSandbox, work_url: str, *, was_parked: bool
) -> None:
    numbers = itertools.count(1)

    def step(request: ModelRequest) -> Step:
        is_done = any("File created" in each for each in request.tool_results.values())
        return say("Done.") if is_done else write(sandbox, id_=f"toolu_{next(numbers)}")

    async with inbox_in(work_url) as inbox:
        agent, _ = scripted(Script(step, step, step), inbox=inbox, policy=ASKING)
        if was_parked:
            await park(agent, inbox)
        async with agent.open(CUSTOMER, revive=Revival(backoff=0.01)) as session:
            (turn,) = (
                await session.resume_turns()
                if was_parked
                else [await session.send("pay", key=INVOICE)]
            )
            asked = await next_ask(inbox)
            await until(lambda: bool(session.snapshot().pending_permissions))
            await stands_in_file(agent, asked.id)
            assert session.pid is not None
            os.kill(session.pid, signal.SIGKILL)
            await entry_where(session, lambda each: each.kind is Kind.RESTARTED)
            await inbox.answer(asked, Allow(), by="ann")
            done = await turn

    assert (done.outcome, done.text) == ("completed", "Done.")
    assert (sandbox.project / "paid").read_text() == "x"


async def test_a_held_question_of_a_host_that_was_killed_is_asked_once(
    scripted: MakeScripted, work_url: str
) -> None:
    def question(id_: str) -> Step:
        return call("AskUserQuestion", questions=QUESTIONS, id_=id_)

    async with inbox_in(work_url) as inbox:
        agent, model = scripted(question("toolu_1"), question("toolu_2"), say("Blue."))
        async with another_host(agent, work_url) as host:
            asked = await next_ask(inbox)
            await stands_in_file(agent, "toolu_1")
            host.kill()
            await host.wait()
        await inbox.answer(asked, asked.questions.questions[0].answer("Blue"), by="ann")
        done = await resume_turns(Agent(agent.options, inbox=inbox))
        left = await inbox.list()

    assert (asked.id, done.outcome, done.text, left) == ("toolu_1", "completed", "Blue.", [])
    assert '"Which?"="Blue"' in model.asked[-1].tool_results["toolu_2"]
