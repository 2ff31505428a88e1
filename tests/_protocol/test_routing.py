from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from steersman import _json
from steersman._protocol.routing import (
    RoutingFields,
    plain_value,
    read_routing,
    read_stream_event,
)
from steersman._struct import DECODE_ERRORS
from steersman.control import SetModel
from tests.samples import lines, traces
from tests.samples.strategies import ANY_JSON, broken_frames, shapes

SHAPES = shapes()


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"plain words",
        b"[1]",
        b"7",
        b"null",
        b'"text"',
        b'{"type":',
        b'{"a":1}{"b":2}',
        b"\xff",
    ],
)
def test_what_is_not_a_json_object_has_no_route(line: bytes) -> None:
    assert read_routing(line) is None


@pytest.mark.parametrize("trace", traces())
def test_every_recorded_line_has_a_route_with_its_own_words(trace: str) -> None:
    for line in lines(trace):
        frame = json.loads(line)

        found = read_routing(line)

        assert found is not None
        assert (found.type, found.subtype, found.uuid, found.session_id) == (
            frame["type"],
            frame.get("subtype"),
            frame.get("uuid"),
            frame.get("session_id"),
        )


@given(frame=broken_frames(SHAPES))
def test_a_broken_frame_has_a_route_that_keeps_what_is_sound(frame: dict[str, Any]) -> None:
    line = json.dumps(frame).encode()

    found = read_routing(line)

    assert found is not None
    sound = {key: frame[key] for key in ("type", "request_id", "uuid") if _is_text(frame, key)}
    assert {key: getattr(found, key) for key in sound} == json.loads(json.dumps(sound))


def _is_text(frame: dict[str, Any], key: str) -> bool:
    return isinstance(frame.get(key), str)


@given(request=ANY_JSON)
def test_a_request_is_unpacked_as_it_came_whatever_stands_beside_it(request: Any) -> None:
    frame = {"type": "control_request", "uuid": ["not a text"], "request": request}

    found = read_routing(json.dumps(frame).encode())

    assert found is not None
    assert plain_value(found.request) == json.loads(json.dumps(request))


def test_a_line_without_a_request_unpacks_to_an_empty_one() -> None:
    assert plain_value(RoutingFields().request) == {}


@given(value=ANY_JSON)
def test_what_we_say_is_one_line_of_json(value: Any) -> None:
    line = _json.dump_line({"value": value})

    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert json.loads(line) == json.loads(json.dumps({"value": value}))


def test_a_verb_can_be_said_beside_a_lone_surrogate() -> None:
    line = _json.dump_line({"request": SetModel(model="\ud800"), "number": float("nan")})

    assert _json.loads(line) == {
        "request": {"subtype": "set_model", "model": "\ud800"},
        "number": None,
    }


def test_every_recorded_piece_is_read_as_its_route_says() -> None:
    pieces = [line for trace in traces() for line in lines(trace) if b'"stream_event"' in line[:24]]

    assert pieces
    for line in pieces:
        piece, found = read_stream_event(line), read_routing(line)
        assert found is not None
        assert piece.parent_tool_use_id == found.parent_tool_use_id
        assert piece.abandoned_blocks == json.loads(line).get("abandoned_blocks")


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"[]",
        b'{"type":"stream_event"',
        b'{"type":"stream_event","type":"assistant"}',
        b'{"type":"stream_event","parent_tool_use_id":1}',
        b'{"type":"assistant"}',
    ],
)
def test_what_is_no_piece_or_has_another_shape_is_not_read_as_one(line: bytes) -> None:
    with pytest.raises(DECODE_ERRORS):
        read_stream_event(line)
