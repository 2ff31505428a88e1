from __future__ import annotations

import itertools
import json
import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from steersman._protocol.connection import Connection
from steersman._protocol.events import (
    Answered,
    DialogAsked,
    ElicitationAsked,
    Event,
    HookAsked,
    LineDropped,
    MessageArrived,
    NoiseReceived,
    PermissionAsked,
    StateReported,
    StreamEventsArrived,
    ToolCalled,
    TurnSettled,
    TurnStarted,
    Unanswerable,
    Withdrawn,
)
from steersman.control import Answer, Initialized, Interrupt, InterruptReceipt, ModelSet, SetModel
from steersman.errors import RequestRefused, RequestTimeout
from steersman.hooks import PreToolUse
from steersman.journal import Kind
from steersman.messages import parse_message
from steersman.permissions import Allow, CanUseTool, Deny
from tests._protocol.conversations import TOKEN, hooks_of, open_connection, with_uuids
from tests.samples import Frame, encoded, frames, kind_of, sample, traces
from tests.samples.strategies import ANY_JSON, ANY_TEXT, broken_frames, chunks, every_break, shapes

SHAPES = shapes()
OF_A_TURN = ("assistant", "user", "stream_event", "result")
REQUESTS = [frame for frame in SHAPES if frame["type"] == "control_request"]
ASKED = (PermissionAsked, ElicitationAsked, DialogAsked, HookAsked, ToolCalled, Unanswerable)
SPOKEN = [trace for trace in traces() if frames(trace)]

Dialogues = {trace: with_uuids(trace) for trace in SPOKEN}


def line_of(frame: Any) -> bytes:
    return json.dumps(frame).encode() + b"\n"


def connection() -> Connection:
    return Connection(TOKEN, {"hook_0": PreToolUse})


def asking(request_id: str = "q", **request: Any) -> bytes:
    return line_of({"type": "control_request", "request_id": request_id, "request": request})


def question(request_id: str = "q", **fields: Any) -> bytes:
    return asking(request_id, subtype="can_use_tool", tool_name="Bash", input={}, **fields)


def tool_call(request_id: str, server: str, **message: Any) -> bytes:
    return asking(request_id, subtype="mcp_message", server_name=server, message=message)


def response(**fields: Any) -> bytes:
    return line_of({"type": "control_response", "response": fields})


def without_arrivals(events: list[Event]) -> list[Event]:
    return [event for event in events if not isinstance(event, MessageArrived)]


def told(conn: Connection, pieces: list[bytes]) -> list[str]:
    """What was told, in a form that compares errors by what they say."""
    return [repr(event) for piece in [*pieces, b""] for event in conn.receive(piece)]


# Any way to cut a stream


@given(trace=st.sampled_from(SPOKEN), data=st.data())
def test_any_chunking_of_any_recorded_trace_gives_the_same_events(
    trace: str, data: st.DataObject
) -> None:
    whole, stream = open_connection(Dialogues[trace])
    cut, _same = open_connection(Dialogues[trace])
    pieces = data.draw(chunks(stream))

    assert told(cut, pieces) == told(whole, [stream])


@pytest.mark.parametrize("trace", SPOKEN)
def test_carriage_returns_change_nothing(trace: str) -> None:
    plain, stream = open_connection(Dialogues[trace])
    other, _same = open_connection(Dialogues[trace])

    assert told(other, [stream.replace(b"\n", b"\r\n")]) == told(plain, [stream])


def test_a_character_may_be_cut_in_two_anywhere() -> None:
    whole, stream = open_connection(Dialogues["handshake_bare"])
    inside = [at for at, byte in enumerate(stream) if byte & 0b1100_0000 == 0b1000_0000]
    cuts = [0, *inside, len(stream)]
    cut, _same = open_connection(Dialogues["handshake_bare"])

    seen = told(cut, [stream[a:b] for a, b in itertools.pairwise(cuts)])

    assert len(inside) > 50
    assert seen == told(whole, [stream])


