from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from steersman.ports import Launch
from steersman.testing.script import Script, Usage, call, calls, cut, fail, say, stall, think
from steersman.testing.scripted.cli import Faults, ScriptedCLI
from tests.testing.scripted_hosts import Host, hosted

PARTIALS = "--include-partial-messages"
REPLAYS = "--replay-user-messages"

# The handshake


async def test_it_says_what_it_is_and_can() -> None:
    async with hosted(ScriptedCLI(), "--permission-mode=plan") as host:
        answer = (await host.ask("initialize"))["response"]

    assert answer["claude_code_version"] == "2.1.325"
    assert answer["current_permission_mode"] == "plan"
    assert {"commands", "agents", "models", "account", "pid", "capabilities"} <= answer.keys()


@pytest.mark.parametrize("hooks", [[], "x", {"PreToolUse": {}}, {"PreToolUse": [{"matcher": "A"}]}])
async def test_hooks_that_are_malformed_are_refused_and_it_stays_usable(hooks: Any) -> None:
    async with hosted(ScriptedCLI()) as host:
        refusal = await host.ask("initialize", hooks=hooks)
        host.prompt("hello")
        result = await host.result()

    assert refusal["subtype"] == "error"
    assert "hookCallbackIds" in refusal["error"]
    assert result["result"] == "Echo: hello"


async def test_servers_are_set_up_in_order_and_the_first_turn_waits_for_them() -> None:
    host = Host()
    cli = ScriptedCLI()
    async with asyncio.timeout(5):
        host.channel = await cli.open(Launch(("claude",)), host)
        host.request("initialize", sdkMcpServers=["calc"])
        host.prompt("hello")
        methods = []
        for index, result in enumerate(({"protocolVersion": "2025-06-18"}, {}, {"tools": []})):
            asked = await host.asked("mcp_message", index)
            message = asked["request"]["message"]
            methods.append(message["method"])
            assert "init" not in host.kinds()
            response = {"jsonrpc": "2.0", "id": message.get("id"), "result": result}
            host.respond(asked["request_id"], {"mcp_response": response})
        await host.result()
        host.channel.kill()
        await host.gone()

    assert methods == ["initialize", "notifications/initialized", "tools/list"]
    assert host.said[0]["request"]["server_name"] == "calc"
    assert host.said[1]["type"] == "control_response"


async def test_a_server_that_refuses_has_failed_and_the_turn_runs_without_it() -> None:
    host = Host()
    async with asyncio.timeout(5):
        host.channel = await ScriptedCLI().open(Launch(("claude",)), host)
        host.request("initialize", sdkMcpServers=["calc"])
        host.prompt("hello")
        host.refuse((await host.asked("mcp_message"))["request_id"], "not today")
        init = await host.until(lambda frame: frame.get("subtype") == "init")
        host.channel.kill()
        await host.gone()

    assert init["mcp_servers"] == [{"name": "calc", "status": "failed", "source": "sdk"}]


# A turn


async def test_a_turn_with_all_switches_on_is_told_in_the_order_of_the_stock_cli() -> None:
    async with hosted(ScriptedCLI(Script(say("hi there", 2))), PARTIALS, REPLAYS) as host:
        host.prompt("hello", "u1")
        await host.until(lambda frame: frame.get("state") == "idle")

    assert host.kinds() == [
        "running",
        "u1 queued",
        "u1 started",
        "init",
        "status",
        "replay",
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
        "assistant",
        "content_block_stop",
        "message_delta",
        "message_stop",
        "result",
        "u1 completed",
        "idle",
    ]


async def test_a_turn_with_no_switch_on_is_short() -> None:
    cli = ScriptedCLI(Script(think("hmm") + say("hi")))
    host = Host()
    async with asyncio.timeout(5):
        host.channel = await cli.open(Launch(("claude",)), host)
        host.prompt("hello")
        await host.result()
        host.channel.end_input()
        status = await host.gone()

    assert host.kinds() == ["init", "assistant", "assistant", "result"]
    assert [f["message"]["content"][0]["type"] for f in host.said[1:3]] == ["thinking", "text"]
    assert status == 0


