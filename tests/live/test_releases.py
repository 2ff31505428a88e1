"""Releases in the middle of the range, and what is otherwise on them.

2.1.285 to 2.1.301 start in `auto` mode when no mode is given, and then run what a callback would
deny: each entry point is tried on two of them, with a callback and without one. Their results do
not say what a turn of a resumed conversation has cost.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import steersman
from steersman import TurnResult
from steersman.compat import ClaudeAgentOptions, PermissionResultDeny, ResultError, query
from steersman.errors import CliNotFound
from steersman.journal.replaying import replay
from steersman.options import Revival
from steersman.permissions import Deny
from steersman.testing.cli_releases import find_cli
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import Script, Step, call, say, stall
from tests.live.staging import LIMIT, MakeScripted, entries_of

pytestmark = pytest.mark.live

HELPER: dict[str, Any] = {
    "description": "d",
    "prompt": "help out",
    "subagent_type": "general-purpose",
    "run_in_background": False,
}

Play = Callable[["Stage"], Awaitable[None]]


@pytest.fixture(params=[pytest.param("2.1.290", marks=pytest.mark.ci_only), "2.1.300"])
def release(request: pytest.FixtureRequest) -> Path:
    """The CLI of a release; where npm could not fetch it, the test is skipped, and says so."""
    try:
        return find_cli(request.param)
    except CliNotFound as error:
        pytest.skip(f"THE CLI {request.param} IS NOT TESTED: {error.what}")


class Stage:
    """A release on the scripted model, and the file that must not be written."""

    def __init__(
        self, scripted: MakeScripted, sandbox: CliSandbox, release: Path, *, asks: bool
    ) -> None:
        self.file = sandbox.project / "written.txt"
        self.asked: list[str] = []
        self.options: dict[str, Any] = {"cli_path": release}
        self.asks = asks
        if asks:
            self.options["can_use_tool"] = self._deny
        self.make = partial(scripted, **self.options)

    @property
    def write(self) -> Step:
        return call("Write", file_path=str(self.file), content="x", id_="toolu_write")

    def _deny(self, tool: str, *_: object) -> Deny:
        self.asked.append(tool)
        return Deny("not today")

    async def deny_officially(self, tool: str, *_: object) -> PermissionResultDeny:
        self.asked.append(tool)
        return PermissionResultDeny(message="not today")


async def by_run(stage: Stage) -> None:
    agent, _ = stage.make(stage.write, say("done"))
    await agent.run("write")


async def by_query(stage: Stage) -> None:
    agent, _ = stage.make(stage.write, say("done"))
    fields = ("cli_path", "cwd", "env", "inherit_env", "can_use_tool")
    given = {name: getattr(agent.options, name) for name in fields}
    async for _message in steersman.query("write", **given):
        pass


async def by_session(stage: Stage) -> None:
    agent, _ = stage.make(stage.write, say("done"))
    async with agent.session() as session:
        await (await session.send("write"))


async def by_subagent(stage: Stage) -> None:
    script = Script(call("Agent", **HELPER), say("done"), strict=True)
    script.branch("help out", stage.write, say("helped"))
    agent, _ = stage.make(script)
    async with agent.session() as session:
        await (await session.send("go"))


async def by_resumed(stage: Stage) -> None:
    agent, _ = stage.make(say("hello"), stage.write, say("done"))
    async with agent.session() as first:
        await (await first.send("hello"))
    async with agent.session(resume=first.id) as second:
        await (await second.send("write"))


async def by_forked(stage: Stage) -> None:
    agent, _ = stage.make(say("hello"), stage.write, say("done"))
    async with agent.session() as session:
        await (await session.send("hello"))
        async with session.fork() as branch:
            await (await branch.send("write"))


async def by_restarted(stage: Stage) -> None:
    agent, model = stage.make(stall(), stage.write, say("done"), revive=Revival(backoff=0.01))
    async with agent.session() as session:
        turn = await session.send("write")
        await asyncio.to_thread(model.wait_for_request, 1, LIMIT)
        assert session.pid is not None
        os.kill(session.pid, signal.SIGKILL)
        await turn
    assert session.restarts == 1


async def by_compat(stage: Stage) -> None:
    agent, _ = stage.make(stage.write, say("done"))
    options = ClaudeAgentOptions(
        cli_path=agent.options.cli_path,
        cwd=agent.options.cwd,
        env=dict(agent.options.env),
        can_use_tool=stage.deny_officially if stage.asks else None,
    )

    async def prompts() -> Any:
        yield {"type": "user", "message": {"role": "user", "content": "write"}}

    with suppress(ResultError):
        async for _message in query(prompt=prompts(), options=options):
            pass


ENTRIES: dict[str, Play] = {
    "run": by_run,
    "query": by_query,
    "session": by_session,
    "subagent": by_subagent,
    "resumed": by_resumed,
    "forked": by_forked,
    "restarted": by_restarted,
    "compat": by_compat,
}


@pytest.mark.parametrize("asks", [True, False], ids=["callback", "none"])
@pytest.mark.parametrize("entry", ENTRIES)
async def test_a_release_with_another_default_runs_nothing_unasked(
    entry: str, *, asks: bool, scripted: MakeScripted, sandbox: CliSandbox, release: Path
) -> None:
    stage = Stage(scripted, sandbox, release, asks=asks)

    async with asyncio.timeout(LIMIT):
        await ENTRIES[entry](stage)

    assert not stage.file.exists()
    assert stage.asked == (["Write"] if asks else [])


async def test_a_turn_costs_the_same_in_a_resumed_and_in_a_restarted_cli(
    scripted: MakeScripted, release: Path
) -> None:
    steps = (say("one"), say("two"), say("three"), say("four"))
    agent, _ = scripted(*steps, cli_path=release, revive=Revival(backoff=0.01))
    results: list[TurnResult] = []

    async with asyncio.timeout(LIMIT):
        async with agent.session() as first:
            results += [await (await first.send(each)) for each in ("a", "b")]
        async with agent.session(resume=first.id) as resumed:
            results.append(await (await resumed.send("c")))
            assert resumed.pid is not None
            os.kill(resumed.pid, signal.SIGKILL)
            results.append(await (await resumed.send("d")))
            entries = await entries_of(resumed)

    costs = [each.cost_usd for each in results]
    assert costs == [pytest.approx(costs[0], rel=0.2)] * 4
    assert [sum(m.output_tokens for m in each.model_usage.values()) for each in results] == [
        *(each.usage.output_tokens for each in results)
    ]
    assert resumed.restarts == 1
    assert replay(entries).snapshot.stats.cost_usd == pytest.approx(resumed.cost_usd)
    assert resumed.cost_usd == pytest.approx(costs[2] + costs[3])
