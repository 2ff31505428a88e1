"""Matchers mean to the CLI what they mean to us."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from steersman.hooks import matches
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import call, calls, say, when
from steersman_conformance.hosting import mcp_server
from steersman_conformance.stage import Stage
from tests.hooks.test_matchers import NAMES, TABLE
from tests.live.staging import LIMIT

pytestmark = pytest.mark.live

BROKEN = ("(Write", "[", "*rite", "(?i)write")
MATCHERS = (*TABLE, *BROKEN)


def registered(matcher: str | None, number: int) -> dict[str, Any]:
    given: dict[str, Any] = {"hookCallbackIds": [str(number)]}
    return given if matcher is None else {**given, "matcher": matcher}


async def test_the_cli_calls_the_hooks_that_we_say_match(cli: Any, sandbox: CliSandbox) -> None:
    stage = Stage(str(cli), sandbox, LIMIT)
    uses = (
        call("Write", file_path=str(sandbox.project / "a"), content="x"),
        call("Bash", command="true"),
        call("Agent", description="d", prompt="sub go", subagent_type="general-purpose"),
        call("mcp__lab__work", n=1),
        call("mcp__lab__do-it", n=1),
    )
    hooks = {"PreToolUse": [registered(each, n) for n, each in enumerate(MATCHERS)]}

    async with (
        asyncio.timeout(LIMIT),
        stage.cli(
            when("sub go", say("sub done")),
            calls(*uses),
            say("done"),
            answers={"mcp_message": mcp_server(names=("work", "do-it"))},
        ) as raw,
    ):
        await raw.initialize(hooks=hooks, sdkMcpServers=["lab"])
        await raw.prompt("go")

    called = [frame["request"] for frame in raw.asked("hook_callback")]
    seen = {
        matcher: {each["input"]["tool_name"] for each in called if each["callback_id"] == str(n)}
        for n, matcher in enumerate(MATCHERS)
    }
    assert seen == {
        matcher: set() if matcher in BROKEN else {each for each in NAMES if matches(matcher, each)}
        for matcher in MATCHERS
    }
