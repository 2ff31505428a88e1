"""Asks in a store, on the stock CLI: the host is killed, and the next one goes on."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from steersman import Agent, Allow
from steersman.inbox import StoredInbox
from steersman.permissions import Ask
from steersman.stores import SqliteStore
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import Step, call, say
from tests.live.staging import LIMIT, MakeScripted, until
from tests.live.test_keys import ID, config_of, is_stored

pytestmark = pytest.mark.live

HOST = """\
import asyncio, json, sys
from steersman import Agent
from steersman.stores import SqliteStore

async def main():
    given = json.loads(sys.argv[1])
    inbox = SqliteStore(given.pop("store")).inbox()
    session = await Agent(inherit_env=False, inbox=inbox, **given).start()
    await (await session.send("pay", key="invoice 7"))

asyncio.run(main())
"""


@asynccontextmanager
async def another_host(agent: Agent, store: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """A host process that sends the prompt."""
    options = agent.options
    given = {
        "cwd": str(options.cwd),
        "cli_path": str(options.cli_path),
        "env": dict(options.env),
        "session_id": ID,
        "store": str(store),
    }
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", HOST, json.dumps(given))
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def write(box: CliSandbox, name: str, id_: str) -> Step:
    return call("Write", file_path=str(box.project / name), content="x", id_=id_)


async def next_ask(inbox: StoredInbox) -> Ask:
    watch = inbox.watch()
    change = await anext(watch)
    await watch.aclose()
    return change.ask


async def test_a_tool_that_was_allowed_after_its_host_was_killed_runs_once_in_the_next_host(
    scripted: MakeScripted, sandbox: CliSandbox, tmp_path: Path
) -> None:
    path = tmp_path / "asks.db"
    agent, model = scripted(
        write(sandbox, "paid", "toolu_1"), write(sandbox, "paid", "toolu_2"), say("Paid.")
    )

    async with asyncio.timeout(2 * LIMIT), SqliteStore(path) as store:
        inbox = store.inbox()
        async with another_host(agent, path) as host:
            ask = await next_ask(inbox)
            await until(lambda: is_stored("toolu_1", config_of(agent.options.env)))
            host.kill()
            await host.wait()
        outcome = await inbox.answer(ask, Allow(), by="ann", seen=ask.digest)
        had_run = (sandbox.project / "paid").exists()
        async with Agent(options=agent.options).session(
            resume=ID, inbox=SqliteStore(path).inbox()
        ) as session:
            paid = await (await session.send("pay", key="invoice 7"))
        left = await inbox.list()

    assert (outcome.how, ask.tool_name, had_run) == ("answered", "Write", False)
    assert (paid.outcome, paid.text, left) == ("completed", "Paid.", [])
    assert (sandbox.project / "paid").read_text() == "x"
    assert "toolu_2" in model.asked[-1].tool_results