@given(trace=st.sampled_from(SPOKEN), data=st.data())
def test_noise_is_kept_aside_in_order_and_disturbs_nothing(trace: str, data: st.DataObject) -> None:
    quiet, stream = open_connection(Dialogues[trace])
    noisy, _same = open_connection(Dialogues[trace])
    lines = stream.splitlines(keepends=True)
    noise = [b"[debug] %d" % number for number in range(data.draw(st.integers(1, 5)))]
    places = sorted(data.draw(st.integers(0, len(lines))) for _ in noise)
    for at, words in reversed(list(zip(places, noise, strict=True))):
        lines.insert(at, words + b"\n")

    events = [
        event for piece in data.draw(chunks(b"".join(lines))) for event in noisy.receive(piece)
    ]

    heard = [event.line for event in events if isinstance(event, NoiseReceived)]
    rest = [repr(event) for event in events if not isinstance(event, NoiseReceived)]
    assert heard == noise
    assert rest == told(quiet, [stream])


def test_every_recorded_line_arrives_once_and_in_order() -> None:
    for trace in SPOKEN:
        conn, stream = open_connection(Dialogues[trace])

        arrived = [
            event.line for event in conn.receive(stream) if isinstance(event, MessageArrived)
        ]

        assert arrived == stream.splitlines()


def test_a_line_over_the_limit_is_told_of_and_the_next_one_is_read() -> None:
    conn = Connection(TOKEN, limit=1000)
    long, next_one = (
        line_of({"type": "assistant", "text": "x" * 2000}),
        line_of({"type": "keep_alive"}),
    )

    dropped, arrived = conn.receive(long + next_one)

    assert isinstance(dropped, LineDropped)
    assert (dropped.oversize.size, dropped.oversize.head) == (len(long) - 1, long[:200])
    assert arrived == MessageArrived(next_one[:-1], Kind.MESSAGE, (), "keep_alive")


@pytest.mark.parametrize(
    ("request_", "callback_id"),
    [
        ({"subtype": "can_use_tool", "tool_name": "Write"}, ""),
        ({"subtype": "hook_callback", "callback_id": "hook_0"}, "hook_0"),
    ],
)
def test_a_control_request_over_the_limit_is_dropped_and_refused_once(
    request_: dict[str, str], callback_id: str
) -> None:
    conn = Connection(TOKEN, limit=1000)
    asked = {"type": "control_request", "request_id": "r1", "request": request_}
    long = line_of({**asked, "request": {**request_, "input": "x" * 2000}})

    dropped, refused, *again = conn.receive(long + long)

    assert isinstance(dropped, LineDropped)
    assert isinstance(refused, Unanswerable)
    assert (refused.request_id, refused.callback_id) == ("r1", callback_id)
    assert "max_buffer_size" in refused.reason
    assert [type(event) for event in again] == [LineDropped]
    assert b'"r1"' in conn.refuse("r1", refused.reason)


def test_a_long_line_that_only_quotes_a_control_request_is_not_refused() -> None:
    conn = Connection(TOKEN, limit=1000)
    quoted = {"type": "control_request", "request_id": "r1"}

    events = conn.receive(line_of({"type": "user", "message": quoted, "text": "x" * 2000}))

    assert [type(event) for event in events] == [LineDropped]


