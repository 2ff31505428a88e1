"""Asks in a store, on the stock CLI: the host is killed, and the next one goes on."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from examples import answer_later
from steersman import Agent, Allow
from steersman.journal import Kind
from steersman.journal.decisions import ask_of
from steersman.options import Revival
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import say
from tests.live import durable
from tests.live.durable import (
    CUSTOMER,
    INVOICE,
    allow_all,
    append,
    goes_on_when_ready,
    next_ask,
    paid,
    stands_in_file,
    store_at,
    write,
)
from tests.live.staging import LIMIT, MakeScripted, entry_where, until
from tests.live.test_keys import config_of, is_stored

pytestmark = pytest.mark.live

IS_SOAK = bool(os.environ.get("STEERSMAN_SOAK"))

HOST = """\
import asyncio, json, sys
from examples import answer_later
from steersman import Agent
from tests.live.durable import store_at

given = json.loads(sys.argv[1])
inbox = store_at(given.pop("store")).inbox()
asyncio.run(answer_later.work(Agent(inherit_env=False, inbox=inbox, **given), "pay"))
"""


@asynccontextmanager
async def another_host(agent: Agent, store: str) -> AsyncGenerator[asyncio.subprocess.Process]:
    """A host process that does the work."""
    options = agent.options
    given = {
        "cwd": str(options.cwd),
        "cli_path": str(options.cli_path),
        "env": dict(options.env),
        "store": store,
    }
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", HOST, json.dumps(given))
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@pytest.mark.soak_only
async def test_a_tool_that_was_allowed_after_its_host_was_killed_runs_once_in_the_next_host(
    scripted: MakeScripted, sandbox: CliSandbox, work_url: str
) -> None:
    agent, model = scripted(write(sandbox, "toolu_1"), write(sandbox, "toolu_2"), say("Paid."))

    async with asyncio.timeout(2 * LIMIT), store_at(work_url) as store:
        async with another_host(agent, work_url) as host:
            ask = await next_ask(store.inbox())
            await until(lambda: is_stored("toolu_1", config_of(agent.options.env)))
            host.kill()
            await host.wait()
        answered = await answer_later.answer(store.inbox(), lambda _: Allow(), by="ann")
        had_run = (sandbox.project / "paid").exists()
        async with store_at(work_url) as own:
            paid = await answer_later.work(Agent(agent.options, inbox=own.inbox()), "pay")
        left = await store.inbox().list()

    assert (ask.tool_name, answered, had_run) == ("Write", 1, False)
    assert (paid.outcome, paid.text, left) == ("completed", "Paid.", [])
    assert (sandbox.project / "paid").read_text() == "x"
    assert list(model.asked[-1].tool_results)[-1:] == ["toolu_2"]


@pytest.mark.soak
@pytest.mark.parametrize("_round", range(20 if IS_SOAK else 1))
@pytest.mark.parametrize("moment", ["before it is in the file", "in the file", "answered"])
async def test_a_worker_that_was_killed_is_continued_by_one_that_finds_it_ready(
    scripted: MakeScripted, sandbox: CliSandbox, work_url: str, moment: str, _round: int
) -> None:
    agent, model = scripted(append(sandbox, "toolu_1"), append(sandbox, "toolu_2"), say("Paid."))

    async with asyncio.timeout(2 * LIMIT), store_at(work_url) as store:
        async with durable.another_host(agent, work_url, lease=1.0) as host:
            await next_ask(store.inbox())
            if moment != "before it is in the file":
                await stands_in_file(agent, "toolu_1")
            if moment == "answered":
                # Stopped: a host that uses the answer and is killed leaves an ask that opens again.
                host.send_signal(signal.SIGSTOP)
                await allow_all(store.inbox())
            host.kill()
            await host.wait()
        await allow_all(store.inbox())
        had_run = paid(sandbox)
        async with store_at(work_url) as own:
            next_agent = Agent(agent.options, inbox=own.inbox())
            (done,) = await goes_on_when_ready(next_agent, own)
            async with next_agent.open(CUSTOMER) as third:
                nothing = await third.resume_turns()
                again = await (await third.send("pay", key=INVOICE))
        left = await store.inbox().list()

    assert (had_run, paid(sandbox), left, nothing) == ("", "x\n", [], [])
    assert (done.outcome, done.text, done.uuid) == ("completed", "Paid.", again.uuid)
    assert (again.outcome, again.text) == ("completed", "Paid.")
    assert list(model.asked[-1].tool_results)[-1:] == ["toolu_2"]


async def test_an_ask_stays_the_same_when_its_cli_is_replaced(
    scripted: MakeScripted, sandbox: CliSandbox, work_url: str
) -> None:
    async with asyncio.timeout(2 * LIMIT), store_at(work_url) as store:
        inbox = store.inbox()
        agent, _ = scripted(
            write(sandbox, "toolu_1"), write(sandbox, "toolu_2"), say("Paid."), inbox=inbox
        )
        async with agent.session(revive=Revival(backoff=0.01)) as session:
            turn = await session.send("pay")
            ask = await next_ask(inbox)
            await until(lambda: is_stored("toolu_1", config_of(agent.options.env)))
            assert session.pid is not None
            os.kill(session.pid, signal.SIGKILL)
            asked = [
                await entry_where(session, lambda each: each.kind is Kind.ASKED),
                await entry_where(session, lambda each: "toolu_2" in str(each.details)),
            ]
            await inbox.answer(ask, Allow(), by="ann", seen=ask.digest)
            paid = await turn

    assert [each.details["id"] == ask.id for each in asked] == [True, False]
    assert ask_of(asked[0]) == ask
    assert (paid.outcome, paid.text) == ("completed", "Paid.")
    assert (sandbox.project / "paid").read_text() == "x"
