"""Lines of a host matched with recorded ones, and the messages about what differs: values only."""

from __future__ import annotations

import json
from typing import Any

import pytest

from steersman.transports.replay_drift import Drift, Drifted, first_difference
from steersman.transports.replay_matching import (
    Frame,
    IdMap,
    comparable_part,
    describe_request,
    inside,
    line_key,
    object_of,
)


@pytest.mark.parametrize(
    ("line", "found"), [(b'{"a":1}', {"a": 1}), (b"[1]", {}), (b"{broken", {}), (b"", {})]
)
def test_a_line_without_an_object_is_an_empty_one(line: bytes, found: Frame) -> None:
    assert object_of(line) == found


def test_a_field_without_an_object_is_an_empty_one() -> None:
    assert inside({"a": {"b": 1}}, "a") == {"b": 1}
    assert inside({"a": 5}, "a") == inside({}, "a") == {}


@pytest.mark.parametrize(
    ("frame", "key", "part"),
    [
        (
            {"type": "user", "message": {"content": "hi"}, "uuid": "u", "priority": "now"},
            ("prompt", ""),
            {"content": [{"type": "text", "text": "hi"}], "priority": "now"},
        ),
        (
            {"type": "user", "message": {"content": [1]}, "session_id": "s", "parent": None},
            ("prompt", ""),
            {"content": [1]},
        ),
        (
            {"type": "control_request", "request_id": "q", "request": {"subtype": "x", "a": None}},
            ("request", "x"),
            {"subtype": "x"},
        ),
        (
            {"type": "control_response", "response": {"request_id": "q", "response": {"a": 1}}},
            ("answer", "q"),
            {"response": {"a": 1}},
        ),
        (
            {"type": "control_cancel_request", "request_id": "q"},
            ("cancel", "q"),
            {"type": "control_cancel_request"},
        ),
        ({"type": "new", "request_id": "q"}, ("line", "new"), {"type": "new"}),
        ({}, ("line", "None"), {}),
    ],
)
def test_a_line_has_a_key_and_a_part_that_is_alike_in_every_run(
    frame: Frame, key: tuple[str, str], part: Frame
) -> None:
    assert line_key(frame) == key
    assert comparable_part(frame) == part


@pytest.mark.parametrize(
    ("request_fields", "text"),
    [
        (
            {"subtype": "can_use_tool", "tool_name": "Bash", "tool_use_id": "t"},
            "the permission for Bash (t)",
        ),
        (
            {
                "subtype": "hook_callback",
                "callback_id": "h",
                "input": {"hook_event_name": "PreToolUse", "tool_name": "Bash"},
            },
            "the PreToolUse hook h at Bash",
        ),
        (
            {"subtype": "hook_callback", "callback_id": "h", "input": {"hook_event_name": "Stop"}},
            "the Stop hook h",
        ),
        (
            {
                "subtype": "mcp_message",
                "server_name": "box",
                "message": {"method": "tools/call", "params": {"name": "add"}},
            },
            "tools/call add of the MCP server box",
        ),
        (
            {"subtype": "mcp_message", "server_name": "box", "message": {"method": "tools/list"}},
            "tools/list of the MCP server box",
        ),
        ({"subtype": "new"}, "the control request new"),
    ],
)
def test_a_request_is_described(request_fields: Frame, text: str) -> None:
    assert describe_request(request_fields) == text


def test_ids_are_replaced_in_both_directions_and_numbers_only_as_request_ids() -> None:
    ids = IdMap()
    ids.pair_sessions("old-session", "new-session")
    ids.learn({"type": "user", "uuid": "u1"}, {"uuid": "u2"})
    ids.learn({"type": "control_request", "request_id": "1"}, {"request_id": "7"})
    ids.learn({"type": "new", "uuid": "x"}, {"uuid": "y"})

    taped = b'{"type":"control_response","request_id": "1","n":"1","u":"u1","p":"/old-session/x"}'
    live = b'{"type":"control_response","request_id": "7","n":"1","u":"u2","p":"/new-session/x"}'
    assert ids.to_live(taped) == live
    assert ids.to_live(b'{"request_id":"1","x":"x"}') == b'{"request_id":"1","x":"x"}'
    assert ids.to_live(b'"control_response" "request_id":"2"').endswith(b'"2"')
    assert ids.to_tape(b'"u2" new-session "7"') == b'"u1" old-session "7"'
    assert ids.recorded(("cancel", "7")) == ("cancel", "1")
    assert ids.recorded(("cancel", "8")) == ("cancel", "8")
    assert ids.recorded(("answer", "7")) == ("answer", "7")
    assert IdMap().to_live(b"a") == IdMap().to_tape(b"a") == b"a"


def test_a_drift_shows_the_first_difference_and_both_sides() -> None:
    drift = Drift("prompt 1 differs", {"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}, seq=4, track=2)

    assert str(drift).split("\n") == [
        "prompt 1 differs (track 2, entry 4)",
        "  first difference: a[1].b: 2 became 3",
        '  recorded: {"a":[1,{"b":2}]}',
        '  came:     {"a":[1,{"b":3}]}',
    ]
    assert str(Drift("nothing came", 5)) == (
        "nothing came (track 0, entry 0)\n  recorded: 5\n  came:     nothing"
    )


def test_a_long_value_is_cut_and_says_so() -> None:
    short, long = "x" * 398, "x" * 399

    assert f"recorded: {json.dumps(short)}\n" in str(Drift("w", short, 1))
    assert json.dumps(long) not in str(Drift("w", long, 1))


def test_all_drifts_are_in_the_error() -> None:
    error = Drifted(iter([Drift("one"), Drift("two")]))

    assert [each.what for each in error.drifts] == ["one", "two"]
    assert error.what.startswith("this replay differs from its recording:\none (track 0")
    assert "\ntwo (track 0" in error.what
    assert error.hint == "if the change is intended, record the cassette again"


@pytest.mark.parametrize(
    ("one", "other", "path"),
    [
        ({"a": 1}, {"a": 1}, None),
        ({"a": 1}, {"a": 2}, "a"),
        ({"a": 1}, {}, "a"),
        ({}, {"a": 1}, "a"),
        ({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}}, "a.c"),
        ([1], [1, 2], "[1]"),
        ([1], [1], None),
        ([1], {"a": 1}, ""),
    ],
)
def test_the_first_difference_has_a_path(one: Any, other: Any, path: str | None) -> None:
    found = first_difference(one, other)

    assert (None if found is None else found[0]) == path
