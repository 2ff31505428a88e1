"""`query()` and `ClaudeSDKClient` over a transport that answers by itself."""

from __future__ import annotations

import asyncio
import contextvars
import json
import uuid
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

import steersman
from steersman.compat import (
    ClaudeSDKClient,
    ClaudeSDKError,
    CLIConnectionError,
    Message,
    ProcessError,
    ResultError,
    ResultMessage,
    StreamEvent,
    UserMessage,
    query,
)
from steersman.compat.parsing import parse_message, raw_of
from steersman.errors import RequestRefused
from tests.compat.canned import Canned, Line, answer, is_result, result, text_line, texts, user

LIMIT = 5.0


async def collect(stream: AsyncIterator[Message]) -> list[Message]:
    async with asyncio.timeout(LIMIT):
        return [message async for message in stream]


async def into(seen: list[Message], stream: AsyncIterator[Message]) -> None:
    """Collect messages, and keep those before an error."""
    async with asyncio.timeout(LIMIT):
        async for message in stream:
            seen.append(message)  # noqa: PERF401 - as above


async def prompts(*texts: str) -> AsyncIterator[Line]:
    for text in texts:
        yield user(text)


async def test_a_query_yields_the_messages_of_its_prompt_and_closes_the_transport() -> None:
    transport = Canned()

    messages = await collect(query(prompt="hi", transport=transport))

    assert texts(messages) == ["answer 1"]
    assert isinstance(messages[-1], ResultMessage)
    assert [each["message"]["content"] for each in transport.prompts] == ["hi"]
    assert transport.calls == ["connect", "end_input", "close"]


async def test_a_query_of_an_iterable_yields_the_messages_of_all_its_prompts() -> None:
    messages = await collect(query(prompt=prompts("a", "b"), transport=Canned()))

    assert texts(messages) == ["answer 1", "answer 2"]


async def test_a_query_over_a_transport_that_does_not_end_its_messages_ends_with_its_work() -> None:
    transport = Canned(ends=False)

    messages = await collect(query(prompt="hi", transport=transport))

    assert texts(messages) == ["answer 1"]
    assert transport.calls == ["connect", "end_input", "close"]


async def test_the_input_of_a_query_ends_at_once_unless_the_cli_may_ask_something() -> None:
    class Waits(Canned):
        """Answers when no more input comes, as a CLI that reads all of it first."""

        async def end_input(self) -> None:
            for each in answer({}, 1):
                self.say.send_nowait(each)
            await super().end_input()

    def asks(_: Line, __: int) -> list[Line]:
        asked = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {}, "tool_use_id": "t"}
        return [{"type": "control_request", "request_id": "r1", "request": asked}]

    async def deny(*_: Any) -> steersman.compat.PermissionResultDeny:
        had_ended.append("end_input" in asking.calls)
        asking.say.send_nowait(result("denied"))
        return steersman.compat.PermissionResultDeny()

    had_ended: list[bool] = []
    waits, asking = Waits(lambda *_: []), Canned(asks)
    options = steersman.compat.ClaudeAgentOptions(can_use_tool=deny)

    messages = await collect(query(prompt="hi", transport=waits))
    denied = await collect(query(prompt="hi", options=options, transport=asking))

    assert texts(messages) == ["answer 1"]
    assert had_ended == [False]
    assert [each.result for each in denied if isinstance(each, ResultMessage)] == ["denied"]
    assert [each["request_id"] for each in asking.responses] == ["r1"]


