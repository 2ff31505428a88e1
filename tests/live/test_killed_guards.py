"""A guard that is killed takes the whole tree with it, and every prompt settles once."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections import Counter

import pytest

from steersman import Session
from steersman.errors import SteersmanError
from steersman.journal import Kind
from steersman.options import Revival
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import Answer, Script, call, echo
from steersman.transports import kernel
from tests.live.staging import LIMIT, MakeScripted, entries_of, is_alive, until

pytestmark = [
    pytest.mark.live,
    pytest.mark.soak,
    pytest.mark.skipif(not kernel.IS_LINUX, reason="there the tools of a killed guard run on"),
]

KILLS = 50 if os.environ.get("STEERSMAN_SOAK") else 0
PATIENT = Revival(backoff=0.01, most=10)
TOOL = "echo $$ >> pids; [ -e flag ] || { touch flag; sleep 60; }"


def guards_of(pid: int) -> list[int]:
    """Return the processes between this one and a CLI, the nearest to the CLI first."""
    found: list[int] = []
    row = kernel.row_of(pid)
    while row is not None and row[1] not in (0, 1, os.getpid()):
        found.append(row[1])
        row = kernel.row_of(row[1])
    return found


def kill_guard(session: Session, which: str) -> None:
    """Kill one process of the guard, or all, before any of them can act."""
    assert session.pid is not None
    found = guards_of(session.pid)
    chosen = {"guard": found[:1], "server": found[-1:], "all": found}[which]
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for each in chosen:
            kernel.send_signal(each, number)


async def settlements(session: Session) -> Counter[str]:
    entries = await entries_of(session)
    return Counter(uuid for each in entries if each.kind is Kind.SETTLED for uuid in each.turns)


@pytest.mark.parametrize("which", ["guard", "all"])
async def test_a_tool_does_not_outlive_a_killed_guard_and_the_turn_is_completed(
    scripted: MakeScripted, sandbox: CliSandbox, which: str
) -> None:
    agent, _model = scripted(
        call("Bash", command=TOOL), echo, allowed_tools=["Bash"], revive=PATIENT
    )
    pids = sandbox.project / "pids"

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turn = await session.send("work")
        await until((sandbox.project / "flag").exists)
        kill_guard(session, which)
        await until(lambda: session.state != "running")
        old = [int(line) for line in pids.read_text().split()]
        # A CLI that is being replaced: the one before it is gone, with its tools.
        assert not any(map(is_alive, old))
        result = await turn

        assert result.outcome == "completed"
        assert await settlements(session) == {turn.uuid: 1}


@pytest.mark.skipif(not KILLS, reason="make soak")
@pytest.mark.timeout(1200)
async def test_kills_at_any_time_leave_no_prompt_unsettled_and_no_process(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    steps: list[Answer] = [call("Bash", command="sleep 0.3; echo done"), echo]
    for number in range(KILLS):
        chance = random.Random(number)
        agent, _model = scripted(
            Script(*steps * 20),
            allowed_tools=["Bash"],
            revive=PATIENT,
        )
        pids: list[int] = []
        async with asyncio.timeout(LIMIT), agent.session() as session:
            turns = [await session.send(f"work {number}.{each}") for each in range(2)]
            await asyncio.sleep(chance.random() * 2)
            assert session.pid is not None
            pids += [row[0] for row in kernel.below(os.getpid())]
            kill_guard(session, chance.choice(["guard", "server", "all"]))
            for turn in turns:
                try:
                    await turn
                except SteersmanError as error:
                    raise AssertionError(f"kill {number}") from error
            counted = await settlements(session)
        assert counted == {turn.uuid: 1 for turn in turns}, number
        await asyncio.sleep(0)
        assert not any(map(is_alive, pids)), number
