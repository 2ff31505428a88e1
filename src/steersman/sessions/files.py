"""Sessions in the files of the CLI: changed, copied and followed.

The coroutines wait for nothing: see `backends`.
"""

from __future__ import annotations

import builtins
import os
import uuid
from array import array
from collections.abc import Iterator, Sequence
from contextlib import suppress

from steersman import _json
from steersman._json import JsonDict
from steersman.errors import SessionNotFound, UsageError
from steersman.sessions.backends import Pages, Part
from steersman.sessions.changes import (
    append_lines,
    create,
    held,
    now,
    read_note,
    remove,
    write_note,
)
from steersman.sessions.index import Database, Summaries, forget
from steersman.sessions.places import DAY, META, SUFFIX, Places, SessionFile, agent_named, agents_in
from steersman.sessions.reading import MARK, FileSource, entries_of
from steersman.sessions.search import search
from steersman.sessions.words import Hit, Query
from steersman.transcripts.blocks import lines_forward
from steersman.transcripts.chain import messages
from steersman.transcripts.entries import (
    AgentInfo,
    SessionInfo,
    StoredMessage,
    TranscriptEntry,
    entry_of,
    read_entry,
)
from steersman.transcripts.forking import fork
from steersman.transcripts.identity import AGENT_METADATA
from steersman.transcripts.summary import Summary

ARCHIVED = "archived.json"
TITLE = "custom-title.json"


