"""What the connection does at its edges, each event compared as a whole."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from steersman._protocol.connection import Connection
from steersman._protocol.events import (
    Answered,
    AssistantArrived,
    DialogAsked,
    Event,
    HookAsked,
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
from steersman._protocol.framing import LineFramer, Oversize
from steersman._protocol.routing import (
    Response,
    RoutingFields,
    callback_of,
    plain_value,
    read_routing,
)
from steersman.control import Interrupt, SetModel
from steersman.errors import RequestLost, RequestRefused, RequestTimeout
from steersman.hooks import PreToolUse
from steersman.journal import Kind
from steersman.permissions import UserDialog

REMEMBERED, HEAD = 64, 200
DEEP = b"[" * 100_000 + b"]" * 100_000


def connection() -> Connection:
    return Connection("t", {"hook_0": PreToolUse})


def line_of(**frame: Any) -> bytes:
    return json.dumps(frame).encode() + b"\n"


def compact(**frame: Any) -> bytes:
    """A line as the CLI writes it, which is read without a detour."""
    return json.dumps(frame, separators=(",", ":")).encode() + b"\n"


def asking(request_id: str = "q", **request: Any) -> bytes:
    return line_of(type="control_request", request_id=request_id, request=request)


def events_of(conn: Connection, line: bytes) -> list[Event]:
    """Return the events after the arrival of a line; its arrival is that of a control line."""
    arrived, *events = conn.receive(line)
    assert arrived == MessageArrived(line[:-1], Kind.CONTROL, ())
    return events


# Lines and turns


def test_a_replay_is_bookkeeping_of_the_turn_that_it_starts() -> None:
    conn = connection()
    conn.prompt("a", "hi")
    line = line_of(type="user", uuid="a", isReplay=True)

    assert conn.receive(line) == [
        MessageArrived(line[:-1], Kind.BOOKKEEPING, ("a",)),
        TurnStarted("a"),
    ]
    assert conn.receive(line) == [MessageArrived(line[:-1], Kind.BOOKKEEPING, ("a",))]


def test_a_replay_of_no_prompt_is_bookkeeping_too() -> None:
    line = line_of(type="user", isReplay=True)

    assert connection().receive(line) == [MessageArrived(line[:-1], Kind.BOOKKEEPING, ())]


def test_each_line_about_a_turn_says_which() -> None:
    conn = connection()
    conn.prompt("a", "hi")
    lines = {
        "started": line_of(type="command_lifecycle", command_uuid="a", state="started"),
        "running": line_of(type="system", subtype="session_state_changed", state="running"),
        "task": line_of(type="system", subtype="task_started", tool_use_id="t1"),
        "partial": line_of(type="stream_event", event={}),
        "user": line_of(type="user", uuid="x"),
        "odd": line_of(type="brand_new"),
        "result": line_of(type="result", user_message_uuids=["a"]),
        "inside": line_of(type="user", parent_tool_use_id="t1"),
        "idle": line_of(type="system", subtype="session_state_changed", state="idle"),
        "mute": line_of(type="system", subtype="session_state_changed"),
        "bare": line_of(type="system"),
    }

    found = {name: conn.receive(line) for name, line in lines.items()}

    bare = {name: line[:-1] for name, line in lines.items()}
    assert found == {
        "started": [MessageArrived(bare["started"], Kind.BOOKKEEPING, ()), TurnStarted("a")],
        "running": [
            MessageArrived(bare["running"], Kind.BOOKKEEPING, ()),
            StateReported("running"),
        ],
        "task": [MessageArrived(bare["task"], Kind.MESSAGE, ("a",), "task_started")],
        "partial": [MessageArrived(bare["partial"], Kind.PARTIAL, ("a",))],
        "user": [MessageArrived(bare["user"], Kind.MESSAGE, ("a",), "user")],
        "odd": [MessageArrived(bare["odd"], Kind.MESSAGE, ("a",), "brand_new")],
        "result": [
            MessageArrived(bare["result"], Kind.MESSAGE, ("a",), "result"),
            TurnSettled("a", bare["result"]),
        ],
        "inside": [MessageArrived(bare["inside"], Kind.MESSAGE, ("a",), "user")],
        "idle": [MessageArrived(bare["idle"], Kind.BOOKKEEPING, ()), StateReported("idle")],
        "mute": [MessageArrived(bare["mute"], Kind.BOOKKEEPING, ()), StateReported("")],
        "bare": [MessageArrived(bare["bare"], Kind.MESSAGE, ())],
    }


def test_streamed_lines_of_one_owner_are_one_event_and_an_abandoning_one_stands_alone() -> None:
    conn = Connection("t", partials=False)
    conn.prompt("a", "hi")
    conn.receive(line_of(type="command_lifecycle", command_uuid="a", state="started"))
    mine = compact(type="stream_event", event={}, session_id="s1")
    inside = compact(type="stream_event", event={}, parent_tool_use_id="t1")
    dropped = compact(type="stream_event", event={}, abandoned_blocks={}, session_id="s2")
    odd = compact(type="stream_event", event={}, session_id=5)

    events = conn.receive_batched(mine + mine + inside + dropped + mine + odd)

    assert events == [
        StreamEventsArrived([mine[:-1], mine[:-1]], ("a",)),
        StreamEventsArrived([inside[:-1]], ("a",)),
        MessageArrived(dropped[:-1], Kind.PARTIAL, ("a",), "abandoned"),
        StreamEventsArrived([mine[:-1]], ("a",)),
        MessageArrived(odd[:-1], Kind.PARTIAL, ("a",)),
    ]
    assert conn.session_id == "s1"


@pytest.mark.parametrize(
    "line",
    [
        compact(type="stream_event", event={}, session_id="s"),
        compact(type="assistant", message={"content": []}, session_id="s"),
        compact(
            type="control_request",
            request_id="q",
            request={"subtype": "can_use_tool", "tool_name": "Bash", "input": {}},
            session_id="s",
        ),
        line_of(type="keep_alive", session_id="s"),
    ],
)
def test_every_kind_of_line_may_name_the_session_and_none_clears_it(line: bytes) -> None:
    conn = connection()

    conn.receive(line)
    assert conn.session_id == "s"

    conn.receive(line.replace(b'"s"', b'""'))
    assert conn.session_id == "s"


def test_a_message_of_a_subagent_belongs_to_the_turn_that_started_it() -> None:
    conn = connection()
    conn.resume(["a"])
    conn.receive(line_of(type="system", subtype="task_started", tool_use_id="t1"))
    conn.receive(line_of(type="result", user_message_uuids=["a"]))
    conn.resume(["b"])

    inside, mine = (
        conn.receive_batched(
            compact(type="assistant", message={"content": []}, parent_tool_use_id=parent)
        )[0]
        for parent in ("t1", "t2")
    )

    assert isinstance(inside, AssistantArrived)
    assert isinstance(mine, AssistantArrived)
    assert (inside.turns, mine.turns) == (("a",), ("b",))


@pytest.mark.parametrize("reported", ["b", "a"])
def test_what_is_reported_about_another_name_counts_for_the_prompt(reported: str) -> None:
    conn = connection()
    conn.prompt("a", "hi")
    conn.alias("b", "a")
    result = line_of(type="result", user_message_uuids=[reported])

    events = conn.receive(result)

    assert events[1:] == [TurnSettled("a", result[:-1])]


def test_a_prompt_continues_under_another_name_and_settles_again() -> None:
    conn = connection()
    conn.prompt("a", "hi")
    conn.receive(line_of(type="result", user_message_uuids=["a"]))

    conn.continue_as("a", "b")

    started = conn.receive(line_of(type="command_lifecycle", command_uuid="b", state="started"))
    replayed = conn.receive(line_of(type="user", uuid="b", isReplay=True))
    result = line_of(type="result", user_message_uuid="b")
    assert started[1:] == [TurnStarted("a")]
    assert replayed[1:] == []
    assert conn.receive(result)[1:] == [TurnSettled("a", result[:-1])]


def test_a_prompt_that_continues_is_no_longer_completed() -> None:
    conn = connection()
    conn.prompt("a", "hi")
    conn.receive(line_of(type="command_lifecycle", command_uuid="a", state="completed"))
    idle = line_of(type="system", subtype="session_state_changed", state="idle")
    assert conn.receive(idle)[1] == TurnSettled("a", None)

    conn.continue_as("a", "b")

    assert conn.receive(idle)[1:] == [StateReported("idle")]


def test_an_expected_prompt_settles_and_one_that_is_cancelled_says_so() -> None:
    conn = connection()
    conn.expect("a")
    conn.expect("b")

    assert conn.cancelled("a") == [TurnSettled("a", None, was_cancelled=True)]
    assert conn.cancelled("a") == []
    assert conn.cancelled("b") == [TurnSettled("b", None, was_cancelled=True)]


def test_a_prompt_has_these_fields_on_the_wire() -> None:
    line = connection().prompt("a", "hi", priority="now")

    assert line.endswith(b"\n")
    assert json.loads(line) == {
        "type": "user",
        "message": {"role": "user", "content": "hi"},
        "parent_tool_use_id": None,
        "uuid": "a",
        "priority": "now",
    }


def test_a_result_settles_the_prompts_of_its_own_turn_only() -> None:
    conn = connection()
    conn.resume(["a", "b"])
    conn.prompt("c", "hi")
    other, mine = (line_of(type="result", user_message_uuids=[each]) for each in ("c", "a"))

    assert conn.receive(other)[1:] == [TurnSettled("c", other[:-1])]
    assert conn.receive(mine)[1:] == [
        TurnSettled("a", mine[:-1]),
        TurnSettled("b", mine[:-1]),
    ]


def test_a_bare_result_does_not_settle_a_turn_that_another_cli_began() -> None:
    conn = connection()
    conn.resume(["a"])

    assert conn.receive(line_of(type="result"))[1:] == []


def test_on_an_older_cli_the_first_waiting_prompt_starts_with_its_turn() -> None:
    conn = connection()
    init = line_of(type="system", subtype="init")
    arrived = MessageArrived(init[:-1], Kind.MESSAGE, ("a",), "init")
    assert conn.receive(init) == [MessageArrived(init[:-1], Kind.MESSAGE, (), "init")]
    conn.prompt("a", "hi")
    conn.prompt("b", "hi")

    assert conn.receive(init) == [TurnStarted("a"), arrived]
    assert conn.receive(init) == [arrived]


def test_a_cli_that_reports_lifecycles_starts_nothing_by_opening_a_turn() -> None:
    conn = connection()
    conn.prompt("a", "hi")
    conn.receive(line_of(type="command_lifecycle", command_uuid="x", state="started"))
    init = line_of(type="system", subtype="init")

    assert conn.receive(init) == [MessageArrived(init[:-1], Kind.MESSAGE, (), "init")]


# Our requests


def test_our_requests_are_numbered_and_cancelled_once() -> None:
    conn = connection()
    one, first = conn.call(Interrupt(), 0.0, 5.0)
    two, second = conn.control("anything", {"a": 1}, 0.0, 3.0)

    assert [json.loads(line) for line in (first, second)] == [
        {"type": "control_request", "request_id": one, "request": {"subtype": "interrupt"}},
        {
            "type": "control_request",
            "request_id": two,
            "request": {"a": 1, "subtype": "anything"},
        },
    ]
    assert (one, two) == ("req_1_t", "req_2_t")
    assert conn.pending == {one, two}
    assert conn.next_deadline() == 3.0
    assert json.loads(conn.cancel(one)) == {"type": "control_cancel_request", "request_id": one}
    assert conn.cancel(one) == b""
    assert conn.pending == {two}


def told(answered: Answered) -> tuple[str, type, str]:
    return answered.request_id, type(answered.answer), str(answered.answer)


def test_a_request_expires_at_its_deadline_and_not_before() -> None:
    conn = connection()
    late, _ = conn.call(Interrupt(), 0.0, 5.0)
    other, _ = conn.call(SetModel(model="m"), 0.0, 6.0)

    assert conn.expire(4.9) == []
    ((answered, cancel),) = conn.expire(5.0)
    (lost,) = conn.lose()

    assert told(answered)[:2] == (late, RequestTimeout)
    assert "interrupt" in str(answered.answer)
    assert "no answer within 5 s" in str(answered.answer)
    assert json.loads(cancel)["request_id"] == late
    assert told(lost)[:2] == (other, RequestLost)
    assert "set_model" in str(lost.answer)
    assert "the CLI went away" in str(lost.answer)
    assert conn.lose() == []
    assert conn.next_deadline() is None


@pytest.mark.parametrize(
    ("fields", "reason", "code"),
    [
        ({"subtype": "error", "error": "no"}, "no", None),
        ({"subtype": "error", "error": "no", "error_code": "c"}, "no", "c"),
        ({"subtype": "error"}, "no reason given", None),
        ({"subtype": "error", "error": 5}, "5", None),
        ({"subtype": "error", "error": None}, "no reason given", None),
    ],
)
def test_a_refusal_has_its_reason_whatever_its_shape(
    fields: dict[str, Any], reason: str, code: str | None
) -> None:
    conn = connection()
    asked, _ = conn.control("anything", {}, 0.0, 1.0)

    _, answered = conn.receive(
        line_of(type="control_response", response={**fields, "request_id": asked})
    )

    assert isinstance(answered, Answered)
    assert isinstance(answered.answer, RequestRefused)
    assert (answered.answer.operation, answered.answer.error_code) == ("anything", code)
    assert reason in str(answered.answer)


@pytest.mark.parametrize("extra", [{}, {"error_code": 5}, {"error": {}}, {"subtype": "odd"}])
def test_an_answer_keeps_its_fields_whatever_stands_beside_it(extra: dict[str, Any]) -> None:
    conn = connection()
    asked, _ = conn.control("anything", {}, 0.0, 1.0)
    response = {"subtype": "success", "request_id": asked, "response": {"a": 1}, **extra}

    _, answered = conn.receive(line_of(type="control_response", response=response))

    assert isinstance(answered, Answered)
    assert answered.request_id == asked
    assert getattr(answered.answer, "raw", None) == {"a": 1}
    assert conn.pending == frozenset()


def test_the_defaults_of_routing_are_empty() -> None:
    assert Response() == Response(
        subtype="success", request_id="", error="no reason given", error_code=None
    )
    assert bytes(Response().response) == b""
    assert not RoutingFields().is_replay
    assert RoutingFields().type == ""


# Their requests


def test_a_dialog_is_asked_for() -> None:
    conn = connection()

    (asked,) = events_of(
        conn, asking(subtype="request_user_dialog", dialog_kind="k", payload={"a": 1})
    )

    assert isinstance(asked, DialogAsked)
    assert asked.request_id == "q"
    assert isinstance(asked.dialog, UserDialog)
    assert asked.dialog.raw == {
        "subtype": "request_user_dialog",
        "dialog_kind": "k",
        "payload": {"a": 1},
    }


@pytest.mark.parametrize(
    ("request_fields", "reason", "hook"),
    [
        ({"subtype": "new"}, "unsupported request 'new'", ""),
        ({"a": 1}, "unsupported request None", ""),
        (
            {"subtype": "hook_callback", "callback_id": "other", "input": {}},
            "no hook is registered as 'other'",
            "",
        ),
        (
            {"subtype": "hook_callback", "callback_id": "hook_0", "input": {}},
            "",
            "",
        ),
        (
            {"subtype": "hook_callback", "callback_id": "hook_0", "input": None},
            "hook_callback cannot be read: ValidationError",
            "hook_0",
        ),
        (
            {"subtype": "hook_callback", "callback_id": 5, "input": {}},
            "hook_callback cannot be read: ValidationError",
            "",
        ),
        (
            {"subtype": "can_use_tool", "input": {}},
            "can_use_tool cannot be read: ValidationError",
            "",
        ),
    ],
)
def test_a_request_that_cannot_be_answered_says_why_in_either_spelling(
    request_fields: dict[str, Any], reason: str, hook: str
) -> None:
    for spelt in (line_of, compact):
        line = spelt(type="control_request", request_id="q", request=request_fields)

        (event,) = events_of(connection(), line)

        if reason:
            assert event == Unanswerable("q", reason, hook)
        else:
            assert event == HookAsked("q", "hook_0", PreToolUse())


@pytest.mark.parametrize(
    ("given", "is_readable"),
    [
        ({"cwd": 5}, True),
        ({"cwd": 5, "tool_name": 5}, False),
        ({"cwd": 5, "tool_input": []}, False),
        ({"cwd": 5, "prompt": 5}, False),
        ({"cwd": 5, "prompt": "p", "tool_name": "n", "tool_input": {}}, True),
    ],
)
def test_a_hook_is_not_called_with_less_than_was_sent(
    given: dict[str, Any], *, is_readable: bool
) -> None:
    line = asking(subtype="hook_callback", callback_id="hook_0", input=given, tool_use_id=5)

    (event,) = events_of(connection(), line)

    assert isinstance(event, HookAsked if is_readable else Unanswerable)
    if isinstance(event, HookAsked):
        assert event.tool_use_id == ""
        assert event.event.raw == given


@pytest.mark.parametrize("spelt", [line_of, compact])
def test_a_hook_knows_its_tool_use_and_its_input(spelt: Any) -> None:
    request = {
        "subtype": "hook_callback",
        "callback_id": "hook_0",
        "input": {"tool_name": "Bash"},
        "tool_use_id": "t1",
    }

    (event,) = events_of(
        connection(), spelt(type="control_request", request_id="q", request=request)
    )

    assert event == HookAsked("q", "hook_0", PreToolUse(tool_name="Bash"), "t1")
    assert isinstance(event, HookAsked)
    assert event.event.raw == {"tool_name": "Bash"}


@pytest.mark.parametrize("spelt", [line_of, compact])
def test_a_permission_request_keeps_what_the_cli_sent(spelt: Any) -> None:
    request = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {}, "brand_new": 1}

    (event,) = events_of(
        connection(), spelt(type="control_request", request_id="q", request=request)
    )

    assert isinstance(event, PermissionAsked)
    assert event.request.raw == request


@pytest.mark.parametrize("spelt", [line_of, compact])
def test_a_request_that_arrives_twice_is_put_once(spelt: Any) -> None:
    conn = connection()
    line = spelt(
        type="control_request",
        request_id="q",
        request={"subtype": "can_use_tool", "tool_name": "Bash", "input": {}},
    )

    first, second = events_of(conn, line), events_of(conn, line)
    conn.answer("q", {})
    third = events_of(conn, line)

    assert [type(each) for each in first] == [PermissionAsked]
    assert second == third == []


def test_the_last_answered_requests_are_remembered_and_no_more() -> None:
    conn = connection()
    for number in range(REMEMBERED + 1):
        conn.receive(asking(str(number), subtype="new"))
        assert conn.refuse(str(number), "no")

    assert len(events_of(conn, asking("0", subtype="new"))) == 1
    assert events_of(conn, asking("1", subtype="new")) == []
    assert events_of(conn, asking(str(REMEMBERED), subtype="new")) == []


def test_a_cancelled_call_withdraws_that_call_of_that_server_only() -> None:
    conn = connection()

    def message(request_id: str, server: str, **fields: Any) -> list[Event]:
        line = asking(request_id, subtype="mcp_message", server_name=server, message=fields)
        return events_of(conn, line)

    cancelled = {"method": "notifications/cancelled", "params": {"requestId": 7}}
    assert message("q1", "one", id=7) == [ToolCalled("q1", "one", {"id": 7})]
    message("q2", "two", id=7)
    message("q3", "one", id=8)

    assert message("q4", "one", **cancelled) == [
        ToolCalled("q4", "one", cancelled),
        Withdrawn("q1"),
    ]
    assert message("q5", "one", method="notifications/other", params={"requestId": 7})[1:] == []
    assert message("q6", "one", method="notifications/cancelled", params=[7])[1:] == []


def test_a_withdrawn_request_is_not_answered() -> None:
    conn = connection()
    conn.receive(asking("q", subtype="new"))
    cancel = line_of(type="control_cancel_request", request_id="q")

    assert events_of(conn, cancel) == [Withdrawn("q")]
    assert events_of(conn, cancel) == []
    assert conn.answer("q", {}) == b""
    assert conn.open_requests == frozenset()


def test_an_answer_and_a_refusal_have_these_fields() -> None:
    conn = connection()
    conn.receive(asking("q", subtype="new") + asking("r", subtype="new"))

    assert json.loads(conn.answer("q", {"a": 1})) == {
        "type": "control_response",
        "response": {"subtype": "success", "response": {"a": 1}, "request_id": "q"},
    }
    assert json.loads(conn.refuse("r", "no")) == {
        "type": "control_response",
        "response": {"subtype": "error", "error": "no", "request_id": "r"},
    }


# Lines too deep to decode


def test_a_request_too_deep_to_decode_is_refused_and_names_its_hook() -> None:
    line = (
        b'{"type":"control_request","request_id":"q","request":{"subtype":"hook_callback",'
        b'"callback_id":"hook_0","input":{"a":' + DEEP + b"}}}\n"
    )

    assert events_of(connection(), line) == [
        Unanswerable("q", "the request cannot be read", "hook_0")
    ]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (b'{"type":"x","a":%s}', RoutingFields(type="x")),
        (b'{"type":"x","request_id":"q","a":%s}', RoutingFields(type="x", request_id="q")),
        (
            b'  {"type": "x\xff","request_id": "\xff","a":%s}',
            RoutingFields(type="x�", request_id="�"),
        ),
        (b'{"a":%s}', None),
        (b'[{"type":"x"},%s]', None),
    ],
)
def test_a_line_too_deep_to_decode_has_the_route_of_its_first_words(
    line: bytes, found: RoutingFields | None
) -> None:
    assert read_routing(line % DEEP) == found


def test_a_hook_with_a_name_that_is_no_text_is_refused_under_its_own_id() -> None:
    line = asking(subtype="hook_callback", callback_id="hook_0", input={}, **{"\ud800": "no text"})

    assert events_of(connection(), line) == [
        Unanswerable("q", "hook_callback cannot be read: UnicodeEncodeError", "hook_0")
    ]


@pytest.mark.parametrize("raw", [b"", b"{broken", b"\xff"])
def test_a_value_that_is_missing_or_malformed_is_an_empty_object(raw: bytes) -> None:
    assert plain_value(msgspec.Raw(raw)) == {}


def test_a_hook_is_found_by_its_words_only() -> None:
    assert callback_of(b'"subtype": "hook_callback", "callback_id": "\xff"') == "�"
    assert callback_of(b'"subtype":"other","callback_id":"hook_0"') == ""


def test_noise_has_no_route() -> None:
    assert connection().receive(b"[1]\n7\n") == [NoiseReceived(b"[1]"), NoiseReceived(b"7")]


# Framing


@pytest.mark.parametrize("blank", [b"\n", b"   \n", b" \t\n", b"\r\n", b"\n \n\n", b" \r\n"])
def test_blank_lines_are_left_out_in_every_form(blank: bytes) -> None:
    assert LineFramer().feed(blank) == []
    assert LineFramer().feed(b"a\n" + blank) == [b"a"]
    assert LineFramer().feed(blank + b"a\n") == [b"a"]


@pytest.mark.parametrize("line", [b" a", b"\ta", b"a ", b"!", b"a\rb"])
def test_a_line_keeps_its_blanks(line: bytes) -> None:
    assert LineFramer().feed(line + b"\n") == [line]
    assert LineFramer().feed(b"x\n" + line + b"\n") == [b"x", line]
    assert LineFramer().feed(b"x\n" + line + b"\n" + b"y") == [b"x", line]


def test_the_limit_counts_in_every_way_to_cut_a_line() -> None:
    for cuts in ([b"12345\n"], [b"1", b"2345\n"], [b"12345", b"\n"], [b"x\n12345\n"]):
        framer = LineFramer(5)
        assert [line for cut in cuts for line in framer.feed(cut)][-1] == b"12345"
    for cuts in ([b"123456\n"], [b"1", b"23456\n"], [b"123456", b"\n"], [b"x\n123456\n"]):
        framer = LineFramer(5)
        assert [line for cut in cuts for line in framer.feed(cut)][-1] == Oversize(6, b"123456")


def test_the_head_of_a_long_line_is_its_first_bytes() -> None:
    framer = LineFramer(HEAD + 50)
    for part in (b"a" * 150, b"b" * 100, b"c" * 100):
        assert framer.feed(part) == []

    (found,) = framer.feed(b"\n")

    assert found == Oversize(350, b"a" * 150 + b"b" * 50)
    assert framer.feed(b"x" * 1000) == []
    assert framer._parts == []  # what is dropped takes no memory
    framer.feed(b"\n")
    assert framer.feed(b"next\n") == [b"next"]
