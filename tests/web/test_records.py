from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.journal import Entry, Kind
from steersman.journal.files import Header
from steersman.messages.parsing import parse_message
from steersman.stores import JournalFile
from steersman.web.feed import Feed
from steersman.web.records import CUT, cut, frame_of_line, prefix_of

LINES = st.sampled_from(
    [
        b'{"type":"assistant","message":{"content":[]}}',
        b'{"type":"stream_event","event":{}}',
        b'{"type":"user","text":"\\ud83d alone"}',
        b'{"type":"user","text":"\xff not text"}',
        b'{"type":"user", "text":"caf\xc3\xa9 \xe2\x80\xa8"}',
        b"not JSON at all",
        b'{"deep":' * 2000 + b"1" + b"}" * 2000,
        b"",
    ]
)


def _not_decoded(_line: bytes) -> None:
    """Leave a line as it came."""


@given(
    line=LINES,
    kind=st.sampled_from([Kind.MESSAGE, Kind.PARTIAL, Kind.CONTROL, Kind.PHASE]),
    details=st.sampled_from([{}, {"after": "idle"}]),
    decodes=st.sampled_from([parse_message, _not_decoded]),
)
def test_a_frame_is_the_line_of_the_file_with_the_session_in_front(
    tmp_path_factory: pytest.TempPathFactory,
    line: bytes,
    kind: Kind,
    details: dict[str, str],
    decodes: Callable[[bytes], Any],
) -> None:
    path = tmp_path_factory.mktemp("j") / "journal.jsonl"
    is_message = kind is Kind.MESSAGE and line.startswith(b"{")
    decoded = decodes(line) if is_message else None
    entry = Entry(7, 1789.25, kind, line, ("a-turn",), details, decoded)
    file = JournalFile(path, header=Header())
    file.write([entry])
    file.close()
    stored = path.read_bytes().splitlines()[1]
    feed = Feed("s", path.with_name("none"), lambda _: None)
    feed.write([entry])

    batch = feed.ready(6)

    assert batch is not None
    assert batch.text.encode() == frame_of_line(prefix_of("s"), stored)
    assert json.loads(batch.text)["session"] == "s"


def test_long_texts_are_cut_and_the_record_says_which() -> None:
    content = [{"type": "text", "text": "short"}, {"type": "tool_result", "content": "x" * 50_000}]
    record = {"session": "s", "seq": 3, "kind": "message", "frame": {"message": content}}
    frame = json.dumps(record).encode()

    found = json.loads(cut(frame))

    assert found["cut"] == [{"path": ["frame", "message", 1, "content"], "size": 50_000}]
    assert len(found["frame"]["message"][1]["content"]) == CUT
    assert found["frame"]["message"][0]["text"] == "short"


def test_a_short_record_is_not_touched() -> None:
    frame = b'{"session":"s","seq":3,  "kind":"message"}'

    assert cut(frame) is frame


def test_a_record_of_many_short_values_is_replaced_by_its_size() -> None:
    frame = json.dumps({"seq": 3, "kind": "message", "frame": ["short"] * 100_000}).encode()

    assert json.loads(cut(frame)) == {
        "seq": 3,
        "kind": "message",
        "frame": None,
        "cut": [{"path": ["frame"], "size": len(frame)}],
    }


def test_a_record_that_is_nested_too_deeply_is_replaced_by_its_size() -> None:
    frame = b'{"seq":3,"frame":' + b"[" * 100_000 + b"]" * 100_000 + b"}"

    assert json.loads(cut(frame))["cut"] == [{"path": ["frame"], "size": len(frame)}]