async def test_a_failing_iterable_ends_the_input_and_its_prompts_are_answered(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def failing() -> AsyncIterator[Line]:
        yield user("a")
        raise ValueError("no more")

    messages = await collect(query(prompt=failing(), transport=Canned()))

    assert texts(messages) == ["answer 1"]
    assert "no more" in caplog.text


async def test_a_loop_that_is_left_early_closes_the_transport() -> None:
    transport = Canned(ends=False)

    async with asyncio.timeout(LIMIT):
        stream = query(prompt="hi", transport=transport)
        await anext(stream)
        await stream.aclose()  # type: ignore[attr-defined]  # an async generator, as officially

    assert transport.calls.count("close") == 1


async def test_a_loop_that_is_left_by_break_closes_the_transport_unless_the_iterator_is_kept() -> (
    None
):
    kept, forgotten = Canned(ends=False), Canned(ends=False)

    async with asyncio.timeout(LIMIT):
        stream = query(prompt="hi", transport=kept)
        async for _ in stream:
            break
        async for _ in query(prompt="hi", transport=forgotten):
            break
        while "close" not in forgotten.calls:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0)
        was_open = "close" not in kept.calls
        await stream.aclose()  # type: ignore[attr-defined]  # an async generator, as officially

    assert was_open
    assert kept.calls.count("close") == 1


async def test_a_client_answers_prompt_after_prompt() -> None:
    transport = Canned(ends=False)

    async with asyncio.timeout(LIMIT), ClaudeSDKClient(transport=transport) as client:
        await client.query("a")
        first = await collect(client.receive_response())
        await client.query(prompts("b", "c"), session_id="mine")
        second = await collect(client.receive_response())
        third = await collect(client.receive_response())

    assert [texts(each) for each in (first, second, third)] == [
        ["answer 1"],
        ["answer 2"],
        ["answer 3"],
    ]
    assert [each["session_id"] for each in transport.prompts] == ["default", "mine", "mine"]
    assert transport.calls == ["connect", "close"]


async def test_a_transport_is_written_to_as_by_the_official_package() -> None:
    """Programs compare what their transports get, or look for parts of it."""
    written: list[str] = []

    class Seeing(Canned):
        async def write(self, data: str) -> None:
            written.append(data)
            await super().write(data)

    await collect(query(prompt='h\u00e9 "\u2028" \U0001f600 \x7f {"a":1}', transport=Seeing()))

    assert written[0].startswith('{"type": "control_request", "request_id": "')
    assert '"content": "h\\u00e9 \\"\\u2028\\" \\ud83d\\ude00 \\u007f {\\"a\\":1}"' in written[1]
    assert [json.dumps(json.loads(each)) + "\n" for each in written] == written


async def test_a_user_message_keeps_its_uuid_and_its_further_fields() -> None:
    own = str(uuid.uuid4())
    transport = Canned(ends=False)

    async def one() -> AsyncIterator[Line]:
        yield user("", uuid=own, session_id="own", extra={"a": 1}, parent_tool_use_id="t1")

    async with asyncio.timeout(LIMIT), ClaudeSDKClient(transport=transport) as client:
        await client.query(one())
        await collect(client.receive_response())

    assert transport.prompts == [
        user("", uuid=own, session_id="own", extra={"a": 1}, parent_tool_use_id="t1")
    ]


async def test_a_prompt_that_shared_a_turn_yields_its_result_again() -> None:
    def two_in_one(_: Line, number: int) -> list[Line]:
        if number == 1:
            return []
        both = [each["uuid"] for each in transport.prompts]
        return [text_line("both"), result("both", user_message_uuids=both)]

    transport = Canned(two_in_one, ends=False)

    async with asyncio.timeout(LIMIT), ClaudeSDKClient(transport=transport) as client:
        await client.query("a")
        await client.query("b")
        first = await collect(client.receive_response())
        second = await collect(client.receive_response())

    assert texts(first) == ["both"]
    assert [raw_of(each) for each in second] == [raw_of(first[-1])]


