"""Servers elsewhere, dialled by us with the newest `mcp` and, by `test_mcp_majors`, the oldest."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from steersman.errors import McpNotReady, UsageError
from steersman.permissions import ElicitationAnswer
from steersman.ports import JsonObject
from steersman.tools import ToolError
from steersman.tools.mcp_remote import RemoteCall, RemoteLimits, RemoteTools
from tests.mcp_servers import tiny
from tests.mcp_servers.everything import major
from tests.mcp_servers.running import PATIENCE, Host, running, stdio_config, tiny_config

pytestmark = pytest.mark.process

KINDS = ["stdio", "http", pytest.param("sse", marks=pytest.mark.soak_only)]
TOKEN = "canary-token-7351"
AT_ONCE = RemoteLimits(retry_pause=0, ping_every=0.2)


@contextmanager
def remote_config(kind: str, **env: str) -> Iterator[dict[str, Any]]:
    if kind == "stdio":
        yield stdio_config(**env)
        return
    with running(kind, env=env) as server:
        yield server.config()


def text(words: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": words}]


def tokens(host: Host) -> list[Any]:
    return [each["params"]["progressToken"] for each in host.notifications]


def is_loose(kind: str) -> bool:
    """Whether the server itself sends progress beside the call, where it may be late or lost."""
    return kind == "http" and major() == 1


@pytest.mark.parametrize("kind", KINDS)
async def test_a_remote_looks_as_if_it_lived_here(kind: str) -> None:
    with remote_config(kind) as config:
        async with Host(
            RemoteTools(config), answer=ElicitationAnswer("accept", {"name": "Ada"})
        ) as host:
            hello = await host.initialize()
            listed = await host.ask("tools/list")
            added = await host.call("add", a=2, b=3)
            failed = await host.call("fail")
            await host.call("steps", meta={"progressToken": "mine"})
            asked = await host.text_of("ask")
            memo = await host.ask("resources/read", uri="memo://today")
            poem = await host.ask("prompts/get", name="poem", arguments={"about": "tea"})

    assert hello["serverInfo"]["name"] == "everything"
    assert hello["capabilities"]["tools"] == {"listChanged": True}
    assert [each["name"] for each in listed["result"]["tools"]][:3] == ["add", "greet", "fail"]
    assert added["result"]["structuredContent"] == {"result": 5}
    assert failed["result"]["isError"] is True
    assert tokens(host) == ["mine", "mine"] or (is_loose(kind) and tokens(host) in ([], ["mine"]))
    assert asked == "accept: Ada"
    assert memo["result"]["contents"][0]["text"] == "Feed the cat."
    assert poem["result"]["messages"][0]["content"] == text("Write a poem about tea.")[0]


@pytest.mark.parametrize("kind", KINDS)
async def test_many_sessions_share_one_connection(kind: str, tmp_path: Path) -> None:
    log = tmp_path / "connections"
    with remote_config(kind, CONNECTION_LOG=str(log)) as config:
        tools = RemoteTools(config)
        async with Host(tools, "one") as one, Host(tools, "two") as two:
            await asyncio.gather(one.initialize(), two.initialize())
            sums = await asyncio.gather(
                *(host.text_of("add", a=n, b=n) for n in range(20) for host in (one, two))
            )
            await two.call("steps", meta={"progressToken": "of two"})

        assert not tools.is_connected

    assert sums == [str(2 * n) for n in range(20) for _ in "12"]
    assert tokens(two) == ["of two"] * 2 or (is_loose(kind) and tokens(two) in ([], ["of two"]))
    assert one.notifications == []
    assert len(log.read_text().splitlines()) == 1


async def test_async_with_holds_it_open_between_sessions(tmp_path: Path) -> None:
    log = tmp_path / "connections"
    async with RemoteTools(tiny_config(CONNECTION_LOG=str(log))) as tools:
        for key in ("one", "two"):
            async with Host(tools, key) as host:
                assert await host.text_of("add", a=1, b=2) == "3"
        assert tools.is_connected

    assert not tools.is_connected
    assert len(log.read_text().splitlines()) == 1


async def test_only_the_chosen_tools_are_shown_and_can_be_called() -> None:
    async with Host(RemoteTools(tiny_config(), tools=["add", "greet"])) as host:
        listed = await host.ask("tools/list")
        refused = await host.call("fail")

    assert [each["name"] for each in listed["result"]["tools"]] == ["add", "greet"]
    assert refused["error"] == {"code": -32602, "message": "name: there is no tool 'fail'"}


async def test_tools_may_be_chosen_and_renamed_by_functions() -> None:
    tools = RemoteTools(tiny_config(), tools=lambda name: name == "add", rename="far_{}".format)
    async with Host(tools) as host:
        assert tools.tool_names == ("far_add",)
        assert await host.text_of("far_add", a=1, b=2) == "3"
        assert await host.text_of("add", a=1, b=2) == "name: there is no tool 'add'"


def test_the_names_of_chosen_tools_are_known_before_anything_is_connected() -> None:
    tools = RemoteTools(tiny_config(), tools=["add", "greet"], rename={"add": "plus"})

    assert tools.tool_names == ("plus", "greet")


async def test_a_chosen_tool_that_is_not_there_is_named() -> None:
    with pytest.raises(McpNotReady, match="it has no tool 'subtract', but ") as caught:
        async with Host(RemoteTools(tiny_config(), tools=["subtract"]), "calc"):
            pass

    assert (caught.value.name, caught.value.status) == ("calc", "failed")


async def test_two_tools_cannot_be_shown_under_one_name() -> None:
    tools = RemoteTools(tiny_config(), rename={"add": "both", "greet": "both"})

    with pytest.raises(UsageError, match=r"rename: got 'both'(.|\n)*'add' and 'greet' share it"):
        async with Host(tools):
            pass


async def test_calls_and_their_results_are_seen() -> None:
    seen: list[Any] = []

    async def look(call: RemoteCall, result: JsonObject) -> None:
        seen.append((call, result["content"]))

    tools = RemoteTools(tiny_config(), rename={"add": "plus"}, on_call=seen.append, on_result=look)
    async with Host(tools, "calc") as host:
        await host.call("plus", meta={"claudecode/toolUseId": "toolu_1"}, a=1, b=2)

    call = RemoteCall("plus", "add", {"a": 1, "b": 2}, "calc", "session of calc", "toolu_1")
    assert seen == [call, (call, text("3"))]


async def test_a_call_can_be_refused_before_it_is_sent() -> None:
    def refuse(call: RemoteCall) -> None:
        raise ToolError(f"{call.tool}: not on Sundays")

    async with Host(RemoteTools(tiny_config(), on_call=refuse)) as host:
        answer = await host.call("die")

        assert (await host.call("die"))["result"]["isError"] is True
    assert answer["result"] == {"content": text("die: not on Sundays"), "isError": True}


async def test_a_callback_that_fails_refuses_and_is_reported() -> None:
    def fail(_call: RemoteCall) -> None:
        raise KeyError("private")

    async with Host(RemoteTools(tiny_config(), on_call=fail)) as host:
        answer = await host.call("die")

    assert answer["result"]["isError"] is True
    assert answer["result"]["content"] == text("not run: on_call raised KeyError")
    assert [(tool, type(error)) for tool, error in host.reported] == [("die", KeyError)]


async def test_an_onlooker_that_fails_does_not_take_the_result_away() -> None:
    def fail(_call: RemoteCall, _result: JsonObject) -> None:
        raise KeyError("private")

    async with Host(RemoteTools(tiny_config(), on_result=fail)) as host:
        assert await host.text_of("add", a=1, b=2) == "3"

    assert [(tool, type(error)) for tool, error in host.reported] == [("add", KeyError)]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_call_that_is_taken_back_is_cancelled_far_away(kind: str, tmp_path: Path) -> None:
    note = tmp_path / "note"
    with remote_config(kind) as config:
        async with Host(RemoteTools(config)) as host:
            call = asyncio.create_task(host.call("wait", note=str(note)))
            await noted(note, "begun", host)

            call.cancel()

            with pytest.raises(asyncio.CancelledError):
                await call
            await noted(note, "cancelled", host)


def read(note: Path) -> str:
    return note.read_text() if note.exists() else ""


async def noted(note: Path, words: str, host: Host) -> None:
    """Return once a tool has written that down; until then others can be called."""
    async with asyncio.timeout(PATIENCE):
        while read(note) != words:
            assert await host.text_of("add", a=1, b=2) == "3"


@pytest.mark.parametrize("kind", KINDS)
async def test_every_session_is_notified_of_new_tools_of_the_remote(kind: str) -> None:
    with remote_config(kind) as config:
        tools = RemoteTools(config)
        async with Host(tools, "one") as one, Host(tools, "two") as two:
            await one.call("grow")

            for host in (one, two):
                await host.wait_for("notifications/tools/list_changed")
            assert "late" in tools.tool_names
            assert await two.text_of("late", name="Ada") == "Hello, Ada!"


async def test_a_question_that_could_be_for_two_sessions_is_declined() -> None:
    accepted = ElicitationAnswer("accept", {"name": "Ada"})
    tools = RemoteTools(stdio_config())
    async with Host(tools, "one", accepted) as one, Host(tools, "two", accepted) as two:
        alone = await one.text_of("ask")
        busy = asyncio.create_task(two.call("wait", meta={"progressToken": 1}, note=os.devnull))
        await two.wait_for("notifications/progress")
        ambiguous = await one.text_of("ask")
        busy.cancel()

    assert (alone, ambiguous) == ("accept: Ada", "decline: nobody")
    assert (len(one.asked), len(two.asked)) == (1, 0)


# --- Remotes that die ------------------------------------------------------------------------


async def test_a_process_that_dies_is_started_again_at_the_next_call() -> None:
    async with Host(RemoteTools(tiny_config(), limits=AT_ONCE), "pump") as host:
        lost = await host.text_of("die")
        again = await host.text_of("add", a=1, b=2)

    assert lost.startswith("the MCP server 'pump' was lost during the call")
    assert lost.endswith("whether the call ran is not known")
    assert again == "3"
    assert [tool for tool, _ in host.reported] == ["die"]


@pytest.mark.parametrize("kind", ["http", "sse"])
async def test_a_listener_that_dies_is_dialled_again_once_it_is_back(kind: str) -> None:
    with running(kind) as first:
        async with Host(RemoteTools(first.config(), limits=AT_ONCE), "pump") as host:
            died = await host.call("die")
            first.wait()
            away = await host.call("add", a=1, b=2)
            with running(kind, port=first.port):
                back = await host.text_of("add", a=1, b=2)

    assert died["error"]["code"] in (-32603, -32000)
    assert "server 'pump' " in away["error"]["message"]
    assert back == "3"


async def test_an_http_server_that_was_restarted_is_initialized_again() -> None:
    with running("http") as first:
        async with Host(RemoteTools(first.config(), limits=AT_ONCE)) as host:
            assert await host.text_of("add", a=1, b=2) == "3"
            first.kill()
            with running("http", port=first.port):
                assert await host.text_of("add", a=2, b=2) == "4"


async def test_while_it_is_away_calls_fail_at_once_and_say_why(tmp_path: Path) -> None:
    log, program = tmp_path / "connections", tmp_path / "server"
    config = tiny_config(CONNECTION_LOG=str(log))
    write_program(program, config)
    limits = RemoteLimits(retry_pause=60)
    async with Host(
        RemoteTools({**config, "command": str(program)}, limits=limits), "pump"
    ) as host:
        remove(program)
        await host.call("die")

        first, second = await host.text_of("add", a=1, b=2), await host.text_of("add", a=1, b=2)

        write_program(program, config)
        third = await host.text_of("add", a=1, b=2)
    assert "server 'pump' is not ready: failed: FileNotFoundError" in first
    assert first == second == third
    assert len(log.read_text().splitlines()) == 1


def write_program(path: Path, config: JsonObject) -> None:
    path.write_text(f'#!/bin/sh\nexec {config["command"]} "$@"\n')
    path.chmod(0o755)


def remove(path: Path) -> None:
    path.unlink()


# --- Remotes that are not ready --------------------------------------------------------------


NO_SERVER = "import sys; sys.exit('no licence for canary-token-7351')"


@pytest.mark.parametrize(
    ("config", "status", "error"),
    [
        ({"command": "/nowhere/server"}, "failed", "FileNotFoundError"),
        (
            {"command": sys.executable, "args": ["-c", NO_SERVER], "env": {"KEY": TOKEN}},
            "failed",
            r"it wrote on stderr: no licence for \[redacted\]",
        ),
        ({"type": "http", "url": f"http://127.0.0.1:9/mcp?key={TOKEN}"}, "failed", "ConnectError"),
        ({"type": "sse", "url": f"http://u:{TOKEN}@127.0.0.1:9/sse"}, "failed", "ConnectError"),
    ],
)
async def test_a_broken_remote_is_named_and_shows_no_secret(
    config: JsonObject, status: str, error: str
) -> None:
    tools = RemoteTools(config)

    with pytest.raises(McpNotReady, match=error) as caught:
        async with Host(tools, "pump"):
            pass

    assert (caught.value.name, caught.value.status) == ("pump", status)
    assert TOKEN not in f"{caught.value} {tools!r} {vars(caught.value)}"


@pytest.mark.parametrize("kind", ["http", "sse"])
async def test_a_credential_that_is_missing_or_wrong_needs_auth(kind: str) -> None:
    with running(kind, env={"WANTED_TOKEN": TOKEN}) as server:
        for headers in ({}, {"Authorization": "Bearer wrong"}):
            with pytest.raises(McpNotReady, match="401") as caught:
                async with Host(RemoteTools(server.config(**headers))):
                    pass
            assert caught.value.status == "needs-auth"
        async with Host(RemoteTools(server.config(Authorization=f"Bearer {TOKEN}"))) as host:
            assert await host.text_of("add", a=1, b=2) == "3"


async def test_a_remote_that_says_nothing_is_given_up() -> None:
    mute = {"command": sys.executable, "args": ["-c", "import sys; sys.stdin.read()"]}

    with pytest.raises(McpNotReady, match=r"it did not answer within 0\.5 s"):
        async with Host(RemoteTools(mute, limits=RemoteLimits(connect=0.5))):
            pass


async def test_a_start_that_is_given_up_leaves_nothing_behind() -> None:
    before = asyncio.all_tasks()
    mute = {"command": sys.executable, "args": ["-c", "import sys; sys.stdin.read()"]}
    tools = RemoteTools(mute)

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3), tools:
            pass

    async with asyncio.timeout(PATIENCE):
        while left := asyncio.all_tasks() - before:
            await asyncio.wait(left)


async def test_a_session_that_ends_leaves_no_task_behind() -> None:
    before = asyncio.all_tasks()

    async with Host(RemoteTools(tiny_config())) as host:
        await host.call("add", a=1, b=2)

    assert asyncio.all_tasks() == before


async def test_one_event_loop_at_a_time() -> None:
    tools = RemoteTools(tiny_config())
    async with Host(tools):
        with pytest.raises(UsageError, match="one event loop at a time"):
            await asyncio.to_thread(asyncio.run, tools.attach(Host(tools).caller))


def test_it_may_be_used_in_one_loop_after_the_other() -> None:
    tools = RemoteTools(tiny_config())

    async def add() -> str:
        async with Host(tools) as host:
            return await host.text_of("add", a=1, b=2)

    assert [asyncio.run(add()), asyncio.run(add())] == ["3", "3"]


# --- Bad input -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "argument"),
    [
        ({"config": {}}, "config"),
        ({"config": {"type": "http"}}, "config"),
        ({"config": None}, "config"),
        ({"tools": "add"}, "tools"),
        ({"tools": 5}, "tools"),
        ({"tools": [5]}, "tools"),
        ({"rename": ["add"]}, "rename"),
        ({"rename": {"add": 5}}, "rename"),
        ({"on_call": "log"}, "on_call"),
        ({"on_result": 5}, "on_result"),
        ({"limits": 30}, "limits"),
    ],
)
def test_what_cannot_be_meant_is_refused(given: dict[str, Any], argument: str) -> None:
    with pytest.raises(UsageError) as caught:
        RemoteTools(**{"config": tiny_config(), **given})

    assert caught.value.argument == argument


@pytest.mark.parametrize("name", ["call", "connect", "ping_every", "result", "retry_pause"])
@pytest.mark.parametrize("value", [-1, "5", None, True])
def test_a_limit_is_a_number_above_nothing(name: str, value: Any) -> None:
    with pytest.raises(UsageError, match=rf"limits\.{name}: got "):
        RemoteLimits(**{name: value})


GARBLED = """
import json, os, sys
sys.path.insert(0, os.environ["WHERE"])
import tiny
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    if message["method"] == os.environ["AT"]:
        print(os.environ["ANSWER"].replace("ID", str(message["id"])), flush=True)
    else:
        result = tiny.answer(message["method"], message.get("params") or {})
        print("a line of a log", flush=True)
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""
UNREADABLE = [
    '{"jsonrpc":"2.0","id":ID}',
    '{"jsonrpc":"2.0","id":ID,"res',
    '{"jsonrpc":"2.0","id":ID,"result":"text"}',
    "[" * 5000,
    '{"a":1}',
]


