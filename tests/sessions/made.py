"""Session files for tests, in the forms in which the CLI writes them."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

Entry = dict[str, Any]

ID = "12345678-1234-4234-8234-123456789abc"
OTHER = "87654321-4321-4321-8321-cba987654321"
PROJECT = "-srv-project"
BEGIN = 1_790_000_000


def number(index: int) -> str:
    """The uuid with this number."""
    return str(uuid.UUID(int=index + 1, version=4))


def conversation(*texts: str, session_id: str = ID, first: int = 0) -> list[Entry]:
    """Prompts and answers in turn, each the child of the one before."""
    entries: list[Entry] = []
    for index, text in enumerate(texts, first):
        role = "assistant" if index % 2 else "user"
        content: Any = [{"type": "text", "text": text}] if index % 2 else text
        entries.append(
            {
                "parentUuid": number(index - 1) if index else None,
                "isSidechain": False,
                "type": role,
                "message": {"role": role, "content": content},
                "uuid": number(index),
                "timestamp": f"2026-11-01T10:00:{index % 60:02d}.000Z",
                "cwd": "/srv/project",
                "sessionId": session_id,
                "gitBranch": "main",
            }
        )
    return entries


def title(text: str, session_id: str = ID) -> Entry:
    """The CLI's line for a title."""
    return {"type": "custom-title", "customTitle": text, "sessionId": session_id}


def lines(entries: Iterable[Entry]) -> bytes:
    """Entries as the CLI writes them."""
    return b"".join(json.dumps(each, separators=(",", ":")).encode() + b"\n" for each in entries)


def write(
    config: Path,
    entries: Sequence[Entry] | bytes,
    session_id: str = ID,
    *,
    project: str = PROJECT,
    age: float = 0,
) -> Path:
    """Write a session file that was last changed `age` seconds before now is."""
    path = config / "projects" / project / f"{session_id}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(entries if isinstance(entries, bytes) else lines(entries))
    os.utime(path, (BEGIN - age, BEGIN - age))
    return path


def write_agent(
    config: Path, agent: str, entries: Sequence[Entry], meta: Entry | None = None, inside: str = ""
) -> Path:
    """Write the file of a subagent of the session `ID`."""
    folder = config / "projects" / PROJECT / ID / "subagents" / inside
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"agent-{agent}.jsonl"
    path.write_bytes(lines({**each, "isSidechain": True, "agentId": agent} for each in entries))
    if meta is not None:
        (folder / f"agent-{agent}.meta.json").write_text(json.dumps(meta))
    return path