def test_a_line_of_300_mb_costs_that_line_and_the_next_turn_works() -> None:
    conn, chunk = connection(), b"x" * 65536
    conn.prompt("a", "hi")
    quiet = [conn.receive(chunk) for _ in range(300 * 1024 * 1024 // len(chunk))]

    dropped, *events = conn.receive(
        b"\n" + line_of({"type": "result", "user_message_uuids": ["a"]})
    )

    assert not any(quiet)
    assert isinstance(dropped, LineDropped)
    assert dropped.oversize.size == 300 * 1024 * 1024
    assert [event.uuid for event in events if isinstance(event, TurnSettled)] == ["a"]


# Anything the CLI may say


@pytest.mark.parametrize("kind", sorted({kind_of(frame) for frame in SHAPES}))
def test_no_dropped_or_retyped_key_of_any_recorded_frame_stops_the_reader(kind: str) -> None:
    for whole in (frame for frame in SHAPES if kind_of(frame) == kind):
        for frame in every_break(whole):
            conn = connection()
            line = line_of(frame)

            events = conn.receive(line)

            assert isinstance(events[0], MessageArrived)
            assert events[0].line == line[:-1]
            is_asked = frame.get("type") == "control_request" and isinstance(
                frame.get("request_id"), str
            )
            assert [isinstance(event, ASKED) for event in events[1:]].count(True) == is_asked


@given(frame=broken_frames(SHAPES), uuids=st.lists(st.sampled_from(["a", "b"]), max_size=3))
@example(frame={"type": "system", "subtype": "init"}, uuids=[])
def test_any_json_in_any_place_arrives_as_it_came(frame: Frame, uuids: list[str]) -> None:
    conn = connection()
    conn.prompt("a", "hi")
    conn.control("anything", {}, 0.0, 1.0)
    named = {**frame, "user_message_uuids": uuids} if uuids else frame
    line = line_of(named)

    events = conn.receive(line)

    if events[0] == TurnStarted("a") and (
        frame.get("subtype") == "init" or named["type"] in OF_A_TURN
    ):
        # It opens a turn whose start no lifecycle has told, and belongs to that turn.
        del events[0]
    assert [type(each) for each in events].count(MessageArrived) == 1
    assert isinstance(events[0], MessageArrived)
    assert events[0].line == line[:-1]


@given(frame=broken_frames(REQUESTS), request_id=ANY_TEXT)
def test_every_request_with_an_id_can_be_answered_once(frame: Frame, request_id: str) -> None:
    conn = connection()
    line = line_of({**frame, "type": "control_request", "request_id": request_id})
    told_id = json.loads(line)["request_id"]

    asked = [event for event in conn.receive(line) if isinstance(event, ASKED)]

    assert [event.request_id for event in asked] == [told_id]
    assert conn.open_requests == {told_id}
    (answer,) = conn.answer(told_id, {"any": "thing"}).splitlines()
    assert json.loads(answer) == {
        "type": "control_response",
        "response": {
            "subtype": "success",
            "response": {"any": "thing"},
            "request_id": json.loads(json.dumps(told_id)),
        },
    }
    assert conn.answer(told_id, {}) == conn.refuse(told_id, "again") == b""
    assert conn.open_requests == frozenset()


@pytest.mark.parametrize(
    "tool_input",
    [
        b'{"a":1e999}',
        b'{"a":NaN}',
        b'{"a":' + b"9" * 400 + b"}",
        b'{"a":' + b"9" * 5000 + b"}",
        b'{"a":"\\ud800","\\udfff":1}',
        b'{"a":"\xff"}',
        b'{"a":1,"a":2}',
        b'{"a":' + b"[" * 500 + b"]" * 500 + b"}",
        b'{"a":' + b"[" * 1000 + b"]" * 1000 + b"}",
        b'{"a":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}",
        b"7",
        b"null",
    ],
    ids=lambda tool_input: tool_input[:20].decode("latin-1"),
)
def test_a_question_is_put_whatever_stands_in_it(tool_input: bytes) -> None:
    conn = connection()
    line = (
        b'{"type":"control_request","request_id":"q","request":'
        b'{"subtype":"can_use_tool","tool_name":"Bash","input":' + tool_input + b"}}\n"
    )

    asked = [event for event in conn.receive(line) if isinstance(event, ASKED)]

    assert [type(event.request_id) for event in asked] == [str]
    assert conn.open_requests == {"q"}
    assert conn.refuse("q", "no").count(b"\n") == 1


@pytest.mark.parametrize("depth", range(940, 1010))
def test_no_depth_between_sound_and_beyond_reason_stops_the_reader(depth: int) -> None:
    conn = connection()
    conn.control("anything", {}, 0.0, 1.0)
    deep = b"[" * depth + b"]" * depth
    answer = response(subtype="success", request_id=f"req_1_{TOKEN}", response="deep")

    asked = conn.receive(question("q").replace(b'"input": {}', b'"input": {"a": %s}' % deep))
    answered = conn.receive(answer.replace(b'"deep"', b'{"a": %s}' % deep))

    assert len([event for event in asked if isinstance(event, ASKED)]) == 1
    assert isinstance(answered[0], MessageArrived)


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"assistant",broken}',
        b'{"type":"assistant"',
        b'{"type":"result"}}',
        b'{"type":"user"} trailing {}',
        b"{type: 'user'}",
        b"Error: {}",
    ],
)
def test_a_broken_line_is_noise_although_it_looks_like_a_message(line: bytes) -> None:
    assert connection().receive(line + b"\n") == [NoiseReceived(line)]


