"""Whoever dies, and whenever: nobody of the tree is left, nothing hangs, nothing goes on."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from steersman import tool
from steersman.agent import Session
from steersman.errors import ChannelError, CliExited, TurnFailed
from steersman.testing.model import ScriptedModel
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import Script, call, say, stall
from steersman.transports import kernel
from tests.live.staging import LIMIT, MakeScripted, inhabitants, is_alive, until, vanished

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc"),
]

HOST = """
import asyncio, json, sys
from steersman import Agent

async def main(options):
    async with Agent(allowed_tools=["Bash"], **options).session() as session:
        turn = await session.send("work")
        await turn

asyncio.run(main(json.loads(sys.argv[1])))
"""


def dawdling(box: CliSandbox) -> str:
    """A command that says that it runs, waits in a child of its own, and would leave a trace."""
    return f"touch {box.project}/started; (sleep 1.5; touch {box.project}/effect) & sleep 30"


async def test_a_host_that_is_killed_takes_the_whole_tree_along(
    sandbox: CliSandbox, cli: Path
) -> None:
    script = Script(call("Bash", command=dawdling(sandbox)), say("never"))
    with ScriptedModel(script) as model:
        options = {
            "cwd": str(sandbox.project),
            "cli_path": str(cli),
            "inherit_env": False,
            "env": sandbox.env(model.url),
        }
        host = start_host(options)
        try:
            async with asyncio.timeout(LIMIT):
                # The host, the CLI, the shell, what it started, and what that did.
                await until(lambda: len(inhabitants(sandbox.root)) >= 5)
            asked = len(model.requests)
        finally:
            host.kill()
            host.wait(LIMIT)

        left = await vanished(sandbox.root, within=1)
        async with asyncio.timeout(LIMIT):
            await outlive(1.5)

        assert left == {}
        assert not (sandbox.project / "effect").exists()
        assert len(model.requests) == asked


def start_host(options: Mapping[str, Any]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", HOST, json.dumps(options)],
        env={"PYTHONPATH": os.pathsep.join(sys.path), "PATH": "/usr/bin:/bin"},
    )


async def outlive(seconds: float) -> None:
    """Wait until a clock that was started with the tool has run out: its effect is due by now."""
    await asyncio.sleep(seconds)


async def test_a_session_closed_during_a_tool_takes_the_tool_along(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    agent, model = scripted(
        call("Bash", command=dawdling(sandbox)), say("never"), allowed_tools=["Bash"]
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turn = await session.send("work")
        queued = await session.send("and then")
        await until((sandbox.project / "started").exists)
        async with asyncio.timeout(3):
            await session.aclose()
        left = inhabitants(sandbox.root)
        results = [await turn, await queued]

    assert left == {}
    # We ask the CLI to stop before we end it; it may or may not still tell that it did.
    assert results[0].outcome in ("interrupted", "cancelled")
    assert results[1].outcome == "cancelled"
    assert session.state == "completed"
    assert session.pid is None or not is_alive(session.pid)
    assert len(model.asked) == 1


async def test_a_session_closed_during_a_stalled_answer_does_not_wait_for_it(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    agent, _model = scripted(say("half") + stall())

    async with asyncio.timeout(LIMIT / 2):
        async with agent.session() as session:
            turn = await session.send("talk")
            await anext(turn.text())
        result = await turn

    assert inhabitants(sandbox.root) == {}
    assert result.outcome in ("interrupted", "cancelled")
    assert result.text == "half"


async def test_a_session_closed_during_a_python_tool_cancels_it(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    running, fate = asyncio.Event(), list[str]()

    @tool
    async def dawdle() -> str:
        """Take very long."""
        running.set()
        try:
            await asyncio.sleep(LIMIT)
        finally:
            fate.append("ended")
        return "done"

    agent, _model = scripted(call("mcp__functions__dawdle"), say("never"), functions=[dawdle])

    async with asyncio.timeout(LIMIT / 2):
        async with agent.session() as session:
            await session.send("work")
            await running.wait()

    assert fate == ["ended"]
    assert inhabitants(sandbox.root) == {}


@pytest.mark.skipif(not kernel.IS_LINUX, reason="there the tools of a killed CLI run on")
async def test_a_cli_that_is_killed_fails_its_turns_and_says_how(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    agent, _model = scripted(
        say("I start.") + call("Bash", command=dawdling(sandbox)),
        say("never"),
        allowed_tools=["Bash"],
        revive=False,
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turn = await session.send("work")
        queued = await session.send("and then")
        await until((sandbox.project / "started").exists)
        assert session.pid is not None
        os.kill(session.pid, signal.SIGKILL)
        async with asyncio.timeout(2):
            results = [await turn, await queued]
        left = inhabitants(sandbox.root)
        with pytest.raises(ChannelError) as caught:
            await session.send("anyone there?")

    assert left == {}
    assert [each.outcome for each in results] == ["failed", "failed"]
    assert results[0].text == "I start."
    cause = results[0].cause
    assert type(cause) is CliExited
    assert (cause.evidence.phase, cause.evidence.status) == ("turn", -signal.SIGKILL)
    assert "signal 9" in str(cause)
    assert "resume" in cause.hint
    assert type(caught.value) is CliExited
    assert session.state == "failed"


async def test_a_request_that_the_cli_takes_to_its_grave_is_lost_and_not_waited_for(
    scripted: MakeScripted,
) -> None:
    agent, _model = scripted(stall(), revive=False)

    async with asyncio.timeout(LIMIT / 2), agent.session() as session:
        turn = await session.send("talk")
        await turn.begun()
        assert session.pid is not None
        os.kill(session.pid, signal.SIGSTOP)
        asking = asyncio.create_task(session.control("get_session_cost"))
        stopping = asyncio.create_task(turn.interrupt())
        await asyncio.sleep(0)
        os.kill(session.pid, signal.SIGKILL)
        errors = await asyncio.gather(asking, stopping, return_exceptions=True)
        result = await turn

    assert [getattr(each, "code", None) for each in errors] == ["request_lost", "request_lost"]
    assert result.outcome == "failed"


async def test_a_start_that_is_cancelled_leaves_nobody_behind(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    agent, _model = scripted()

    for pause in (0.0, 0.05, 0.2):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(pause), agent.session():
                await asyncio.sleep(LIMIT)
        assert inhabitants(sandbox.root) == {}


async def test_a_query_that_is_left_early_ends_its_cli(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    agent, _model = scripted(
        say("a") + call("Bash", command="true"), stall(), allowed_tools=["Bash"]
    )

    async with asyncio.timeout(LIMIT):
        async with agent.query("talk") as messages:
            async for _message in messages:
                break
        left = inhabitants(sandbox.root)

    assert left == {}


async def test_a_query_that_is_forgotten_ends_its_cli_with_a_warning(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    agent, _model = scripted(
        say("a") + call("Bash", command="true"), stall(), allowed_tools=["Bash"]
    )

    async with asyncio.timeout(LIMIT):
        holder = [agent.query("talk")]
        await anext(holder[0])
        with pytest.warns(ResourceWarning, match="unclosed Query"):
            holder.clear()
        left = await vanished(sandbox.root, within=3)

    assert left == {}


async def test_a_query_whose_cli_is_killed_for_good_raises_what_run_raises(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    agent, _model = scripted(say("half") + stall(), revive=False)

    async def kill(session: Session) -> None:
        await until(lambda: session.state == "running")
        assert session.pid is not None
        os.kill(session.pid, signal.SIGKILL)

    async with asyncio.timeout(LIMIT):
        query = agent.query("talk")
        killing = asyncio.create_task(kill(query.session))
        with pytest.raises(TurnFailed) as failed:
            _ = [message async for message in query]
        await killing
        left = inhabitants(sandbox.root)

    assert isinstance(failed.value.__cause__, CliExited)
    assert left == {}


async def test_a_close_that_nobody_waits_for_is_done_all_the_same(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    agent, _model = scripted(say("half") + stall())

    async with asyncio.timeout(LIMIT):
        session = await agent.start("talk")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(session.aclose(), 0)
        left = await vanished(sandbox.root, within=3)
        await session.aclose()
        await session.aclose()

    assert left == {}
    assert session.state == "completed"


def test_a_loop_that_ends_closes_what_was_left_open(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    agent, _model = scripted(say("half") + stall())
    kept: list[object] = []

    async def forget_to_close() -> None:
        async with asyncio.timeout(LIMIT):
            session = await agent.start("talk")
            await until(lambda: session.state == "running")
        kept.append(session)

    asyncio.run(forget_to_close())

    assert kept
    assert inhabitants(sandbox.root) == {}
