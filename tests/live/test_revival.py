"""A CLI that dies is replaced, and every prompt is answered exactly once."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from steersman import Allow, Session, Turn, tool
from steersman.errors import CliExited
from steersman.hooks import HookAnswer, Hooks, PreToolUse, deny
from steersman.journal import Kind
from steersman.options import Revival
from steersman.permissions import PermissionContext
from steersman.testing.faults import FaultPlan, FaultyTransport, Kill
from steersman.testing.model import ScriptedModel
from steersman.testing.older_cli import find_older_cli
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import Script, Step, call, say, stall, when
from steersman.transports.subprocess import SubprocessTransport
from tests.live.staging import (
    LIMIT,
    MakeScripted,
    collect,
    entries_of,
    first_words,
    inhabitants,
    until,
)

pytestmark = pytest.mark.live

QUICK = Revival(backoff=0.01)


def kill(session: Session) -> None:
    """Kill the CLI as the kernel would; its tools are left to us."""
    assert session.pid is not None
    os.kill(session.pid, signal.SIGKILL)


async def settlements(session: Session) -> Counter[str]:
    """How often each prompt was settled."""
    entries = await entries_of(session)
    return Counter(uuid for each in entries if each.kind is Kind.SETTLED for uuid in each.turns)


async def restarts(session: Session) -> list[tuple[str, int]]:
    """Why a CLI was replaced, and which attempt it was."""
    return [
        (each.details["cause"], each.details["attempt"])
        for each in await entries_of(session)
        if each.kind is Kind.RESTARTED
    ]


async def states(session: Session) -> list[str]:
    """Everything that the session was, one after the other."""
    return [
        each.details["after"] for each in await entries_of(session) if each.kind is Kind.PHASE
    ]


# --- Six points of a turn --------------------------------------------------------------


async def once_written(_turn: Turn, _model: ScriptedModel, _flag: Path) -> None:
    """Right behind the prompt: nothing of it can be on the disk."""


async def once_asked(_turn: Turn, model: ScriptedModel, _flag: Path) -> None:
    """The model was asked and has not said a word."""
    await asyncio.to_thread(model.wait_for_request)


async def in_text(turn: Turn, _model: ScriptedModel, _flag: Path) -> None:
    """In the middle of what it writes."""
    await first_words(turn, "Half")


async def in_tool(_turn: Turn, _model: ScriptedModel, flag: Path) -> None:
    """While its tool runs."""
    await until(flag.exists)


async def after_tool(_turn: Turn, model: ScriptedModel, _flag: Path) -> None:
    """The tool is done, and the model was told."""
    await asyncio.to_thread(model.wait_for_request, 2)


async def after_result(turn: Turn, _model: ScriptedModel, _flag: Path) -> None:
    """The turn is over."""
    await turn


Point = Callable[[Turn, ScriptedModel, Path], Awaitable[None]]
WAIT = "[ -e flag ] || { touch flag; sleep 60; }"
POINTS: Sequence[tuple[Point, list[Step], str]] = [
    (once_written, [say("All.")], "All."),
    (once_asked, [stall(), say("All.")], "All."),
    (in_text, [say("Half ") + stall(), say("Half and all.")], "Half and all."),
    (in_tool, [call("Bash", command=WAIT), say("All.")], "All."),
    (after_tool, [call("Bash", command="echo hi"), stall(), say("All.")], "All."),
    (after_result, [say("All.")], "All."),
]


@pytest.mark.parametrize(("point", "steps", "text"), POINTS, ids=[p.__name__ for p, *_ in POINTS])
@pytest.mark.parametrize("is_first", [True, False], ids=["first", "second"])
async def test_killed_at_any_point_of_a_turn_each_prompt_is_answered_once(
    scripted: MakeScripted,
    sandbox: CliSandbox,
    point: Point,
    steps: list[Step],
    text: str,
    *,
    is_first: bool,
) -> None:
    before = [] if is_first else [say("Warm.")]
    agent, model = scripted(
        *before, *steps, when("and then", say("Behind.")), allowed_tools=["Bash"], revive=QUICK
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        for _ in before:
            await (await session.send("warm up"))
        asked_before = len(model.asked)
        turn, queued = await session.send("go"), await session.send("and then")
        await point(turn, model, sandbox.project / "flag") if is_first else await point_in(
            point, turn, model, asked_before, sandbox.project / "flag"
        )
        kill(session)
        done, behind = await turn, await queued
        pieces = "".join(await collect(turn.text()))

    assert (done.outcome, done.text, pieces) == ("completed", text, text), (done.cause, done.cause and done.cause.__cause__)
    assert (behind.outcome, behind.text) == ("completed", "Behind.")
    assert (await settlements(session))[turn.uuid] == 1
    assert (await settlements(session))[queued.uuid] == 1
    assert (session.restarts, await restarts(session)) == (1, [("cli_exited", 1)])
    assert "starting" in (await states(session))[1:]
    model.script.assert_complete()


async def point_in(
    point: Point, turn: Turn, model: ScriptedModel, asked: int, flag: Path
) -> None:
    """The same point in a later turn."""
    if point in (once_asked, after_tool):
        await asyncio.to_thread(model.wait_for_request, asked + (1 if point is once_asked else 2))
    else:
        await point(turn, model, flag)