@pytest.mark.parametrize(
    "request_fields",
    [
        {"subtype": "can_use_tool", "tool_name": "Bash", "input": {}},
        {"subtype": "hook_callback", "callback_id": "hook_0", "input": {"\ud800": 1}},
        {"subtype": "mcp_message", "server_name": "calc", "message": {"\ud800": 1}},
        {"subtype": "\ud800"},
    ],
    ids=lambda fields: ascii(fields["subtype"]),
)
def test_a_lone_surrogate_as_a_name_leaves_a_request_answerable(
    request_fields: dict[str, Any],
) -> None:
    conn = connection()

    events = conn.receive(asking("q", **request_fields, **{"\ud800": {"\udfff": "\ud800"}}))

    assert len([event for event in events if isinstance(event, ASKED)]) == 1
    assert conn.answer("q", {"\ud800": "\udfff"}).count(b"\n") == 1


@pytest.mark.parametrize("request_id", [None, 5, ["q"], {}])
def test_a_request_without_an_id_is_kept_but_nobody_can_be_answered(request_id: Any) -> None:
    conn = connection()
    frame = {"type": "control_request", "request_id": request_id, "request": {"subtype": "x"}}

    events = conn.receive(line_of(frame))

    assert events == [MessageArrived(line_of(frame)[:-1], Kind.CONTROL, ())]
    assert conn.open_requests == frozenset()


# Questions


@pytest.mark.parametrize("trace", SPOKEN)
def test_every_recorded_request_gives_the_event_of_its_kind(trace: str) -> None:
    conn, stream = open_connection(Dialogues[trace])
    requests = [frame for frame in frames(trace) if frame["type"] == "control_request"]
    hooks = hooks_of(Dialogues[trace])
    kinds = {
        "can_use_tool": PermissionAsked,
        "elicitation": ElicitationAsked,
        "mcp_message": ToolCalled,
    }

    asked = [event for event in conn.receive(stream) if isinstance(event, ASKED)]

    assert [(event.request_id, type(event)) for event in asked] == [
        (
            frame["request_id"],
            HookAsked
            if frame["request"].get("callback_id") in hooks
            else kinds.get(frame["request"]["subtype"], Unanswerable),
        )
        for frame in requests
    ]


def test_a_permission_question_is_put_with_all_that_the_cli_says_about_it() -> None:
    frame = sample("control_request/can_use_tool")
    conn = connection()

    (asked,) = without_arrivals(conn.receive(line_of(frame)))

    assert isinstance(asked, PermissionAsked)
    found = frame["request"]
    known = [name for name in asked.request.__struct_fields__ if name in found]
    assert asked.request_id == frame["request_id"]
    assert {name: getattr(asked.request, name) for name in known} == {
        name: found[name] for name in known
    }
    assert getattr(asked.request, "raw", None) == found


def test_two_questions_may_be_open_at_once_and_be_answered_in_any_order() -> None:
    conn = connection()
    asked = without_arrivals(conn.receive(question("q1") + question("q2")))
    assert asked == [
        PermissionAsked(each, CanUseTool(tool_name="Bash", input={})) for each in ("q1", "q2")
    ]

    second, first = conn.answer("q2", Deny("no")), conn.answer("q1", Allow())

    assert json.loads(second)["response"]["response"] == {"behavior": "deny", "message": "no"}
    assert json.loads(first)["response"]["response"] == {"behavior": "allow"}


def test_a_hook_is_asked_with_its_event_and_the_event_keeps_its_input() -> None:
    given_input = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "new": 1, "cwd": ["odd"]}

    events = connection().receive(
        asking("q", subtype="hook_callback", callback_id="hook_0", input=given_input)
    )

    (asked,) = without_arrivals(events)
    assert asked == HookAsked("q", "hook_0", PreToolUse(tool_name="Bash"))
    assert isinstance(asked, HookAsked)
    assert asked.event.raw == given_input


@pytest.mark.parametrize(
    "request_fields",
    [
        {"subtype": "brand_new"},
        {"subtype": "elicitation", "message": "your name?"},
        {"subtype": "hook_callback", "callback_id": "unheard", "input": {}},
        {"subtype": "hook_callback", "callback_id": 5, "input": {}},
        {"subtype": "hook_callback", "callback_id": "hook_0", "input": None},
        {"subtype": "mcp_message", "server_name": None, "message": {}},
        {"subtype": "mcp_message", "server_name": "calc", "message": []},
        {"subtype": "can_use_tool", "input": {}},
        {"subtype": "can_use_tool", "tool_name": "Bash", "input": []},
        {"subtype": 5},
        {},
    ],
    ids=str,
)
def test_what_we_cannot_understand_is_refused_and_never_ignored(
    request_fields: dict[str, Any],
) -> None:
    conn = connection()

    (asked,) = without_arrivals(conn.receive(asking("q", **request_fields)))

    assert isinstance(asked, Unanswerable)
    assert json.loads(conn.refuse("q", asked.reason)) == {
        "type": "control_response",
        "response": {"subtype": "error", "error": asked.reason, "request_id": "q"},
    }


