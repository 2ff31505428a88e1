"""The matrix of guards on the scripted CLI: mode by kind of guard by failure."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from steersman.permissions import Allow
from steersman.permissions.policy import Policy, ask
from steersman.testing.script import Script, call, say
from steersman.testing.scripted.cli import ScriptedCLI
from tests._session.peers import opened
from tests.guard_matrix import KINDS, MODES, answering, commands, options_of

LIMIT = 30.0

pytestmark = pytest.mark.filterwarnings(
    "ignore::steersman.options.conflicts.ShadowedCallbackWarning"
)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
async def test_no_tool_runs_whatever_the_mode_the_guard_and_its_failure(
    kind: str, mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    ran: list[str] = []
    given = commands(kind)
    steps = [call("Bash", command=each, id_=f"t{n}") for n, each in enumerate(given)]
    cli = ScriptedCLI(
        Script(*steps, say("done")), tools={"Bash": lambda sent: ran.append(sent["command"])}
    )
    options = options_of(kind)

    with caplog.at_level(logging.CRITICAL):
        answers = asyncio.ensure_future(answering(options.get("inbox")))
        async with opened(cli, limit=LIMIT, permission_mode=mode, **options) as session:
            settled = await (await session.send("go"))
        answers.cancel()

    assert ran == []
    assert settled.text == "done"
    assert len({id_ for each in cli.asked for id_ in each.tool_results}) == len(given)


@pytest.mark.parametrize("mode", MODES)
async def test_the_stage_lets_a_tool_run_that_every_guard_allows(mode: str) -> None:
    ran: list[Any] = []
    script = Script(call("Bash", command="touch x"), say("done"))
    cli = ScriptedCLI(script, tools={"Bash": ran.append})
    policy = Policy(ask("Bash"))

    async with opened(
        cli, permission_mode=mode, policy=policy, can_use_tool=lambda *_: Allow()
    ) as session:
        await (await session.send("go"))

    # In `dontAsk` the CLI denies what it would ask about. In `bypassPermissions` it may run an
    # asked write unasked, so the policy denies it.
    assert len(ran) == (mode not in ("dontAsk", "bypassPermissions"))
