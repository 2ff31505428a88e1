"""Sessions as files: `<project>/<session>.jsonl`, and parts in `<project>/<session>/`.

The layout is that of the CLI's own `projects` folder, so that what reads one reads the other. The
blocking work is done by `directory_files`, in a thread of the store's own.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path
from types import TracebackType
from typing import Self

from steersman._portal.home_thread import HomeThread
from steersman.errors import StoreError
from steersman.stores.directory_files import SessionFiles
from steersman.stores.entry_json import check_timeout, place_of, read_project, session_of
from steersman.transcripts.keys import (
    SessionKey,
    SessionListSubkeysKey,
    SessionStoreEntry,
    SessionStoreListEntry,
    SessionSummaryEntry,
)

REST = 30.0
"""Seconds without work after which the thread ends."""


class DirectoryStore:
    """A `SessionStore` in a directory of this machine, which several processes may use at once.

    Directories are created with mode 0700 and files with 0600. `timeout` is how long to wait for
    another process that writes to the same session.
    """

    def __init__(self, path: str | os.PathLike[str], *, timeout: float = 30.0) -> None:
        check_timeout(timeout)
        self.path = Path(path)
        self._files = SessionFiles(self.path, timeout)
        self._thread = HomeThread("steersman-directory-store", _nothing, REST)
        self._is_closed = False

    def __repr__(self) -> str:
        return f"DirectoryStore({str(self.path)!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End the thread of the store, after the work that is waiting. May be called again."""
        self._is_closed = True
        await self._thread.aclose()

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        await self._ready().do(self._files.append, place_of(key), entries)

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        return await self._ready().do(self._files.load, place_of(key))

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        return await self._ready().do(self._files.list_sessions, read_project(project_key))

    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        return await self._ready().do(self._files.list_summaries, read_project(project_key))

    async def delete(self, key: SessionKey) -> None:
        await self._ready().do(self._files.delete, place_of(key))

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        return await self._ready().do(self._files.list_subkeys, session_of(key))

    async def stream(self, key: SessionKey) -> AsyncIterator[list[SessionStoreEntry]]:
        reading = await self._ready().do(self._files.open_stream, place_of(key))
        if reading is None:
            return
        try:
            while chunk := await self._ready().do(reading.next_chunk):
                yield chunk
        finally:
            reading.close()

    async def positions(self, key: SessionKey) -> int:
        return await self._ready().do(self._files.count, place_of(key))

    def _ready(self) -> HomeThread:
        if self._is_closed:
            raise StoreError(f"{self!r} is closed")
        return self._thread


async def _nothing() -> None:
    """Have nothing to close: files are open only while they are read or written."""