class FileSessions:
    """The sessions of one project, or of all, in the CLI's own files."""

    is_blocking = True

    def __init__(self, places: Places, database: Database | None) -> None:
        self._places = places
        self._database = database
        self.copies = FileCopies(places)

    async def list(
        self, *, limit: int | None, offset: int, worktrees: bool, archived: bool
    ) -> list[SessionInfo]:
        """Return what there is, newest first, reading no more files than needed."""
        files = self._places.files(worktrees=worktrees)
        wanted = len(files) if limit is None else offset + limit
        summaries = Summaries(self._database)
        summaries.prepare(files if limit is None else files[: 2 * wanted])
        days = self._places.cleanup_days()
        found: dict[str, SessionInfo] = {}
        for file in files:
            if len(found) >= wanted:
                break
            try:
                info = self._info(file, summaries, days)
            except OSError:
                # Deleted in the meantime, or not for us to read.
                continue
            if info is not None and (archived or not info.archived):
                # The id may be in two folders; the newer file is the conversation.
                found.setdefault(file.session_id, info)
        summaries.keep()
        return builtins.list(found.values())[offset:wanted]

    async def info(self, session_id: str) -> SessionInfo:
        """Return a session. Raises `SessionNotFound`."""
        file = self._places.file(session_id)
        summaries = Summaries(self._database)
        summaries.prepare([file])
        try:
            info = self._info(file, summaries, self._places.cleanup_days())
        except OSError as error:
            raise _unreadable(session_id, error) from None
        summaries.keep()
        if info is None:
            raise SessionNotFound(session_id, reason="it has neither a prompt nor a title")
        return info

    def _info(self, file: SessionFile, summaries: Summaries, days: float) -> SessionInfo | None:
        data = summaries.data(file)
        beside: str | None = None
        is_archived = False
        if file.has_folder:
            if not data.get("custom_title"):
                # The CLI takes the title from the file, where that has one.
                title = read_note(os.path.join(file.folder, TITLE)).get("customTitle")
                beside = title if isinstance(title, str) and title else None
            is_archived = read_note(os.path.join(file.folder, ARCHIVED)).get("archived") is True
        return Summary.from_data(data).info(
            file.session_id,
            file.mtime,
            file.size,
            archived=is_archived,
            expires=file.mtime + int(days * DAY),
            custom_title=beside,
        )

    async def messages(
        self, session_id: str, *, agent: str | None, last: int | None, through_compaction: bool
    ) -> Pages[StoredMessage]:
        """Return the messages of a conversation, or of a subagent."""
        file = self._places.file(session_id)
        about = None if agent is None else _agent(file, agent)
        source = _opened(session_id, file.part(about.subpath if about else ""))

        def read() -> Iterator[StoredMessage]:
            with source:
                yield from messages(
                    source,
                    session_id=session_id,
                    last=last,
                    through_compaction=through_compaction,
                    agent=about,
                )

        return Pages(read(), lambda each: len(each.raw))

    async def entries(self, session_id: str, *, agent: str | None) -> Pages[TranscriptEntry]:
        """Return all entries of a file."""
        file = self._places.file(session_id)
        part = "" if agent is None else _agent(file, agent).subpath
        source = _opened(session_id, file.part(part))
        return Pages(entries_of(source), lambda each: len(each.raw))

    async def agents(self, session_id: str) -> Sequence[AgentInfo]:
        """Return the subagents of a session."""
        return agents_in(self._places.file(session_id).folder)

    async def rename(self, session_id: str, title: str, *, force: bool) -> None:
        """Add the CLI's own line for a title."""
        file = self._places.file(session_id)
        with held(self._places.config, session_id, force=force):
            _append(file, {"type": "custom-title", "customTitle": title, "sessionId": session_id})
            beside = os.path.join(file.folder, TITLE)
            if os.path.exists(beside):  # noqa: ASYNC240 - in a thread
                write_note(beside, {"customTitle": title})

    async def tag(self, session_id: str, tag: str, *, force: bool) -> None:
        """Add the CLI's own line for a tag; an empty one removes it."""
        file = self._places.file(session_id)
        with held(self._places.config, session_id, force=force):
            _append(file, {"type": "tag", "tag": tag, "sessionId": session_id})

    async def archive(self, session_id: str, *, is_archived: bool) -> None:
        """Write the CLI's own note that a session is archived, or not."""
        file = self._places.file(session_id)
        path = os.path.join(file.folder, ARCHIVED)
        if is_archived or os.path.exists(path):  # noqa: ASYNC240 - in a thread
            write_note(path, {"archived": is_archived, "at": now(), "by": "sdk"})

    async def delete(self, session_id: str, *, force: bool) -> None:
        """Remove the file of a session, and the folder beside it."""
        file = self._places.file(session_id)
        with held(self._places.config, session_id, force=force):
            try:
                remove(file.path, file.folder)
            except OSError as error:
                raise UsageError(
                    "session_id", session_id, f"a session that can be removed ({error.strerror})"
                ) from None
        if self._database is not None:
            forget(self._database, file.path)

    async def fork(self, session_id: str, *, up_to: str | None, title: str | None) -> str:
        """Copy a conversation under a new id, and return that id."""
        file = self._places.file(session_id)
        new_id = str(uuid.uuid4())
        made = fork(
            _Objects(session_id, file.path),
            session_id=session_id,
            new_id=new_id,
            new_uuid=lambda: str(uuid.uuid4()),
            timestamp=now(),
            up_to=up_to,
            title=title,
        )
        path = os.path.join(os.path.dirname(file.path), new_id + SUFFIX)
        create(path, (_json.dumps(each) for each in made))
        return new_id

    async def search(self, query: Query, limit: int) -> Sequence[Hit]:
        """Return the entries that fit best."""
        return search(self._database, self._places.files(), query, limit)

    async def follower(self, session_id: str, after: int) -> FileFollower:
        """Return what reads the entries that are added."""
        return FileFollower(self._places.file(session_id).path, after)


class _Objects:
    """The entries of a file as JSON objects, which can be read several times."""

    def __init__(self, session_id: str, path: str) -> None:
        self._session_id = session_id
        self._path = path

    def __iter__(self) -> Iterator[JsonDict]:
        for entry in entries_of(_opened(self._session_id, self._path)):
            if entry.data:
                yield entry.data


def _append(file: SessionFile, entry: JsonDict) -> None:
    append_lines(file.path, file.session_id, [_json.dumps(entry)])


def _agent(file: SessionFile, agent: str) -> AgentInfo:
    return agent_named(agents_in(file.folder), agent)


def _opened(session_id: str, path: str) -> FileSource:
    try:
        return FileSource(path)
    except OSError as error:
        raise _unreadable(session_id, error) from None


def _unreadable(session_id: str, error: OSError) -> SessionNotFound:
    return SessionNotFound(session_id, reason=error.strerror or str(error))