def test_a_question_taken_back_can_no_longer_be_answered() -> None:
    conn = connection()
    conn.receive(question("q"))

    events = conn.receive(line_of({"type": "control_cancel_request", "request_id": "q"}))

    assert without_arrivals(events) == [Withdrawn("q")]
    assert conn.answer("q", Allow()) == b""


def test_taking_back_what_is_not_open_is_kept_and_nothing_more() -> None:
    conn = connection()

    events = [
        *conn.receive(line_of({"type": "control_cancel_request", "request_id": "q"})),
        *conn.receive(line_of({"type": "control_cancel_request"})),
    ]

    assert [type(event) for event in events] == [MessageArrived, MessageArrived]


def test_an_answer_that_cannot_be_written_leaves_the_question_open() -> None:
    conn = connection()
    conn.receive(question("q"))

    with pytest.raises(TypeError):
        conn.answer("q", {"value": object()})

    assert conn.open_requests == {"q"}


def test_a_cancelled_tool_call_is_found_by_its_server_and_number() -> None:
    conn = connection()
    conn.receive(
        tool_call("q1", "calc", id=1, method="tools/call")
        + tool_call("q2", "calc", id=2, method="tools/call")
        + tool_call("q3", "other", id=1, method="tools/call")
    )
    notice = {"method": "notifications/cancelled", "params": {"requestId": 1, "reason": "abort"}}

    events = without_arrivals(conn.receive(tool_call("q4", "calc", **notice)))

    assert events == [ToolCalled("q4", "calc", notice), Withdrawn("q1")]
    # The CLI does not cancel the control request itself: it is still owed an answer.
    assert conn.open_requests == {"q1", "q2", "q3", "q4"}


@given(params=ANY_JSON)
def test_a_strange_cancellation_withdraws_nothing_and_is_still_to_be_answered(params: Any) -> None:
    conn = connection()
    conn.receive(question("permission") + tool_call("notice", "calc", method="x"))
    message = {"method": "notifications/cancelled", "params": params}

    events = without_arrivals(conn.receive(tool_call("q", "calc", **message)))

    assert [type(event) for event in events] == [ToolCalled]
    assert conn.answer("q", {"mcp_response": {}}) != b""


def test_an_answered_tool_call_is_not_withdrawn_any_more() -> None:
    conn = connection()
    conn.receive(tool_call("q1", "calc", id=1, method="tools/call"))
    conn.answer("q1", {"mcp_response": {}})
    notice = {"method": "notifications/cancelled", "params": {"requestId": 1}}

    events = without_arrivals(conn.receive(tool_call("q2", "calc", **notice)))

    assert events == [ToolCalled("q2", "calc", notice)]


def test_the_recorded_interrupt_of_a_tool_withdraws_the_call() -> None:
    conn, stream = open_connection(Dialogues["mcp_tool_interrupted"])

    events = conn.receive(stream)

    calls = [
        event.request_id
        for event in events
        if isinstance(event, ToolCalled) and event.message["method"] == "tools/call"
    ]
    withdrawn = [event.request_id for event in events if isinstance(event, Withdrawn)]
    assert len(withdrawn) == 1
    assert withdrawn[0] in calls


# Our requests


def test_requests_are_numbered_and_carry_the_token() -> None:
    conn = Connection("0a1b2c3d")

    ids = [conn.control("get_settings", {}, 0.0, 1.0)[0] for _ in range(3)]

    assert ids == ["req_1_0a1b2c3d", "req_2_0a1b2c3d", "req_3_0a1b2c3d"]
    assert all(re.fullmatch(r"req_\d+_[0-9a-f]+", each) for each in ids)


