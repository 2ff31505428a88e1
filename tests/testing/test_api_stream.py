from __future__ import annotations

from typing import Any

from steersman.testing.api_stream import error_body, stream_of, whole_message, with_ids
from steersman.testing.script import (
    Cut,
    Fail,
    Stall,
    Usage,
    call,
    cut,
    fail,
    say,
    stall,
    step,
    think,
)

USAGE = {
    "input_tokens": 100,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
    "output_tokens": 1,
}


def start_of(usage: dict[str, int] = USAGE) -> list[dict[str, Any]]:
    message: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "opus",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    return [{"type": "message_start", "message": message}, {"type": "ping"}]


def block(index: int, empty: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": empty},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
    ]


def end_of(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def closing(stop_reason: str, output_tokens: int) -> list[dict[str, Any]]:
    delta = {"stop_reason": stop_reason, "stop_sequence": None}
    usage = {**USAGE, "output_tokens": output_tokens}
    return [{"type": "message_delta", "delta": delta, "usage": usage}, {"type": "message_stop"}]


EMPTY_TEXT = {"type": "text", "text": ""}


def text_delta(text: str) -> dict[str, Any]:
    return {"type": "text_delta", "text": text}


def test_a_text_is_one_block_of_its_chunks() -> None:
    events = list(stream_of(say(chunks=["he", "llo"]), "opus", "msg_1"))

    assert events == [
        *start_of(),
        *block(0, EMPTY_TEXT, text_delta("he"), text_delta("llo")),
        end_of(0),
        *closing("end_turn", 2),
    ]


def test_thinking_is_signed_and_a_call_comes_as_pieces_of_json() -> None:
    answer = think("hm", "signed") + call("Bash", command="ls", id_="toolu_1")

    events = list(stream_of(answer, "opus", "msg_1"))

    assert events == [
        *start_of(),
        *block(
            0,
            {"type": "thinking", "thinking": "", "signature": ""},
            {"type": "thinking_delta", "thinking": "hm"},
            {"type": "signature_delta", "signature": "signed"},
        ),
        end_of(0),
        *block(
            1,
            {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {}},
            {"type": "input_json_delta", "partial_json": ""},
            {"type": "input_json_delta", "partial_json": '{"comman'},
            {"type": "input_json_delta", "partial_json": 'd": "ls"}'},
        ),
        end_of(1),
        *closing("tool_use", 5),
    ]


def test_a_block_is_open_while_the_model_stalls_and_goes_on_after_it() -> None:
    events = list(stream_of(say("half") + stall() + say(" rest"), "opus", "msg_1"))

    assert events == [
        *start_of(),
        *block(0, EMPTY_TEXT, text_delta("half")),
        Stall(),
        {"type": "content_block_delta", "index": 0, "delta": text_delta(" rest")},
        end_of(0),
        *closing("end_turn", 3),
    ]


def test_nothing_comes_after_a_cut() -> None:
    events = list(stream_of(say("half") + cut() + say("lost"), "opus", "msg_1"))

    assert events == [*start_of(), *block(0, EMPTY_TEXT, text_delta("half")), Cut()]


def test_nothing_comes_before_a_failure_so_that_it_can_be_a_status() -> None:
    assert list(stream_of(stall(1) + fail(529), "opus", "msg_1")) == [
        Stall(1),
        Fail(529, "scripted failure"),
    ]


def test_an_empty_step_is_an_empty_message() -> None:
    assert list(stream_of(step(), "opus", "msg_1")) == [*start_of(), *closing("end_turn", 1)]


def test_a_whole_message_holds_what_the_stream_would_have_told() -> None:
    answer = say("a") + stall() + say("b") + call("Bash", command="ls", id_="toolu_1") + think("hm")
    usage = Usage(5, 6, 7, 8)

    message = whole_message(answer.using(usage).stopping("max_tokens"), "opus", "msg_1")

    assert message == {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "opus",
        "content": [
            {"type": "text", "text": "ab"},
            {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}},
            {"type": "thinking", "thinking": "hm", "signature": "scripted-signature"},
        ],
        "stop_reason": "max_tokens",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 5,
            "output_tokens": 6,
            "cache_creation_input_tokens": 7,
            "cache_read_input_tokens": 8,
        },
    }


def test_calls_without_an_id_get_one_and_others_keep_theirs() -> None:
    ids = iter(["new"])

    answer = with_ids(call("Bash") + call("Read", id_="old"), lambda: next(ids))

    assert answer == call("Bash", id_="new") + call("Read", id_="old")


def test_an_error_has_the_shape_of_the_api() -> None:
    assert error_body(Fail(529, "busy")) == {
        "type": "error",
        "error": {"type": "overloaded_error", "message": "busy"},
    }
    assert error_body(Fail(500, "broken"))["error"]["type"] == "api_error"
