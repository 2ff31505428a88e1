"""Finds the conversation to resume: in a session store, or in files on this machine.

What the CLI resumes is a file of its own, if that has everything that the store has. If not, it is
a private copy of what the store has.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from steersman.errors import ResumeNotFound, StartupError, StartupTimeout, SteersmanError
from steersman.mirror.comparing import Held, entries_in, held, parts_of
from steersman.mirror.copies import PrivateCopy, left_behind, place_of_copies
from steersman.options.fields import Options
from steersman.ports import SessionStore
from steersman.stores.optional_methods import chunks
from steersman.stores.transcript_files import config_of, transcripts_of
from steersman.transcripts.keys import SessionKey, is_session_id, project_key

log = logging.getLogger("steersman.session")

MOST_TRIED = 50
"""How many of the latest sessions are looked at, to find the latest that is a conversation."""


@dataclass(frozen=True, slots=True)
class Restored:
    """What was found of the conversation that a session with a store resumes."""

    resume: str | None = None
    """What the CLI resumes: an id, or the path of a file. `None` leaves the choice to the CLI."""
    path: str | None = None
    """The file that the CLI will append to; `None` if that is not known, and for a fork."""
    key: SessionKey | None = None
    must_compare: bool = True
    """Whether the file may have entries that the store lacks."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A file on this machine that the conversation could be resumed from."""

    path: Path
    copy: PrivateCopy | None
    has_all: bool
    """Whether it has everything that the store has."""
    extra: int
    """How many entries it has that the store lacks."""


class StoredConversation:
    """The conversation that a session with a store resumes."""

    def __init__(
        self,
        options: Options,
        store: SessionStore,
        env: Mapping[str, str],
        owner: tuple[int, ...] = (),
    ) -> None:
        self.is_fork = options.fork_session
        """Whether the session reads a conversation that stays as it is, and writes its own."""
        self._options = options
        self._store = store
        self._env = env
        self._owner = owner
        self._copy: PrivateCopy | None = None
        cwd = os.path.realpath(options.cwd or os.getcwd())  # noqa: PTH109 - as the CLI finds it
        self._project = project_key(cwd)

    async def find(self) -> str | None:
        """Return the id of the conversation to resume; None if only the CLI can find it."""
        resumed = self._options.resume
        if resumed is not None:
            name = resumed.rpartition("/")[2].removesuffix(".jsonl")
            return name if is_session_id(name) else None
        async with self._limited():
            return await self._latest()

    async def restore(self, session_id: str | None) -> Restored:
        """Return what the CLI resumes. Raises `ResumeNotFound` if there is no such conversation."""
        if session_id is None:
            return Restored()
        key: SessionKey = {"project_key": self._project, "session_id": session_id}
        resumed = self._options.resume
        if resumed is not None and resumed.startswith("/"):
            return Restored(resumed, None if self.is_fork else resumed, key)
        async with self._limited():
            known = await held(self._store, key)
            found = await asyncio.to_thread(self._on_this_machine, key, known)
            if found is not None:
                return self._from_file(found, key, known)
            if not known.count:
                raise ResumeNotFound(
                    f"no conversation {session_id} is in the session store, nor on this machine",
                    hint="check the id and the cwd: conversations are kept per directory",
                )
            return await self._from_store(key)

    @property
    def has_copy(self) -> bool:
        """Whether the CLI resumes a private copy."""
        return self._copy is not None

    def end(self, *, is_complete: bool) -> None:
        """Remove the private copy; unless the store lacks something that only the copy has."""
        copy, self._copy = self._copy, None
        if copy is None:
            return
        if is_complete or self.is_fork:
            copy.remove()
        else:
            log.warning("the session store is not complete, so a copy is kept: %s", copy.path)
            copy.release()

    @asynccontextmanager
    async def _limited(self) -> AsyncGenerator[None, None]:
        """Limit how long the store may take, and explain its failures."""
        limit = self._options.load_timeout
        try:
            async with asyncio.timeout(limit):
                yield
        except TimeoutError as error:
            raise StartupTimeout(
                f"the conversation was not read from the session store within {limit:g} s",
                hint="check the store; if it is only slow, raise load_timeout=",
            ) from error
        except SteersmanError:
            raise
        except Exception as error:
            raise StartupError(
                "the session store failed while the conversation was read from it:"
                f" {type(error).__name__}",
                hint="check the store; the error that it raised is the cause of this one",
            ) from error

    async def _latest(self) -> str | None:
        listed = await self._store.list_sessions(self._project)
        newest = sorted(listed, key=lambda each: each["mtime"], reverse=True)
        for each in newest[:MOST_TRIED]:
            if is_session_id(each["session_id"]) and await self._is_main(each["session_id"]):
                return each["session_id"]
        return None

    async def _is_main(self, session_id: str) -> bool:
        """Whether a session is a conversation, and not the work of a subagent."""
        key: SessionKey = {"project_key": self._project, "session_id": session_id}
        async for chunk in chunks(self._store, key):
            for entry in chunk:
                is_part = entry.get("isSidechain")
                if is_part is not None:
                    return not is_part
        return False

    # The rest reads and writes files, in a thread.

    def _on_this_machine(self, key: SessionKey, known: Held) -> _Candidate | None:
        """Return the file that has everything that the store has, and most beside it."""
        found = [_compared(path, None, known) for path in self._own_files(key["session_id"])]
        if not self.is_fork:
            copies = left_behind(self._place, key["session_id"], self._owner)
            found += [_compared(copy.path, copy, known) for copy in copies]
        complete = [each for each in found if each.has_all]
        best = max(complete, key=lambda each: each.extra, default=None)
        for each in found:
            if each.copy is not None and each is not best:
                each.copy.remove()
            if each.extra and not each.has_all:
                log.warning(
                    "%s has %d entries that the session store lacks, but the conversation was"
                    " continued elsewhere: they are left out",
                    each.path,
                    each.extra,
                )
        return best

    @property
    def _place(self) -> Path:
        return place_of_copies(config_of(self._env), self._owner)

    def _own_files(self, session_id: str) -> list[Path]:
        """Return the CLI's own files of the conversation; that of the directory first."""
        found = transcripts_of(self._env, session_id)
        return sorted(found, key=lambda path: path.parent.name != self._project)[:1]

    def _from_file(self, found: _Candidate, key: SessionKey, known: Held) -> Restored:
        self._copy = found.copy
        if self.is_fork:
            return Restored(key["session_id"])
        if found.copy is None:
            key = {"project_key": found.path.parent.name, "session_id": key["session_id"]}
        is_behind = bool(found.extra or parts_of(found.path) or not known.count)
        resumed = key["session_id"] if found.copy is None else str(found.path)
        return Restored(resumed, str(found.path), key, must_compare=is_behind)

    async def _from_store(self, key: SessionKey) -> Restored:
        # Not in a thread: a directory that is created after a cancellation would be left.
        self._copy = copy = PrivateCopy.create(self._place, key, is_fork=self.is_fork)
        await copy.fill(self._store, self._owner)
        path = str(copy.path)
        return Restored(path, None if self.is_fork else path, key, must_compare=False)


def _compared(path: Path, copy: PrivateCopy | None, known: Held) -> _Candidate:
    seen: set[str] = set()
    others = Counter(known.others)
    extra = 0
    try:
        for _line, which, _end in entries_in(path):
            if isinstance(which, str):
                extra += which not in known.uuids and which not in seen
                seen.add(which)
            else:
                extra += others[which] <= 0
                others[which] -= 1
    except OSError:
        return _Candidate(path, copy, has_all=False, extra=0)
    return _Candidate(path, copy, known.uuids <= seen, extra)