def test_a_verb_becomes_a_line_and_its_answer_has_its_type() -> None:
    conn = connection()

    request_id, line = conn.call(SetModel(model="opus"), 0.0, 1.0)
    answered = without_arrivals(
        conn.receive(
            response(subtype="success", request_id=request_id, response={"model": "claude-opus"})
        )
    )

    assert json.loads(line) == {
        "type": "control_request",
        "request_id": request_id,
        "request": {"subtype": "set_model", "model": "opus"},
    }
    assert line.endswith(b"\n")
    assert answered == [Answered(request_id, ModelSet(model="claude-opus"))]
    assert conn.pending == frozenset()


def test_a_request_without_a_class_gets_a_plain_answer_with_all_in_raw() -> None:
    conn = connection()

    request_id, line = conn.control("get_plan", {"detail": True, "subtype": "hijacked"}, 0.0, 1.0)
    (answered,) = without_arrivals(
        conn.receive(response(subtype="success", request_id=request_id, response={"plan": [1]}))
    )

    assert json.loads(line)["request"] == {"detail": True, "subtype": "get_plan"}
    assert isinstance(answered, Answered)
    assert answered.answer == Answer()
    assert isinstance(answered.answer, Answer)
    assert answered.answer.raw == {"plan": [1]}


def test_an_error_answer_says_which_operation_was_refused_and_why() -> None:
    conn = connection()
    request_id, _line = conn.call(SetModel(model=None), 0.0, 1.0)

    (answered,) = without_arrivals(
        conn.receive(
            response(subtype="error", request_id=request_id, error="no", error_code="nope")
        )
    )

    assert isinstance(answered, Answered)
    refused = answered.answer
    assert isinstance(refused, RequestRefused)
    assert (refused.operation, refused.reason, refused.error_code) == ("set_model", "no", "nope")


@pytest.mark.parametrize(
    "fields",
    [
        {"subtype": "success"},
        {"subtype": "success", "response": None},
        {"subtype": "success", "response": "text"},
        {"subtype": "success", "response": {"still_queued": "none"}},
        {"subtype": 5, "response": {}},
        {},
    ],
    ids=str,
)
def test_a_strange_answer_is_an_answer_with_nothing_in_it(fields: dict[str, Any]) -> None:
    conn = connection()
    request_id, _line = conn.call(Interrupt(), 0.0, 1.0)

    answered = without_arrivals(conn.receive(response(request_id=request_id, **fields)))

    assert answered == [Answered(request_id, InterruptReceipt())]


@pytest.mark.parametrize("error", [{}, {"error": None}, {"error": 5, "error_code": 5}], ids=str)
def test_an_error_without_words_is_still_an_error(error: dict[str, Any]) -> None:
    conn = connection()
    request_id, _line = conn.call(Interrupt(), 0.0, 1.0)

    (answered,) = without_arrivals(
        conn.receive(response(subtype="error", request_id=request_id, **error))
    )

    assert isinstance(answered, Answered)
    assert isinstance(answered.answer, RequestRefused)
    assert "None" not in str(answered.answer)


@given(body=ANY_JSON)
def test_a_malformed_response_answers_nobody_and_stops_nothing(body: Any) -> None:
    conn = connection()
    request_id, _line = conn.call(Interrupt(), 0.0, 1.0)

    events = conn.receive(line_of({"type": "control_response", "response": body}))

    assert [type(event) for event in events] == [MessageArrived]
    assert conn.pending == {request_id}


def test_an_answer_to_a_request_that_is_not_ours_is_kept_and_nothing_more() -> None:
    conn = connection()
    line = response(subtype="success", request_id="req_9_other")

    assert conn.receive(line) == [MessageArrived(line[:-1], Kind.CONTROL, ())]


def test_answers_may_come_in_any_order_and_only_the_first_counts() -> None:
    conn = connection()
    first, _ = conn.call(SetModel(model="a"), 0.0, 1.0)
    second, _ = conn.call(SetModel(model="b"), 0.0, 1.0)

    answered = without_arrivals(
        conn.receive(
            response(request_id=second, response={"model": "b"})
            + response(request_id=first, response={"model": "a"})
            + response(request_id=second, response={"model": "late"})
        )
    )

    assert answered == [
        Answered(second, ModelSet(model="b")),
        Answered(first, ModelSet(model="a")),
    ]


