"""Recorded traces as tracks of a cassette, as if our own host had recorded them."""

from __future__ import annotations

import json
from typing import Any

from steersman.journal import Kind
from steersman.journal.files import EXITED, INPUT_ENDED, STDERR, Header, Record, Track
from tests.samples import Frame, dialogue, encoded

__all__ = ["replayed", "track_of"]

UUID = "00000000-0000-4000-8000-{:012d}"


def track_of(trace: str) -> Track:
    """The trace, word by word."""
    records = [
        record_of(number, direction, frame)
        for number, (direction, frame) in enumerate(dialogue(trace), start=1)
        if frame.get("event") != "spawn"
    ]
    return Track(Header("trace", "2.1.325"), tuple(records))


def replayed(trace: str) -> Track:
    """The trace of a host that names its prompts, and a CLI that echoes them as it begins.

    Most traces come from hosts that did neither; ours does both, and settles turns by it.
    """
    records: list[Record] = []
    for record in track_of(trace).records:
        records.append(record)
        frame = json.loads(record.line) if record.kind == Kind.SENT.value else {}
        if frame.get("type") == "user" and "uuid" not in frame:
            frame["uuid"] = UUID.format(record.seq)
            records[-1] = sent(record, frame)
            records.append(Record(record.seq, record.at, "bookkeeping", echo(frame)))
    return Track(Header("trace", "2.1.325"), tuple(records))


def sent(record: Record, frame: Frame) -> Record:
    return Record(record.seq, record.at, record.kind, encoded(frame))


def echo(frame: Frame) -> bytes:
    return encoded({**frame, "isReplay": True, "session_id": ""})


def record_of(number: int, direction: str, frame: Frame) -> Record:
    if direction == "stderr":
        return Record(number, float(number), STDERR, frame["raw"].encode() + b"\n")
    if direction == "proc":
        return of_process(number, frame)
    kind = Kind.SENT if direction == "sdk>cli" else kind_of(frame)
    return Record(number, float(number), kind.value, encoded(frame))


def of_process(number: int, frame: Frame) -> Record:
    if frame["event"] == "exit":
        return Record(number, float(number), EXITED, details={"status": frame["code"]})
    return Record(number, float(number), INPUT_ENDED)


def kind_of(frame: dict[str, Any]) -> Kind:
    return Kind.CONTROL if str(frame.get("type")).startswith("control_") else Kind.MESSAGE
