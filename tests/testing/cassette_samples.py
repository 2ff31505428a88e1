"""What tests of cassettes share: traces as tracks, and a session's story without its ids."""

from __future__ import annotations

import json
import re
from typing import Any

from steersman import Session
from steersman.journal import Entry, Kind
from steersman.journal.files import EXITED, INPUT_ENDED, STDERR, Header, Record, Track
from tests.samples import Frame, dialogue, encoded

UUID = "00000000-0000-4000-8000-{:012d}"


def track_of(trace: str) -> Track:
    """The trace, line by line."""
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


Told = tuple[Any, ...]
"""An entry without its time, and with ids that are the same on each run."""

Story = tuple[list[Told], list[Told], list[Told]]
"""What the CLI said in order, what the host did in order, and what it wrote, in any order.

A replay waits for what the host wrote, and for nothing else that it did; its answers race.
"""


async def story_of(session: Session) -> Story:
    """The journal of a closed session, in three parts that do not depend on timing."""
    entries = [each async for each in session.journal() if isinstance(each, Entry)]
    uuids = [uuid for each in entries if each.kind is Kind.SENT for uuid in each.turns]
    names = {uuid: f"prompt {number}" for number, uuid in enumerate(dict.fromkeys(uuids))}
    names[session.id or "nobody"] = "session"
    told = [tell(entry, names) for entry in entries]
    written = [each for each in told if each[0] is Kind.SENT]
    others = [each for each in told if each[0] is not Kind.SENT]
    said, done = [each for each in others if each[1]], [each for each in others if not each[1]]
    return said, done, sorted(written, key=repr)


def tell(entry: Entry, names: dict[str, str]) -> Told:
    line = entry.line.decode()
    for uuid, name in names.items():
        line = line.replace(uuid, name)
    line = re.sub(r"req_(\d+)_[0-9a-f]{8}", r"req_\1", line)
    return entry.kind, line, tuple(names[uuid] for uuid in entry.turns), dict(entry.details)
