"""The mirror: appends what the CLI writes to its session files to a session store.

A task of its own does so, and the reader of the CLI's output never waits for it. If the store
fails, nothing of that file is kept here: the file has it. When no turn runs, and at the end, the
file is compared with the store, and what the store lacks is appended.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import cast

from msgspec import Raw

from steersman import _json
from steersman._background import BackgroundTasks
from steersman.mirror.comparing import FileComparer
from steersman.mirror.queue import APPENDING, MOST_BYTES, MOST_ENTRIES, MirrorKeys, MirrorQueue
from steersman.mirror.restore import StoredConversation
from steersman.ports import SessionStore
from steersman.transcripts.identity import AGENT_METADATA, Identity, identity, unannounced
from steersman.transcripts.keys import SessionKey, SessionStoreEntry

log = logging.getLogger("steersman.session")

PAUSES = (0.2, 0.8)
"""Seconds before the second and the third attempt to append."""

CLOSING = 10.0
"""Seconds in which a closing session appends what is left."""

MOST_WAITING = 32 * 1024 * 1024
"""Bytes that wait for a slow store; with more, the files are compared later."""

SETTLING = 0.2
"""Seconds without a report of the CLI before its files are compared: some follow the result."""

LOOKING = 1.0
"""Seconds between two looks whether a turn still runs, if files must be compared."""

LONGEST_PAUSE = 60.0
"""Seconds at most between two attempts to compare, while the store fails."""

REMEMBERED = 8
"""How many of a file's last reported entries are remembered, to find them in the file."""


