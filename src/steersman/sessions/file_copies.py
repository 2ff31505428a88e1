"""Copies sessions from and to the files of the CLI."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress

from steersman import _json
from steersman._json import JsonDict
from steersman.errors import SessionNotFound
from steersman.sessions.backends import Part
from steersman.sessions.changes import append_lines, create, read_note, write_note
from steersman.sessions.in_use import held
from steersman.sessions.pages import Pages
from steersman.sessions.places import SUFFIX, Places
from steersman.sessions.reading import FileSource, entries_of
from steersman.sessions.subagents import META, agents_in
from steersman.transcripts.entries import TranscriptEntry, entry_of
from steersman.transcripts.identity import AGENT_METADATA


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
        try:
            source = FileSource(path)
        except OSError as error:
            raise SessionNotFound(session_id, reason=error.strerror or str(error)) from None
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
        yield entry_of({"type": AGENT_METADATA, **meta})