async def test_a_result_tells_what_was_used_and_what_it_cost() -> None:
    usage = Usage(input_tokens=1000, output_tokens=100, cache_read_input_tokens=500)
    script = Script(say("one", usage=usage), say("two", usage=usage))

    async with hosted(ScriptedCLI(script), "--model=haiku") as host:
        host.prompt("a")
        host.prompt("b")
        first, second = await host.result(0), await host.result(1)

    assert first["usage"]["input_tokens"] == 1000
    assert first["total_cost_usd"] == pytest.approx(0.000155)
    assert second["total_cost_usd"] == pytest.approx(0.00031)
    assert second["modelUsage"]["claude-haiku-5-5"]["inputTokens"] == 2000
    since = second["model_usage_since_last_result"]["claude-haiku-5-5"]
    assert (since["outputTokens"], since["costUSD"]) == (100, pytest.approx(0.000155))


async def test_the_model_sees_the_conversation_so_far() -> None:
    cli = ScriptedCLI(Script(call("Read", file_path="a", id_="t1"), say("read"), say("again")))

    async with hosted(cli) as host:
        host.prompt("first")
        await host.result(0)
        host.prompt("second")
        await host.result(1)

    roles = [[message["role"] for message in each.body["messages"]] for each in cli.asked]
    assert roles == [
        ["user"],
        ["user", "assistant", "user"],
        ["user", "assistant", "user", "assistant", "user"],
    ]
    assert cli.asked[1].tool_results == {"t1": 'Echo: {"file_path": "a"}'}
    assert "Read" in cli.asked[0].tools
    cli.script.assert_complete()


async def test_it_answers_our_answers_back_when_it_replays() -> None:
    async with hosted(ScriptedCLI(), REPLAYS) as host:
        host.respond("never-asked", {"some": "thing"})
        await host.until(lambda frame: frame["type"] == "control_response")

    assert host.said[-1]["response"]["response"] == {"some": "thing"}


# The queue


async def test_what_waits_while_text_is_said_becomes_one_turn() -> None:
    cli = ScriptedCLI(Script(say("half") + stall() + say(" done")))

    async with hosted(cli, REPLAYS) as host:
        host.prompt("one", "u1")
        await cli.wait_for_stall()
        host.prompt("two", "u2")
        host.prompt("three", "u3")
        await cli.release()
        merged = await host.result(1)

    assert merged["user_message_uuids"] == ["u2", "u3"]
    assert merged["user_message_uuid"] == "u3"
    assert merged["result"] == "Echo: two\nthree"
    replayed = [frame["uuid"] for frame in host.said if frame.get("isReplay")]
    assert replayed == ["u1", "u2", "u3"]


async def test_what_is_sent_while_a_tool_runs_is_folded_into_the_turn() -> None:
    ask = asyncio.Event()

    async def bash(_given: dict[str, Any]) -> str:
        await ask.wait()
        return "ran"

    script = Script(call("Bash", command="true"), lambda request: say(f"saw {request.last_text}"))
    async with hosted(ScriptedCLI(script, tools={"Bash": bash})) as host:
        host.prompt("one", "u1")
        await host.until(lambda frame: frame["type"] == "assistant")
        host.prompt("two", "u2")
        host.prompt("three", "u3", priority="later")
        await host.until(lambda frame: frame.get("command_uuid") == "u3")
        ask.set()
        await host.result(1)

    first, second = [frame for frame in host.said if frame["type"] == "result"]
    assert first["user_message_uuids"] == ["u1", "u2"]
    assert first["result"] == "saw two"
    assert second["user_message_uuids"] == ["u3"]
    order = [kind for kind in host.kinds() if kind in ("u2 completed", "result", "u1 completed")]
    assert order == ["u2 completed", "result", "u1 completed", "result"]


async def test_now_cuts_in_while_text_is_said() -> None:
    cli = ScriptedCLI(Script(say("half") + stall(), say("at once")))

    async with hosted(cli, PARTIALS) as host:
        host.prompt("one", "u1")
        await cli.wait_for_stall()
        host.prompt("two", "u2", priority="now")
        cut_short, urgent = await host.result(0), await host.result(1)

    assert (cut_short["subtype"], cut_short["is_error"]) == ("success", False)
    assert (cut_short["terminal_reason"], cut_short["result"]) == ("aborted_streaming", "half")
    assert urgent["result"] == "at once"
    assert "u1 cancelled" in host.kinds()


