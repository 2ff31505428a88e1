"""Leaving is not interrupting, on the stock CLI: whatever is in progress, the next session goes on.

The tools wait for a file, so that a test decides when they end.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import sqlite3
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager, closing
from pathlib import Path

import pytest

from steersman import Agent, Allow, Session, TurnResult, tool
from steersman.inbox import StoredInbox
from steersman.options import Park
from steersman.permissions import Policy
from steersman.permissions import ask as ask_first
from steersman.permissions.asks import Ask
from steersman.testing.request import ModelRequest
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import Script, Step, call, calls, say, stall
from tests.live.durable import (
    CUSTOMER,
    INVOICE,
    allow_all,
    another_host,
    append,
    goes_on,
    goes_on_when_ready,
    next_ask,
    paid,
    stands_in_file,
    store_at,
)
from tests.live.staging import LIMIT, MakeScripted, until

pytestmark = pytest.mark.live

IS_SOAK = bool(os.environ.get("STEERSMAN_SOAK"))
ASK_ALL = Policy(otherwise="ask")
BEGUN, GO, DONE = "began", "go", "paid"


def slow(box: CliSandbox, id_: str) -> Step:
    """A call that leaves a trace when it begins, waits for the test, and leaves another one."""
    begun, go, done = (box.project / name for name in (BEGUN, GO, DONE))
    wait = f"until [ -e {go} ]; do sleep 0.02; done"
    return call("Bash", command=f"echo x >> {begun}; {wait}; echo x >> {done}", id_=id_)


RECEIPTS = "(Bash completed with no output)", "a receipt"
"""What the model is told by a call that has ended."""


def until_paid(make: Callable[[str], Step], paid: Step | None = None) -> Script:
    """A model that makes its call, each time under another id, until one has ended.

    It looks at the whole conversation: the last message may be the one that continues the turn.
    """
    numbers = itertools.count(1)

    def step(request: ModelRequest) -> Step:
        conversation = str(request.body["messages"])
        has_ended = any(each in conversation for each in RECEIPTS)
        return (paid or say("Paid.")) if has_ended else make(f"toolu_{next(numbers)}")

    return Script(*[step] * 8)


def lines_of(box: CliSandbox, name: str) -> int:
    path = box.project / name
    return len(path.read_text().splitlines()) if path.exists() else 0


async def begun(box: CliSandbox) -> None:
    await until(lambda: lines_of(box, BEGUN) > 0)


async def leave_by_itself(session: Session) -> None:
    """Wait until the session has parked itself: `Park(after=...)`."""
    await session.finish()


async def leave_by_park(session: Session) -> None:
    await session.park()


async def leave_by_aclose(session: Session) -> None:
    await session.aclose()


LEAVES = {"park": leave_by_park, "aclose": leave_by_aclose, "by itself": leave_by_itself}


async def taken_up_and_left(agent: Agent, how: str) -> TurnResult:
    async with agent.open(CUSTOMER) as session:
        (turn,) = await session.resume_turns()
        await LEAVES[how](session)
        return await turn


@pytest.mark.parametrize("how", LEAVES)
async def test_a_turn_that_is_left_again_before_its_answer_is_continued_and_its_tool_runs_once(
    scripted: MakeScripted, sandbox: CliSandbox, work_url: str, how: str
) -> None:
    async with asyncio.timeout(2 * LIMIT), store_at(work_url) as store:
        agent, model = scripted(
            append(sandbox, "toolu_1"),
            say("Paid."),
            inbox=store.inbox(),
            policy=ASK_ALL,
            park=Park(after=0.2),
        )
        left: list[TurnResult] = []
        for _ in range(2):
            async with agent.open(CUSTOMER) as session:
                left.append(await (await session.send("pay", key=INVOICE)))
        left.append(await taken_up_and_left(agent, how))
        (ask,) = await store.inbox().list()
        had_run = paid(sandbox)
        await store.inbox().answer(ask, Allow(), by="ann")
        (done,) = await goes_on_when_ready(agent, store)

    assert [(each.outcome, each.waits_for) for each in left] == [("parked", (ask.id,))] * 3
    assert (had_run, paid(sandbox), len(model.asked)) == ("", "x\n", 2)
    assert (done.outcome, done.text) == ("completed", "Paid.")


async def test_a_sigterm_while_the_model_thinks_loses_nothing(
    scripted: MakeScripted, work_url: str
) -> None:
    agent, model = scripted(stall() + say("never"), say("Paid."))

    async with asyncio.timeout(2 * LIMIT), store_at(work_url) as store:
        async with another_host(agent, work_url, closes=True) as host:
            await asyncio.to_thread(model.wait_for_request, 1, LIMIT)
            host.terminate()
            status = await host.wait()
        (done,) = await goes_on_when_ready(Agent(agent.options, inbox=store.inbox()), store)

    assert status == 0
    assert (done.outcome, done.text) == ("completed", "Paid.")


def held(box: CliSandbox) -> Script:
    return until_paid(lambda id_: slow(box, id_))


def let_end(box: CliSandbox) -> None:
    (box.project / GO).touch()


@asynccontextmanager
async def answering(inbox: StoredInbox) -> AsyncGenerator[list[Ask]]:
    """A person who allows each ask; yields those that were answered."""
    asks: list[Ask] = []

    async def answer() -> None:
        async with aclosing(inbox.watch()) as watch:
            async for change in watch:
                if change.what == "opened":
                    asks.append(change.ask)
                    await inbox.answer(change.ask, Allow(), by="ben")

    person = asyncio.create_task(answer())
    try:
        yield asks
    finally:
        person.cancel()
        await asyncio.wait([person])


async def test_a_tool_that_ends_within_the_grace_of_a_sigterm_has_run_once(
    scripted: MakeScripted, sandbox: CliSandbox, work_url: str
) -> None:
    agent, _ = scripted(held(sandbox))

    async with asyncio.timeout(2 * LIMIT), store_at(work_url) as store:
        async with another_host(agent, work_url, closes=True) as host:
            await next_ask(store.inbox())
            await allow_all(store.inbox())
            await begun(sandbox)
            host.terminate()
            let_end(sandbox)
            status = await host.wait()
        had_run = lines_of(sandbox, DONE)
        async with answering(store.inbox()) as asked_again:
            (done,) = await goes_on(Agent(agent.options, inbox=store.inbox()), again=True)

    assert (status, had_run, asked_again) == (0, 1, [])
    assert (done.outcome, done.text) == ("completed", "Paid.")
    assert lines_of(sandbox, DONE) == 1


async def test_a_tool_that_takes_longer_than_the_grace_of_a_sigterm_is_asked_about_again(
    scripted: MakeScripted, sandbox: CliSandbox, work_url: str
) -> None:
    agent, _ = scripted(held(sandbox))

    async with asyncio.timeout(2 * LIMIT), store_at(work_url) as store:
        async with another_host(agent, work_url, closes=True, grace=0.1) as host:
            await next_ask(store.inbox())
            await allow_all(store.inbox())
            await begun(sandbox)
            host.terminate()
            status = await host.wait()
        let_end(sandbox)
        async with answering(store.inbox()) as asked_again:
            (done,) = await goes_on(Agent(agent.options, inbox=store.inbox()))

    (again,) = asked_again
    assert again.earlier is not None
    assert (status, again.earlier.by, again.earlier.answer) == (0, "ann", Allow())
    assert (done.outcome, done.text) == ("completed", "Paid.")
    assert (lines_of(sandbox, BEGUN), lines_of(sandbox, DONE)) == (2, 1)


@pytest.mark.parametrize("is_idempotent", [True, False])
async def test_only_a_tool_that_may_run_again_is_answered_again_in_silence(
    scripted: MakeScripted, work_url: str, *, is_idempotent: bool
) -> None:
    begun, never, ran = asyncio.Event(), asyncio.Event(), list[int]()

    @tool(idempotent=is_idempotent)
    async def pay(invoice: int) -> str:
        """Pay an invoice."""
        ran.append(invoice)
        if len(ran) == 1:
            begun.set()
            await never.wait()
        return "a receipt"

    async with asyncio.timeout(2 * LIMIT), store_at(work_url) as store:
        agent, _ = scripted(
            until_paid(lambda id_: call("mcp__functions__pay", invoice=7, id_=id_)),
            inbox=store.inbox(),
            functions=[pay],
            policy=Policy(ask_first("mcp__functions__pay")),
            park=Park(grace=0.1),
        )
        async with agent.open(CUSTOMER) as session:
            await session.send("pay", key=INVOICE)
            await next_ask(store.inbox())
            await allow_all(store.inbox())
            await begun.wait()
        async with answering(store.inbox()) as asked_again:
            (done,) = await goes_on(agent)

    assert (done.outcome, done.text, ran) == ("completed", "Paid.", [7, 7])
    assert [each.earlier and each.earlier.by for each in asked_again] == (
        [] if is_idempotent else ["ann"]
    )


async def used(path: Path) -> None:
    """Return once a host has used an answer."""

    def is_used() -> bool:
        with closing(sqlite3.connect(path)) as file:
            return bool(
                file.execute("SELECT 1 FROM steersman_asks WHERE used_mark <> ''").fetchone()
            )

    await until(is_used)


@pytest.mark.parametrize("otherwise", ["cli", "ask"], ids=["told", "held"])
@pytest.mark.parametrize("tool_name", ["Bash", "Write"])
async def test_only_what_the_policy_calls_repeatable_is_answered_again_after_a_kill(
    scripted: MakeScripted, sandbox: CliSandbox, tmp_path: Path, tool_name: str, otherwise: str
) -> None:
    """The host is killed once it has used the answer: its tool has begun, or not."""
    path = tmp_path / "work.db"
    url = f"sqlite://{path}"
    rules = f'repeatable = ["{tool_name}"]\notherwise = "{otherwise}"'
    agent, _ = scripted(held(sandbox))

    async with asyncio.timeout(2 * LIMIT), store_at(url) as store:
        async with another_host(agent, url, policy=rules) as host:
            await next_ask(store.inbox())
            await allow_all(store.inbox())
            await used(path)
            host.kill()
            await host.wait()
        let_end(sandbox)
        policy = Policy.from_toml(rules)
        async with answering(store.inbox()) as asked_again:
            (done,) = await goes_on(Agent(agent.options, inbox=store.inbox(), policy=policy))

    assert (done.outcome, done.text, lines_of(sandbox, DONE)) == ("completed", "Paid.", 1)
    assert [each.earlier and each.earlier.by for each in asked_again] == (
        [] if tool_name == "Bash" else ["ann"]
    )


@pytest.mark.parametrize("how", ["park", "aclose"])
async def test_the_tool_of_a_call_that_was_taken_up_exactly_is_given_the_grace_too(
    scripted: MakeScripted, sandbox: CliSandbox, work_url: str, how: str
) -> None:
    async with asyncio.timeout(2 * LIMIT), store_at(work_url) as store:
        agent, _ = scripted(held(sandbox), inbox=store.inbox(), policy=ASK_ALL)
        async with agent.open(CUSTOMER) as session:
            await session.send("pay", key=INVOICE)
            await next_ask(store.inbox())
            await session.park()
        await allow_all(store.inbox())
        async with agent.open(CUSTOMER) as session:
            (turn,) = await session.resume_turns()
            await begun(sandbox)
            leaving = asyncio.create_task(LEAVES[how](session))
            let_end(sandbox)
            await leaving
            left = await turn
        async with answering(store.inbox()) as asked_again:
            (done,) = await goes_on(agent, again=True)

    assert left.outcome in ("parked", "completed")
    assert (done.outcome, done.text, asked_again) == ("completed", "Paid.", [])
    assert (lines_of(sandbox, BEGUN), lines_of(sandbox, DONE)) == (1, 1)


@pytest.mark.soak
@pytest.mark.parametrize("delay", [number * 0.005 for number in range(20 if IS_SOAK else 4)])
async def test_an_answer_that_crosses_a_parking_is_not_lost(
    scripted: MakeScripted, sandbox: CliSandbox, work_url: str, delay: float
) -> None:
    async with asyncio.timeout(2 * LIMIT), store_at(work_url) as store:
        agent, _ = scripted(
            until_paid(lambda id_: append(sandbox, id_)), inbox=store.inbox(), policy=ASK_ALL
        )
        async with agent.open(CUSTOMER) as session:
            turn = await session.send("pay", key=INVOICE)
            ask = await next_ask(store.inbox())
            answer = asyncio.create_task(store.inbox().answer(ask, Allow(), by="ann"))
            # How far the answer has come when the session is left is what differs.
            await asyncio.sleep(delay)
            await session.park()
            left = await turn
            await answer
        async with answering(store.inbox()) as asked_again:
            (done,) = await goes_on(agent, again=True)

    assert left.outcome in ("parked", "completed")
    assert (done.outcome, done.text, asked_again) == ("completed", "Paid.", [])
    assert paid(sandbox) == "x\n"


@pytest.mark.parametrize("how", ["interrupt", "cancel"])
async def test_only_interrupt_and_cancel_end_a_turn_for_good(
    scripted: MakeScripted, sandbox: CliSandbox, work_url: str, how: str
) -> None:
    async with asyncio.timeout(2 * LIMIT), store_at(work_url) as store:
        agent, _ = scripted(append(sandbox, "toolu_1"), inbox=store.inbox(), policy=ASK_ALL)
        async with agent.open(CUSTOMER) as session:
            turn = await session.send("pay", key=INVOICE)
            await next_ask(store.inbox())
            await (session.interrupt() if how == "interrupt" else session.cancel())
            ended = await turn
        async with agent.open(CUSTOMER) as session:
            nothing = await session.resume_turns()
        left = await store.inbox().list()

    assert ended.outcome == ("interrupted" if how == "interrupt" else "cancelled")
    assert (nothing, left) == ([], [])
    assert paid(sandbox) == ""


async def test_a_call_that_has_ended_beside_one_that_waits_is_not_made_again(
    scripted: MakeScripted, sandbox: CliSandbox, work_url: str
) -> None:
    first, second = sandbox.project / "first", sandbox.project / "second"

    def step(request: ModelRequest) -> Step:
        conversation = str(request.body["messages"])
        missing = [each for each in (first, second) if f"receipt {each.name}" not in conversation]
        commands = [
            f"echo x >> {each}; echo receipt {each.name[:3]}''{each.name[3:]}" for each in missing
        ]
        return (
            calls(*(call("Bash", command=each) for each in commands)) if missing else say("Paid.")
        )

    async with asyncio.timeout(2 * LIMIT), store_at(work_url) as store:
        agent, _ = scripted(Script(*[step] * 8), inbox=store.inbox())
        async with agent.open(CUSTOMER) as session:
            await session.send("pay", key=INVOICE)
            await next_ask(store.inbox())
            await allow_all(store.inbox())
            await until(first.exists)
            await next_ask(store.inbox())
            await session.park()
        async with answering(store.inbox()) as asked_again:
            (done,) = await goes_on(agent)

    assert (done.outcome, done.text) == ("completed", "Paid.")
    assert [first.read_text(), second.read_text()] == ["x\n", "x\n"]
    assert len(asked_again) == 1


async def test_another_prompt_waits_behind_the_ask_of_a_parked_turn_and_says_so(
    scripted: MakeScripted, sandbox: CliSandbox, work_url: str
) -> None:
    async with asyncio.timeout(2 * LIMIT), store_at(work_url) as store:
        agent, _ = scripted(
            append(sandbox, "toolu_1"),
            say("Paid."),
            say("Else."),
            inbox=store.inbox(),
            policy=ASK_ALL,
        )
        async with agent.open(CUSTOMER) as session:
            await session.send("pay", key=INVOICE)
            asked = await next_ask(store.inbox())
            await session.park()
        async with agent.open(CUSTOMER) as session:
            turn = await session.send("something else")
            await until(lambda: turn.state == "behind_ask")
            shown = session.snapshot()
            await allow_all(store.inbox())
            other = await turn
            afterwards = session.snapshot().behind_ask
            (first,) = [await each for each in await session.resume_turns()]

    assert (shown.open_asks, shown.behind_ask) == ((asked.id,), (turn.uuid,))
    assert (afterwards, turn.state) == ((), "completed")
    assert (other.text, first.text, paid(sandbox)) == ("Else.", "Paid.", "x\n")


@pytest.mark.parametrize("kept", [0, 1, 2, 2.5])
async def test_a_conversation_of_which_the_cli_has_written_only_its_queue_is_begun_again(
    scripted: MakeScripted, sandbox: CliSandbox, work_url: str, kept: float
) -> None:
    """As it is left if the CLI is lost in the first moment: no CLI resumes that file."""
    async with asyncio.timeout(2 * LIMIT), store_at(work_url) as store:
        agent, model = scripted(stall() + say("never"), say("Paid."), inbox=store.inbox())
        async with agent.open(CUSTOMER) as session:
            left = await session.send("pay", key=INVOICE)
            await asyncio.to_thread(model.wait_for_request, 1, LIMIT)
            await stands_in_file(agent, '"type":"user"')
        (file,) = sandbox.config.glob(f"projects/*/{session.id}.jsonl")
        lines = file.read_bytes().splitlines(keepends=True)
        whole = int(kept)
        file.write_bytes(b"".join(lines[:whole]) + (lines[0][:9] if kept > whole else b""))
        (done,) = await goes_on(agent)

    assert [b'"queue-operation"' in each for each in lines[:3]] == [True, True, False]
    assert (await left).outcome == "parked"
    assert (done.outcome, done.text) == ("completed", "Paid.")
