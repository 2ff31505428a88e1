from __future__ import annotations

import json
from typing import Any, get_args

import pytest
from hypothesis import given

from steersman.messages import StreamEvent, parse_message
from steersman.messages.streaming import (
    ContentBlockDelta,
    KnownDelta,
    KnownEvent,
    TextDelta,
    UnknownDelta,
    UnknownEvent,
    read_event,
)
from tests.samples import Frame, alone, frames, traces
from tests.samples.strategies import ANY_JSON

EVENTS: list[Frame] = [
    *(frame for trace in traces() for frame in frames(trace) if frame["type"] == "stream_event"),
    *alone("recorded", "events"),
    *alone("declared", "events"),
]


def words_of(union: Any) -> set[str]:
    return {str(cls.__struct_config__.tag) for cls in get_args(union)}


def test_every_event_and_every_delta_has_a_sample() -> None:
    events = {frame["event"]["type"] for frame in EVENTS}
    deltas = {frame["event"].get("delta", {}).get("type") for frame in EVENTS} - {None}

    assert events == words_of(KnownEvent)
    assert deltas == words_of(KnownDelta)


def test_every_event_is_read_in_its_class_and_kept_whole() -> None:
    for frame in EVENTS:
        message = parse_message(frame)
        assert isinstance(message, StreamEvent)

        event = message.typed()

        assert event.__struct_config__.tag == frame["event"]["type"]
        assert event.raw == frame["event"]
        if isinstance(event, ContentBlockDelta):
            assert event.delta.__struct_config__.tag == frame["event"]["delta"]["type"]
            assert event.delta.raw == frame["event"]["delta"]


def test_a_piece_of_text_is_two_patterns_away() -> None:
    delta = {"type": "text_delta", "text": "hi"}
    message = StreamEvent(event={"type": "content_block_delta", "index": 1, "delta": delta})

    match message.typed():
        case ContentBlockDelta(index=index, delta=TextDelta(text=text)):
            assert (index, text) == (1, "hi")
        case other:
            raise AssertionError(other)


def test_an_event_or_a_piece_newer_than_this_release_is_kept() -> None:
    delta = {"type": "brand_new_delta", "x": 1}

    event = read_event({"type": "content_block_delta", "delta": delta})

    assert read_event({"type": "brand_new", "x": 1}) == UnknownEvent(type="brand_new")
    assert event == ContentBlockDelta(delta=UnknownDelta(type="brand_new_delta"))  # type: ignore[arg-type]  # read, not made
    assert StreamEvent(event={"type": "content_block_delta", "delta": delta}).typed() == event


@pytest.mark.parametrize("kind", sorted(words_of(KnownEvent)))
@given(strange=ANY_JSON)
def test_no_event_is_too_strange(kind: str, strange: Any) -> None:
    event = {"type": kind, "index": strange, "delta": strange, "message": strange}
    message = StreamEvent(event=event)

    typed = message.typed()

    assert json.dumps(typed.raw) == json.dumps(event)
