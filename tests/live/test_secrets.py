"""Secrets reach the CLI, and nobody else: no command line, log, error or journal."""

from __future__ import annotations

import asyncio
import logging
import traceback
from pathlib import Path
from typing import Any

import pytest

from steersman import Session
from steersman.errors import SteersmanError
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import call, say
from tests.live.staging import LIMIT, MakeScripted, entries_of, processes, words_of

pytestmark = pytest.mark.live

ENV, HEADER, SERVER_ENV, SETTING, HELPER = (
    f"s3cret-{place}-0123456789" for place in ("env", "header", "server", "setting", "helper")
)
LOUD = """#!/bin/sh
env
env >&2
for each in "$@"; do cat "${each#*=}" >&2; done
exit 1
"""
SECRETS = (ENV, HEADER, SERVER_ENV, SETTING, HELPER)


def private_options() -> dict[str, Any]:
    return {
        "mcp_servers": {
            "far": {
                "type": "http",
                "url": "http://127.0.0.1:9/mcp",
                "headers": {"Authorization": f"Bearer {HEADER}"},
            },
            "near": {"command": "false", "env": {"DATABASE_PASSWORD": SERVER_ENV}},
        },
        "settings": {"env": {"SETTINGS_TOKEN": SETTING, "OTHER": HELPER}},
    }


def told_in(text: str) -> list[str]:
    return [secret for secret in SECRETS if secret in text]


def told_on_command_lines() -> list[str]:
    lines = b"\n".join(cmdline for _, cmdline, _ in processes())
    return told_in(lines.decode(errors="replace"))


async def told_in_journal(session: Session) -> list[str]:
    entries = await entries_of(session)
    # What the model itself says, and what its tools print, is the conversation.
    ours = [each for each in entries if each.kind.value in ("sent", "control", "fault", "phase")]
    return told_in(b"\n".join(each.line + repr(each.details).encode() for each in ours).decode())


async def test_secrets_stay_where_they_were_put(
    scripted: MakeScripted, sandbox: CliSandbox, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    seen_by_bash = "echo $MY_API_TOKEN $SETTINGS_TOKEN | wc -c"
    agent, _model = scripted(
        call("Bash", command=seen_by_bash, id_="bash_1"),
        lambda request: say(request.tool_results["bash_1"].strip()),
        env={"MY_API_TOKEN": ENV, "MCP_TIMEOUT": "1000"},
        allowed_tools=["Bash"],
        **private_options(),
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        before = told_on_command_lines()
        turn = await session.send("look")
        result = await turn
        status = await session.control("mcp_status")
        during = told_on_command_lines()
        journal = await told_in_journal(session)

    # They are there: one reached Bash, the other came by the settings.
    assert result.text == str(len(ENV) + len(SETTING) + 2)
    assert {server["name"] for server in status["mcpServers"]} == {"far", "near"}
    assert before == during == []
    assert journal == []
    assert told_in(caplog.text) == []
    assert told_in(repr(agent.options) + repr(session) + repr(turn)) == []


async def test_secrets_stand_in_no_error(
    scripted: MakeScripted, sandbox: CliSandbox, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    loud = sandbox.root / "claude"
    loud.write_text(LOUD)
    loud.chmod(0o755)
    broken: list[dict[str, Any]] = [
        {"cli_path": loud},
        {"extra_args": {"no-such-flag": ENV}},
        {"resume": "unknown"},
    ]

    for options in broken:
        agent, _model = scripted(env={"MY_API_TOKEN": ENV}, **private_options(), **options)
        with pytest.raises(SteersmanError) as caught:
            async with asyncio.timeout(LIMIT), agent.session() as session:
                pytest.fail(f"started: {session.id}")
        shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value.evidence)
        assert told_in(shown) == []
        assert caught.value.evidence.argv

    assert told_in(caplog.text) == []


async def test_private_files_are_private_and_go_with_the_cli(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    agent, _model = scripted(env={"MCP_TIMEOUT": "1000"}, **private_options())

    async with asyncio.timeout(LIMIT), agent.session() as session:
        values = [word.partition("=")[2] for word in words_of(session.pid)]
        files = [Path(value) for value in values if value.endswith(".json")]
        modes = {path.name: path.stat().st_mode & 0o777 for path in files}
        folder = {path.parent.stat().st_mode & 0o777 for path in files}

    assert modes == {"mcp.json": 0o600, "settings.json": 0o600}
    assert folder == {0o700}
    assert [path for path in files if path.exists()] == []
