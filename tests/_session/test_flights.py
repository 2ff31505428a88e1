"""What is saved when a turn fails, and who hears of it first."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from steersman.agent import Agent
from steersman.errors import StartupExited, SteersmanError
from steersman.journal import Kind
from steersman.testing.faults import rounds
from steersman.testing.script import Script, call, say, stall
from steersman.testing.scripted.cli import Faults, ScriptedCLI
from tests._session.peers import entries_of, opened


def saved_in(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_bytes()) for path in sorted(folder.iterdir())]


async def test_a_turn_that_fails_is_saved_with_what_came_before(tmp_path: Path) -> None:
    cli, heard = ScriptedCLI(Script(say("half") + stall())), list[SteersmanError]()
    options: dict[str, Any] = {"flight_recorder": tmp_path, "revive": False}

    async with opened(cli, **options) as session:
        session.on("error", heard.append)
        turn = await session.send("go")
        await cli.wait_for_stall()
        cli.exit(9)
        cause = (await turn).cause

    (found, *_) = saved_in(tmp_path)
    assert cause in heard
    assert found["error"]["type"] == type(cause).__name__
    assert found["session_id"] == session.id
    assert [each["after"] for each in found["states"]][:3] == ["starting", "idle", "running"]
    assert found["sent"][-1]["frame"]["message"]["content"] == "go"


async def test_a_session_that_does_not_fail_saves_nothing(tmp_path: Path) -> None:
    async with opened(ScriptedCLI(Script(say("fine"))), flight_recorder=tmp_path) as session:
        await (await session.send("go"))

    assert saved_in(tmp_path) == []


async def test_whoever_listens_has_heard_of_a_failed_start_when_it_is_raised() -> None:
    heard: list[str] = []
    session = Agent(transport=ScriptedCLI(faults=Faults(exit_at="initialize"))).session()
    for event in ("error", "complete"):

        async def hear(_: object, event: str = event) -> None:
            await rounds(50)
            heard.append(event)

        session.on(event, hear)

    async with asyncio.timeout(5):
        with pytest.raises(StartupExited):
            await session.start()

    assert sorted(heard) == ["complete", "error"]


async def test_a_tool_that_fails_is_in_the_journal_without_the_text_of_its_error() -> None:
    def boom() -> None:
        """Fail."""
        raise ZeroDivisionError("a secret")

    async with opened(
        ScriptedCLI(Script(call("mcp__functions__boom"), say("done"))),
        functions=[boom],
        allowed_tools=["mcp__functions__boom"],
    ) as session:
        await (await session.send("go"))

    failed = [each.details for each in await entries_of(session) if each.kind is Kind.TOOL_FAILED]
    assert failed == [{"tool": "boom", "error": "ZeroDivisionError", "reason": ""}]