async def test_a_message_that_waits_can_be_taken_back() -> None:
    cli = ScriptedCLI(Script(say("half") + stall() + say(" done")))

    async with hosted(cli) as host:
        host.prompt("one", "u1")
        await cli.wait_for_stall()
        host.prompt("two", "u2")
        answers = [
            await host.ask("cancel_async_message", message_uuid=uuid) for uuid in ("u2", "u2")
        ]
        await cli.release()
        await host.until(lambda frame: frame.get("state") == "idle")

    assert [each["response"]["cancelled"] for each in answers] == [True, False]
    assert "u2 cancelled" in host.kinds()
    assert len(cli.asked) == 1


# Failures of the API


async def test_a_failure_is_tried_again_and_told() -> None:
    cli = ScriptedCLI(Script(fail(529), fail(500), cut(), say("recovered")))

    async with hosted(cli) as host:
        host.prompt("hello")
        result = await host.result()

    retries = [frame for frame in host.said if frame.get("subtype") == "api_retry"]
    assert [(f["attempt"], f["error_status"], f["error"]) for f in retries] == [
        (1, 529, "overloaded"),
        (2, 500, "server_error"),
        (3, None, "unknown"),
    ]
    assert (result["result"], result["is_error"]) == ("recovered", False)


async def test_a_stream_that_breaks_twice_is_asked_for_as_a_whole() -> None:
    broken = say("half of it") + cut()
    script = Script(broken, broken, say("the whole of it"))

    async with hosted(ScriptedCLI(script), PARTIALS) as host:
        host.prompt("hello")
        result = await host.result()

    stops = [frame for frame in host.said if frame.get("event", {}).get("type") == "message_stop"]
    assert [frame["abandoned_blocks"]["from_block_index"] for frame in stops] == [0, 0]
    assert result["result"] == "the whole of it"
    assert host.kinds().count("api_retry") == 1


@pytest.mark.parametrize("status", [400, 403, 404])
async def test_a_failure_that_is_final_is_not_tried_again(status: int) -> None:
    cli = ScriptedCLI(Script(fail(status, "no")))

    async with hosted(cli) as host:
        host.prompt("hello")
        result = await host.result()

    assert len(cli.asked) == 1
    assert (result["subtype"], result["is_error"]) == ("success", True)
    assert (result["terminal_reason"], result["api_error_status"]) == ("api_error", status)


# The end


@pytest.mark.parametrize(("step", "status"), [(say("fine"), 0), (fail(400), 1)])
async def test_at_the_end_of_input_it_leaves_with_what_the_last_result_was(
    step: Any, status: int
) -> None:
    async with hosted(ScriptedCLI(Script(step))) as host:
        host.prompt("hello")
        assert host.channel is not None
        host.channel.end_input()
        left_with = await host.gone()

    assert left_with == status
    assert "result" in host.kinds()


async def test_at_the_end_of_input_open_questions_fail_and_the_turn_goes_on() -> None:
    cli = ScriptedCLI(Script(call("Bash", command="touch x"), say("well")))

    async with hosted(cli, "--permission-prompt-tool=stdio") as host:
        host.prompt("hello")
        await host.asked("can_use_tool")
        assert host.channel is not None
        host.channel.end_input()
        left_with = await host.gone()

    assert left_with == 0
    assert host.said[-2]["result"] == "well"


async def test_end_session_ends_it_whatever_it_is_doing() -> None:
    cli = ScriptedCLI(Script(say("half") + stall()))

    async with hosted(cli) as host:
        host.prompt("hello")
        await cli.wait_for_stall()
        answer = await host.ask("end_session")
        left_with = await host.gone()

    assert (answer["subtype"], left_with) == ("success", 0)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"this is not json\n", "SyntaxError"),
        (b'{"type":"user"}\n', "message"),
        (b'{"type":"user","message":{"role":"assistant","content":"x"}}\n', "'assistant'"),
        (b'{"type":"control_request","request_id":"x"}\n', "Missing request"),
    ],
)
async def test_a_broken_line_kills_it(line: bytes, says: str) -> None:
    async with hosted(ScriptedCLI()) as host:
        assert host.channel is not None
        host.channel.write(line)
        left_with = await host.gone()

    assert left_with == 1
    assert says in host.stderr


