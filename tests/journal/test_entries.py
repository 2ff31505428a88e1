from __future__ import annotations

from steersman.journal import Entry, Kind
from steersman.messages import Assistant
from tests.samples import encoded, sample


def test_a_message_is_decoded_when_somebody_looks_and_only_once() -> None:
    line = encoded(sample("assistant"))
    entry = Entry(1, 0.0, Kind.MESSAGE, line)

    message = entry.message

    assert isinstance(message, Assistant)
    assert entry.message is message
    assert message.raw == sample("assistant")


def test_entries_are_told_apart_by_being_themselves() -> None:
    assert Entry(1, 0.0, Kind.NOISE) != Entry(1, 0.0, Kind.NOISE)
