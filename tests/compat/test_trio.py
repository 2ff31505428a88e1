"""`steersman.compat` under trio: the session runs elsewhere, the caller's code in trio."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any, cast

import anyio
import pytest
import trio
import trio.lowlevel

import steersman.compat
from steersman._portal.portal import shared_portal
from steersman.compat import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookMatcher,
    Message,
    PermissionResultAllow,
    SessionStore,
    create_sdk_mcp_server,
    query,
    tool,
)
from steersman.compat.types import McpServerConfig, SyncHookJSONOutput
from tests.compat.canned import Canned, Line, answer, result, text_line, texts, user
from tests.compat.recording import StandIn
from tests.mcp_servers.everything import low_level_server

LIMIT = 10.0
NAMED = {"name": "claude-code", "version": "2"}


def run(main: Callable[[], Awaitable[Any]]) -> Any:
    """Run a program in trio; afterwards no task of a session is left."""

    async def limited() -> list[Any]:
        with trio.fail_after(LIMIT):
            return [await main()]

    (found,) = trio.run(limited)
    assert left_in_loop() == []
    return found


def left_in_loop() -> list[str]:
    """Return the tasks of the event loop of the sessions, without the one that looks."""

    async def look() -> list[str]:
        # Those that have just been cancelled take one more step.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        mine = asyncio.current_task()
        return [repr(each) for each in asyncio.all_tasks() if each is not mine]

    return shared_portal().call(look)


async def collect(stream: AsyncIterator[Message]) -> list[Message]:
    return [message async for message in stream]


async def into(seen: list[Message], stream: AsyncIterator[Message]) -> None:
    """Collect messages, and keep those before an error."""
    async for message in stream:
        seen.append(message)  # noqa: PERF401 - as above


async def prompts(*given: str) -> AsyncIterator[Line]:
    for text in given:
        await trio.lowlevel.checkpoint()
        yield user(text)


def in_trio() -> bool:
    return trio.lowlevel.in_trio_task()


def test_a_query_runs_under_trio() -> None:
    transport = Canned()

    messages = run(lambda: collect(query(prompt="hi", transport=transport)))

    assert texts(messages) == ["answer 1"]
    assert transport.calls == ["connect", "end_input", "close"]


def test_prompt_iterables_run_where_trio_runs() -> None:
    messages = run(lambda: collect(query(prompt=prompts("a", "b"), transport=Canned())))

    assert texts(messages) == ["answer 1", "answer 2"]


def test_a_client_runs_under_trio() -> None:
    async def main() -> list[list[str]]:
        async with ClaudeSDKClient(transport=Canned(ends=False)) as client:
            await client.query("a")
            first = texts(await collect(client.receive_response()))
            await client.query(prompts("b"))
            second = texts(await collect(client.receive_response()))
            await client.interrupt()
            status: Any = await client.get_mcp_status()
        return [first, second, [status["asked"]]]

    assert run(main) == [["answer 1"], ["answer 2"], ["mcp_status"]]


def asks(_: Line, __: int) -> list[Line]:
    """Ask for a permission, and call a hook."""
    asked: Line = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {}, "tool_use_id": "t1"}
    given: Line = {
        "hook_event_name": "PreToolUse",
        "session_id": "s1",
        "transcript_path": "",
        "cwd": "/",
        "tool_name": "Bash",
        "tool_input": {},
        "tool_use_id": "t1",
    }
    hook: Line = {"subtype": "hook_callback", "callback_id": "hook_0", "input": given}
    return [
        {"type": "system", "subtype": "init", "session_id": "s1"},
        {"type": "control_request", "request_id": "r1", "request": asked},
        {"type": "control_request", "request_id": "r2", "request": hook},
    ]


def test_hooks_and_permissions_run_where_trio_runs_in_the_context_of_the_query() -> None:
    var: contextvars.ContextVar[str] = contextvars.ContextVar("var", default="")
    seen: list[tuple[str, bool, str]] = []

    def note(name: str) -> None:
        seen.append((name, in_trio(), var.get()))
        if len(seen) == 2:
            transport.say.send_nowait(result("done"))

    async def allow(*_: Any) -> PermissionResultAllow:
        await trio.lowlevel.checkpoint()
        note("permission")
        return PermissionResultAllow()

    async def hook(*_: Any) -> SyncHookJSONOutput:
        await trio.lowlevel.checkpoint()
        note("hook")
        return {}

    transport = Canned(asks, ends=False)
    options = ClaudeAgentOptions(
        can_use_tool=allow, hooks={"PreToolUse": [HookMatcher(hooks=[hook])]}
    )

    async def main() -> None:
        async with ClaudeSDKClient(options, transport) as client:
            var.set("of the query")
            await client.query("a")
            await collect(client.receive_response())

    run(main)

    assert sorted(seen) == [("hook", True, "of the query"), ("permission", True, "of the query")]
    assert sorted(each["request_id"] for each in transport.responses) == ["r1", "r2"]
    assert {each["subtype"] for each in transport.responses} == {"success"}


def test_tools_run_where_trio_runs() -> None:
    seen: list[tuple[bool, dict[str, Any]]] = []

    @tool("add", "Adds.", {"a": int, "b": int})
    async def add(arguments: dict[str, Any]) -> dict[str, Any]:
        await trio.lowlevel.checkpoint()
        seen.append((in_trio(), arguments))
        return {"content": [{"type": "text", "text": "5"}]}

    def calls(_: Line, __: int) -> list[Line]:
        params = {"name": "add", "arguments": {"a": 2, "b": 3}}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        asked = {"subtype": "mcp_message", "server_name": "calc", "message": message}
        return [{"type": "control_request", "request_id": "r1", "request": asked}]

    class Hears(Canned):
        async def write(self, data: str) -> None:
            await super().write(data)
            if self.responses:
                self.say.send_nowait(result("done"))

    transport = Hears(calls, ends=False)
    servers: dict[str, McpServerConfig] = {"calc": create_sdk_mcp_server("calc", tools=[add])}

    async def main() -> None:
        async with ClaudeSDKClient(ClaudeAgentOptions(mcp_servers=servers), transport) as client:
            await client.query("a")
            await collect(client.receive_response())

    run(main)

    assert seen == [(True, {"a": 2, "b": 3})]
    (answered,) = transport.responses
    assert answered["response"]["mcp_response"]["result"]["content"][0]["text"] == "5"


def test_a_server_of_the_package_mcp_serves_a_program_that_anyio_runs_in_trio() -> None:
    about: Line = {"protocolVersion": "2025-11-25", "capabilities": {}}
    messages: list[Line] = [
        {"id": 1, "method": "initialize", "params": {**about, "clientInfo": {**NAMED}}},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "echo", "arguments": {"text": "hi"}}},
    ]

    def calls(_: Line, __: int) -> list[Line]:
        message = {"jsonrpc": "2.0", **messages.pop(0)}
        asked = {"subtype": "mcp_message", "server_name": "low", "message": message}
        return [{"type": "control_request", "request_id": f"r{len(messages)}", "request": asked}]

    class Hears(Canned):
        async def write(self, data: str) -> None:
            before = len(self.responses)
            await super().write(data)
            if len(self.responses) > before:
                for line in calls({}, 0) if messages else [result("done")]:
                    self.say.send_nowait(line)

    transport = Hears(calls, ends=False)
    server: Any = {"type": "sdk", "name": "low", "instance": low_level_server()}
    options = ClaudeAgentOptions(mcp_servers={"low": server})

    async def main() -> None:
        with trio.fail_after(LIMIT):
            async with ClaudeSDKClient(options, transport) as client:
                await client.query("a")
                await collect(client.receive_response())

    anyio.run(main, backend="trio")

    assert left_in_loop() == []
    *_, called = [each["response"]["mcp_response"] for each in transport.responses]
    assert called["result"]["content"][0]["text"] == "hi"


def test_session_stores_run_where_trio_runs(tmp_path: Path) -> None:
    kept: list[tuple[bool, Any, list[Any]]] = []

    class Store:
        async def append(self, key: Any, entries: list[Any]) -> None:
            await trio.lowlevel.checkpoint()
            kept.append((in_trio(), key, entries))

        async def load(self, key: Any) -> list[Any] | None:
            return None

    entry = {"type": "user", "uuid": "u1"}
    where = str(tmp_path / "projects" / "p" / f"{uuid.uuid4()}.jsonl")

    def mirrors(prompt: Line, number: int) -> Iterable[Line | Exception | None]:
        yield {"type": "transcript_mirror", "filePath": where, "entries": [entry]}
        yield from answer(prompt, number)

    options = ClaudeAgentOptions(
        session_store=cast("SessionStore", Store()), env={"CLAUDE_CONFIG_DIR": str(tmp_path)}
    )

    run(lambda: collect(query(prompt="a", options=options, transport=Canned(mirrors))))

    assert [(here, entries) for here, _, entries in kept] == [(True, [entry])]


def test_a_callback_that_the_session_no_longer_waits_for_is_cancelled_in_trio() -> None:
    ended: list[str] = []

    async def main() -> None:
        started = trio.Event()

        async def wait(*_: Any) -> PermissionResultAllow:
            started.set()
            try:
                await trio.sleep_forever()
            except trio.Cancelled:
                ended.append("cancelled")
                raise
            raise AssertionError

        options = ClaudeAgentOptions(can_use_tool=wait)
        async with ClaudeSDKClient(options, Canned(asks, ends=False)) as client:
            await client.query("a")
            await started.wait()
        assert ended == ["cancelled"]

    run(main)


def test_what_a_callback_raises_does_not_end_the_run() -> None:
    class Hears(Canned):
        async def write(self, data: str) -> None:
            await super().write(data)
            if self.responses:
                answered.set()

    async def fails(*_: Any) -> PermissionResultAllow:
        raise ValueError("no")

    async def main() -> None:
        options = ClaudeAgentOptions(can_use_tool=fails)
        async with ClaudeSDKClient(options, Hears(asks, ends=False)) as client:
            await client.query("a")
            await answered.wait()

    answered = trio.Event()
    run(main)


def test_what_a_transport_raises_reaches_the_caller_under_trio() -> None:
    error = KeyError("boom")
    transport = Canned(lambda *_: [text_line("so far"), error])

    async def main() -> list[Message]:
        seen: list[Message] = []
        with pytest.raises(KeyError) as caught:
            await into(seen, query(prompt="hi", transport=transport))
        assert caught.value is error
        return seen

    assert texts(run(main)) == ["so far"]
    assert transport.calls[-1] == "close"


class Slow(Canned):
    """Waits for ever in one of its methods."""

    def __init__(self, where: str) -> None:
        super().__init__(ends=False)
        self.where = where
        self.waits = trio.Event()

    async def connect(self) -> None:
        if self.where == "connect":
            await self._wait()
        await super().connect()

    async def write(self, data: str) -> None:
        if self.where == ("initialize" if '"initialize"' in data else "write"):
            await self._wait()
        if self.where != "answer" or '"user"' not in data:
            await super().write(data)
        else:
            self.waits.set()

    async def _wait(self) -> None:
        self.waits.set()
        await trio.sleep_forever()


@pytest.mark.parametrize("where", ["connect", "initialize", "write", "answer"])
@pytest.mark.parametrize("way", ["query", "client"])
def test_cancelling_leaves_nothing_wherever_the_program_waits(where: str, way: str) -> None:
    async def main() -> None:
        transport = Slow(where)

        async def program() -> None:
            if way == "query":
                await collect(query(prompt="hi", transport=transport))
            else:
                async with ClaudeSDKClient(transport=transport) as client:
                    await client.query("hi")
                    await collect(client.receive_messages())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(program)
            await transport.waits.wait()
            nursery.cancel_scope.cancel()
        # At once, and not some time later.
        assert left_in_loop() == []
        assert transport.calls.count("close") == (0 if where == "connect" else 1)

    run(main)


@pytest.mark.filterwarnings("ignore:Async generator:ResourceWarning")
def test_a_loop_that_is_left_early_closes_the_session() -> None:
    transport = Canned(ends=False)

    async def main() -> None:
        async for _ in query(prompt="hi", transport=transport):
            break

    run(main)

    assert transport.calls[-1] == "close"


def test_a_client_that_is_not_closed_is_closed_with_the_run() -> None:
    transport = Canned(ends=False)

    async def main() -> None:
        client = ClaudeSDKClient(transport=transport)
        await client.connect("hi")

    run(main)

    assert transport.calls == ["connect", "close"]


def test_two_runs_of_trio_in_two_threads_do_not_mix() -> None:
    found: dict[int, list[str]] = {}

    def thread(number: int) -> None:
        async def main() -> list[Message]:
            def own(prompt: Line, n: int) -> Any:
                return [text_line(f"{number}"), *answer(prompt, n)]

            return await collect(query(prompt="hi", transport=Canned(own)))

        found[number] = texts(trio.run(main))

    threads = [threading.Thread(target=thread, args=(number,)) for number in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(LIMIT)

    assert found == {0: ["0", "answer 1"], 1: ["1", "answer 1"]}


@pytest.mark.process
def test_lines_of_stderr_arrive_where_trio_runs_in_their_order(tmp_path: Path) -> None:
    seen: list[tuple[str, bool]] = []

    async def main() -> None:
        options: Line = {"stderr": lambda line: seen.append((line, trio.lowlevel.in_trio_run()))}
        found = await StandIn(tmp_path).run(steersman.compat, options, stderr="one\n\ntwo\nthree")
        assert found.error is None
        # What was told with the end of the CLI is called in the next step of trio.
        await trio.lowlevel.checkpoint()

    run(main)

    assert seen == [("one", True), ("two", True), ("three", True)]
