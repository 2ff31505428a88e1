"""Copies sessions from and to a store."""

from __future__ import annotations

from collections.abc import Sequence

from steersman._json import JsonDict
from steersman.sessions.backends import Part
from steersman.sessions.pages import Stream
from steersman.sessions.store_calls import StoreCalls
from steersman.transcripts.entries import TranscriptEntry, entry_of
from steersman.transcripts.identity import NOT_KEPT
from steersman.transcripts.keys import is_safe_subpath


class StoreCopies:
    """The entries of sessions in a store, part by part."""

    leaves_out = NOT_KEPT
    """The CLI's own mirror leaves these out too: they are large, and no resume needs them."""

    def __init__(self, calls: StoreCalls) -> None:
        self._calls = calls

    async def parts(self, session_id: str) -> Sequence[Part]:
        """Return the conversation and its other parts. Raises `SessionNotFound`."""
        if not await self._calls.exists(session_id):
            raise self._calls.missing(session_id)
        found = await self._calls.subkeys(session_id)
        return ["", *sorted(each for each in found if is_safe_subpath(each))]

    async def project_of(self, session_id: str) -> str:  # noqa: ARG002 - the same for all
        """Return the key of the project."""
        return self._calls.project

    async def read(self, session_id: str, part: Part) -> Stream[TranscriptEntry]:
        """Return the entries of a part."""
        return Stream(self._calls.pages(session_id, part), entry_of)

    async def copied(
        self,
        session_id: str,
        part: Part,
        project: str,  # noqa: ARG002 - what is copied here is found here
    ) -> Sequence[JsonDict]:
        """Return the entries that a part has here."""
        return [dict(each) for each in await self._calls.load(session_id, part) or []]

    async def add(
        self,
        session_id: str,
        part: Part,
        project: str,  # noqa: ARG002 - as above
        entries: Sequence[JsonDict],
    ) -> None:
        """Add entries."""
        await self._calls.append(session_id, part, entries)
