"""What lies around on a machine reaches the agent only when it is asked for."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from steersman import Agent
from steersman.messages import Init
from steersman.testing.model import ScriptedModel
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import call, say
from tests.live.staging import LIMIT, MakeScripted, environ_of

pytestmark = pytest.mark.live

SERVER = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        tools = [{"name": "CANARY_TOOL", "inputSchema": {"type": "object"}}]
        answers = {
            "initialize": {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "canary", "version": "1"},
            },
            "tools/list": {"tools": tools},
        }
        result = answers.get(asked["method"], {})
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""

CANARIES = {
    "CANARY_HOST_ENV",
    "CANARY_USER_SETTINGS",
    "CANARY_PROJECT_SETTINGS",
    "CANARY_USER_MEMORY",
    "CANARY_PROJECT_MEMORY",
    "CANARY_USER_SERVER",
    "CANARY_PROJECT_SERVER",
}


@pytest.fixture
def canaries(sandbox: CliSandbox) -> None:
    """One bird in every place that the CLI knows how to look into."""
    server = {"command": "/usr/bin/env", "args": ["python3", "-c", SERVER]}
    write(sandbox.config / "CLAUDE.md", "Remember CANARY_USER_MEMORY.")
    write(sandbox.project / "CLAUDE.md", "Remember CANARY_PROJECT_MEMORY.")
    write(
        sandbox.config / "settings.json",
        {"env": {"BIRD_1": "CANARY_USER_SETTINGS"}, "permissions": {"allow": ["Bash(touch:*)"]}},
    )
    write(
        sandbox.project / ".claude" / "settings.json",
        {
            "env": {"BIRD_2": "CANARY_PROJECT_SETTINGS"},
            "permissions": {"deny": ["Bash(rm:*)"]},
            "enableAllProjectMcpServers": True,
        },
    )
    write(
        sandbox.config / ".claude.json",
        {
            "mcpServers": {"CANARY_USER_SERVER": server},
            "projects": {
                str(sandbox.project): {
                    "hasTrustDialogAccepted": True,
                    "enabledMcpjsonServers": ["CANARY_PROJECT_SERVER"],
                }
            },
        },
    )
    write(sandbox.project / ".mcp.json", {"mcpServers": {"CANARY_PROJECT_SERVER": server}})


def write(path: Path, content: str | dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch, sandbox: CliSandbox) -> None:
    """This process, made safe to inherit from: no login, no home but the sandbox, one bird."""
    for name in list(os.environ):
        if not name.startswith("PYTEST_"):
            monkeypatch.delenv(name)
    for name, value in sandbox.env("http://127.0.0.1:9").items():
        monkeypatch.setenv(name, value)
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("BIRD_0", "CANARY_HOST_ENV")
    monkeypatch.setenv("CLAUDECODE", "1")


BIRDS = "env | grep -o 'CANARY_[A-Z_]*' | sort"


async def seen_by(agent: Agent, model: ScriptedModel, **options: Any) -> tuple[set[str], Init]:
    """The birds that the model heard of, itself or through Bash; and how the turn began."""
    async with asyncio.timeout(LIMIT), agent.session(**options) as session:
        turn = await session.send("look around")
        result = await turn
        inits = [each async for each in turn.messages() if isinstance(each, Init)]
    assert (result.outcome, result.text) == ("completed", "seen")
    said = json.dumps([request.body for request in model.asked])
    return {bird for bird in CANARIES if bird in said}, inits[0]


@pytest.mark.usefixtures("canaries", "host")
async def test_by_default_the_agent_sees_none_of_it(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    agent, model = scripted(
        call("Bash", command=BIRDS),
        call("Bash", command="touch made-by-a-user-rule"),
        say("seen"),
        allowed_tools=["Bash(env:*)", "Bash(grep:*)", "Bash(sort:*)"],
        inherit_env=None,
    )

    birds, init = await seen_by(agent, model)

    assert birds == set()
    assert init.mcp_servers == []
    assert init.cwd == str(sandbox.project)
    # What the user's own rules would allow was asked for, and nobody said yes.
    assert not (sandbox.project / "made-by-a-user-rule").exists()


@pytest.mark.usefixtures("canaries", "host")
async def test_what_is_asked_for_is_seen(scripted: MakeScripted, sandbox: CliSandbox) -> None:
    agent, model = scripted(
        call("Bash", command=BIRDS),
        call("Bash", command="touch made-by-a-user-rule"),
        say("seen"),
        allowed_tools=["Bash(env:*)", "Bash(grep:*)", "Bash(sort:*)"],
        inherit_env=("BIRD_0",),
        setting_sources=("user", "project"),
        strict_mcp_config=False,
    )

    birds, init = await seen_by(agent, model)

    servers = {server["name"] for server in init.mcp_servers}
    assert servers == {"CANARY_USER_SERVER", "CANARY_PROJECT_SERVER"}
    assert birds | servers == CANARIES
    assert (sandbox.project / "made-by-a-user-rule").exists()


@pytest.mark.usefixtures("canaries", "host")
async def test_each_source_can_be_asked_for_alone(scripted: MakeScripted) -> None:
    expected: dict[str, tuple[dict[str, Any], set[str]]] = {
        "user": (
            {"setting_sources": ("user",)},
            {"CANARY_USER_SETTINGS", "CANARY_USER_MEMORY"},
        ),
        "project": (
            {"setting_sources": ("project",)},
            {"CANARY_PROJECT_SETTINGS", "CANARY_PROJECT_MEMORY"},
        ),
        "all variables": ({"inherit_env": True}, {"CANARY_HOST_ENV"}),
        "by a pattern": ({"inherit_env": ("BIRD_*",)}, {"CANARY_HOST_ENV"}),
    }
    seen: dict[str, set[str]] = {}

    for name, (options, _) in expected.items():
        agent, model = scripted(
            call("Bash", command=BIRDS), say("seen"), allowed_tools=["Bash"], inherit_env=None
        )
        seen[name], _init = await seen_by(agent, model, **options)

    assert seen == {name: birds for name, (_, birds) in expected.items()}


@pytest.mark.usefixtures("host")
async def test_the_cli_does_not_think_that_it_runs_inside_another(scripted: MakeScripted) -> None:
    command = "tr '\\0' '\\n' </proc/$PPID/environ | grep -c '^CLAUDECODE=' || true"
    agent, model = scripted(
        call("Bash", command=command, id_="bash_1"),
        lambda request: say(request.tool_results["bash_1"]),
        allowed_tools=["Bash"],
        inherit_env=True,
    )

    async with asyncio.timeout(LIMIT):
        result = await agent.run("look")

    assert result.text == "0"
    assert model.asked


async def test_states_are_reported_without_the_variable_of_older_clis(
    scripted: MakeScripted,
) -> None:
    agent, _model = scripted(say("one"))
    agent = Agent(
        agent.options.replace(
            env={**agent.options.env, "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS": "0"}
        )
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await (await session.send("hi"))
        assert await session.wait_idle(LIMIT)
    lines = [json.loads(line) async for line in session.raw()]

    told = [each["state"] for each in lines if each.get("subtype") == "session_state_changed"]
    assert told[-2:] == ["running", "idle"]


@pytest.mark.usefixtures("host")
async def test_the_environment_is_the_list_and_nothing_else(scripted: MakeScripted) -> None:
    agent, _model = scripted(inherit_env=None)

    async with asyncio.timeout(LIMIT), agent.session() as session:
        names = set(environ_of(session.pid))

    own = {
        "CLAUDE_CODE_ENTRYPOINT",
        "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS",
        "CLAUDE_CODE_SDK_READS_SESSION_STATE",
        "CLAUDE_CODE_STARTUP_FAILURE_RESULTS",
        "CLAUDE_CODE_DISABLE_AUTO_MEMORY",
        "STEERSMAN_TREE",
    }
    assert names == own | set(agent.options.env)


async def test_the_label_of_the_entry_point_is_one_that_the_cli_knows(
    scripted: MakeScripted,
) -> None:
    ours, of_ours = scripted(say("hello"), client_app="mine/1.0")
    other, of_other = scripted(say("hello"), env={"CLAUDE_CODE_ENTRYPOINT": "mine"})

    async with asyncio.timeout(LIMIT):
        await ours.run("hi")
        await other.run("hi")

    (sent,) = (each for each in of_ours.requests if each.model_request)
    (changed,) = (each for each in of_other.requests if each.model_request)
    assert "(external, sdk-py, client-app/mine/1.0)" in sent.headers["user-agent"]
    assert "(external, mine)" in changed.headers["user-agent"]
    # What a label that it does not know does to the prompt of the stock CLI.
    assert "claude-code-guide" not in json.dumps(sent.body)
    assert "claude-code-guide" in json.dumps(changed.body)
