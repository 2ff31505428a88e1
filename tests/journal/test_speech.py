"""What the books read off a line must be what the decoded message says."""

from __future__ import annotations

import json

import pytest

from steersman.journal.speech import Said
from steersman.messages import Assistant, TextBlock, UnknownBlock, parse_message
from tests.samples import lines, sample, traces


def line_of(*blocks: object, **fields: object) -> bytes:
    body = {"id": "m1", "content": list(blocks)}
    return json.dumps({"type": "assistant", "message": body, **fields}).encode()


def test_every_recorded_line_says_what_its_message_says() -> None:
    recorded = [line for trace in traces() for line in lines(trace)]
    compared = 0

    for line in recorded:
        message = parse_message(line)
        if isinstance(message, Assistant):
            compared += 1
            assert Said((line,)).text == message.text
            assert Said((line,)).blocks == tuple(message.content)

    assert compared


@pytest.mark.parametrize(
    "line",
    [
        line_of(message={"id": 1, "content": [{"type": "text", "text": "a"}]}),
        line_of({"type": "text", "text": "a"}, {"type": "text", "text": 1}),
        line_of({"type": "text", "text": "a"}, "no block"),
    ],
)
def test_a_line_of_another_shape_says_what_can_be_read_of_it(line: bytes) -> None:
    assert Said((line,)).text == "a"


def test_a_line_that_is_no_message_says_nothing() -> None:
    assert Said((b'{"type":"new","message":1}',)).text == ""


def test_only_prose_is_text() -> None:
    said = Said((line_of({"type": "thinking", "thinking": "hm"}, {"type": "new", "text": "no"}),))

    assert (said.text, said.answer) == ("", "")


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