def test_a_cancelled_request_is_taken_back_and_forgotten() -> None:
    conn = connection()
    request_id, _line = conn.call(Interrupt(), 0.0, 1.0)

    line = conn.cancel(request_id)
    late = conn.receive(response(subtype="success", request_id=request_id))

    assert json.loads(line) == {"type": "control_cancel_request", "request_id": request_id}
    assert [type(event) for event in late] == [MessageArrived]
    assert conn.cancel(request_id) == b""


def test_requests_run_out_of_time_by_the_clock_they_were_given() -> None:
    conn = connection()
    assert conn.next_deadline() is None
    soon, _ = conn.call(SetModel(model="a"), 0.0, 10.0)
    later, _ = conn.call(Interrupt(), 0.0, 20.0)
    assert conn.next_deadline() == 10.0

    assert conn.expire(9.9) == []
    ((answered, line),) = conn.expire(10.0)

    assert answered.request_id == soon
    assert isinstance(answered.answer, RequestTimeout)
    assert answered.answer.operation == "set_model"
    assert json.loads(line) == {"type": "control_cancel_request", "request_id": soon}
    assert conn.pending == {later}
    assert conn.next_deadline() == 20.0
    assert without_arrivals(conn.receive(response(request_id=soon))) == []


@given(deadlines=st.lists(st.floats(0, 100), max_size=8), now=st.floats(0, 100))
def test_just_what_is_due_expires_and_each_only_once(deadlines: list[float], now: float) -> None:
    conn = connection()
    ids = {conn.call(Interrupt(), 0.0, deadline)[0]: deadline for deadline in deadlines}

    expired = [answered.request_id for answered, _line in conn.expire(now)]

    assert expired == [each for each, deadline in ids.items() if deadline <= now]
    assert conn.pending == set(ids) - set(expired)
    assert conn.expire(now) == []


def test_the_recorded_handshake_is_answered_with_what_the_cli_can_do() -> None:
    conn = connection()
    request_id, _line = conn.control("initialize", {}, 0.0, 1.0)
    (frame,) = [f for f in frames("handshake_bare") if f["type"] == "control_response"]
    payload = frame["response"]["response"]

    (answered,) = without_arrivals(
        conn.receive(response(subtype="success", request_id=request_id, response=payload))
    )

    assert isinstance(answered, Answered)
    assert isinstance(answered.answer, Answer)
    assert answered.answer.raw == payload
    assert (
        Initialized(claude_code_version="2.1.325").claude_code_version
        == payload["claude_code_version"]
    )


# Prompts and states


def test_a_prompt_is_one_line_with_its_uuid_and_content() -> None:
    line = connection().prompt("u", "hi\nthere \ud800", client_composed=True)

    assert json.loads(line) == {
        "type": "user",
        "message": {"role": "user", "content": "hi\nthere \ud800"},
        "parent_tool_use_id": None,
        "uuid": "u",
        "client_composed": True,
    }
    assert line.count(b"\n") == 1


def test_one_turn_is_told_from_its_start_to_its_end() -> None:
    conn = connection()
    conn.prompt("u", "hi")
    lifecycle = {"type": "command_lifecycle", "command_uuid": "u"}
    state = {"type": "system", "subtype": "session_state_changed"}
    result = {"type": "result", "user_message_uuids": ["u"]}
    said = [
        {**lifecycle, "state": "started"},
        {"type": "assistant", "session_id": "s"},
        {"type": "stream_event"},
        result,
        {**lifecycle, "state": "completed"},
        {**state, "state": "idle"},
    ]

    events = [event for frame in said for event in conn.receive(line_of(frame))]

    lines = [line_of(frame)[:-1] for frame in said]
    assert events == [
        MessageArrived(lines[0], Kind.BOOKKEEPING, ()),
        TurnStarted("u"),
        MessageArrived(lines[1], Kind.MESSAGE, ("u",), "assistant"),
        MessageArrived(lines[2], Kind.PARTIAL, ("u",)),
        MessageArrived(lines[3], Kind.MESSAGE, ("u",), "result"),
        TurnSettled("u", lines[3]),
        MessageArrived(lines[4], Kind.BOOKKEEPING, ()),
        MessageArrived(lines[5], Kind.BOOKKEEPING, ()),
        StateReported("idle"),
    ]
    assert conn.session_id == "s"


