"""Stored sessions and session stores."""

from dataclasses import dataclass
from typing import Any, Literal, NotRequired, Protocol, Required, TypeAlias, TypedDict

__all__ = [
    "SDKSessionInfo",
    "SessionKey",
    "SessionListSubkeysKey",
    "SessionMessage",
    "SessionStore",
    "SessionStoreEntry",
    "SessionStoreFlushMode",
    "SessionStoreListEntry",
    "SessionSummaryEntry",
]


class SessionKey(TypedDict):
    """What a session store keeps entries by; `subpath` names a subagent's part."""

    project_key: str
    session_id: str
    subpath: NotRequired[str]


class SessionStoreEntry(TypedDict, total=False):
    """One line of a transcript; further keys are kept as they are."""

    type: Required[str]
    uuid: str
    timestamp: str


class SessionStoreListEntry(TypedDict):
    """One session in a list of a store; `mtime` is in milliseconds."""

    session_id: str
    mtime: int


class SessionSummaryEntry(TypedDict):
    """A summary that a store keeps beside a session; see `fold_session_summary`."""

    session_id: str
    mtime: int
    data: dict[str, Any]


class SessionListSubkeysKey(TypedDict):
    """The session whose parts are listed."""

    project_key: str
    session_id: str


SessionStoreFlushMode: TypeAlias = Literal["batched", "eager"]
"""When entries go to a session store: at the end of turns, or at once."""


class SessionStore(Protocol):
    """A place for transcripts: `append` and `load` are needed, the others make more possible.

    A method that a store does not have raises `NotImplementedError`, or is not there at all.
    """

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Add `entries` in their order. An entry whose uuid is stored already may be dropped."""
        ...

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """Return all entries in their order, or None for a key without any."""
        ...

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        """Return the sessions of a project."""
        raise NotImplementedError

    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        """Return the kept summaries of a project's sessions."""
        raise NotImplementedError

    async def delete(self, key: SessionKey) -> None:
        """Remove a session with all its parts, or one part."""
        raise NotImplementedError

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        """Return the subpaths of a session's parts."""
        raise NotImplementedError


@dataclass
class SDKSessionInfo:
    """A stored session; times are in milliseconds."""

    session_id: str
    summary: str
    last_modified: int
    file_size: int | None = None
    custom_title: str | None = None
    first_prompt: str | None = None
    git_branch: str | None = None
    cwd: str | None = None
    tag: str | None = None
    created_at: int | None = None


@dataclass
class SessionMessage:
    """A message of a stored session."""

    type: Literal["user", "assistant"]
    uuid: str
    session_id: str
    message: Any
    parent_tool_use_id: str | None = None
    parent_agent_id: str | None = None
