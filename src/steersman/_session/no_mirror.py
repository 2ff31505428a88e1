"""The part of a session that copies its conversation to a store, and the one of those without."""

from __future__ import annotations

from typing import Protocol

from steersman.transcripts.keys import SessionKey


class MirrorPart(Protocol):
    """Copies the conversation of a session to a store. Only `close` waits."""

    @property
    def is_unused(self) -> bool:
        """Whether there is nothing that the store could lack."""
        ...

    def received(self, line: bytes) -> None:
        """Keep the entries of a `transcript_mirror` line until the store has them."""
        ...

    def flush(self) -> None:
        """Append what there is, soon: a turn has ended."""
        ...

    def resumes(self) -> None:
        """Note that a CLI is started that resumes the conversation."""
        ...

    def opened(self, path: str, key: SessionKey) -> None:
        """Note that the conversation was resumed from the file at `path`."""
        ...

    def lost_sight(self, *, at_once: bool = False) -> None:
        """Compare all files: the CLI may have written entries that it did not report."""
        ...

    async def close(self) -> bool:
        """Append what is left; returns whether the store has everything."""
        ...


class NoMirror:
    """The part of a session without a store: nothing is copied."""

    is_unused = True

    def received(self, line: bytes) -> None:
        """Ignore it; without a store the CLI sends no such lines."""

    def flush(self) -> None:
        """Do nothing."""

    def resumes(self) -> None:
        """Do nothing."""

    def opened(self, path: str, key: SessionKey) -> None:
        """Do nothing."""

    def lost_sight(self, *, at_once: bool = False) -> None:
        """Do nothing."""

    async def close(self) -> bool:
        """Return that nothing is missing."""
        return True
