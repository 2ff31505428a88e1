"""The matrix of guards on the scripted CLI: mode by kind of guard by failure.

In each mode the guards fail in a fresh session, after the CLI was killed while one of each kind was
asked and was replaced, and in another session that resumes the conversation.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterable

import pytest

from steersman.agent import Agent
from steersman.options import PermissionMode, Revival
from steersman.testing.faults import VirtualClockLoop
from steersman.testing.script import Script, Step, calls, say
from steersman.testing.scripted.cli import ScriptedCLI
from tests.guard_matrix import KINDS, MODES, Cell, Guards, cells, results_in

LIMIT = 3600.0
"""Seconds of virtual time."""

PLAYED = ("default", "bypassPermissions") if "STEERSMAN_QUICK" in os.environ else MODES
"""`make quick` and `make mutate` play two modes."""

REVIVE = Revival(most=99, backoff=0.0)
KILLED = [Cell(kind, "kills", "fresh") for kind in KINDS if kind != "rule"]

pytestmark = pytest.mark.filterwarnings(
    "ignore::steersman.options.conflicts.ShadowedCallbackWarning"
)


def together(found: Iterable[Cell]) -> Step:
    return calls(*(cell.step for cell in found))


@pytest.mark.parametrize("mode", PLAYED)
def test_no_tool_runs_whatever_the_mode_the_guard_and_its_failure(
    mode: PermissionMode, caplog: pytest.LogCaptureFixture
) -> None:
    fresh, resumed = cells("fresh"), cells("resumed")
    revived = [cells("revived", each.kind) for each in KILLED]
    steps = [together(fresh), say("done")]
    for killed, again in zip(KILLED, revived, strict=True):
        steps += [killed.step, together(again), say("done")]
    ran: list[str] = []
    cli = ScriptedCLI(
        Script(*steps, together(resumed), say("done")),
        tools={"Bash": lambda sent: ran.append(sent["command"])},
    )
    guards = Guards(kill=cli.exit)

    async def story() -> None:
        agent = Agent(transport=cli, permission_mode=mode, revive=REVIVE, **guards.options())
        async with asyncio.timeout(LIMIT), agent.session() as session:
            assert (await (await session.send("go"))).text == "done"
            for number, _ in enumerate(KILLED, 1):
                assert (await (await session.send("go"))).text == "done"
                assert session.restarts == number
        async with asyncio.timeout(LIMIT), agent.session(resume=session.id) as later:
            await (await later.send("go"))

    with caplog.at_level(logging.CRITICAL), asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
        runner.run(story())

    played = [*fresh, *(cell for each in revived for cell in each), *resumed]
    assert sorted(ran) == sorted(cell.command for cell in played if cell.works)
    assert results_in(cli.asked).keys() == {cell.name for cell in played}
    assert {*guards.asked} >= {*KILLED, *(cell for cell in played if cell.kind != "rule")}
