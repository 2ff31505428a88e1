"""Options, hooks and tools of the official form on the stock CLI."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import steersman.compat as claude_agent_sdk
from steersman.compat import (
    ClaudeAgentOptions,
    HookMatcher,
    Message,
    ToolResultBlock,
    UserMessage,
    query,
)
from steersman.testing.model import ScriptedModel
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import Answer, Script, call, say
from tests.live.staging import LIMIT

pytestmark = pytest.mark.live


class Stage:
    """Runs prompts with official options; the CLI lives in a sandbox."""

    def __init__(self, sandbox: CliSandbox, cli: Path, models: ExitStack) -> None:
        self._sandbox, self._cli, self._models = sandbox, cli, models

    async def run(self, *steps: Answer, **fields: Any) -> list[Message]:
        model = self._models.enter_context(ScriptedModel(Script(*steps, strict=True)))
        env, place = self._sandbox.env(model.url), self._sandbox.project
        options = ClaudeAgentOptions(cli_path=self._cli, cwd=place, env=env, **fields)
        async with asyncio.timeout(LIMIT):
            return [each async for each in query(prompt="go", options=options)]


@pytest.fixture
def stage(sandbox: CliSandbox, cli: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    for name in set(os.environ) - {"PATH", "PYTEST_CURRENT_TEST"}:
        monkeypatch.delenv(name)
    with ExitStack() as models:
        yield Stage(sandbox, cli, models)


@pytest.mark.filterwarnings("ignore::steersman.compat.options.TranslationWarning")
async def test_hooks_that_steersman_would_refuse_run_as_the_cli_reads_them(stage: Stage) -> None:
    """The official package calls the same ones, but neither at the start nor at the end."""
    called: list[str] = []

    def on(name: str, **fields: Any) -> HookMatcher:
        async def hook(*_: Any) -> Any:
            called.append(name)
            return {}

        return HookMatcher(hooks=[hook], **fields)

    hooks = {
        "NoSuchEvent": [on("unknown")],
        "PreToolUse": [
            on("bad pattern", matcher="("),
            on("no time", matcher="Bash", timeout=0),
            on("JavaScript", matcher="^Ba(?<rest>sh)$"),
        ],
        "Stop": [on("Stop", matcher="x")],
        "SessionStart": [on("SessionStart")],
        "SessionEnd": [on("SessionEnd")],
    }
    echo = call("Bash", command="echo hi", description="d")
    await stage.run(echo, say("done"), allowed_tools=["Bash, Read", ""], hooks=hooks)

    assert called == ["SessionStart", "no time", "JavaScript", "Stop", "SessionEnd"]


async def test_without_can_use_tool_the_cli_itself_denies(
    stage: Stage, sandbox: CliSandbox
) -> None:
    path = sandbox.project / "f"

    messages = await stage.run(
        call("Write", file_path=str(path), content="x"), say("done"), permission_mode="default"
    )

    subtypes = [getattr(each, "subtype", "") for each in messages]
    assert "permission_denied" in subtypes
    assert not path.exists()


async def test_the_model_reads_what_is_wrong_with_its_arguments(stage: Stage) -> None:
    @claude_agent_sdk.tool("add", "adds", {"a": int, "b": int})
    async def add(given: Any) -> Any:
        return {"content": [{"type": "text", "text": str(given["a"] + given["b"])}]}

    server = claude_agent_sdk.create_sdk_mcp_server("calc", tools=[add])
    messages = await stage.run(
        call("mcp__odd_name___add", a=1, b="x"),
        call("mcp__odd_name___add", a=1, b=2),
        say("done"),
        mcp_servers={"odd name!": server},
        allowed_tools=["mcp__odd_name___add"],
        max_turns=0,
    )

    texts = [
        str(block.content)
        for each in messages
        if isinstance(each, UserMessage)
        for block in each.content
        if isinstance(block, ToolResultBlock)
    ]
    wrong, right = texts
    assert wrong.startswith("Input validation error: 'x' is not of type 'integer'")
    assert right == "[{'type': 'text', 'text': '3'}]"
