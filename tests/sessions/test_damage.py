"""Files with any damage: every method gives what it can, or one of our errors."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from steersman.errors import SessionNotFound, UsageError
from steersman.sessions import Sessions
from tests.sessions.made import number
from tests.sessions.real import PROJECT, unpack

pytestmark = pytest.mark.soak

CASES = 2_000 if os.environ.get("STEERSMAN_SOAK") else 24
VALUES: list[Any] = [None, True, 0, -1, 1e308, "", [], {}, "x", [[]], {"a": [{}]}, "\ud800", 10**30]


def other_bytes(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.randrange(1, 30)):
        changed[chance.randrange(len(changed))] = chance.randrange(256)
    return bytes(changed[: chance.randrange(len(changed))] if chance.random() < 0.3 else changed)


def other_values(data: bytes, chance: random.Random) -> bytes:
    lines = data.split(b"\n")
    for _ in range(chance.randrange(1, 15)):
        at = chance.randrange(len(lines))
        if lines[at]:
            entry = json.loads(lines[at])
            _change(entry, chance)
            lines[at] = json.dumps(entry).encode()
    return b"\n".join(lines)


def _change(value: Any, chance: random.Random) -> None:
    for _ in range(4):
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        if not keys:
            return
        key = chance.choice(keys)
        if chance.random() < 0.4 or not isinstance(value[key], dict | list):
            value[key] = chance.choice(VALUES)
            return
        value = value[key]


def test_every_method_survives_every_file(config: Path, tmp_path: Path) -> None:
    folder = config / "projects" / PROJECT
    files: list[bytes] = []
    for name in unpack(config):
        lines = (folder / f"{name}.jsonl").read_bytes().splitlines()
        files.append(b"\n".join(each for each in lines if b'"api-request' not in each[:30]))
        (folder / f"{name}.jsonl").unlink()
    target = Sessions(config=tmp_path / "other")

    for seed in range(CASES):
        chance = random.Random(seed)
        data = chance.choice((other_bytes, other_values))(chance.choice(files), chance)
        session_id = number(seed)
        path = folder / f"{session_id}.jsonl"
        path.write_bytes(data)
        sessions = Sessions(index=bool(seed % 2))
        sessions.list()
        sessions.search("answer")
        for method in methods(sessions, target, session_id):
            # No other error may come.
            with suppress(SessionNotFound, UsageError):
                method()
        path.unlink()


def methods(sessions: Sessions, target: Sessions, session_id: str) -> list[Callable[[], object]]:
    return [
        lambda: sessions.info(session_id),
        lambda: [each.message for each in sessions.messages(session_id)],
        lambda: list(sessions.messages(session_id, last=3, through_compaction=True)),
        lambda: [each.data for each in sessions.entries(session_id)],
        lambda: sessions.agents(session_id),
        lambda: sessions.delete(sessions.fork(session_id)),
        lambda: sessions.copy_to(target, session_id),
    ]
