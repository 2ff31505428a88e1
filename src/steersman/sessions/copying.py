"""Copies a session from one place to another: only what is missing there."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Awaitable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from steersman._json import JsonDict
from steersman.sessions.backends import Backend
from steersman.transcripts.entries import TranscriptEntry

T = TypeVar("T")


class Run(Protocol):
    """Runs a coroutine of a backend where it belongs: in a thread, or here."""

    def __call__(self, work: Coroutine[Any, Any, T], /) -> Awaitable[T]:
        """Run `work` and return its result."""
        ...


@dataclass(frozen=True, slots=True)
class Place:
    """A backend, and how its coroutines are run."""

    backend: Backend
    run: Run


async def copy(source: Place, target: Place, session_id: str) -> int:
    """Copy a session with its subagents, and return how many entries were added."""
    copies, others = source.backend.copies, target.backend.copies
    parts = await source.run(copies.parts(session_id))
    project = await source.run(copies.project_of(session_id))
    total = 0
    for part in parts:
        known = _Known(await target.run(others.copied(session_id, part, project)))
        pages = await source.run(copies.read(session_id, part))
        try:
            while page := await source.run(pages.next()):
                found = [each.data for each in page if not _is_left_out(each, others.leaves_out)]
                missing = [each for each in found if not known.has(each)]
                if missing:
                    await target.run(others.add(session_id, part, project, missing))
                    total += len(missing)
        finally:
            await source.run(pages.close())
    return total


def _is_left_out(entry: TranscriptEntry, beginning: str) -> bool:
    return bool(beginning) and entry.type.startswith(beginning)


class _Known:
    """The entries that a place has. One without a uuid is known by its content and number."""

    def __init__(self, entries: Iterable[JsonDict]) -> None:
        self._uuids: set[str] = set()
        self._others: Counter[bytes] = Counter()
        for entry in entries:
            if isinstance(uuid := entry.get("uuid"), str):
                self._uuids.add(uuid)
            else:
                self._others[_digest(entry)] += 1

    def has(self, entry: JsonDict) -> bool:
        """Return whether the place has this entry, and count it as there from now on."""
        uuid = entry.get("uuid")
        if isinstance(uuid, str):
            is_known = uuid in self._uuids
            self._uuids.add(uuid)
            return is_known
        digest = _digest(entry)
        self._others[digest] -= 1
        return self._others[digest] >= 0


def _digest(entry: JsonDict) -> bytes:
    import json  # noqa: PLC0415 - the order of keys must not matter, which msgspec cannot do

    text = json.dumps(entry, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
