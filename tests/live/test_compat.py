"""`steersman.compat` on the stock CLI: what only a real CLI can show."""

from __future__ import annotations

import asyncio
import os
import signal
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

import steersman.compat
from steersman.compat import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookMatcher,
    Message,
    PermissionResultAllow,
    ResultError,
    ResultMessage,
    TextBlock,
    query,
)
from steersman.compat.options import TranslationWarning
from steersman.testing.model import ScriptedModel
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import Answer, Scene, Script, call, fail, say, stall, when
from tests.live.staging import LIMIT, first_words, inhabitants
from tests.mcp_servers.everything import fast_server

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


async def test_a_query_raises_a_result_error_behind_an_error_result(options: MakeOptions) -> None:
    seen: list[Message] = []

    async def run() -> None:
        async for message in query(prompt="bad", options=options(fail(400))):
            seen.append(message)  # noqa: PERF401 - those before the error are kept

    async with asyncio.timeout(LIMIT):
        with pytest.raises(ResultError, match="scripted failure") as caught:
            await run()

    assert isinstance(seen[-1], ResultMessage)
    assert (caught.value.exit_code, caught.value.api_error_status) == (1, 400)


async def test_a_session_that_is_not_there_is_a_result_error(options: MakeOptions) -> None:
    missing = "00000000-0000-4000-8000-000000000000"

    async with asyncio.timeout(LIMIT):
        with pytest.raises(ResultError, match=f"No conversation found.*{missing}"):
            await collect(query(prompt="hi", options=options(resume=missing)))


async def test_prompts_sent_at_once_each_get_a_response(options: MakeOptions) -> None:
    given = options(when("first", call("Bash", command="true")), say("all"), allowed_tools=["Bash"])

    async with asyncio.timeout(LIMIT), ClaudeSDKClient(given) as client:
        for prompt in ("first", "second", "third"):
            await client.query(prompt)
        responses = [await collect(client.receive_response()) for _ in range(3)]

    assert [type(each[-1]) for each in responses] == [ResultMessage] * 3
    assert texts(responses[0]) == ["all"]


@pytest.mark.parametrize("value", ["1", "true", "0", ""])
async def test_the_states_of_the_cli_are_messages_if_the_environment_asks_for_them(
    options: MakeOptions, value: str
) -> None:
    official = pytest.importorskip("claude_agent_sdk")
    seen: list[list[str]] = []
    for package in (official, steersman.compat):
        given = options(say("one"), env={"CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS": value})
        with warnings.catch_warnings():
            # Another value than 1 is said to have no effect on the CLI.
            warnings.simplefilter("ignore", TranslationWarning)
            async with asyncio.timeout(LIMIT):
                stream = package.query(prompt="hi", options=given)
                states = [each.data async for each in stream if hasattr(each, "data")]
        seen.append([each["state"] for each in states if "state" in each])

    assert seen[1] == seen[0] == (["running", "idle"] if value in ("1", "true") else [])


async def test_a_session_goes_on_without_an_mcp_server_that_does_not_start(
    options: MakeOptions,
) -> None:
    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[dict[str, Any]]:
        raise OSError("the pump is stuck")
        yield {}

    broken: Any = {"type": "sdk", "name": "pump", "instance": fast_server(lifespan=lifespan)}
    working: Any = {"type": "sdk", "name": "echo", "instance": fast_server()}
    given = options(say("all the same"), mcp_servers={"pump": broken, "echo": working})

    async with asyncio.timeout(LIMIT), ClaudeSDKClient(given) as client:
        await client.query("hi")
        messages = await collect(client.receive_response())
        status = await client.get_mcp_status()

    assert texts(messages) == ["all the same"]
    assert {each["name"]: each["status"] for each in status["mcpServers"]} == {
        "pump": "failed",
        "echo": "connected",
    }


async def test_a_killed_cli_is_revived_and_the_response_ends(options: MakeOptions) -> None:
    given = options(
        say("before"), say("half") + stall(), say("after"), include_partial_messages=True
    )

    async with asyncio.timeout(LIMIT), ClaudeSDKClient(given) as client:
        await client.query("one")
        await collect(client.receive_response())
        await client.query("two")
        session = client.session
        await first_words(session.turns[-1], "half")
        assert session.pid is not None
        os.kill(session.pid, signal.SIGKILL)
        messages = await collect(client.receive_response())

    assert texts(messages) == ["after"]
    assert session.restarts == 1


async def test_callbacks_run_while_nobody_reads_and_what_is_large_arrives(
    options: MakeOptions,
) -> None:
    """The official package reads no further once a hundred messages wait for the program."""
    asked, ran = asyncio.Event(), list[str]()

    async def allow(*_: Any) -> PermissionResultAllow:
        asked.set()
        return PermissionResultAllow()

    async def hook(event: Any, *_: Any) -> Any:
        ran.append(event["hook_event_name"])
        return {}

    given = options(
        say("x" * 400, chunks=400) + call("Bash", command="touch made"),
        say("y" * 1_500_000),
        can_use_tool=allow,
        include_partial_messages=True,
        hooks={name: [HookMatcher(hooks=[hook])] for name in ("SessionStart", "SessionEnd")},
    )

    async with asyncio.timeout(LIMIT), ClaudeSDKClient(given) as client:
        await client.query("z" * 2_000_000)
        await asked.wait()
        messages = await collect(client.receive_response())

    assert len(texts(messages)[-1]) == 1_500_000
    assert len(messages) > 400
    assert ran == ["SessionStart", "SessionEnd"]


async def test_a_cancelled_query_leaves_no_child(options: MakeOptions, sandbox: CliSandbox) -> None:
    async with asyncio.timeout(LIMIT):
        stream = query(prompt="hi", options=options(stall()))
        await anext(stream)
        reading = asyncio.create_task(collect(stream))
        await asyncio.sleep(0)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading

    assert inhabitants(sandbox.root) == {}


def test_a_client_runs_on_the_stock_cli_under_trio(
    options: MakeOptions, sandbox: CliSandbox
) -> None:
    asked: list[str] = []

    async def allow(name: str, *_: Any) -> PermissionResultAllow:
        await trio.lowlevel.checkpoint()
        asked.append(name)
        return PermissionResultAllow()

    given = options(call("Bash", command="touch made"), say("done"), can_use_tool=allow)

    async def main() -> list[Message]:
        with trio.fail_after(LIMIT):
            async with ClaudeSDKClient(given) as client:
                await client.query("make it")
                return [message async for message in client.receive_response()]
        raise AssertionError

    messages = trio.run(main)

    assert texts(messages) == ["done"]
    assert asked == ["Bash"]
    assert inhabitants(sandbox.root) == {}
