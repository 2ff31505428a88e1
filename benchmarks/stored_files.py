"""Session files for measuring lists, reading and search: made once, and kept.

Each file is a conversation in the form in which the CLI writes it, without records of requests.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.stand_in.build import MADE

PROJECT = "-bench-project"
BEGIN = 1_790_000_000
WORDS = ("lorem", "ipsum", "dolor", "sit", "amet", "error", "module", "returns", "request", "value")
RARE = 50
"""One message in this many has a word of its own kind, to be searched for."""


def stored_files(count: int, size: int) -> Path:
    """Return a configuration directory with `count` sessions of about `size` bytes."""
    config = MADE / f"stored-{count}-{size}"
    if not config.exists():
        made = config.with_suffix(".new")
        shutil.rmtree(made, ignore_errors=True)
        folder = made / "projects" / PROJECT
        folder.mkdir(parents=True)
        chance = random.Random(1)  # noqa: S311 - the same files each time
        for number in range(count):
            _write(folder, number, size, chance)
        made.rename(config)
    return config


def _write(folder: Path, number: int, size: int, chance: random.Random) -> None:
    session_id = _id(chance)
    path = folder / f"{session_id}.jsonl"
    written = 0
    with path.open("wb") as file:
        for entry in _entries(session_id, number, chance):
            written += file.write(json.dumps(entry, separators=(",", ":")).encode() + b"\n")
            if written >= size:
                break
    os.utime(path, (BEGIN + number, BEGIN + number))


def _entries(session_id: str, number: int, chance: random.Random) -> Iterator[dict[str, Any]]:
    at = "2026-11-01T10:00:00.000Z"
    yield {"type": "queue-operation", "operation": "enqueue", "timestamp": at, "content": "x"}
    parent = None
    for turn in range(10_000_000):
        role = "assistant" if turn % 2 else "user"
        text = " ".join(chance.choices(WORDS, k=150 if turn % 2 else 60))
        if chance.randrange(RARE) == 0:
            text += f" needle{chance.randrange(1000)}"
        uuid_ = _id(chance)
        yield {
            "parentUuid": parent,
            "isSidechain": False,
            "type": role,
            "message": {"role": role, "content": [{"type": "text", "text": text}], "id": uuid_},
            "uuid": uuid_,
            "timestamp": at,
            "userType": "external",
            "cwd": "/bench/project",
            "sessionId": session_id,
            "version": "2.1.325",
            "gitBranch": "main",
        }
        if turn == 1 and number % 10 == 0:
            yield {
                "type": "custom-title",
                "customTitle": f"Title {number}",
                "sessionId": session_id,
            }
        if turn % 2:
            yield {"type": "last-prompt", "lastPrompt": f"prompt {turn}", "sessionId": session_id}
        parent = uuid_


def _id(chance: random.Random) -> str:
    return str(uuid.UUID(int=chance.getrandbits(128), version=4))