class StoreMirror:
    """Appends the entries of one session to its store."""

    def __init__(
        self,
        store: SessionStore,
        *,
        is_eager: bool,
        files: FileComparer | None,
        resumed: StoredConversation | None = None,
        is_quiet: Callable[[], bool],
        report: Callable[[str, SessionKey | None], None],
        background: BackgroundTasks,
    ) -> None:
        self.keys = MirrorKeys()
        self._store = store
        self._is_eager = is_eager
        self._files = files
        """Compares files with the store; None if they are not on this machine."""
        self._resumed = resumed
        """What finds the conversation to resume; None if none is resumed from the store."""
        self._is_quiet = is_quiet
        self._report = report
        self._background = background
        self._queue = MirrorQueue()
        self._behind: set[str] = set()
        """Files that the store may lack entries of; these are compared, not mirrored."""
        self._last: dict[str, deque[Identity]] = {}
        """The entries of a file that were processed last."""
        self._ahead: dict[str, Counter[Identity]] = {}
        """Entries that the store got from a file, before the CLI has reported them."""
        self._lost_at: dict[str, int] = {}
        """How long files were when their CLI was lost: what they had then is never reported."""
        self._unknown: set[str] = set()
        """Files that are no session files, as was reported."""
        self._is_incomplete = False
        """Whether entries were lost that are in no file of this machine."""
        self._has_lost = False
        """Whether a CLI was lost, or one resumes what is not known here."""
        self._is_resuming = False
        """Whether a CLI resumes the conversation, and has reported nothing yet."""
        self._is_urgent = False
        self._pause = SETTLING
        self._wanted = asyncio.Event()
        self._received_at = 0.0
        self._is_closing = False
        self._task: asyncio.Task[None] | None = None

    # What the session resumes

    async def find(self) -> str | None:
        """Return the id of the conversation to resume; None if only the CLI can find it."""
        return None if self._resumed is None else await self._resumed.find()

    async def restore(self, session_id: str | None) -> str | None:
        """Return what the CLI resumes, an id or a path; None leaves the choice to the CLI.

        Raises `ResumeNotFound` if there is no such conversation.
        """
        if self._resumed is None:
            return None
        found = await self._resumed.restore(session_id)
        if not self._resumed.is_fork:
            if found.path is not None and found.key is not None:
                self._opened(found.path, found.key)
            if found.must_compare:
                self.lost_sight(at_once=True)
        return found.resume

    def _opened(self, path: str, key: SessionKey) -> None:
        """Note that the conversation was resumed from the file at `path`."""
        self.keys.open(path, key)
        self._last.setdefault(path, deque(maxlen=REMEMBERED))

    # What the CLI reports; nothing here waits

    def received(self, line: bytes) -> None:
        """Keep the entries of a `transcript_mirror` line until the store has them."""
        path = self._queue.add(line)
        self._received_at = asyncio.get_running_loop().time()
        if path is None:
            self.lost_sight()
            self._report("a report of the CLI about its session file cannot be read", None)
            return
        if path not in self._last:
            self._last[path] = deque(maxlen=REMEMBERED)
            if self._has_lost:
                # A CLI that was lost may have begun this file.
                self._behind.add(path)
                self._is_urgent = True
        if self._is_resuming and self._files is not None:
            self._is_resuming = False
            self._behind.add(path)
            self._is_urgent = True
        if self._queue.bytes > MOST_WAITING:
            self._overflow()
        is_full = self._queue.entries >= MOST_ENTRIES or self._queue.bytes >= MOST_BYTES
        if self._is_eager or is_full or self._behind:
            self.flush()

    def flush(self) -> None:
        """Append what there is, soon: a turn has ended."""
        self._wanted.set()
        if not self._is_closing:
            self._begin()

    def _begin(self) -> asyncio.Task[None]:
        self._task = self._background.keep(
            "the mirror of the conversation",
            self._run,
            meanwhile="the session store does not get what the CLI writes",
        )
        return self._task

    def resumes(self) -> None:
        """Compare the file once the CLI reports something.

        A CLI that resumes a conversation writes its title and the like anew, and does not always
        report that.
        """
        self._is_resuming = True

    def lost_sight(self, *, at_once: bool = False) -> None:
        """Compare all files: the CLI may have written entries that it did not report.

        `at_once` if the CLI has exited, so that nothing more is written.
        """
        if self._files is None:
            return
        if at_once:
            self._drop()
            for path, last in self._last.items():
                self._lost_at[path] = self._files.size(path)
                last.clear()
            self._has_lost = self._is_urgent = True
        self._behind.update(self._last)
        self.flush()

    @property
    def waiting(self) -> int:
        """Bytes of the entries that the store does not have yet."""
        return self._queue.bytes

    @property
    def is_unused(self) -> bool:
        """Whether there is nothing that the store could lack, and no private copy."""
        has_copy = self._resumed is not None and self._resumed.has_copy
        return self._task is None and not self._queue.entries and not has_copy

    async def close(self) -> bool:
        """Append what is left, for `CLOSING` seconds; returns whether the store has everything.

        A private copy is removed, unless the store lacks something.
        """
        is_complete = False
        try:
            is_complete = await self._append_the_rest()
        finally:
            if self._resumed is not None:
                self._resumed.end(is_complete=is_complete)
        return is_complete

    async def _append_the_rest(self) -> bool:
        self._is_closing = True
        self._wanted.set()
        # An event loop that shuts down may have cancelled it.
        task = self._begin()
        try:
            await asyncio.wait([task], timeout=CLOSING)
        finally:
            is_done = task.done() and not task.cancelled()
            task.cancel()
        if not is_done:
            self._report(
                f"the store did not take everything within {CLOSING:g} s after the end of the"
                f" session{self._consequence()}",
                None,
            )
        return is_done and not self._is_incomplete

    # The task

    async def _run(self) -> None:
        while True:
            await self._wait()
            await self._append_all()
            if self._behind and (self._is_closing or self._is_urgent or self._is_settled()):
                self._is_urgent = False
                await self._compare_all()
            if self._is_closing and not self._queue.entries and not self._behind:
                return

    async def _wait(self) -> None:
        """Return when there is something to do."""
        if self._behind:
            pause = self._pause if self._is_quiet() and not self._is_closing else LOOKING
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._wanted.wait()
        else:
            await self._wanted.wait()
        self._wanted.clear()

    def _is_settled(self) -> bool:
        now = asyncio.get_running_loop().time()
        return self._is_quiet() and now >= self._received_at + SETTLING

    async def _append_all(self) -> None:
        while self._queue.entries:
            batch = self._queue.take()
            try:
                for path, raws in batch.items():
                    await self._append(path, raws)
            except BaseException:
                for path in batch:
                    self._mark(path)
                self._wanted.set()
                raise

    async def _append(self, path: str, raws: Sequence[Raw]) -> None:
        key = self.keys.find(path)
        if key is None:
            if path not in self._unknown:
                self._unknown.add(path)
                self._report(f"the file is no session file, so it is not mirrored: {path}", None)
            return
        entries = self._new(path, raws)
        if not entries or path in self._behind:
            return
        error = await self._attempt(key, entries)
        if error is not None:
            self._failed(path, key, len(entries), error)

    def _new(self, path: str, raws: Sequence[Raw]) -> list[SessionStoreEntry]:
        """Return the entries, without those that the store got from the file already."""
        last, ahead = self._last[path], self._ahead.get(path)
        entries: list[SessionStoreEntry] = []
        for raw in raws:
            entry = _json.loads(bytes(raw))
            if not _json.is_object(entry):
                continue
            if entry.get("type") != AGENT_METADATA:
                which = identity(entry)
                last.append(which)
                if ahead and ahead[which]:
                    ahead[which] -= 1
                    continue
            entries.append(cast("SessionStoreEntry", entry))
        return entries

    async def _attempt(self, key: SessionKey, entries: list[SessionStoreEntry]) -> Exception | None:
        """Append; returns the last error if three attempts fail, or one takes too long."""
        for pause in (*PAUSES, None):
            try:
                async with asyncio.timeout(APPENDING):
                    await self._store.append(key, entries)
            except TimeoutError as error:
                return error
            except Exception as error:  # noqa: BLE001 - a store of the caller
                if pause is None:
                    return error
                await asyncio.sleep(pause)
            else:
                return None
        return None

    def _failed(self, path: str, key: SessionKey, count: int, error: Exception) -> None:
        log.warning("a session store did not take %d entries", count, exc_info=error)
        self._report(
            f"the store did not take {count} entries: {type(error).__name__}{self._consequence()}",
            key,
        )
        self._mark(path)
        self._pause = SETTLING

    def _overflow(self) -> None:
        count, size = self._queue.entries, self._queue.bytes
        self._drop()
        self._report(
            f"the store is too slow: {count} entries ({size >> 20} MiB) were waiting, and were"
            f" dropped{self._consequence()}",
            None,
        )

    def _drop(self) -> None:
        """Forget what waits for the store: the files have it."""
        for path, raws in self._queue.drop().items():
            # Remembered as processed, so that the comparison knows what follows in the file.
            self._new(path, raws[-REMEMBERED:])
            self._mark(path)

    def _mark(self, path: str) -> None:
        """Note that the store lacks entries of a file."""
        if self._files is None:
            self._is_incomplete = True
        else:
            self._behind.add(path)

    def _consequence(self) -> str:
        if self._files is None:
            return (
                "; the CLI's files are not on this machine, so they cannot be compared, and these"
                " entries stay missing"
            )
        if self._is_closing:
            return "; the next session that opens the conversation here appends them"
        return "; the file has them, and is compared with the store when no turn runs"

    async def _compare_all(self) -> None:
        """Compare the files that are behind. While the store fails, wait longer each time."""
        for path in sorted(self._behind):
            key = self.keys.find(path)
            if key is None:
                self._behind.discard(path)
                continue
            try:
                await self._compare(path, key)
            except Exception as error:
                self._pause = min(2 * self._pause, LONGEST_PAUSE)
                log.warning("a session store cannot be compared yet", exc_info=error)
                return
        self._pause = SETTLING

    async def _compare(self, path: str, key: SessionKey) -> None:
        assert self._files is not None
        parts: Sequence[str] = () if "subpath" in key else await self._files.parts(path)
        for part in parts:
            part_key = self.keys.find(part)
            if part_key is not None:
                await self._catch_up(part, part_key)
        await self._catch_up(path, key)

    async def _catch_up(self, path: str, key: SessionKey) -> None:
        assert self._files is not None
        # Before: while the file is compared, it may have to be compared again.
        self._behind.discard(path)
        try:
            tail = await self._files.catch_up(key, path)
        except BaseException:
            self._behind.add(path)
            raise
        last, lost_at = self._last.get(path, ()), self._lost_at.get(path, 0)
        self._ahead[path] = unannounced(tail, last, lost_at)
