"""Reads a session store by the methods that it has: some of them may be missing."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import suppress
from typing import cast

from steersman.ports import SessionStore, SupportsStream
from steersman.transcripts.keys import SessionKey, SessionStoreEntry


async def chunks(store: SessionStore, key: SessionKey) -> AsyncIterator[list[SessionStoreEntry]]:
    """Yield what a store has under `key`, in chunks if it can. Nothing if it has nothing."""
    if callable(getattr(store, "stream", None)):
        with suppress(NotImplementedError):
            stream = cast("SupportsStream", store).stream(key)
            try:
                async for chunk in stream:
                    yield chunk
            finally:
                # A reader that leaves has the store close what it reads from, now and not later.
                if isinstance(stream, AsyncGenerator):
                    await stream.aclose()
            return
    found = await store.load(key)
    if found:
        yield found


async def subkeys(store: SessionStore, key: SessionKey) -> list[str]:
    """Return the parts of a conversation; none if the store cannot list them."""
    listing = getattr(store, "list_subkeys", None)
    if not callable(listing):
        return []
    try:
        return await store.list_subkeys(
            {"project_key": key["project_key"], "session_id": key["session_id"]}
        )
    except NotImplementedError:
        return []
