from __future__ import annotations

from steersman.journal import Entry, Kind
from steersman.messages import Assistant, to_json
from steersman.messages.parsing import read_assistant
from tests.samples import encoded, sample


def test_a_message_is_decoded_when_somebody_looks_and_only_once() -> None:
    line = encoded(sample("assistant"))
    entry = Entry(1, 0.0, Kind.MESSAGE, line)

    message = entry.message

    assert isinstance(message, Assistant)
    assert entry.message is message
    assert message.raw == sample("assistant")


def test_what_came_of_a_line_on_arrival_is_what_everybody_sees() -> None:
    line = encoded(sample("assistant"))
    bare = read_assistant(line)
    entry = Entry(1, 0.0, Kind.MESSAGE, line, decoded=bare)

    message = entry.message

    assert message is bare
    assert entry.message is message


def test_parts_of_what_was_decoded_on_arrival_know_where_they_stand_once_somebody_looks() -> None:
    frame = sample("assistant")
    frame["message"]["content"] = [{"type": "text", "text": "a", "brand_new": 1}]
    line = encoded(frame)
    entry = Entry(1, 0.0, Kind.MESSAGE, line, decoded=read_assistant(line))

    message = entry.message

    assert isinstance(message, Assistant)
    assert message.raw == frame
    assert message.content[0].raw == {"type": "text", "text": "a", "brand_new": 1}
    assert message.message.usage.raw == frame["message"]["usage"]
    assert to_json(message) == line


def test_entries_are_told_apart_by_being_themselves() -> None:
    assert Entry(1, 0.0, Kind.NOISE) != Entry(1, 0.0, Kind.NOISE)
