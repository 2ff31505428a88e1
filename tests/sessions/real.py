"""Thirty sessions that the stock CLI wrote (`record.py`), and changed copies of them."""

from __future__ import annotations

import json
import random
import tarfile
from pathlib import Path

from tests.sessions.made import number, title

DATA = Path(__file__).parent / "session_files.tar.xz"
PROJECT = "-sandbox-project"


def unpack(config: Path) -> list[str]:
    """Write the recorded sessions below `config`, and return their ids."""
    folder = config / "projects" / PROJECT
    folder.mkdir(parents=True)
    with tarfile.open(DATA) as tar:
        tar.extractall(folder, filter="data")
    return sorted(each.stem for each in folder.glob("*.jsonl"))


def changed(lines: list[bytes], seed: int) -> bytes:
    """Return a file with some of what can go wrong, chosen by `seed`."""
    chance = random.Random(seed)
    found = list(lines)
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(found))
        CHANGES[chance.randrange(len(CHANGES))](found, at, chance)
        if not found:
            break
    data = b"".join(each + b"\n" for each in found)
    return data[: -chance.randrange(1, 200)] if chance.random() < 0.2 else data


def _drop(found: list[bytes], at: int, chance: random.Random) -> None:
    del found[at : at + chance.randrange(1, 3)]


def _repeat(found: list[bytes], at: int, chance: random.Random) -> None:
    found.insert(chance.randrange(len(found)), found[at])


def _cut_off(found: list[bytes], at: int, chance: random.Random) -> None:
    found[at] = found[at][: chance.randrange(len(found[at]) + 1)]


def _noise(found: list[bytes], at: int, chance: random.Random) -> None:
    found.insert(at, chance.choice([b"", b"noise", b"\xff\xfe", b"[1]", b"null", b"{}", b'{"a":']))


def _end_early(found: list[bytes], at: int, chance: random.Random) -> None:
    del found[max(1, at) :]


def _meta(found: list[bytes], at: int, chance: random.Random) -> None:
    kinds = [
        title(chance.choice(["A title", "Ünï", ""])),
        {"type": "tag", "tag": chance.choice(["a", "b", ""])},
        {"type": "ai-title", "aiTitle": "By the model"},
        {"type": "summary", "summary": "A summary", "leafUuid": number(0)},
        {"type": "last-prompt", "lastPrompt": "the last"},
    ]
    found.insert(at, json.dumps(chance.choice(kinds), separators=(",", ":")).encode())


def _field(found: list[bytes], at: int, chance: random.Random) -> None:
    messages = [n for n, line in enumerate(found) if line.startswith(b'{"parentUuid"')]
    if not messages:
        return
    index = chance.choice(messages)
    entry = json.loads(found[index])
    other = json.loads(found[chance.choice(messages)])
    name, value = chance.choice(
        [
            ("parentUuid", other["uuid"]),
            ("parentUuid", None),
            ("parentUuid", number(99)),
            ("isSidechain", True),
            ("isMeta", True),
            ("gitBranch", "other"),
            ("timestamp", "nonsense"),
            ("uuid", other["uuid"]),
        ]
    )
    entry[name] = value
    found[index] = json.dumps(entry, separators=(",", ":")).encode()


CHANGES = (_drop, _repeat, _cut_off, _noise, _end_early, _meta, _field)
