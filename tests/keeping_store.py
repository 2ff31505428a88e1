"""A session store in memory, for tests: with faults by plan."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from steersman.transcripts.keys import (
    SessionKey,
    SessionListSubkeysKey,
    SessionStoreEntry,
    SessionStoreListEntry,
    SessionSummaryEntry,
)

Fault = Callable[[int], BaseException | float | None]
"""What the call of this number does: raise, or take so many seconds."""


def healthy(_number: int) -> None:
    """Have no fault."""


def name_of(key: SessionKey) -> str:
    """Return a key as one string."""
    return "/".join(filter(None, (key["project_key"], key["session_id"], key.get("subpath", ""))))


class KeepingStore:
    """Keeps entries by key, and each uuid once."""

    def __init__(self, fault: Fault = healthy) -> None:
        self.kept: dict[str, list[Any]] = {}
        self.appends: list[int] = []
        """The size of each append that was tried."""
        self.fault = fault
        self._calls = 0
        self._changed: dict[str, int] = {}

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Append, unless there is a fault."""
        self.appends.append(len(entries))
        await self._fail()
        kept = self.kept.setdefault(name_of(key), [])
        known = {each["uuid"] for each in kept if "uuid" in each}
        kept += [each for each in entries if each.get("uuid") not in known]
        self._changed[name_of(key)] = self._calls

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """Return the entries of a conversation, unless there is a fault."""
        await self._fail()
        return self.kept.get(name_of(key))

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        """Return the conversations of a project."""
        return [
            {"session_id": key.split("/")[1], "mtime": self._changed[key]}
            for key in self.kept
            if key.startswith(project_key + "/") and key.count("/") == 1
        ]

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        """Return the parts of a conversation."""
        start = f"{key['project_key']}/{key['session_id']}/"
        return [each.removeprefix(start) for each in self.kept if each.startswith(start)]

    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        """Left out."""
        raise NotImplementedError

    async def delete(self, key: SessionKey) -> None:
        """Left out."""
        raise NotImplementedError

    async def _fail(self) -> None:
        self._calls += 1
        fault = self.fault(self._calls)
        if isinstance(fault, BaseException):
            raise fault
        if fault is not None:
            await asyncio.sleep(fault)