async def test_a_result_that_comes_again_carries_no_costs_again() -> None:
    model = {"inputTokens": 3, "outputTokens": 5, "costUSD": 0.5}

    def two_in_one(_: Line, number: int) -> list[Line]:
        both = [each["uuid"] for each in transport.prompts]
        spent = {
            "total_cost_usd": 0.5,
            "usage": {"input_tokens": 3, "iterations": [{"output_tokens": 5, "type": "message"}]},
            "modelUsage": {"canned": model},
            "permission_denials": [{"tool_name": "Bash"}],
        }
        return [] if number == 1 else [result("both", user_message_uuids=both, **spent)]

    transport = Canned(two_in_one, ends=False)

    async with asyncio.timeout(LIMIT), ClaudeSDKClient(transport=transport) as client:
        await client.query("a")
        await client.query("b")
        (first,) = await collect(client.receive_response())
        (second,) = await collect(client.receive_response())

    assert isinstance(first, ResultMessage)
    assert (first.total_cost_usd, first.num_turns, first.duration_ms) == (0.5, 1, 1)
    assert second == replace(
        first,
        total_cost_usd=0.0,
        usage={"input_tokens": 0, "iterations": [{"output_tokens": 0, "type": "message"}]},
        model_usage={},
        permission_denials=[],
        num_turns=0,
        duration_ms=0,
        duration_api_ms=0,
    )


async def test_a_response_is_read_through_what_replaces_receive_messages() -> None:
    """Instrumentation wraps that method, of the class or of a client, and programs override it."""
    seen: list[str] = []

    class Own(ClaudeSDKClient):
        async def receive_messages(self) -> AsyncIterator[Message]:
            async for message in super().receive_messages():
                seen.append(type(message).__name__)
                yield message
            seen.append("end")

    def two_in_one(_: Line, number: int) -> list[Line]:
        both = [each["uuid"] for each in transport.prompts]
        return [] if number == 1 else [text_line("both"), result("both", user_message_uuids=both)]

    transport = Canned(two_in_one, ends=False)

    async with asyncio.timeout(LIMIT), Own(transport=transport) as client:
        await client.query("a")
        await client.query("b")
        first = await collect(client.receive_response())
        second = await collect(client.receive_response())

    assert texts(first) == ["both"]
    assert len(second) == 1
    assert seen == ["AssistantMessage", "ResultMessage", "ResultMessage"]


async def test_a_response_of_a_replaced_receive_messages_needs_no_session() -> None:
    """As programs test what reads their clients."""
    client = ClaudeSDKClient()
    done = parse_message(result("fake"))

    async def fake() -> AsyncIterator[Message]:
        while True:
            assert done is not None
            yield done

    client.receive_messages = fake  # type: ignore[method-assign]

    assert await collect(client.receive_response()) == [done]


async def test_only_a_response_ends_with_a_prompt_that_shared_a_turn() -> None:
    def two_in_one(_: Line, number: int) -> list[Line]:
        both = [each["uuid"] for each in transport.prompts]
        return [] if number == 1 else [result("both", user_message_uuids=both)]

    transport = Canned(two_in_one, ends=False)

    async with asyncio.timeout(LIMIT), ClaudeSDKClient(transport=transport) as client:
        await client.query("a")
        await client.query("b")
        (first,) = await collect(client.receive_response())
        waiting = asyncio.create_task(_next(client.receive_messages()))
        await asyncio.sleep(0)
        (second,) = await collect(client.receive_response())
        was_waiting = not waiting.done()
        await client.query("c")
        await client.query("d")
        third = await waiting

    assert [is_result(each) for each in (first, second, third)] == [True, True, True]
    assert was_waiting


async def test_a_reader_that_begins_before_its_prompt_waits_for_it() -> None:
    async with asyncio.timeout(LIMIT), ClaudeSDKClient(transport=Canned(ends=False)) as client:
        await client.query("a")
        await collect(client.receive_response())
        reading = asyncio.create_task(collect(client.receive_response()))
        await asyncio.sleep(0)
        await client.query("b")

        assert texts(await reading) == ["answer 2"]


