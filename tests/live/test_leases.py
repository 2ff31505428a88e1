"""One owner of a conversation in a store, on the stock CLI."""

from __future__ import annotations

import asyncio
import os
import signal
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from steersman import Agent, Allow
from steersman.errors import SessionInUse
from steersman.stores import PostgresStore, SqliteStore
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import say
from tests.live.durable import CUSTOMER, another_host, append, next_ask, paid
from tests.live.staging import LIMIT, MakeScripted, inhabitants, is_alive, until

pytestmark = pytest.mark.live

LEASE = 2.0


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> SqliteStore | PostgresStore:
    if request.param == "sqlite":
        return SqliteStore(tmp_path / "work.db")
    return PostgresStore(request.getfixturevalue("postgres_url"))


async def test_of_two_openers_one_learns_who_has_the_conversation_and_until_when(
    scripted: MakeScripted, store: SqliteStore | PostgresStore
) -> None:
    async with asyncio.timeout(LIMIT), store:
        agent, _ = scripted(say("Hello."), inbox=store.inbox())
        async with agent.open(CUSTOMER) as session:
            with pytest.raises(SessionInUse) as refused:
                await agent.open(CUSTOMER)
            still = await session.run("go on")
        async with agent.open(CUSTOMER) as again:
            pass

    assert f"process {os.getpid()} on " in refused.value.owner
    assert refused.value.until is not None
    assert (still.text, again.id) == ("Hello.", session.id)


async def test_a_conversation_that_the_cli_has_chosen_is_owned_too(
    scripted: MakeScripted, tmp_path: Path
) -> None:
    async with asyncio.timeout(LIMIT), SqliteStore(tmp_path / "work.db") as store:
        agent, _ = scripted(say("one"), say("two"), inbox=store.inbox())
        async with agent.session() as session:
            await session.run("first")
            before = session.id
            await (await session.command("/clear"))
            await session.run("second")
            cleared = session.id
            for each in (before, cleared):
                with pytest.raises(SessionInUse):
                    await agent.start(resume=each)
        async with agent.session(continue_conversation=True) as continued:
            with pytest.raises(SessionInUse):
                await agent.start(resume=cleared)

    assert before != cleared
    assert continued.id == cleared


async def test_a_stopped_owner_loses_its_cli_and_does_nothing_when_it_wakes_up(
    scripted: MakeScripted, sandbox: CliSandbox, tmp_path: Path
) -> None:
    path = tmp_path / "work.db"
    agent, model = scripted(append(sandbox, "toolu_1"), append(sandbox, "toolu_2"), say("Paid."))

    async with asyncio.timeout(2 * LIMIT), SqliteStore(path) as store:
        inbox = store.inbox()
        async with another_host(agent, f"sqlite://{path}", lease=LEASE, errors=PIPE) as host:
            ask = await next_ask(inbox)
            (cli,) = [pid for pid, words in inhabitants(sandbox.root).items() if is_cli(words)]
            host.send_signal(signal.SIGSTOP)
            await until(lambda: not is_alive(cli))
            await inbox.answer(ask, Allow(), by="ann")
            async with Agent(agent.options, inbox=inbox, wait=2 * LEASE).open(CUSTOMER) as session:
                host.send_signal(signal.SIGCONT)
                _, said = await host.communicate()
                (turn,) = await session.resume_turns()
                done = await turn

    assert said.decode().strip().endswith("failed: lease_lost")
    assert (done.outcome, done.text, len(model.asked)) == ("completed", "Paid.", 3)
    assert paid(sandbox) == "x\n"


def is_cli(words: str) -> bool:
    return "--input-format" in words and "guard" not in words
