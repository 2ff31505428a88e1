"""A conversation goes on in another process, and behind another command."""

from __future__ import annotations

import asyncio

import pytest

from steersman import tool
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import call, calls, say
from steersman.transports.command import CommandTransport
from tests.live.staging import LIMIT, MakeScripted, words_of

pytestmark = pytest.mark.live


async def test_a_closed_conversation_can_be_resumed_continued_and_forked(
    scripted: MakeScripted,
) -> None:
    agent, model = scripted(say("Hello, Ann."), say("Ann."), say("Still Ann."), say("Ann there."))

    async with asyncio.timeout(LIMIT):
        async with agent.session() as first:
            one = await (await first.send("I am Ann."))
        async with agent.session(resume=first.id) as second:
            two = await (await second.send("Who am I?"))
        async with agent.session(continue_conversation=True) as third:
            three = await (await third.send("And now?"))
        async with agent.session(resume=first.id, fork_session=True) as fourth:
            four = await (await fourth.send("And in the fork?"))

    assert [each.text for each in (one, two, three, four)] == [
        "Hello, Ann.",
        "Ann.",
        "Still Ann.",
        "Ann there.",
    ]
    assert first.id == second.id == third.id != fourth.id
    said = [str(request.body["messages"]) for request in model.asked]
    assert all("I am Ann." in each and "Hello, Ann." in each for each in said[1:])
    assert all("Who am I?" in each for each in said[2:])
    assert two.cost_usd == pytest.approx(one.cost_usd, rel=0.5)


async def test_a_cli_behind_a_command_runs_whole_turns(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    @tool
    def add(a: float, b: float) -> float:
        """Add two numbers."""
        return a + b

    file = sandbox.project / "file"
    agent, model = scripted(
        calls(
            call("mcp__functions__add", a=2, b=3, id_="add"),
            call("Write", file_path=str(file), content="written", id_="write"),
        ),
        say("five"),
        functions=[add],
        permission_mode="acceptEdits",
        mcp_servers={"private": {"command": "false", "env": {"PASSWORD": "s3cret-0123"}}},
        settings={"env": {"FROM_SETTINGS": "yes"}},
    )

    async with asyncio.timeout(LIMIT):
        async with agent.session(transport=CommandTransport(("env",), local=True)) as session:
            command = " ".join(words_of(session.pid))
            result = await (await session.send("add and write"))

    assert (result.outcome, result.text) == ("completed", "five")
    assert float(model.asked[-1].tool_results["add"]) == 5
    assert file.read_text() == "written"
    assert "--settings=" in command
    assert "s3cret" not in command


async def test_a_cli_behind_a_far_shell_runs_whole_turns(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    """`env -i` stands for a far machine: nothing of ours is there but what we send over."""
    agent, _model = scripted(
        call("Bash", command="echo $FROM_SETTINGS > file; pwd", id_="bash_1"),
        lambda request: say(request.tool_results["bash_1"]),
        allowed_tools=["Bash"],
        settings={"env": {"FROM_SETTINGS": "yes"}},
    )
    home = {name: agent.options.env[name] for name in ("HOME", "CLAUDE_CONFIG_DIR", "TMPDIR")}
    transport = CommandTransport(
        ("env", "-i", "PATH=/usr/bin:/bin"), program=str(agent.options.cli_path), env=home
    )

    async with asyncio.timeout(LIMIT), agent.session(transport=transport) as session:
        result = await (await session.send("write"))

    assert (result.outcome, result.text) == ("completed", str(sandbox.project))
    assert (sandbox.project / "file").read_text() == "yes\n"
    assert list(sandbox.tmp.glob("steersman-*")) == []
