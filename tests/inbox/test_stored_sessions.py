"""Sessions whose asks are in a store, on a scripted CLI."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from steersman import Agent, Allow
from steersman.journal import Kind
from steersman.stores import SqliteStore
from steersman.testing.request import ModelRequest
from steersman.testing.script import Script, Step, call, say
from steersman.testing.scripted.cli import ScriptedCLI
from tests._session.peers import entries_of
from tests.inbox.places import LIMIT, listed

SECRET = "hunter2-hunter2"


class Shell:
    """A tool that keeps its inputs."""

    def __init__(self) -> None:
        self.inputs: list[Any] = []

    def __call__(self, tool_input: Any) -> str:
        self.inputs.append(dict(tool_input))
        return "done"


async def test_known_secrets_are_not_stored_and_the_tool_gets_them(tmp_path: Path) -> None:
    path, shell = tmp_path / "asks.db", Shell()
    script = Script(call("Bash", command=f"login {SECRET}"), say("In."))
    transport = ScriptedCLI(script, tools={"Bash": shell})

    async with asyncio.timeout(LIMIT), SqliteStore(path) as store:
        inbox = store.inbox()
        agent = Agent(transport=transport, inbox=inbox, env={"SHOP_TOKEN": SECRET})
        async with agent.session() as session:
            turn = await session.send("log in")
            ask = (await anext(inbox.watch())).ask
            await inbox.answer(ask, Allow(), by="ann", seen=ask.digest)
            result = await turn

    assert (result.text, shell.inputs) == ("In.", [{"command": f"login {SECRET}"}])
    assert ask.tool_input == {"command": "login [redacted]"}
    with closing(sqlite3.connect(path)) as file, file:
        assert SECRET not in str(file.execute("SELECT * FROM steersman_asks").fetchall())


async def test_a_store_that_is_away_is_one_fault_in_the_journal(tmp_path: Path) -> None:
    folder, shell = tmp_path / "here", Shell()
    folder.mkdir()

    def go(_: ModelRequest) -> Step:
        # The turn is stored by now; its ask is not.
        folder.rename(tmp_path / "away")
        return call("Bash", command="make it")

    transport = ScriptedCLI(Script(go, say("Done.")), tools={"Bash": shell})

    async with asyncio.timeout(LIMIT), SqliteStore(folder / "asks.db") as store:
        inbox = store.inbox()
        async with Agent(transport=transport, inbox=inbox).session() as session:
            turn = await session.send("go")
            async for entry in session.journal():
                if getattr(entry, "kind", None) is Kind.FAULT:
                    break
            had_run = list(shell.inputs)
            (tmp_path / "away").rename(folder)
            ask = (await anext(inbox.watch())).ask
            await inbox.answer(ask, Allow(), by="ann")
            result = await turn
        faults = [each for each in await entries_of(session) if each.kind is Kind.FAULT]

    assert (had_run, result.text, len(shell.inputs)) == ([], "Done.", 1)
    assert [each.details["where"] for each in faults] == ["inbox"]


@pytest.mark.parametrize("ends", ["interrupt", "close"])
async def test_an_ask_is_closed_by_an_interrupt_and_kept_by_the_end_of_its_session(
    tmp_path: Path, ends: str
) -> None:
    transport = ScriptedCLI(
        Script(call("Bash", command="make it"), say("Done.")), tools={"Bash": Shell()}
    )

    async with asyncio.timeout(LIMIT), SqliteStore(tmp_path / "asks.db") as store:
        inbox = store.inbox()
        async with Agent(transport=transport, inbox=inbox).session() as session:
            await session.send("go")
            watch = inbox.watch()
            await anext(watch)
            if ends == "interrupt":
                await session.interrupt()
                assert (await anext(watch)).what == "closed"
            await watch.aclose()
        left = await listed(inbox)

    assert len(left) == (1 if ends == "close" else 0)
