"""Compares a session file with what a session store has, and appends what the store lacks.

Entries are the same if they have the same uuid, or, without one, the same content as often. Files
are read line by line in a thread, stores chunk by chunk if they can.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, cast

from steersman import _json
from steersman._json import JsonDict
from steersman.mirror.queue import APPENDING, FILE_END, MOST_BYTES, MOST_ENTRIES
from steersman.ports import SessionStore
from steersman.stores.optional_methods import chunks
from steersman.transcripts.identity import (
    AGENT_METADATA,
    Identity,
    identity,
    identity_of_line,
    is_kept,
)
from steersman.transcripts.keys import SessionKey, SessionStoreEntry

TAIL = 512
"""How many of a file's last entries are returned."""

SUBAGENTS = "subagents"


@dataclass(slots=True)
class Held:
    """What a store has under one key."""

    count: int = 0
    uuids: set[str] = field(default_factory=set[str])
    others: Counter[Identity] = field(default_factory=Counter[Identity])
    """Entries without a uuid, by content."""
    meta: JsonDict | None = None
    """The last entry about the subagent itself."""

    def add(self, entry: JsonDict) -> None:
        """Note an entry of the store."""
        self.count += 1
        if entry.get("type") == AGENT_METADATA:
            self.meta = entry
            return
        which = identity(entry)
        if isinstance(which, str):
            self.uuids.add(which)
        else:
            self.others[which] += 1


async def held(store: SessionStore, key: SessionKey) -> Held:
    """Return the entries that a store has under `key`."""
    found = Held()
    async for chunk in chunks(store, key):
        for entry in chunk:
            found.add(cast("JsonDict", entry))
    return found


def entries_in(path: Path) -> Iterator[tuple[bytes, Identity, int]]:
    """Yield the lines of a session file that a store gets, with their identity, and where they end.

    A last line without an end is not whole, and is left out. So are lines that are no entries.
    """
    position = 0
    with path.open("rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                return
            position += len(line)
            kind, which = identity_of_line(line)
            if which is not None and is_kept(kind) and kind != AGENT_METADATA:
                yield line, which, position


def meta_path(path: Path) -> Path:
    """Return the file beside a subagent's session file with what the subagent is."""
    return path.with_name(path.name.removesuffix(FILE_END) + ".meta.json")


@dataclass(slots=True)
class _Reading:
    """Reads a file beside what the store has."""

    path: Path
    held: Held
    tail: deque[tuple[Identity, int]] = field(
        default_factory=lambda: deque[tuple[Identity, int]](maxlen=TAIL)
    )

    def lacking(self) -> Iterator[list[SessionStoreEntry]]:
        """Yield what the store lacks, in batches, in the order of the file."""
        batch: list[SessionStoreEntry] = []
        size = 0
        left = Counter(self.held.others)
        for line, which, end in entries_in(self.path):
            self.tail.append((which, end))
            if isinstance(which, str):
                is_held = which in self.held.uuids
            else:
                is_held = left[which] > 0
                left[which] -= is_held
            if is_held:
                continue
            if batch and (len(batch) >= MOST_ENTRIES or size + len(line) > MOST_BYTES):
                yield batch
                batch, size = [], 0
            batch.append(cast("SessionStoreEntry", _json.loads(line)))
            size += len(line)
        meta = _read_meta(self.path)
        if meta is not None and meta != self.held.meta:
            batch.append(cast("SessionStoreEntry", meta))
        if batch:
            yield batch


def _read_meta(path: Path) -> JsonDict | None:
    """Return the entry that stands for the file `.meta.json`; None if there is none."""
    try:
        meta = _json.loads(meta_path(path).read_bytes())
    except (OSError, ValueError):
        return None
    return {"type": AGENT_METADATA, **meta} if _json.is_object(meta) else None


InThread: TypeAlias = Callable[..., Awaitable[Any]]
"""Calls a function that reads files, with its arguments: `asyncio.to_thread`."""


async def catch_up(
    store: SessionStore,
    key: SessionKey,
    path: Path,
    *,
    load_timeout: float,
    in_thread: InThread = asyncio.to_thread,
) -> Sequence[tuple[Identity, int]]:
    """Append to the store what it lacks of a file; returns the file's last entries.

    Each comes with the position at which it ends. A file that does not exist has nothing.
    """
    async with asyncio.timeout(load_timeout):
        known = await held(store, key)
    reading = _Reading(path, known)
    batches = reading.lacking()
    with suppress(FileNotFoundError):
        while (batch := await in_thread(next, batches, None)) is not None:
            async with asyncio.timeout(APPENDING):
                await store.append(key, batch)
    return list(reading.tail)


def parts_of(path: Path) -> list[str]:
    """Return the files of the subagents of the conversation in the file `path`."""
    folder = path.with_name(path.name.removesuffix(FILE_END)) / SUBAGENTS
    return sorted(str(each) for each in folder.rglob(f"*{FILE_END}"))


@dataclass(frozen=True, slots=True)
class FileComparer:
    """Compares the files of one session with its store."""

    store: SessionStore
    load_timeout: float
    in_thread: InThread = asyncio.to_thread

    async def parts(self, path: str) -> Sequence[str]:
        """Return the files of the subagents of the conversation in the file `path`."""
        parts: Sequence[str] = await self.in_thread(parts_of, Path(path))
        return parts

    def size(self, path: str) -> int:
        """Return how long a file is; 0 if it does not exist."""
        try:
            return Path(path).stat().st_size
        except OSError:
            return 0

    async def catch_up(self, key: SessionKey, path: str) -> Sequence[tuple[Identity, int]]:
        """Append to the store what it lacks of a file; returns the file's last entries."""
        return await catch_up(
            self.store,
            key,
            Path(path),
            load_timeout=self.load_timeout,
            in_thread=self.in_thread,
        )