async def test_all_readers_share_one_cursor() -> None:
    async with asyncio.timeout(LIMIT), ClaudeSDKClient(transport=Canned(ends=False)) as client:
        await client.query("a")
        first = client.receive_messages()
        one = await anext(first)
        rest = await collect(client.receive_response())
        waiting = [asyncio.create_task(_next(client.receive_messages())) for _ in range(3)]
        await asyncio.sleep(0)
        await client.query("b")
        others = [await each for each in waiting]

    assert [getattr(one, "subtype", None), *texts(rest)] == ["init", "answer 1"]
    assert len({id(each) for each in others}) == 3
    assert texts(others) == ["answer 2"]


async def _next(stream: AsyncIterator[Message]) -> Message:
    return await anext(stream)


async def test_messages_end_when_an_iterable_given_to_connect_and_its_work_are_over() -> None:
    transport = Canned()
    client = ClaudeSDKClient(transport=transport)

    async with asyncio.timeout(LIMIT):
        await client.connect(prompts("a", "b"))
        messages = await collect(client.receive_messages())
        await client.disconnect()

    assert texts(messages) == ["answer 1", "answer 2"]
    assert transport.calls == ["connect", "end_input", "close"]


async def test_disconnecting_ends_a_reader_and_the_client_can_connect_again() -> None:
    transport = Canned(ends=False)
    client = ClaudeSDKClient(transport=transport)

    async with asyncio.timeout(LIMIT):
        await client.connect()
        reading = asyncio.create_task(collect(client.receive_messages()))
        await asyncio.sleep(0)
        await client.disconnect()
        assert await reading == []
        with pytest.raises(CLIConnectionError, match=r"Not connected\. Call connect\(\) first\."):
            await client.query("a")
        await client.connect("again")
        assert texts(await collect(client.receive_response())) == ["answer 1"]
        await client.disconnect()
        await client.disconnect()

    assert transport.calls == ["connect", "close"] * 2


async def test_control_methods_send_what_the_official_ones_send() -> None:
    transport = Canned(ends=False)

    async with asyncio.timeout(LIMIT), ClaudeSDKClient(transport=transport) as client:
        begun = len(transport.requests)
        assert await client.interrupt() is None  # type: ignore[func-returns-value]
        await client.set_permission_mode("plan")
        await client.set_model("m")
        await client.rewind_files("u")
        await client.reconnect_mcp_server("s")
        await client.toggle_mcp_server("s", enabled=False)
        await client.stop_task("t")
        answers: list[Any] = [await client.get_mcp_status(), await client.get_context_usage()]
        info = await client.get_server_info()

    assert transport.requests[begun:] == [
        {"subtype": "interrupt"},
        {"subtype": "set_permission_mode", "mode": "plan"},
        {"subtype": "set_model", "model": "m"},
        {"subtype": "rewind_files", "user_message_id": "u"},
        {"subtype": "mcp_reconnect", "serverName": "s"},
        {"subtype": "mcp_toggle", "serverName": "s", "enabled": False},
        # What became of it, for the next CLI.
        {"subtype": "mcp_status"},
        {"subtype": "stop_task", "task_id": "t"},
        {"subtype": "mcp_status"},
        {"subtype": "get_context_usage"},
    ]
    assert answers == [{"asked": "mcp_status"}, {"asked": "get_context_usage"}]
    assert info == {"asked": "initialize"}


async def test_a_refused_request_raises_the_reason_of_the_cli() -> None:
    transport = Canned(ends=False)
    transport.refused["set_model"] = "no such model"

    async with asyncio.timeout(LIMIT), ClaudeSDKClient(transport=transport) as client:
        with pytest.raises(ClaudeSDKError, match=r"^no such model$") as caught:
            await client.set_model("x")

    assert isinstance(caught.value.__cause__, RequestRefused)


async def test_an_exit_behind_an_error_result_is_a_result_error() -> None:
    def failing(_: Line, __: int) -> list[Line | Exception | None]:
        return [result("r", is_error=True, subtype="error_x", errors=["a", "b"]), died]

    died = ProcessError("failed", exit_code=7)
    seen: list[Message] = []

    with pytest.raises(ResultError, match=r"error result: a; b .exit code: 7.") as caught:
        await into(seen, query(prompt="hi", transport=Canned(failing)))

    assert [raw_of(each)["subtype"] for each in seen] == ["error_x"]
    assert caught.value.__cause__ is died
    assert caught.value.data == raw_of(seen[-1])


