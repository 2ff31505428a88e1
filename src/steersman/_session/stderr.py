"""The end of what a CLI wrote on stderr."""

from __future__ import annotations

__all__ = ["StderrTail"]

KEPT = 16 * 1024


class StderrTail:
    """A ring of bytes: a misbehaving hook makes the CLI write hundreds of lines."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._tail = b""

    def add(self, data: bytes) -> None:
        """Take the next chunk."""
        self._tail = (self._tail + data)[-self._kept :]

    @property
    def text(self) -> str:
        """What is kept, as text."""
        return self._tail.decode("utf-8", "replace").strip()
