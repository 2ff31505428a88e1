"""How a session store names a conversation and its parts; the same names as the official SDKs."""

from __future__ import annotations

from typing import Any, NotRequired, Required, TypedDict

__all__ = [
    "SessionKey",
    "SessionListSubkeysKey",
    "SessionStoreEntry",
    "SessionStoreListEntry",
    "SessionSummaryEntry",
]


class SessionKey(TypedDict):
    """Names a session's entries in a store."""

    project_key: str
    """The working directory, as the CLI writes it in the name of its folder."""
    session_id: str
    subpath: NotRequired[str]
    """A part of the session, such as `subagents/agent-<id>`; always joined by `/`."""


class SessionListSubkeysKey(TypedDict):
    """Names a session, to ask for its parts."""

    project_key: str
    session_id: str


class SessionStoreEntry(TypedDict, total=False):
    """One entry: a line of the CLI's file, with whatever further keys it has."""

    type: Required[str]
    uuid: str
    timestamp: str


class SessionStoreListEntry(TypedDict):
    """A session in a store, and when it was last written to."""

    session_id: str
    mtime: int
    """Milliseconds since the epoch, by the clock of the store."""


class SessionSummaryEntry(TypedDict):
    """A summary that a store keeps beside a session, so that a list reads no entries."""

    session_id: str
    mtime: int
    """As in `SessionStoreListEntry`; a row that is older than that one is made anew."""
    data: dict[str, Any]
    """What `fold_session_summary` returned. A store keeps it as it is."""
