"""One line of a session file."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steersman.transcripts import entry_of, read_entry
from tests.transcripts.lines import encoded, entry, sample


def test_the_fields_of_a_message_are_read() -> None:
    found = read_entry(encoded(entry("b", "a", isMeta=True, cwd="/w", agentId="x"))[0])

    assert (found.type, found.uuid, found.parent_uuid) == ("user", "b", "a")
    assert (found.is_meta, found.cwd, found.agent_id) == (True, "/w", "x")
    assert found.message == {"role": "user", "content": "text of b"}


@pytest.mark.parametrize("name", ["conversation", "subagent"])
def test_every_line_that_the_cli_wrote_is_kept_as_it_is(name: str) -> None:
    for line in sample(name):
        found = read_entry(line)

        assert found.type
        assert (found.raw, found.data) == (line, json.loads(line))
        assert entry_of(found.data) == found or found.message


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"junk",
        b"[1]",
        b"5",
        b"null",
        b'"text"',
        b"\xff\xfe",
        b"\0\0",
        b'{"type":',
        b"{" * 5000,
    ],
)
def test_a_line_that_is_no_object_is_an_entry_without_a_type(line: bytes) -> None:
    found = read_entry(line)

    assert (found.type, found.uuid, found.data, found.message) == ("", "", {}, {})
    assert (found.raw, found.is_torn) == (line, False)


def test_a_last_line_that_was_not_written_to_its_end_is_torn() -> None:
    whole = encoded(entry("a"))[0]

    assert read_entry(whole[:-1], is_last=True).is_torn
    assert read_entry(whole[:-1], is_last=True).raw == whole[:-1]
    assert not read_entry(whole, is_last=True).is_torn
    assert not read_entry(whole[:-1]).is_torn


def test_fields_of_another_type_have_their_defaults_and_the_others_are_read() -> None:
    odd = {"type": "user", "uuid": "a", "parentUuid": 5, "isMeta": "yes", "message": "text"}

    found = read_entry(json.dumps(odd).encode())

    assert (found.uuid, found.parent_uuid, found.is_meta, found.message) == ("a", None, False, {})
    assert found.data == odd


def test_bytes_that_are_no_utf_8_are_replaced() -> None:
    found = read_entry(b'{"type":"user","uuid":"a","message":{"content":"\xff"}}\r')

    assert (found.uuid, found.message) == ("a", {"content": "\ufffd"})


def test_an_entry_of_a_store_has_a_line() -> None:
    stored = entry("a", future={"kept": [1]})

    found = entry_of(stored)

    assert (found.uuid, found.message, found.data) == ("a", stored["message"], stored)
    assert json.loads(found.raw) == stored


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
NAMES = st.sampled_from(
    ["type", "uuid", "parentUuid", "message", "isMeta", "isSidechain", "timestamp", "tag", "cwd"]
)


@given(st.dictionaries(NAMES, VALUES))
def test_a_line_and_a_stored_entry_are_read_alike(data: dict[str, object]) -> None:
    line = json.dumps(data).encode()

    read, stored = read_entry(line), entry_of(json.loads(line))

    names = [name for name in read.__struct_fields__ if name != "raw_message"]
    assert [getattr(read, each) for each in names] == [getattr(stored, each) for each in names]
    assert (read.message, read.data) == (stored.message, stored.data)


@given(st.binary(max_size=200))
def test_any_bytes_are_an_entry(line: bytes) -> None:
    found = read_entry(line, is_last=True)

    assert found.raw == line
    assert isinstance(found.data, dict)
