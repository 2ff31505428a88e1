"""The log that the processes of one executable share with their test.

One file, one JSON object per line, append-only: requests to the model, stalls, and the releases
that the test writes. The processes use it to agree which step of the script is next.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from steersman import _json
from steersman._json import JsonDict
from steersman.testing.request import ModelRequest

Note = JsonDict


class SharedLog:
    """One reader of the file, with its own position."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read_to = 0
        self._rest = b""

    def write(self, note: Note) -> None:
        """Append a line; a single write, so that lines of several processes do not mix."""
        with self.path.open("ab") as file:
            file.write(_json.dumps(note) + b"\n")

    def unread(self) -> list[Note]:
        """Return the lines that this reader has not read."""
        with suppress(FileNotFoundError), self.path.open("rb") as file:
            file.seek(self._read_to)
            data = file.read()
            self._read_to += len(data)
            *lines, self._rest = (self._rest + data).split(b"\n")
            return [_json.loads(line) for line in lines]
        return []

    def all(self) -> list[Note]:
        """Return all lines so far."""
        return SharedLog(self.path).unread()

    @contextmanager
    def locked(self) -> Generator[None, None, None]:
        """Lock the file against the other processes, to read and write in one step."""
        lock = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    @property
    def asked(self) -> list[ModelRequest]:
        """The requests to the model, of all processes."""
        return [ModelRequest(note["asked"]) for note in self.all() if "asked" in note]

    @property
    def surprises(self) -> list[str]:
        """The failures of the script itself."""
        return [each for note in self.all() for each in note.get("surprises", ())]

    @property
    def stalled(self) -> int:
        """The number of current stalls."""
        return sum(note.get("stalled", 0) for note in self.all())

    @property
    def releases(self) -> int:
        """The number of releases that the test has written."""
        return sum("release" in note for note in self.all())
