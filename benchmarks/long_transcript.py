"""How long a transcript of a gigabyte takes: `python -m benchmarks.long_transcript [megabytes]`.

Writes the file into a temporary directory and removes it. Each figure is measured in a process of
its own: processor seconds, and how much memory the process took at most beyond its start.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path

from steersman.transcripts import StoredMessage, Summary, lines_forward, messages, read_entry

SESSION = "12345678-1234-4234-8234-123456789abc"
MEGABYTE = 1 << 20


class FileSource:
    """A file, read at offsets."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_RDONLY)
        self.size = os.fstat(self._file).st_size

    def read(self, offset: int, size: int) -> bytes:
        """Return up to `size` bytes from `offset`."""
        return os.pread(self._file, size, offset)


def write(path: Path, size: int) -> int:
    """Write a conversation of `size` bytes, in the shapes of the CLI; return its messages."""
    parent, written, count = None, 0, 0
    with path.open("wb") as file:
        while written < size:
            for entry in turn(parent):
                written += file.write(json.dumps(entry, separators=(",", ":")).encode() + b"\n")
                count += entry["type"] in ("user", "assistant")
                parent = entry.get("uuid", parent)
    return count


def turn(parent: object) -> Iterator[dict[str, object]]:
    """Yield a prompt, two parallel calls with their results, an answer, and what is beside them."""
    prompt = entry_of("user", parent, {"role": "user", "content": "please do it " * 5})
    yield prompt
    yield {"type": "api-request", "id": str(uuid.uuid4()), "params": {"x": "y" * 1200}}
    yield {"type": "attachment", **linked(prompt["uuid"]), "attachment": {"text": "z" * 2000}}
    message_id, calls = f"msg_{uuid.uuid4().hex}", list[dict[str, object]]()
    above = prompt["uuid"]
    for _ in range(2):
        block = {"type": "tool_use", "id": f"toolu_{uuid.uuid4().hex}", "input": {"a": "b" * 300}}
        message = {"id": message_id, "role": "assistant", "content": [block]}
        calls.append(entry_of("assistant", above, message))
        above = calls[-1]["uuid"]
        yield calls[-1]
    for each in calls:
        result = {"type": "tool_result", "tool_use_id": "x", "content": 'line "quoted"\n' * 200}
        answer = entry_of("user", each["uuid"], {"role": "user", "content": [result]})
        above = answer["uuid"]
        yield answer
    text = [{"type": "text", "text": "done " * 40}]
    said = {"id": f"msg_{uuid.uuid4().hex}", "role": "assistant", "content": text}
    yield entry_of("assistant", above, said)


def entry_of(kind: str, parent: object, message: Mapping[str, object]) -> dict[str, object]:
    """Return a message."""
    return {**linked(parent), "type": kind, "message": message}


def linked(parent: object) -> dict[str, object]:
    """Return the fields that every entry of a conversation has."""
    return {
        "parentUuid": parent,
        "isSidechain": False,
        "uuid": str(uuid.uuid4()),
        "timestamp": "2026-01-01T00:00:00.000Z",
        "sessionId": SESSION,
        "cwd": "/workspace/project",
        "gitBranch": "main",
    }


def chain(path: str) -> int:
    """Read every message of the conversation."""
    return sum(1 for _ in messages(FileSource(path), session_id=SESSION))


def decoded(path: str) -> int:
    """Read every message of the conversation, and decode it."""
    found: Iterator[StoredMessage] = messages(FileSource(path), session_id=SESSION)
    return sum(1 for each in found if each.message)


def newest(path: str) -> int:
    """Read the last 20 messages."""
    return sum(1 for _ in messages(FileSource(path), session_id=SESSION, last=20))


def summary(path: str) -> int:
    """Fold every entry into a summary."""
    folded = Summary()
    folded.fold_all(read_entry(line.data) for line in lines_forward(FileSource(path)))
    return len(folded.to_data())


TASKS = {each.__name__: each for each in (chain, decoded, newest, summary)}


def measure(task: str, path: str) -> None:
    """Print what one task took, in this process."""
    TASKS[task](os.devnull)  # what is loaded on first use
    before = resource.getrusage(resource.RUSAGE_SELF)
    started, processor = time.perf_counter(), time.process_time()
    count = TASKS[task](path)
    took, wall = time.process_time() - processor, time.perf_counter() - started
    more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before.ru_maxrss
    print(
        f"{task:8} {count:8} found, {took * 1000:9.1f} ms CPU, {wall * 1000:9.1f} ms, "
        f"{more / 1024:6.1f} MB more, {before.ru_maxrss / 1024:.1f} MB before"
    )


def main() -> None:
    """Write the file and measure each task."""
    if len(sys.argv) > 2:  # noqa: PLR2004 - called by the other branch
        return measure(sys.argv[1], sys.argv[2])
    size = int(sys.argv[1] if len(sys.argv) > 1 else 1024) * MEGABYTE
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "long.jsonl")
        count = write(path, size)
        print(f"{path.stat().st_size / MEGABYTE:.0f} MB, {count} messages")
        for task in TASKS:
            again = [sys.executable, "-m", "benchmarks.long_transcript", task, str(path)]
            subprocess.run(again, check=True, timeout=600)  # noqa: S603 - this program
    return None


if __name__ == "__main__":
    main()
