"""What the session functions share: arguments, pages of a list, and the official values."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

from steersman.compat._shapes.stored_sessions import SDKSessionInfo, SessionMessage
from steersman.errors import UsageError
from steersman.transcripts.entries import SessionInfo, StoredMessage
from steersman.transcripts.keys import is_session_id, project_key

T = TypeVar("T")


@dataclass
class ForkSessionResult:
    """The result of a fork."""

    session_id: str
    """The id of the new session."""


def project_key_for_directory(directory: str | Path | None = None) -> str:
    """Return the name of the folder in which the CLI keeps the sessions of a directory."""
    return project_key(real_directory(directory))


def real_directory(directory: str | Path | None) -> str:
    """Return the real path of a directory, by default of the current one."""
    return os.path.realpath(directory or ".")


def check_session_id(session_id: str) -> None:
    """Raise `ValueError` unless `session_id` is a UUID."""
    if not is_session_id(session_id):
        raise ValueError(f"Invalid session_id: {session_id}")


def check_message_id(uuid: str | None) -> None:
    """Raise `ValueError` unless `uuid` is None or a UUID."""
    if uuid and not is_session_id(uuid):
        raise ValueError(f"Invalid up_to_message_id: {uuid}")


def check_title(title: str) -> str:
    """Return a title without spaces around it. Raises `ValueError` if nothing is left."""
    found = title.strip()
    if not found:
        raise ValueError("title must be non-empty")
    return found


def check_tag(tag: str | None) -> str:
    """Return a tag without unseen characters; empty for None. Raises `ValueError` if empty."""
    if tag is None:
        return ""
    import unicodedata  # noqa: PLC0415 - rarely needed

    normal = unicodedata.normalize("NFKC", tag)
    found = "".join(each for each in normal if each.isspace() or not _is_unseen(each)).strip()
    if not found:
        raise ValueError("tag must be non-empty (use None to clear)")
    return found


def _is_unseen(character: str) -> bool:
    import unicodedata  # noqa: PLC0415 - as above

    return unicodedata.category(character) in ("Cf", "Co", "Cn", "Cs")


def fork_error(error: UsageError, session_id: str, up_to: str | None) -> ValueError:
    """Return the official error for a fork that cannot be made."""
    if error.argument == "up_to":
        return ValueError(f"Message {up_to} not found in session {session_id}")
    return ValueError(f"Session {session_id} has no messages to fork")


def page_of(found: Sequence[T], limit: int | None, offset: int) -> list[T]:
    """Return a part of a list. A limit of 0 or less is none, as in the official functions."""
    begin = max(0, offset)
    is_limited = limit is not None and limit > 0
    return list(found[begin : begin + limit] if limit is not None and is_limited else found[begin:])


def info_of(info: SessionInfo, cwd: str | None) -> SDKSessionInfo:
    """Return a row of a list; `cwd` is for a session without one."""
    return SDKSessionInfo(
        session_id=info.session_id,
        summary=info.summary,
        last_modified=info.last_modified,
        file_size=info.file_size,
        custom_title=info.custom_title,
        first_prompt=info.first_prompt,
        git_branch=info.git_branch,
        cwd=info.cwd or cwd,
        tag=info.tag,
        created_at=info.created_at,
    )


def message_of(message: StoredMessage) -> SessionMessage:
    """Return a message of a conversation."""
    return SessionMessage(
        type=cast('Literal["user", "assistant"]', message.type),
        uuid=message.uuid,
        session_id=message.session_id,
        message=cast(Any, message.message),
        parent_tool_use_id=message.parent_tool_use_id,
        parent_agent_id=message.parent_agent_id,
    )
