"""Sessions in the files of the CLI. Its coroutines wait for nothing: see `backends`."""

from __future__ import annotations

import builtins
import os
import uuid
from collections.abc import Iterator, Sequence

from steersman import _json
from steersman._json import JsonDict
from steersman.errors import SessionNotFound, UsageError
from steersman.sessions.changes import append_lines, create, now, read_note, remove, write_note
from steersman.sessions.database import Database
from steersman.sessions.file_copies import FileCopies
from steersman.sessions.following import FileFollower
from steersman.sessions.in_use import held
from steersman.sessions.index import search
from steersman.sessions.pages import Pages
from steersman.sessions.places import DAY, SUFFIX, Places, SessionFile
from steersman.sessions.reading import FileSource, entries_of
from steersman.sessions.subagents import agents_in
from steersman.sessions.summaries import Summaries, forget
from steersman.sessions.words import Hit, Query
from steersman.transcripts.chain import messages
from steersman.transcripts.entries import AgentInfo, SessionInfo, StoredMessage, TranscriptEntry
from steersman.transcripts.forking import fork
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
    found = agents_in(file.folder)
    for each in found:
        if each.agent_id == agent:
            return each
    known = ", ".join(each.agent_id for each in found) or "it has none"
    raise UsageError("agent", agent, f"the id of a subagent of this session: {known}")


def _opened(session_id: str, path: str) -> FileSource:
    try:
        return FileSource(path)
    except OSError as error:
        raise _unreadable(session_id, error) from None


def _unreadable(session_id: str, error: OSError) -> SessionNotFound:
    return SessionNotFound(session_id, reason=error.strerror or str(error))
