"""What the parity page says is kept as data, or done in another way, is so."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from scripts.parity_report import ours
from scripts.parity_report.command import catalogue
from steersman import Agent, Options
from steersman._launch.environment import environment
from steersman._launch.plan import plan
from steersman._struct import read
from steersman.control import Settings
from steersman.control.handshake import Initialized
from steersman.control.mcp import McpServerStatus
from steersman.errors import UsageError
from steersman.hooks import Hooks, SessionEnd, Stop
from steersman.hooks.registry import NEVER_CALLED
from steersman.messages import Assistant, User
from steersman.messages.content import ToolResultBlock, ToolUseBlock, UnknownBlock
from steersman.messages.parsing import parse_message
from steersman.options import StartupLimits
from steersman.testing.script import Script, stall
from steersman.testing.scripted.cli import ScriptedCLI


def blocks_of(kind: str, *blocks: dict[str, Any]) -> list[Any]:
    message = parse_message({"type": kind, "message": {"role": kind, "content": list(blocks)}})
    assert isinstance(message, Assistant | User)
    return list(message.content)


def test_a_block_without_a_class_keeps_all_that_was_sent() -> None:
    for kind in ("mid_conv_system", "mcp_tool_listing"):
        sent = {"type": kind, "text": "x", "deep": {"a": [1]}}

        (block,) = blocks_of("assistant", sent)

        assert isinstance(block, UnknownBlock)
        assert (block.type, block.raw) == (kind, sent)


def test_what_is_inside_a_tool_result_stays_a_mapping() -> None:
    inside = {"type": "tool_reference", "tool_name": "mcp__x__y"}

    (block,) = blocks_of("user", {"type": "tool_result", "tool_use_id": "t", "content": [inside]})

    assert isinstance(block, ToolResultBlock)
    assert block.content == [inside]


def test_the_input_of_a_tool_of_a_server_stays_a_mapping() -> None:
    given = {"any": {"key": [1, None]}}
    use = {"type": "tool_use", "id": "t", "name": "mcp__x__y", "input": given}

    (block,) = blocks_of("assistant", use)

    assert isinstance(block, ToolUseBlock)
    assert block.typed() == given


def test_what_a_stop_hook_gets_of_tasks_and_schedules_stays_a_mapping() -> None:
    task, cron = {"task_id": "t", "more": 1}, {"id": "c", "more": 2}

    event = read(Stop, json.dumps({"background_tasks": [task], "session_crons": [cron]}).encode())

    assert (event.background_tasks, event.session_crons) == ([task], [cron])


def test_the_reason_of_the_end_of_a_session_is_any_text() -> None:
    event = read(SessionEnd, b'{"hook_event_name":"SessionEnd","reason":"brand_new"}')

    assert event.reason == "brand_new"


def test_every_declared_event_has_a_class() -> None:
    declared = {each["event"] for each in catalogue()["hooks"]}

    assert declared <= ours.events().keys()


def test_events_that_the_cli_never_calls_back_for_are_refused() -> None:
    for event in NEVER_CALLED:
        with pytest.raises(UsageError):
            Hooks().on(event)


def test_errors_in_settings_are_mappings_of_their_answer() -> None:
    error = {"file": "settings.json", "path": "a.b", "message": "wrong"}

    answer = read(Settings, json.dumps({"errors": [error]}).encode())

    assert answer.errors == [error]


def test_where_a_server_comes_from_is_in_its_raw() -> None:
    sent = {"name": "x", "status": "connected", "provenance": {"kind": "plugin"}}

    status = read(McpServerStatus, json.dumps(sent).encode())

    assert status.raw["provenance"] == {"kind": "plugin"}


def test_capabilities_that_nothing_uses_are_in_the_answer_to_initialize() -> None:
    answer = read(Initialized, b'{"capabilities":["interrupt_send_now_v1","brand_new_v9"]}')

    assert answer.capabilities == ["interrupt_send_now_v1", "brand_new_v9"]


def test_the_configuration_of_a_server_reaches_the_cli_as_it_is() -> None:
    server = {"type": "http", "url": "https://x.example", "tools": [{"name": "t", "policy": "ask"}]}

    found = plan(
        Options(mcp_servers={"x": server}), program="claude", host_env={}, new_session_id="n"
    )

    assert json.loads(found.launch.files["mcp.json"])["mcpServers"] == {"x": server}


def test_neither_the_version_of_another_sdk_nor_the_directory_is_a_variable_of_the_cli() -> None:
    host = {"CLAUDE_AGENT_SDK_VERSION": "0.2.182", "PWD": "/somewhere", "PATH": "/bin"}

    made = environment(host, None, {})

    assert made["PATH"] == "/bin"
    assert {"CLAUDE_AGENT_SDK_VERSION", "PWD"}.isdisjoint(made)


def test_how_long_a_start_may_take_is_an_option_and_no_variable() -> None:
    limits = StartupLimits(initialize=5)
    host = {"CLAUDE_CODE_STREAM_CLOSE_TIMEOUT": "1"}

    assert Options(startup=limits).startup.initialize == 5
    assert "CLAUDE_CODE_STREAM_CLOSE_TIMEOUT" not in environment(host, None, {})


async def test_a_cancelled_task_is_a_cancelled_error() -> None:
    cli = ScriptedCLI(Script(stall()))
    run = asyncio.create_task(Agent(transport=cli).run("go"))
    await cli.wait_for_stall()

    run.cancel()

    with pytest.raises(asyncio.CancelledError):
        await run