@pytest.mark.parametrize("method", ["connect", "write", "read", "close"])
async def test_what_a_transport_raises_reaches_the_caller_unchanged(method: str) -> None:
    def answers(prompt: Line, number: int) -> list[Line | Exception | None]:
        if method == "read":
            return [text_line("so far"), error]
        return [*answer(prompt, number)]

    error = KeyError("boom")
    transport = Canned(answers)
    transport.raises[method] = error
    seen: list[Message] = []

    with pytest.raises(KeyError) as caught:
        await into(seen, query(prompt="hi", transport=transport))

    assert caught.value is error
    assert texts(seen) == {"read": ["so far"], "close": ["answer 1"]}.get(method, [])
    assert transport.calls.count("close") == (0 if method == "connect" else 1)


async def test_a_transport_that_ends_in_mid_turn_ends_the_messages() -> None:
    transport = Canned(lambda *_: [text_line("so far"), None], ends=False)

    async with asyncio.timeout(LIMIT), ClaudeSDKClient(transport=transport) as client:
        await client.query("a")
        messages = await collect(client.receive_response())
        with pytest.raises(ProcessError):
            await client.set_model("x")

    assert texts(messages) == ["so far"]
    assert transport.calls == ["connect", "close"]


async def test_a_response_raises_what_the_transport_raised_while_it_read() -> None:
    error = OSError("cut off")
    transport = Canned(lambda *_: [text_line("so far"), error], ends=False)

    async with asyncio.timeout(LIMIT), ClaudeSDKClient(transport=transport) as client:
        await client.query("a")
        with pytest.raises(OSError, match="cut off") as caught:
            await collect(client.receive_response())

    assert caught.value is error


async def test_the_output_of_a_command_is_a_message_and_a_replayed_prompt_is_not() -> None:
    def replays(prompt: Line, _: int) -> list[Line]:
        told = "<local-command-stdout>Set model to x</local-command-stdout>"
        return [{**prompt, "isReplay": True}, {**user(told), "isReplay": True}, result("done")]

    messages = await collect(query(prompt="hi", transport=Canned(replays)))

    assert [each.content for each in messages if isinstance(each, UserMessage)] == [
        "<local-command-stdout>Set model to x</local-command-stdout>"
    ]


async def test_callbacks_run_in_the_context_of_the_query() -> None:
    of_the_query: contextvars.ContextVar[str] = contextvars.ContextVar("of_the_query", default="")
    seen: list[str] = []

    def asks(_: Line, __: int) -> list[Line]:
        asked = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {}, "tool_use_id": "t"}
        return [
            {"type": "system", "subtype": "init", "session_id": "s1"},
            {"type": "control_request", "request_id": "r1", "request": asked},
        ]

    async def allow(*_: Any) -> steersman.compat.PermissionResultAllow:
        seen.append(of_the_query.get())
        transport.say.send_nowait(result("done"))
        return steersman.compat.PermissionResultAllow()

    transport = Canned(asks, ends=False)
    options = steersman.compat.ClaudeAgentOptions(can_use_tool=allow)
    async with asyncio.timeout(LIMIT), ClaudeSDKClient(options, transport) as client:
        of_the_query.set("yes")
        await client.query("a")
        await collect(client.receive_response())

    assert seen == ["yes"]


@pytest.mark.parametrize("prompt", [5, ["text"], {"type": "user"}])
async def test_a_prompt_that_is_none_is_a_type_error(prompt: Any) -> None:
    with pytest.raises(TypeError, match="prompt: got"):
        await anext(query(prompt=prompt, transport=Canned()))


