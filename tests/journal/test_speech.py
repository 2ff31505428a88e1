"""What the books read off a line must be what the decoded message says."""

from __future__ import annotations

import json

import pytest

from steersman.journal.speech import LARGE, Said, speech_on
from steersman.messages import Assistant, TextBlock, UnknownBlock, parse_message
from tests.samples import Frame, lines, sample, traces


def line_of(*blocks: Frame, **fields: object) -> bytes:
    body = {"id": "m1", "content": list(blocks)}
    return json.dumps({"type": "assistant", "message": body, **fields}).encode()


def test_every_recorded_line_of_text_says_what_its_message_says() -> None:
    recorded = [line for trace in traces() for line in lines(trace)]
    compared = 0

    for line in recorded:
        if not line.startswith(b'{"type":"assistant"'):
            continue
        message, speech = parse_message(line), speech_on(line)
        assert isinstance(message, Assistant)
        assert (speech is None) == (bool(message.tool_uses) or len(line) >= LARGE)
        if speech is not None:
            compared += 1
            assert "".join(text for _, text in speech.texts) == message.text
            assert speech.uuid == message.uuid
            assert speech.parent_tool_use_id == message.parent_tool_use_id

    assert compared


def test_a_line_with_a_tool_call_is_left_to_those_who_decode_it() -> None:
    assert speech_on(line_of({"type": "tool_use", "id": "t1", "name": "Bash"})) is None


def test_a_large_line_is_decoded_only_once_by_those_who_want_it_whole() -> None:
    assert speech_on(line_of({"type": "text", "text": "x" * LARGE})) is None


def test_a_text_about_tool_calls_is_no_tool_call() -> None:
    speech = speech_on(line_of({"type": "text", "text": 'say {"type":"tool_use"}'}))

    assert speech is not None
    assert speech.texts == [("m1", 'say {"type":"tool_use"}')]


@pytest.mark.parametrize("line", [b"", b"[]", b'{"message": 1}', b'{"uuid": 1}', b"\xff"])
def test_a_line_of_another_shape_is_left_to_those_who_decode_it(line: bytes) -> None:
    assert speech_on(line) is None


def test_only_prose_is_text() -> None:
    speech = speech_on(
        line_of({"type": "thinking", "thinking": "hm"}, {"type": "new", "text": "no"})
    )

    assert speech is not None
    assert speech.texts == []


@pytest.mark.parametrize("fields", [{"parent_tool_use_id": "t1"}, {"is_api_error_message": True}])
def test_subagents_and_errors_of_the_api_are_not_the_main_agent(fields: Frame) -> None:
    speech = speech_on(line_of({"type": "text", "text": "x"}, **fields))

    assert speech is not None
    assert not speech.is_of_main_agent


def test_blocks_are_decoded_once_and_those_that_are_new_are_kept() -> None:
    said = Said((line_of({"type": "text", "text": "a"}), line_of({"type": "new", "b": 1})))

    blocks = said.blocks

    assert blocks == (TextBlock(text="a"), UnknownBlock(type="new"))
    assert blocks[1].raw == {"type": "new", "b": 1}
    assert said.blocks is blocks


def test_what_was_said_is_equal_when_its_blocks_are() -> None:
    line = json.dumps(sample("assistant")).encode()

    assert Said((line,)) == Said((line,))
    assert Said((line,)) != Said()
    assert repr(Said((line,))) == "Said(1 lines)"
