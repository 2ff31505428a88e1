"""Entries, snapshots and results of turns survive the way to another process and back."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.errors import (
    ApiFailed,
    Described,
    LimitReached,
    SteersmanError,
    TurnStopped,
    UsageError,
)
from steersman.journal import (
    Entry,
    Kind,
    Phase,
    TurnResult,
    from_json,
    result_from_json,
    result_to_json,
    snapshot_from_json,
    snapshot_to_json,
    to_json,
)
from steersman.journal.calls import ToolCallRecord
from steersman.journal.files import Record, line_of
from steersman.journal.redaction import Redactor
from steersman.journal.snapshot import (
    PendingPermission,
    PendingToolCall,
    Retrying,
    SessionSnapshot,
    Stats,
)
from steersman.journal.tasks import AgentNode, Task
from steersman.journal.text import AssistantText
from steersman.messages.parsing import parse_message
from steersman.messages.tasks import TaskUsage
from steersman.messages.turns import Result
from steersman.messages.usage import ModelUsage, Usage
from tests.journal.recordings import hold

ENTRIES = st.builds(
    Entry,
    st.integers(1, 2**53),
    st.floats(0, 1e10),
    st.sampled_from(list(Kind)),
    st.binary(max_size=30)
    | st.sampled_from(
        [b'{"a": 1}', b' {"a":1}', b'{"a":"\\ud800"}', b"[]", b'{"a":1', b'{"a":\n1}', b"{}"]
    ),
    st.lists(st.text(max_size=3), max_size=2).map(tuple),
    st.dictionaries(st.text(max_size=3), st.integers(0, 9) | st.text(max_size=4), max_size=2),
)


# Entries


@given(entry=ENTRIES, session=st.text(max_size=4))
def test_any_entry_comes_back_as_one_line_of_json(entry: Entry, session: str) -> None:
    written = to_json(entry, session=session)

    assert b"\n" not in written
    assert json.loads(written).get("session", "") == session
    assert Record.of(from_json(written)) == Record.of(entry)


@given(entry=ENTRIES)
def test_the_form_is_that_of_the_file(entry: Entry) -> None:
    assert json.loads(to_json(entry)) == json.loads(line_of(Record.of(entry)))


def test_what_the_cli_sent_stands_in_it_byte_for_byte() -> None:
    line = b'{"type":"assistant",  "n": 1.50, "text":"\\u00e9 \xc3\xa9"}'

    for kind in (Kind.MESSAGE, Kind.PARTIAL, Kind.CONTROL, Kind.BOOKKEEPING, Kind.SENT):
        written = to_json(Entry(7, 1.5, kind, line, ("u",)), session="s")

        begin = b'{"session":"s","seq":7,"at":1.5,"kind":"%b","turns":["u"],"frame":'
        assert written == begin % kind.value.encode() + line + b"}"


def test_unknown_fields_of_an_entry_stay() -> None:
    data = '{"seq":1,"at":2.0,"kind":"message","later":{"a":[1]},"frame":{"type":"x"},"b":null}'

    entry = from_json(data)

    assert (entry.seq, entry.kind, entry.line) == (1, Kind.MESSAGE, b'{"type":"x"}')
    assert json.loads(to_json(entry)) == json.loads(data)
    assert json.loads(to_json(from_json(to_json(entry, session="s")))) == {
        "session": "s",
        **json.loads(data),
    }


def test_what_leaves_the_process_can_be_redacted() -> None:
    secret = "sk-not-a-key-at-all"
    redact = Redactor([secret]).line
    line = json.dumps({"type": "x", "text": secret}).encode()
    later = json.dumps({"seq": 1, "kind": "fault", "details": {"a": secret}, "b": secret})

    for entry in (Entry(1, 1.0, Kind.MESSAGE, line), from_json(later)):
        assert secret in to_json(entry).decode()
        assert secret not in to_json(entry, redact=redact).decode()


def test_an_entry_that_cannot_be_written_is_not_written_in_part() -> None:
    entry = Entry(1, 1.0, Kind.FAULT, b"{}", details={"a": object()})

    assert json.loads(to_json(entry))["details"] == {"unwritable": "TypeError"}


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"null", b"{}", b'{"journal":1}', b'{"seq":1}', "\ud800", b"\xff"],
)
def test_what_is_no_entry_is_refused(data: bytes | str) -> None:
    with pytest.raises(UsageError, match="a journal entry as JSON"):
        from_json(data)


def test_a_kind_of_a_later_release_is_refused_with_a_hint() -> None:
    with pytest.raises(UsageError, match="update steersman"):
        from_json(b'{"seq":1,"at":1.0,"kind":"later"}')


# Snapshots

SNAPSHOT = SessionSnapshot(
    state="waiting_permission",
    phase=Phase.RUNNING,
    since=2.5,
    session_id="s",
    pending_tool_calls=(PendingToolCall(tool_use_id="t", name="Bash", arguments={"a": [1]}),),
    pending_permissions=(
        PendingPermission(request_id="r", tool_name="Bash", input={"a": "\ud800"}),
    ),
    open_asks=("r",),
    tasks=(Task(task_id="a", started=1.0, usage=TaskUsage(total_tokens=4)),),
    queued=("u",),
    retrying=Retrying(attempt=1, most=3, until=9.0),
    stats=Stats(started=1.0, tool_calls=2, cost_usd=0.5),
)


@pytest.mark.parametrize("snapshot", [SessionSnapshot(), SNAPSHOT], ids=["empty", "full"])
def test_a_snapshot_comes_back(snapshot: SessionSnapshot) -> None:
    assert snapshot_from_json(snapshot_to_json(snapshot)) == snapshot


def test_unknown_fields_of_a_snapshot_stay_at_any_depth() -> None:
    found = json.loads(snapshot_to_json(SNAPSHOT))
    found["later"] = {"a": 1}
    found["stats"]["later"] = 2
    found["pending_tool_calls"][0]["later"] = [3]

    read = snapshot_from_json(json.dumps(found))
    changed = replace(read, state="idle")

    assert json.loads(snapshot_to_json(read)) == found
    assert json.loads(snapshot_to_json(changed)) == {**found, "state": "idle"}


@pytest.mark.parametrize("data", [b"", b"[]", b'{"state":"asleep"}', b'{"since":"now"}', b"{"])
def test_what_is_no_snapshot_is_refused(data: bytes) -> None:
    with pytest.raises(UsageError, match="a snapshot as JSON"):
        snapshot_from_json(data)


# Results of turns


def full_result(**fields: Any) -> TurnResult:
    line = b'{"type":"result","subtype":"success","result":"Hi.","later":1}'
    spoken = b'{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"Hi."}]}}'
    last = parse_message(line)
    assert isinstance(last, Result)
    call = ToolCallRecord(tool_use_id="t", name="Bash", input={"a": 1}, started=1.0)
    made = TurnResult(
        uuid="u",
        outcome="completed",
        text="Hi.",
        answer="Hi.",
        cost_usd=0.25,
        usage=Usage(input_tokens=3),
        model_usage={"opus": ModelUsage(input_tokens=3)},
        duration=1.5,
        said=AssistantText((spoken,)),
        tool_calls=(call,),
        agents=(AgentNode(agent_id="a", state="completed", tool_calls=(call,)),),
        structured_output={"a": [1]},
        permission_denials=[{"tool_name": "Bash"}],
        result=last,
    )
    return replace(made, **fields)


def test_a_result_comes_back() -> None:
    result = full_result()

    read = result_from_json(result_to_json(result))

    assert read == result
    assert read.result is not None
    assert (read.blocks, read.result.raw["later"]) == (result.blocks, 1)


@pytest.mark.parametrize(
    "cause",
    [
        ApiFailed("API Error: 529", status=529),
        ApiFailed("no answer"),
        TurnStopped("max_turns", "the turn reached max_turns", hint="raise max_turns="),
        LimitReached("session", "cost_usd", 2.0, 1.0),
        UsageError("session_store", Described("a MemoryStore"), "one on this machine"),
        SteersmanError("other"),
    ],
    ids=lambda cause: cause.code,
)
def test_a_cause_keeps_its_class_its_text_and_its_fields(cause: SteersmanError) -> None:
    read = result_from_json(result_to_json(full_result(outcome="failed", cause=cause)))

    assert type(read.cause) is type(cause)
    assert read.reason == str(cause)
    assert read.cause is not None
    assert {**vars(read.cause), "evidence": None} == {**vars(cause), "evidence": None}


def test_a_cause_of_a_later_release_is_an_error_with_its_text() -> None:
    data = b'{"uuid":"u","outcome":"failed","cause":{"code":"later","reason":"too late"}}'

    read = result_from_json(data)

    assert (type(read.cause), read.reason) == (SteersmanError, "too late")


def test_unknown_fields_of_a_result_stay() -> None:
    found = json.loads(result_to_json(full_result()))
    found["later"] = 1
    found["tool_calls"][0]["later"] = 2

    assert json.loads(result_to_json(result_from_json(json.dumps(found)))) == found


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b'{"uuid":1,"outcome":"completed"}'])
def test_what_is_no_result_is_refused(data: bytes) -> None:
    with pytest.raises(UsageError, match="the result of a turn as JSON"):
        result_from_json(data)


async def test_a_recorded_conversation_comes_back() -> None:
    held = await hold("subagent_foreground")

    assert [Record.of(from_json(to_json(each))) for each in held.entries] == [
        Record.of(each) for each in held.entries
    ]
    for result in held.results.values():
        assert result_from_json(result_to_json(result)) == result
    snapshot = held.session.snapshot()
    assert snapshot_from_json(snapshot_to_json(snapshot)) == snapshot
