"""Lines become what the installed official package makes of them."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
from typing import Any

import pytest

from steersman.compat import (
    AssistantMessage,
    CLIJSONDecodeError,
    ResultMessage,
    StreamEvent,
    SystemMessage,
    TextBlock,
    UserMessage,
)
from steersman.compat._errors import MessageParseError
from steersman.compat.parsing import message_from_line, parse_message, raw_of
from tests.samples import alone, encoded, lines, sample, traces

Frame = dict[str, Any]

RESULT: Frame = {
    "type": "result",
    "subtype": "success",
    "duration_ms": 1,
    "duration_api_ms": 2,
    "is_error": False,
    "num_turns": 1,
    "session_id": "s",
}
EVERY_RESULT_FIELD: Frame = {
    **RESULT,
    "stop_reason": "end_turn",
    "total_cost_usd": 1.5,
    "usage": {"input_tokens": 1},
    "result": "done",
    "structured_output": [1],
    "modelUsage": {"m": {"inputTokens": 1}},
    "permission_denials": [{"tool_name": "Bash"}],
    "deferred_tool_use": {"id": "1", "name": "Bash", "input": {"command": "ls"}},
    "errors": ["a"],
    "api_error_status": 529,
    "uuid": "u",
    "terminal_reason": "max_turns",
    "origin": {"kind": "human", "from": "x"},
}
LIMIT: Frame = {
    "status": "allowed_warning",
    "resetsAt": 5,
    "rateLimitType": "five_hour",
    "utilization": 0.5,
    "overageStatus": "rejected",
    "overageResetsAt": 6,
    "overageDisabledReason": "why",
    "isUsingOverage": False,
}
BLOCKS: list[Any] = [
    {"type": "text", "text": "a", "citations": [1]},
    {"type": "thinking", "thinking": "t", "signature": "s"},
    {"type": "tool_use", "id": "1", "name": "Bash", "input": {"command": "ls"}},
    {"type": "tool_result", "tool_use_id": "1"},
    {"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text"}], "is_error": True},
    {"type": "server_tool_use", "id": "1", "name": "web_search", "input": {"q": 1}},
    {"type": "advisor_tool_result", "tool_use_id": "1", "content": {"a": 1}},
    {"type": "web_search_tool_result", "tool_use_id": "1", "content": []},
    {"type": "redacted_thinking", "data": "x"},
    {"type": "mcp_tool_use", "id": "1", "name": "n", "input": {}},
    {"type": "image", "source": {}},
    {"type": "of_a_later_release", "text": "a"},
    {"type": 5},
    {"type": ["text"]},
]


def assistant(*content: Any, **fields: Any) -> Frame:
    return {"type": "assistant", "message": {"model": "m", "content": [*content]}, **fields}


def user(content: Any, **fields: Any) -> Frame:
    return {"type": "user", "message": {"content": content}, **fields}


def system(subtype: Any, **fields: Any) -> Frame:
    return {"type": "system", "subtype": subtype, **fields}


ODD_CONTENTS: list[Any] = ["text", "", [], None, 5, {}]
ODD_PATCHES: list[Any] = [None, "x", [1], {"status": 5}]
NO_CONTENTS: list[Any] = ["a", None, {}]
NO_CALLS: list[Any] = [None, {}, "", 0]
NO_BLOCKS: list[Any] = ["a", None, 5, {}]

GOOD: list[Frame] = [
    assistant(*BLOCKS),
    assistant(error="rate_limit", parent_tool_use_id="p", session_id="s", uuid="u"),
    {
        "type": "assistant",
        "message": {"model": "m", "content": [], "id": "i", "usage": {"a": 1}, "stop_reason": "x"},
    },
    user(BLOCKS),
    *(user(content) for content in ODD_CONTENTS),
    user("a", uuid="u", parent_tool_use_id="p", tool_use_result={"a": 1}),
    *(user("a", tool_use_result=given) for given in ("text", [1])),
    *(
        user("a", origin=given)
        for given in ({"kind": "peer", "from": "x"}, {"kind": 5}, {}, "x", None, [1])
    ),
    *(system(subtype, x=1) for subtype in ("init", "of_a_later_release", 5, None, ["x"])),
    system("task_updated", task_id="t", patch={"status": "killed"}, uuid="u", session_id="s"),
    *(system("task_updated", patch=given) for given in ODD_PATCHES),
    system("mirror_error"),
    system("mirror_error", key={"project_key": "p", "session_id": "s"}, error="e"),
    system("hook_started"),
    system("hook_progress", hook_event="Stop"),
    system("hook_started", hook_event="Stop", hook_event_name="x", uuid="u", session_id="s"),
    system("hook_response", hook_event="", hook_event_name="Stop"),
    system("hook_response", hook_event=5),
    system("hook_started", hook_name="PreToolUse:Bash"),
    system("hook_started", hook_name="PreToolUse:Bash", hook_event_name="PreToolUse"),
    system("hook_response", hook_event=None, hook_name=None),
    system("session_state_changed", state="idle"),
    system("session_state_changed", state="idle", sdk_host_only=True),
    system("status", sdk_host_only=True),
    RESULT,
    EVERY_RESULT_FIELD,
    *({**RESULT, "deferred_tool_use": given} for given in NO_CALLS),
    *({**RESULT, "errors": given} for given in (None, "x", [1, " a "])),
    {"type": "stream_event", "uuid": "u", "session_id": "s", "event": None, "x": 1},
    {"type": "stream_event", "uuid": "u", "session_id": "s", "event": {}, "parent_tool_use_id": 5},
    {"type": "stream_event", "uuid": 5, "session_id": None, "event": [1]},
    {"type": "rate_limit_event", "rate_limit_info": LIMIT, "uuid": "u", "session_id": "s"},
    {"type": "keep_alive"},
    {"type": "of_a_later_release", "x": 1},
    {"type": 5},
    {"type": ["x"]},
    {"type": "control_response", "response": {"request_id": "x"}},
    {"type": "control_cancel_request", "request_id": "x"},
    {"type": "transcript_mirror", "filePath": "x", "entries": []},
]
"""Frames that are read, or are no messages."""

STARTED: Frame = system("task_started", task_id="t", description="d", uuid="u", session_id="s")
NEEDED: list[tuple[Frame, list[str]]] = [
    (user("a"), ["message"]),
    (assistant(), ["message"]),
    (RESULT, [key for key in RESULT if key != "type"]),
    (system("init"), ["subtype"]),
    (STARTED, ["task_id", "description", "uuid", "session_id"]),
    ({**STARTED, "subtype": "task_progress", "usage": {}}, ["task_id", "description", "usage"]),
    (
        {
            **STARTED,
            "subtype": "task_notification",
            "status": "x",
            "output_file": "",
            "summary": "",
        },
        ["task_id", "status", "output_file", "summary", "uuid", "session_id"],
    ),
    (
        {"type": "stream_event", "uuid": "u", "session_id": "s", "event": {}},
        ["uuid", "session_id", "event"],
    ),
    (
        {"type": "rate_limit_event", "rate_limit_info": LIMIT, "uuid": "u", "session_id": "s"},
        ["rate_limit_info", "uuid", "session_id"],
    ),
    (
        {"type": "conversation_reset", "new_conversation_id": "n", "uuid": "u", "session_id": "s"},
        ["new_conversation_id", "uuid", "session_id"],
    ),
]
"""Frames and the fields without which they are no messages."""

BAD: list[Frame] = [
    *({k: v for k, v in frame.items() if k != name} for frame, names in NEEDED for name in names),
    *(
        {k: v for k, v in frame.items() if k not in names[at:]}
        for frame, names in NEEDED
        for at in range(len(names))
    ),
    *({"type": kind} for kind in ("", None, 0, "assistant", "user", "result", "stream_event")),
    {},
    {"type": "user", "message": {}},
    {"type": "assistant", "message": {}},
    {"type": "assistant", "message": {"content": []}},
    *({"type": "assistant", "message": {"model": "m", "content": x}} for x in NO_CONTENTS),
    *(make([block]) for block in NO_BLOCKS for make in (user, lambda c: assistant(*c))),
    *(
        assistant({"type": kind})
        for kind in ("text", "thinking", "tool_use", "tool_result", "server_tool_use")
    ),
    assistant({"type": "thinking", "thinking": "t"}),
    assistant({"type": "tool_use", "id": "1", "name": "n"}),
    assistant({"type": "advisor_tool_result", "tool_use_id": "1"}),
    user([{"type": "tool_result"}]),
    {**RESULT, "deferred_tool_use": {"id": "1", "name": "n"}},
    {"type": "rate_limit_event", "rate_limit_info": {}, "uuid": "u", "session_id": "s"},
]
"""Frames that lack something, for which the official parser has a text."""

OF_THE_WRONG_KIND: list[Frame] = [
    *({"type": kind, "message": x} for kind in ("user", "assistant") for x in (None, "x", [1])),
    *({**RESULT, "deferred_tool_use": x} for x in ("x", [1])),
    *(
        {"type": "rate_limit_event", "rate_limit_info": x, "uuid": "u", "session_id": "s"}
        for x in (None, "x")
    ),
]


def shown(found: Any) -> Any:
    """Return a message or an exception as what can be compared."""
    if isinstance(found, Exception):
        return type(found).__name__, str(found), vars(found), repr(found.__cause__)
    return type(found).__name__, repr(found)


def read_here(frames: list[Frame]) -> list[Any]:
    found = [message_from_line(encoded(frame)) for frame in frames]
    return [message for message in found if message is not None]


async def read_there(frames: list[Frame]) -> list[Any]:
    pytest.importorskip("claude_agent_sdk")
    from tests.compat.official_reading import read_by_official  # noqa: PLC0415 - needs that package

    return await read_by_official(json.loads(encoded(frame)) for frame in frames)


async def test_every_recorded_line_becomes_what_the_official_package_makes_of_it() -> None:
    found = [json.loads(line) for trace in traces() for line in lines(trace)]
    found += alone("recorded", "messages") + alone("declared", "messages")
    # A client answers control requests; they are no messages.
    frames = [frame for frame in found if frame["type"] != "control_request"]

    here, there = read_here(frames), await read_there(frames)

    assert len(here) > 700
    assert [shown(each) for each in here] == [shown(each) for each in there]


async def test_odd_but_good_lines_become_what_the_official_package_makes_of_them() -> None:
    here, there = read_here(GOOD), await read_there(GOOD)

    assert [shown(each) for each in here] == [shown(each) for each in there]


@pytest.mark.parametrize("chunk", range(4))
async def test_what_a_line_lacks_is_said_in_the_official_words(chunk: int) -> None:
    for frame in BAD[chunk::4]:
        (there,) = await read_there([frame])
        with pytest.raises(MessageParseError) as caught:
            message_from_line(encoded(frame))

        assert shown(caught.value) == shown(there), frame


@pytest.mark.parametrize("frame", OF_THE_WRONG_KIND, ids=str)
def test_a_field_of_the_wrong_kind_is_a_parse_error_and_no_type_error(frame: Frame) -> None:
    with pytest.raises(MessageParseError, match=f"Invalid {frame['type']} message") as caught:
        parse_message(frame)

    assert caught.value.data == frame
    assert isinstance(caught.value.__cause__, TypeError)


@pytest.mark.parametrize("given", ["x", 5, None, [1]])
def test_what_is_no_object_is_no_message(given: Any) -> None:
    text = f"Invalid message data type \\(expected dict, got {type(given).__name__}\\)"
    with pytest.raises(MessageParseError, match=text):
        parse_message(given)


@pytest.mark.parametrize("line", [b"", b"debug: x", b"[1]", b"5", b" \n"])
def test_a_line_that_is_no_object_is_no_message(line: bytes) -> None:
    assert message_from_line(line) is None


@pytest.mark.parametrize(
    "line",
    [b'{"type":"user"', b'{"type":"stream_event",', b"{" * 5000, b'{"type":"stream_event",\xff'],
)
def test_broken_json_is_told_with_its_line(line: bytes) -> None:
    with pytest.raises(CLIJSONDecodeError) as caught:
        message_from_line(line)

    assert caught.value.line == line.decode("utf-8", "replace")
    assert isinstance(caught.value.original_error, ValueError)


def test_a_line_with_a_lone_surrogate_is_read() -> None:
    line = b'{"type":"stream_event","uuid":"\\ud800","session_id":"s","event":{}}'

    message = message_from_line(line)

    assert message == StreamEvent("\ud800", "s", {})


@pytest.mark.parametrize(
    "kind", ["stream_event", "assistant", "user", "result", "system/init", "system/task_started"]
)
def test_raw_of_a_message_is_the_whole_line(kind: str) -> None:
    frame = sample(kind)

    message = message_from_line(encoded(frame))

    assert message is not None
    assert raw_of(message) == frame
    assert raw_of(message) is raw_of(message)


def test_raw_of_a_message_that_a_program_made_is_an_error_that_says_so() -> None:
    with pytest.raises(ValueError, match="made by the program"):
        raw_of(UserMessage("hi"))


def test_the_kept_line_is_neither_printed_nor_compared_nor_among_the_fields() -> None:
    found = message_from_line(encoded(user("hi", secret=1)))
    made = UserMessage("hi")

    assert found == made
    assert repr(found) == repr(made)
    assert vars(found) == vars(made)
    assert dataclasses.asdict(found) == dataclasses.asdict(made)


def test_a_message_can_be_changed_copied_and_pickled() -> None:
    message = message_from_line(encoded(assistant({"type": "text", "text": "a"})))
    assert isinstance(message, AssistantMessage)

    message.content.append(TextBlock("b"))
    message.note = "of a program"  # type: ignore[attr-defined]  # programs do so

    for each in (copy.deepcopy(message), pickle.loads(pickle.dumps(message))):
        assert each == message
        assert vars(each) == vars(message)
        assert raw_of(each) == raw_of(message)


def test_unknown_blocks_are_left_out_and_raw_of_has_them() -> None:
    message = message_from_line(encoded(assistant({"type": "of_a_later_release"})))

    assert isinstance(message, AssistantMessage)
    assert message.content == []
    assert raw_of(message)["message"]["content"] == [{"type": "of_a_later_release"}]


def test_messages_can_be_matched_by_class() -> None:
    found = [message_from_line(encoded(frame)) for frame in (system("x"), RESULT)]

    match found:
        case [SystemMessage(subtype="x"), ResultMessage(num_turns=1)]:
            pass
        case _:
            pytest.fail(f"not matched: {found}")
