"""Lines of session files, built for tests: short uuids, and the fields that the CLI writes."""

from __future__ import annotations

import json
from typing import Any

from steersman.transcripts import Source, lines_source, messages, read_entry
from tests.samples import TRACES

SESSION = "12345678-1234-4234-8234-123456789abc"

Entry = dict[str, Any]


def entry(uuid: str, parent: str | None = None, kind: str = "user", **fields: Any) -> Entry:
    """An entry; a message if it is of the user or of the model."""
    made: Entry = {"parentUuid": parent, "isSidechain": False, "type": kind, "uuid": uuid}
    if kind in ("user", "assistant"):
        made["message"] = {"role": kind, "content": f"text of {uuid}"}
    return {**made, "sessionId": SESSION, "timestamp": "2026-01-01T00:00:00.000Z", **fields}


def call(uuid: str, parent: str, message_id: str, **fields: Any) -> Entry:
    """One of the tool calls of a message of the model."""
    content = [{"type": "tool_use", "id": f"toolu_{uuid}", "name": "Bash", "input": {}}]
    message = {"id": message_id, "role": "assistant", "content": content}
    return entry(uuid, parent, "assistant", message=message, **fields)


def result(uuid: str, parent: str, **fields: Any) -> Entry:
    """The result of a tool call."""
    content = [{"type": "tool_result", "tool_use_id": f"toolu_{parent}", "content": "done"}]
    message = {"role": "user", "content": content}
    return entry(uuid, parent, message=message, sourceToolAssistantUUID=parent, **fields)


def encoded(*entries: Entry | bytes) -> list[bytes]:
    """Entries as lines; lines stay as they are."""
    return [
        each if isinstance(each, bytes) else json.dumps(each, separators=(",", ":")).encode()
        for each in entries
    ]


def sources(*entries: Entry | bytes) -> Source:
    """A source of these entries."""
    return lines_source(encoded(*entries))


def uuids(*entries: Entry | bytes, **options: Any) -> list[str]:
    """The uuids of the messages of the conversation that these entries hold."""
    return [each.uuid for each in messages(sources(*entries), session_id=SESSION, **options)]


def sample(name: str) -> list[bytes]:
    """The lines of a file that the stock CLI wrote."""
    path = TRACES.parent / "transcripts" / f"{name}.jsonl"
    return [line for line in path.read_bytes().split(b"\n") if line]


def texts(lines: list[bytes]) -> dict[str, str]:
    """What was written by hand in a sample, by uuid."""
    found = (read_entry(line) for line in lines)
    return {each.uuid: str(each.message.get("content")) for each in found if each.uuid}
