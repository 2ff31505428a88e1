from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.messages import (
    Assistant,
    Init,
    Result,
    ToolResultBlock,
    User,
    format_cost,
    is_result,
    parse_message,
    text_of,
    tool_results_of,
    tool_uses_of,
)
from tests.samples import frames, sample


def test_the_words_of_a_message_are_found_whatever_its_class() -> None:
    blocks = [{"type": "text", "text": "a"}, {"type": "thinking"}, {"type": "text", "text": "b"}]
    delta = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "piece"}}
    messages = [
        parse_message(frame)
        for frame in (
            {"type": "assistant", "message": {"content": blocks}},
            {"type": "user", "message": {"content": "typed"}},
            {"type": "user", "message": {"content": blocks}},
            {"type": "result", "result": "answer"},
            {"type": "result"},
            {"type": "stream_event", "event": delta},
            {"type": "stream_event", "event": {"type": "message_stop"}},
            {"type": "brand_new", "text": "not ours"},
        )
    ]

    assert [text_of(each) for each in messages] == [
        *("ab", "typed", "ab", "answer", "", "piece", "", "")
    ]


def test_the_tools_of_a_conversation_and_their_results_are_found() -> None:
    messages = [parse_message(frame) for frame in frames("multi_turn_tools")]

    asked = [block.id for message in messages for block in tool_uses_of(message)]
    answered = [block.tool_use_id for message in messages for block in tool_results_of(message)]

    assert asked
    assert sorted(asked) == sorted(answered)


def test_a_prompt_of_plain_text_holds_no_tools() -> None:
    prompt = parse_message({"type": "user", "message": {"content": "hi"}})

    assert (tool_uses_of(prompt), tool_results_of(prompt)) == ([], [])
    assert tool_results_of(Init()) == []


def test_results_are_found_in_order() -> None:
    frame = {
        "type": "user",
        "message": {
            "content": [
                {"type": "tool_result", "tool_use_id": "one", "content": "1"},
                {"type": "text", "text": "between"},
                {"type": "tool_result", "tool_use_id": "two", "is_error": True},
            ]
        },
    }

    assert tool_results_of(parse_message(frame)) == [
        ToolResultBlock(tool_use_id="one", content="1"),
        ToolResultBlock(tool_use_id="two", is_error=True),
    ]


def test_only_a_result_is_one() -> None:
    assert is_result(parse_message(sample("result")))
    assert [is_result(each) for each in (Assistant(), User(), Init(), Result())] == [
        *(False, False, False, True)
    ]


@pytest.mark.parametrize(
    ("usd", "text"),
    [
        (0.0234, "$0.0234"),
        (0.5, "$0.5000"),
        (0.99999, "$1.00"),
        (0, "$0.00"),
        (0.00001, "<$0.0001"),
        (0.0001, "$0.0001"),
        (1, "$1.00"),
        (12.345, "$12.35"),
        (1234.5, "$1,234.50"),
        (-0.02, "-$0.0200"),
        (-0.00001, "-<$0.0001"),
        (None, "unknown"),
        (math.nan, "unknown"),
        (math.inf, "unknown"),
    ],
)
def test_a_cost_is_written_for_people(usd: float | None, text: str) -> None:
    assert format_cost(usd) == text


@given(usd=st.floats(0, 1e9))
def test_a_cost_is_never_written_far_from_what_it_is(usd: float) -> None:
    text = format_cost(usd)

    written = float(text.lstrip("<$").replace(",", ""))
    assert abs(written - usd) <= (0.0001 if usd < 1 else 0.0051)
