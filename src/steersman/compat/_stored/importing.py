"""Copies a session of the CLI's files into a store."""

from __future__ import annotations

from typing import cast

from steersman._json import JsonDict
from steersman.compat._shapes.stored_sessions import SessionKey, SessionStore, SessionStoreEntry
from steersman.compat._stored.files import opened
from steersman.compat._stored.values import check_session_id
from steersman.errors import SessionNotFound
from steersman.sessions.backends import Copies
from steersman.sessions.driving import drive

DEFAULT_BATCH = 500


async def import_session_to_store(
    session_id: str,
    store: SessionStore,
    *,
    directory: str | None = None,
    include_subagents: bool = True,
    batch_size: int = DEFAULT_BATCH,
) -> None:
    """Copy a session into a store, under the name of its folder. Raises `FileNotFoundError`.

    Lines that are no JSON objects, such as one that the CLI is just writing, are left out.
    """
    check_session_id(session_id)
    copies = opened(directory).copies
    try:
        parts = drive(copies.parts(session_id))
        project = drive(copies.project_of(session_id))
    except SessionNotFound as error:
        raise FileNotFoundError(f"Session {session_id} not found") from error
    size = batch_size if batch_size > 0 else DEFAULT_BATCH
    for part in parts if include_subagents else parts[:1]:
        key: SessionKey = {"project_key": project, "session_id": session_id}
        if part:
            key["subpath"] = part
        await _copy(copies, key, store, size)


async def _copy(copies: Copies, key: SessionKey, store: SessionStore, size: int) -> None:
    pages = drive(copies.read(key["session_id"], key.get("subpath", "")))
    waiting: list[JsonDict] = []
    while page := drive(pages.next()):
        waiting += [each.data for each in page]
        while len(waiting) >= size:
            batch, waiting = waiting[:size], waiting[size:]
            await store.append(key, cast("list[SessionStoreEntry]", batch))
    if waiting:
        await store.append(key, cast("list[SessionStoreEntry]", waiting))
