"""What a list of sessions shows of each, folded entry by entry."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC

from steersman import _json
from steersman._json import JsonDict, JsonObject
from steersman.transcripts.entries import TranscriptEntry, entry_of
from steersman.transcripts.keys import SessionKey, SessionStoreEntry, SessionSummaryEntry
from steersman.transcripts.stored import AgentInfo, SessionInfo

__all__ = ["AgentInfo", "SessionInfo", "Summary", "fold_session_summary"]

LONGEST_PROMPT = 200


class Summary:
    """What is known of a session after the entries that were folded so far."""

    def __init__(self, data: JsonObject | None = None) -> None:
        self._data: JsonDict = dict(data or {})

    @classmethod
    def from_data(cls, data: JsonObject) -> Summary:
        """Return the summary that `to_data` was called on."""
        return cls(data)

    def to_data(self) -> JsonDict:
        """Return the summary as JSON, with keys that this release does not know as they were."""
        return dict(self._data)

    def fold(self, entry: TranscriptEntry) -> None:
        """Add what `entry` has."""
        data = self._data
        for name, value in (
            ("custom_title", entry.custom_title),
            ("ai_title", entry.ai_title),
            ("last_prompt", entry.last_prompt),
            ("summary", entry.summary),
            ("git_branch", entry.git_branch),
            ("cwd", entry.relocated_cwd),
        ):
            if value is not None:
                data[name] = value
        if entry.cwd is not None:
            data.setdefault("cwd", entry.cwd)
        if entry.type == "tag" and entry.tag is not None:
            data["tag"] = entry.tag
        if entry.continued_in_session_id:
            data["continued_in"] = entry.continued_in_session_id
        if "created_at" not in data and (at := milliseconds(entry.timestamp)) is not None:
            data["created_at"] = at
        if entry.type == "user" and not data.get("first_prompt"):
            prompt = _prompt(entry)
            if prompt:
                data["first_prompt"] = prompt

    def fold_all(self, entries: Iterable[TranscriptEntry]) -> None:
        """Add what every one of `entries` has."""
        for entry in entries:
            self.fold(entry)

    def info(
        self,
        session_id: str,
        last_modified: int,
        file_size: int | None = None,
        *,
        archived: bool = False,
        expires: int | None = None,
        cwd: str | None = None,
        custom_title: str | None = None,
    ) -> SessionInfo | None:
        """Return the row of a list, or None if the session is not to be shown.

        `cwd` is used if no entry has one. `custom_title` is one that is kept beside the file.
        """
        data = self._data
        title = custom_title or data.get("custom_title") or data.get("ai_title")
        first = data.get("first_prompt")
        shown = title or data.get("last_prompt") or data.get("summary") or first
        if not shown or data.get("is_sidechain") or data.get("continued_in"):
            return None
        return SessionInfo(
            session_id=session_id,
            summary=shown,
            last_modified=last_modified,
            file_size=file_size,
            custom_title=title,
            first_prompt=first,
            git_branch=data.get("git_branch") or None,
            cwd=data.get("cwd") or cwd,
            tag=data.get("tag") or None,
            created_at=data.get("created_at"),
            archived=archived,
            expires=expires,
        )


def fold_session_summary(
    previous: SessionSummaryEntry | None, key: SessionKey, entries: list[SessionStoreEntry]
) -> SessionSummaryEntry:
    """Return the summary of a session after `entries`; `previous` is the one before them.

    `mtime` is left as it was, or 0: the store sets it, by its own clock. Not for keys with a
    `subpath`.
    """
    summary = Summary(previous["data"] if previous else None)
    summary.fold_all(entry_of(each) for each in entries)
    return {
        "session_id": key["session_id"],
        "mtime": previous["mtime"] if previous else 0,
        "data": summary.to_data(),
    }


def milliseconds(timestamp: str) -> int | None:
    """Return an ISO 8601 time in milliseconds since the epoch; None if it is none."""
    from datetime import datetime  # noqa: PLC0415 - rarely needed

    try:
        at = datetime.fromisoformat(timestamp)
    except ValueError:
        return None
    return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)


def _prompt(entry: TranscriptEntry) -> str:
    if entry.is_meta or entry.is_compact_summary or entry.is_sidechain:
        return ""
    content = entry.message.get("content")
    texts = [content] if isinstance(content, str) else []
    if _json.is_array(content):
        blocks = [each for each in content if _json.is_object(each)]
        texts = [str(each.get("text", "")) for each in blocks if each.get("type") == "text"]
    for text in texts:
        plain = " ".join(text.split())
        if plain and not plain.startswith("<"):
            return plain if len(plain) <= LONGEST_PROMPT else plain[:LONGEST_PROMPT].rstrip() + "…"
    return ""