@pytest.mark.parametrize(
    "line",
    [
        b"\n",
        b"   \n",
        b'"a scalar"\n',
        b"[1]\n",
        b'{"no":"type"}\n',
        b'{"type":"banana"}\n',
        b'{"type":"keep_alive"}\n',
        b'{"type":"control_cancel_request","request_id":"never"}\n',
        b'{"type":"user","message":{"role":"user","content":5}}\n',
    ],
)
async def test_a_strange_line_is_ignored(line: bytes) -> None:
    async with hosted(ScriptedCLI()) as host:
        assert host.channel is not None
        host.channel.write(line)
        host.prompt("still there?")
        result = await host.result()

    assert result["result"] == "Echo: still there?"


async def test_lines_may_come_in_any_pieces() -> None:
    async with hosted(ScriptedCLI()) as host:
        line = b'{"type":"user","message":{"role":"user","content":"caf\xc3\xa9"}}\n'
        assert host.channel is not None
        for byte in line:
            host.channel.write(bytes([byte]))
        result = await host.result()

    assert result["result"] == "Echo: caf\u00e9"


async def test_a_tool_may_bring_the_whole_cli_down() -> None:
    def crash(_given: dict[str, Any]) -> str:
        cli.exit(134, "Aborted (core dumped)")
        return "never seen"

    cli = ScriptedCLI(Script(call("Read")), tools={"Read": crash})
    async with hosted(cli) as host:
        host.prompt("hello")
        left_with = await host.gone()

    assert (left_with, cli.exits) == (134, [134])
    assert "core dumped" in host.stderr
    assert "result" not in host.kinds()


# What a test gets


async def test_a_bug_in_a_script_is_told_by_the_script() -> None:
    def broken(_request: Any) -> Any:
        raise KeyError("oops")

    script = Script(broken)
    async with hosted(ScriptedCLI(script)) as host:
        host.prompt("hello")
        result = await host.result()

    assert result["is_error"]
    with pytest.raises(AssertionError, match="KeyError"):
        script.assert_complete()


async def test_waits_that_are_in_vain_say_so() -> None:
    cli = ScriptedCLI()

    with pytest.raises(TimeoutError, match="a stall did not come"):
        await cli.wait_for_stall(0.01)
    with pytest.raises(TimeoutError, match="1 requests to the model"):
        await cli.wait_for_request(1, 0.01)


async def test_one_cli_serves_several_sessions_each_with_its_own_history() -> None:
    cli = ScriptedCLI()

    async with hosted(cli) as one, hosted(cli) as other:
        one.prompt("hello")
        await one.result()
        other.prompt("hi")
        await other.result()

    assert [len(request.body["messages"]) for request in cli.asked] == [1, 1]
    assert len(cli.launches) == 2
    assert cli.running == 0


async def test_it_leaves_no_task_behind_however_it_ends() -> None:
    for faults in (Faults(), Faults(mute_at="turn")):
        cli = ScriptedCLI(Script(calls(call("Read"), call("Read")) + stall()), faults=faults)
        async with hosted(cli, sdkMcpServers=["never-answers"]) as host:
            host.prompt("hello")
            await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_noise_comes_where_it_was_asked_for() -> None:
    faults = Faults(noise=b'{"type":"noise"}\n', noise_at="turn")

    async with hosted(ScriptedCLI(faults=faults)) as host:
        host.prompt("hello")
        await host.result()

    assert host.said[0]["type"] == "noise"


async def test_a_whole_conversation_takes_milliseconds() -> None:
    """CPU time, so that a busy machine does not matter."""
    begun = time.process_time()

    async with hosted(ScriptedCLI(), PARTIALS, REPLAYS) as host:
        for number in range(10):
            host.prompt(f"prompt {number}")
            await host.result(number)

    assert time.process_time() - begun < 0.5