@pytest.mark.parametrize("prompt", [5, ["text"], {"type": "user"}])
async def test_a_client_does_not_connect_for_a_prompt_that_is_none(prompt: Any) -> None:
    transport = Canned()

    with pytest.raises(TypeError, match="prompt: got"):
        await ClaudeSDKClient(transport=transport).connect(prompt)

    assert transport.calls == []


async def test_the_native_session_is_behind_the_client() -> None:
    async with asyncio.timeout(LIMIT), ClaudeSDKClient(transport=Canned(ends=False)) as client:
        await client.query("a")
        await collect(client.receive_response())

        assert isinstance(client.session, steersman.Session)
        assert [turn.is_settled for turn in client.session.turns] == [True]


NO_PROMPTS: list[tuple[Any, str]] = [
    ("text", "prompt: got a str"),
    ({"type": "user"}, "prompt: got"),
    ({"type": "user", "message": "text"}, "prompt: got"),
    ({"type": "user", "message": {"role": "user"}}, "prompt: got"),
    ({"type": "assistant", "message": {"content": "x"}}, "a message of type 'assistant'"),
]


@pytest.mark.parametrize(("given", "said"), NO_PROMPTS)
async def test_what_is_no_user_message_is_refused_and_nothing_is_sent(
    given: Any, said: str
) -> None:
    async def one() -> AsyncIterator[Any]:
        yield given

    transport = Canned(ends=False)
    async with asyncio.timeout(LIMIT), ClaudeSDKClient(transport=transport) as client:
        with pytest.raises(ValueError, match=said):
            await client.query(one())

    assert transport.prompts == []


async def test_fields_of_a_user_message_that_a_session_has_become_its_own() -> None:
    async def several() -> AsyncIterator[Line]:
        yield user("a", uuid="no uuid", isSynthetic=True)
        yield {"message": {"content": "b"}, "priority": "now"}
        yield user("c", priority="nonsense")

    def all_in_one(_: Line, number: int) -> list[Line]:
        uuids = [each["uuid"] for each in transport.prompts]
        return [result("all", user_message_uuids=uuids)] if number == 3 else []

    transport = Canned(all_in_one, ends=False)
    async with asyncio.timeout(LIMIT), ClaudeSDKClient(transport=transport) as client:
        await client.query(several(), session_id="mine")
        await collect(client.receive_response())

    first, second, third = transport.prompts
    assert (first.get("priority"), second["priority"], third["priority"]) == (None, "now", "next")
    assert (first["isSynthetic"], first["session_id"]) == (True, "mine")
    assert first["uuid"] != "no uuid"
    assert (second["type"], second["message"]["content"]) == ("user", "b")


async def test_a_transport_has_its_own_conversation_whatever_the_options_resume() -> None:
    own = str(uuid.uuid4())
    resuming: Line = {"resume": own, "resume_session_at": own, "resume_drops_turn": own}
    for given in (resuming, {"continue_conversation": True, "fork_session": True}):
        options = steersman.compat.ClaudeAgentOptions(**given)
        client = ClaudeSDKClient(options, Canned(ends=False))
        async with asyncio.timeout(LIMIT), client:
            await client.query("a")
            messages = await collect(client.receive_response())
            used = client.session.options

        assert texts(messages) == ["answer 1"]
        assert [getattr(used, name) for name in resuming] == [None, None, None]
        assert (used.continue_conversation, used.fork_session, used.revive) == (False,) * 3


@pytest.mark.parametrize("shown", [True, False])
async def test_partial_messages_are_messages_if_they_were_asked_for(*, shown: bool) -> None:
    def partly(_: Line, __: int) -> list[Line]:
        partial = {"type": "stream_event", "uuid": "u", "session_id": "s1", "event": {"a": 1}}
        return [partial, text_line("whole"), result("done")]

    options = steersman.compat.ClaudeAgentOptions(include_partial_messages=shown)
    messages = await collect(query(prompt="hi", options=options, transport=Canned(partly)))

    assert texts(messages) == ["whole"]
    assert [each.event for each in messages if isinstance(each, StreamEvent)] == [{"a": 1}] * shown
