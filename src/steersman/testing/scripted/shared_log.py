"""What scripted CLIs that are processes write down, and their test reads.

One file, one JSON object per line, only ever added to: requests to the model, stalls, and the
releases that the test writes. Processes of one script agree by it which step is next.
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

__all__ = ["Note", "SharedLog"]

Note = JsonDict


class SharedLog:
    """One reader's view of the file: it remembers how far it has read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read_to = 0
        self._rest = b""

    def write(self, note: Note) -> None:
        """Add a line; whole, whoever else writes."""
        with self.path.open("ab") as file:
            file.write(_json.dumps(note) + b"\n")

    def news(self) -> list[Note]:
        """The lines that this reader has not seen."""
        with suppress(FileNotFoundError), self.path.open("rb") as file:
            file.seek(self._read_to)
            data = file.read()
            self._read_to += len(data)
            *lines, self._rest = (self._rest + data).split(b"\n")
            return [_json.loads(line) for line in lines]
        return []

    def all(self) -> list[Note]:
        """Every line so far."""
        return SharedLog(self.path).news()

    @contextmanager
    def held(self) -> Generator[None, None, None]:
        """Keep the other processes waiting while this one looks and writes."""
        lock = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    @property
    def asked(self) -> list[ModelRequest]:
        """The requests to the model."""
        return [ModelRequest(note["asked"]) for note in self.all() if "asked" in note]

    @property
    def surprises(self) -> list[str]:
        """What went wrong in the script itself."""
        return [each for note in self.all() for each in note.get("surprises", ())]

    @property
    def stalled(self) -> int:
        """How many requests the model lets wait now."""
        return sum(note.get("stalled", 0) for note in self.all())

    @property
    def releases(self) -> int:
        """How often the test has let them go on."""
        return sum("release" in note for note in self.all())
