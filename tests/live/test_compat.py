"""`steersman.compat` on the stock CLI: what only a real CLI can show."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from steersman.compat import (
    AssistantMessage,
    ClaudeAgentOptions,
    Message,
    ResultMessage,
    TextBlock,
    query,
)
from steersman.testing.model import ScriptedModel
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import Answer, Scene, Script, say
from tests.live.staging import LIMIT, inhabitants

pytestmark = pytest.mark.live

MakeOptions = Callable[..., ClaudeAgentOptions]


@pytest.fixture
def options(
    sandbox: CliSandbox, cli: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[MakeOptions]:
    """Make official options whose CLI lives in the sandbox.

    They inherit the environment of this process, of which nothing is left for the test.
    """
    for name in set(os.environ) - {"PATH", "PYTEST_CURRENT_TEST"}:
        monkeypatch.delenv(name)
    with ExitStack() as models:

        def make(*steps: Answer | Scene, **fields: Any) -> ClaudeAgentOptions:
            model = models.enter_context(ScriptedModel(Script(*steps, strict=True)))
            env = {**sandbox.env(model.url), **fields.pop("env", {})}
            return ClaudeAgentOptions(cli_path=cli, cwd=sandbox.project, env=env, **fields)

        yield make


def texts(messages: list[Message]) -> list[str]:
    return [
        block.text
        for message in messages
        if isinstance(message, AssistantMessage)
        for block in message.content
        if isinstance(block, TextBlock)
    ]


async def collect(stream: AsyncIterator[Message]) -> list[Message]:
    return [message async for message in stream]


async def test_a_query_ends_with_its_result_and_leaves_nothing_behind(
    options: MakeOptions, sandbox: CliSandbox
) -> None:
    async with asyncio.timeout(LIMIT):
        messages = await collect(query(prompt="What is 2+2?", options=options(say("four"))))

    assert texts(messages) == ["four"]
    assert isinstance(messages[-1], ResultMessage)
    assert messages[-1].result == "four"
    assert inhabitants(sandbox.root) == {}