def garbled(at: str, answer: str) -> dict[str, Any]:
    where = str(Path(tiny.__file__).parent)
    env = {"WHERE": where, "AT": at, "ANSWER": answer}
    return {"command": sys.executable, "args": ["-c", GARBLED], "env": env}


@pytest.mark.parametrize("answer", UNREADABLE)
@pytest.mark.parametrize("at", ["initialize", "tools/list"])
async def test_an_answer_that_cannot_be_read_ends_the_connection_at_once(
    at: str, answer: str
) -> None:
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(McpNotReady, match="cannot be read"):
            async with RemoteTools(garbled(at, answer), limits=RemoteLimits(connect=600)):
                pass


@pytest.mark.parametrize("answer", UNREADABLE)
async def test_a_call_whose_answer_cannot_be_read_fails_at_once(answer: str) -> None:
    async with asyncio.timeout(PATIENCE), Host(RemoteTools(garbled("tools/call", answer))) as host:
        await host.initialize()
        response = await host.call("add", a=1, b=2)

    assert "cannot be read" in response["error"]["message"]


async def test_a_server_that_writes_only_noise_is_named_after_the_limit() -> None:
    tools = RemoteTools(garbled("initialize", "hello"), limits=RemoteLimits(connect=0.5))

    async with asyncio.timeout(PATIENCE):
        with pytest.raises(McpNotReady, match=r"did not answer within 0\.5 s"):
            async with tools:
                pass