class FileCopies:
    """The files of sessions, part by part. The `.meta.json` of a subagent counts as an entry."""

    leaves_out = ""

    def __init__(self, places: Places) -> None:
        self._places = places

    async def parts(self, session_id: str) -> Sequence[Part]:
        """Return the conversation and its subagents."""
        file = self._places.file(session_id)
        return ["", *(each.subpath for each in agents_in(file.folder))]

    async def project_of(self, session_id: str) -> str:
        """Return the name of the folder that a session is in."""
        return os.path.basename(os.path.dirname(self._places.file(session_id).path))

    async def read(self, session_id: str, part: Part) -> Pages[TranscriptEntry]:
        """Return the entries of a part. Raises `SessionNotFound` if it cannot be read."""
        path = self._places.file(session_id).part(part)
        source = _opened(session_id, path)
        return Pages(_read(source, path, part), lambda each: len(each.raw))

    async def copied(self, session_id: str, part: Part, project: str) -> Sequence[JsonDict]:
        """Return the entries that a part has here."""
        path = self._target(session_id, part, project)
        with suppress(OSError):
            return [each.data for each in _read(FileSource(path), path, part)]
        return []

    async def add(
        self, session_id: str, part: Part, project: str, entries: Sequence[JsonDict]
    ) -> None:
        """Add entries to a file, which is made if it is missing."""
        path = self._target(session_id, part, project)
        notes = [each for each in entries if part and each.get("type") == AGENT_METADATA]
        lines = [_json.dumps(each) for each in entries if each not in notes]
        with held(self._places.config, session_id, force=False):
            if not os.path.exists(path):  # noqa: ASYNC240 - in a thread
                create(path, lines)
            elif lines:
                append_lines(path, session_id, lines)
            if notes:
                about = {name: value for name, value in notes[-1].items() if name != "type"}
                write_note(path.removesuffix(SUFFIX) + META, about)

    def _target(self, session_id: str, part: Part, project: str) -> str:
        """Return where a part is, or where it belongs."""
        try:
            return self._places.file(session_id).part(part)
        except SessionNotFound:
            folder = os.path.join(self._places.root, self._places.key or project)
            inside = os.path.join(session_id, part) if part else session_id
            return os.path.join(folder, inside) + SUFFIX


def _read(source: FileSource, path: str, part: Part) -> Iterator[TranscriptEntry]:
    """Yield entries. Lines that are no JSON objects stay where they are."""
    for entry in entries_of(source):
        if entry.data:
            yield entry
    if part and (meta := read_note(path.removesuffix(SUFFIX) + META)):
        yield entry_of({**meta, "type": AGENT_METADATA})


INTERVAL = 0.2
"""Seconds between two looks at a file: soon enough for a screen, and rare enough for a laptop."""
MISSES = 5
"""How often a file may be missing in a row, as while it is replaced."""
MOST_BYTES = 4 << 20
DIGEST = (1 << 64) - 1


class FileFollower:
    """Reads complete lines as they are added.

    If the file was replaced, or has become shorter, what differs from what was read is read again.
    """

    interval = INTERVAL

    def __init__(self, path: str, after: int) -> None:
        self._path = path
        self._after = after
        self._offset = 0
        self._mark = b""
        self._number = -1
        self._misses = 0
        self._index = 0
        """The position of the next entry in the file."""
        self._read = array("Q")
        """A digest of each entry that was read, by its position."""

    async def next(self) -> list[TranscriptEntry] | None:
        """Return the entries that were added; None if the file was removed."""
        try:
            source = FileSource(self._path)
        except OSError:
            self._misses += 1
            return None if self._misses >= MISSES else []
        self._misses = 0
        with source:
            if not self._is_continued(source):
                self._offset, self._index, self._mark = 0, 0, b""
            self._number = source.number
            return self._new(source)

    def _is_continued(self, source: FileSource) -> bool:
        size = len(self._mark)
        if source.number != self._number or source.size < self._offset:
            return False
        return source.read(self._offset - size, size) == self._mark

    def _new(self, source: FileSource) -> list[TranscriptEntry]:
        found: list[TranscriptEntry] = []
        start = self._offset
        for line in lines_forward(source, start):
            if not line.is_ended or line.offset - start > MOST_BYTES:
                break
            self._offset = line.offset + len(line.data) + 1
            self._mark = (line.data[-MARK:] + b"\n")[-MARK:]
            if line.data.strip() and self._is_new(line.data):
                found.append(read_entry(line.data))
        return found

    def _is_new(self, line: bytes) -> bool:
        at, digest = self._index, hash(line) & DIGEST
        self._index += 1
        if at < len(self._read):
            if self._read[at] == digest:
                return False
            del self._read[at:]
        self._read.append(digest)
        return at >= self._after