def test_the_session_id_is_the_last_one_that_the_cli_told() -> None:
    conn, stream = open_connection(Dialogues["hooks_all_events"])
    told_ids = [
        frame["session_id"] for frame in frames("hooks_all_events") if "session_id" in frame
    ]

    conn.receive(stream)

    assert len(set(told_ids)) == 2
    assert conn.session_id == told_ids[-1]


def test_an_unknown_message_arrives_under_its_own_name() -> None:
    conn = connection()
    frame = {"type": "system", "subtype": "brand_new"}

    assert conn.receive(encoded(frame) + b"\n") == [
        MessageArrived(encoded(frame), Kind.MESSAGE, (), "brand_new")
    ]


# The usual lines, which are known by how they begin


def spelt_otherwise(line: bytes) -> bytes:
    """The same object, not as the CLI writes it: its beginning is not a usual one."""
    return b"{ " + line[1:]


def what_became(line: bytes) -> list[tuple[list[tuple[Any, ...]], str]]:
    """What a line becomes, if partial messages are decoded on arrival and if not."""
    return [became(line, Connection(TOKEN, partials=each)) for each in (True, False)]


def became(line: bytes, conn: Connection) -> tuple[list[tuple[Any, ...]], str]:
    conn.resume(["u"])
    conn.receive(encoded({"type": "system", "subtype": "task_started", "tool_use_id": "t"}) + b"\n")
    conn._turns.current = ("v",)
    events = conn.receive(line + b"\n")
    arrived = [each for each in events if isinstance(each, MessageArrived)]
    return [(each.kind, each.turns, each.name) for each in arrived], conn.session_id


USUAL = [
    frame
    for trace in traces()
    for frame in frames(trace)
    if frame["type"] in ("stream_event", "assistant")
]


def test_every_recorded_line_of_a_usual_kind_goes_where_a_closer_look_would_send_it() -> None:
    assert USUAL
    for frame in USUAL:
        line = encoded(frame)

        assert what_became(line) == what_became(spelt_otherwise(line))


@given(frame=broken_frames(USUAL[:200]))
def test_a_broken_line_of_a_usual_kind_goes_where_a_closer_look_would_send_it(frame: Frame) -> None:
    line = encoded(frame)

    assert what_became(line) == what_became(spelt_otherwise(line))


@pytest.mark.parametrize("kind", ["stream_event", "assistant"])
@pytest.mark.parametrize(
    "rest",
    [
        b'"type":"control_cancel_request","request_id":"q"}',
        b'"type":"brand_new"}',
        b'"parent_tool_use_id":"t"}',
        b'"parent_tool_use_id":"unknown"}',
        b'"parent_tool_use_id":1}',
        b'"session_id":"s"}',
        b'"session_id":null}',
        b'"abandoned_blocks":null}',
        b'"abandoned_blocks":{"a":1}}',
        b'"message":{"content":[{"type":"new"}]}}',
        b'"message":{"content":[{"type":"text","text":"\xff"}]}}',
        b'"message":{"content":[{"type":"text","text":"\\ud800"}]}}',
        b'"message":1}',
        b'"uuid":',
        b'"uuid":1}}',
    ],
)
def test_a_line_that_only_begins_as_usual_gets_a_closer_look(kind: str, rest: bytes) -> None:
    line = b'{"type":"%s",%s' % (kind.encode(), rest)

    assert what_became(line) == what_became(spelt_otherwise(line))


def test_partial_messages_that_the_caller_reads_are_decoded_once() -> None:
    events = [frame for frame in USUAL if frame["type"] == "stream_event"]
    own = [frame for frame in events if frame.get("parent_tool_use_id") is None]
    lines = [encoded(frame) for frame in own if "abandoned_blocks" not in frame]
    chunk = b"".join(line + b"\n" for line in lines)

    (read,) = Connection(TOKEN, partials=True).receive_batched(chunk)
    (unread,) = Connection(TOKEN, partials=False).receive_batched(chunk)

    assert isinstance(read, StreamEventsArrived)
    assert isinstance(unread, StreamEventsArrived)
    assert read.lines == unread.lines == lines
    assert read.messages == [parse_message(line) for line in lines]
    assert unread.messages is None


def test_what_was_decoded_to_know_where_a_message_goes_is_handed_on() -> None:
    line = encoded(sample("assistant"))

    (arrived,) = Connection(TOKEN).receive(line + b"\n")

    assert isinstance(arrived, MessageArrived)
    assert arrived.message == parse_message(line)