ODD = """
import json, os, sys
sys.path.insert(0, os.environ["WHERE"])
import tiny
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = tiny.answer(message["method"], message.get("params") or {})
    if message["method"] == "tools/call":
        arguments = message["params"]["arguments"]
        if arguments["a"] == 0:
            continue
        sys.stdout.buffer.write(b"\\xff\\xfe of a log" + bytes([10]))
        sys.stdout.buffer.flush()
        result["content"][0]["text"] += "x" * arguments["b"]
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


def odd(**limits: Any) -> RemoteTools:
    """A server that writes what is no UTF-8, `b` letters more, and no answer if `a` is 0."""
    env = {"WHERE": str(Path(tiny.__file__).parent)}
    config = {"command": sys.executable, "args": ["-c", ODD], "env": env}
    return RemoteTools(config, limits=RemoteLimits(**limits))


async def test_a_line_that_is_no_utf_8_takes_no_answer_away() -> None:
    async with asyncio.timeout(PATIENCE), Host(odd()) as host:
        await host.initialize()
        found = [await host.call("add", a=1, b=1) for _ in range(2)]

    assert [each["result"]["content"][0]["text"] for each in found] == ["2x"] * 2


async def test_a_result_of_many_megabytes_arrives_and_one_over_the_limit_is_an_error_at_once() -> (
    None
):
    size = 20_000_000
    async with asyncio.timeout(PATIENCE), Host(odd(result=size + 1000)) as host:
        await host.initialize()
        whole = await host.call("add", a=1, b=size)
        refused = await host.call("add", a=1, b=size + 2000)
        after = await host.call("add", a=1, b=0)

    assert len(whole["result"]["content"][0]["text"]) > size
    assert f"the limit is {size + 1000}" in refused["error"]["message"]
    assert after["result"]["content"] == text("1")


async def test_a_result_over_the_limit_is_an_error_over_http_too() -> None:
    with remote_config("http") as config:
        tools = RemoteTools(config, limits=RemoteLimits(result=300))
        async with asyncio.timeout(PATIENCE), Host(tools) as host:
            await host.initialize()
            found = await host.call("greet", name="x" * 400)

    assert "and the limit is 300" in found["error"]["message"]


async def test_a_call_without_an_answer_ends_at_its_limit_and_the_next_one_is_answered() -> None:
    async with asyncio.timeout(PATIENCE), Host(odd(call=0.2)) as host:
        await host.initialize()
        late = await host.call("add", a=0, b=0)
        after = await host.call("add", a=1, b=0)

    assert (
        "did not answer within 0.2 s; whether the call ran is not known"
        in (late["error"]["message"])
    )
    assert after["result"]["content"] == text("1")
