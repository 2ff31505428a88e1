"""Sessions in the files of the CLI: the synchronous functions of the official package.

Reading returns None or an empty list where there is nothing; changing raises `FileNotFoundError`.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from steersman.compat._shapes.stored_sessions import SDKSessionInfo, SessionMessage
from steersman.compat._stored.values import (
    ForkSessionResult,
    check_message_id,
    check_session_id,
    check_tag,
    check_title,
    fork_error,
    info_of,
    message_of,
    page_of,
    real_directory,
)
from steersman.errors import SessionNotFound, UsageError
from steersman.sessions.backends import Backend
from steersman.sessions.driving import drive
from steersman.sessions.opening import open_backend
from steersman.sessions.places import SUFFIX, config_directory, worktrees_of
from steersman.transcripts.keys import is_session_id, project_key


def list_sessions(
    directory: str | None = None,
    limit: int | None = None,
    offset: int = 0,
    include_worktrees: bool = True,  # noqa: FBT001, FBT002 - the official signature
) -> list[SDKSessionInfo]:
    """Return the sessions of a directory, or of all projects; newest first."""
    found = drive(
        opened(directory).list(
            limit=limit if limit is not None and limit > 0 else None,
            offset=max(0, offset),
            worktrees=include_worktrees,
            archived=True,
        )
    )
    return [info_of(each, each.cwd or _place(directory, each.session_id)) for each in found]


def get_session_info(session_id: str, directory: str | None = None) -> SDKSessionInfo | None:
    """Return a session; None if there is none, or it has nothing to show."""
    if not is_session_id(session_id):
        return None
    try:
        found = drive(opened(directory).info(session_id))
    except SessionNotFound:
        return None
    return info_of(found, found.cwd or _place(directory, session_id))


def get_session_messages(
    session_id: str, directory: str | None = None, limit: int | None = None, offset: int = 0
) -> list[SessionMessage]:
    """Return the messages of a conversation, oldest first; none if there is no such session."""
    if not is_session_id(session_id):
        return []
    return _messages(opened(directory), session_id, None, limit, offset)


def list_subagents(session_id: str, directory: str | None = None) -> list[str]:
    """Return the ids of the subagents of a session."""
    if not is_session_id(session_id):
        return []
    try:
        found = drive(opened(directory).agents(session_id))
    except SessionNotFound:
        return []
    return [each.agent_id for each in found]


def get_subagent_messages(
    session_id: str,
    agent_id: str,
    directory: str | None = None,
    limit: int | None = None,
    offset: int = 0,
) -> list[SessionMessage]:
    """Return the messages of a subagent, oldest first; none if there is no such subagent."""
    if not agent_id or agent_id not in list_subagents(session_id, directory):
        return []
    return _messages(opened(directory), session_id, agent_id, limit, offset)


def rename_session(session_id: str, title: str, directory: str | None = None) -> None:
    """Give a session a title. Raises `FileNotFoundError` and `ValueError`."""
    check_session_id(session_id)
    with _official_errors(session_id, directory):
        drive(opened(directory).rename(session_id, check_title(title), force=True))


def tag_session(session_id: str, tag: str | None, directory: str | None = None) -> None:
    """Give a session a tag, or None for none. Raises `FileNotFoundError` and `ValueError`."""
    check_session_id(session_id)
    with _official_errors(session_id, directory):
        drive(opened(directory).tag(session_id, check_tag(tag), force=True))


def delete_session(session_id: str, directory: str | None = None) -> None:
    """Remove a session with its subagents. Raises `FileNotFoundError` and `ValueError`."""
    check_session_id(session_id)
    with _official_errors(session_id, directory):
        drive(opened(directory).delete(session_id, force=True))


def fork_session(
    session_id: str,
    directory: str | None = None,
    up_to_message_id: str | None = None,
    title: str | None = None,
) -> ForkSessionResult:
    """Copy a conversation under a new id. Raises `FileNotFoundError` and `ValueError`."""
    check_session_id(session_id)
    check_message_id(up_to_message_id)
    named = (title or "").strip() or None
    with _official_errors(session_id, directory):
        try:
            made = drive(
                opened(directory).fork(session_id, up_to=up_to_message_id or None, title=named)
            )
        except UsageError as error:
            raise fork_error(error, session_id, up_to_message_id) from error
    return ForkSessionResult(made)


def opened(directory: str | None) -> Backend:
    """Return the sessions of a directory, or of all projects for None or an empty text."""
    return open_backend(None, None, os.fspath(directory) if directory else None, index=True)


def _messages(
    backend: Backend, session_id: str, agent: str | None, limit: int | None, offset: int
) -> list[SessionMessage]:
    try:
        pages = drive(
            backend.messages(session_id, agent=agent, last=None, through_compaction=False)
        )
    except SessionNotFound:
        return []
    found: list[SessionMessage] = []
    while page := drive(pages.next()):
        found += [message_of(each) for each in page]
    return page_of(found, limit, offset)


def _place(directory: str | None, session_id: str) -> str | None:
    """Return the directory, or the worktree of it, that a session without one belongs to."""
    if not directory:
        return None
    here = real_directory(directory)
    root = Path(config_directory(None, os.environ), "projects")
    for each in (here, *worktrees_of(here)):
        if (root / project_key(each) / (session_id + SUFFIX)).exists():
            return each
    return here


@contextmanager
def _official_errors(session_id: str, directory: str | None) -> Generator[None]:
    """Raise what the official functions raise, with the text that ours have for the rest."""
    try:
        yield
    except SessionNotFound as error:
        where = f" in project directory for {directory}" if directory else ""
        raise FileNotFoundError(f"Session {session_id} not found{where}") from error
