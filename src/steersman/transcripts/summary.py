"""What a list of sessions shows of each, folded entry by entry.

The data of a summary has the keys of the official Python SDK, so that summaries which one of them
keeps in a store are of use to the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from operator import attrgetter

from steersman import _json
from steersman._json import JsonDict, JsonObject
from steersman.transcripts.entries import AgentInfo, SessionInfo, TranscriptEntry, entry_of
from steersman.transcripts.keys import (
    SessionKey,
    SessionStoreEntry,
    SessionSummaryEntry,
    without_unseen,
)

__all__ = ["AgentInfo", "SessionInfo", "Summary", "fold_session_summary"]

LATEST = {
    "custom_title": "custom_title",
    "ai_title": "ai_title",
    "last_prompt": "last_prompt",
    "summary": "summary_hint",
    "relocated_cwd": "relocated_cwd",
    "continued_in_session_id": "continued_in",
}
"""Fields of an entry whose latest value counts, and their keys in the data."""
KEYS = tuple(LATEST.values())
_latest = attrgetter(*LATEST)
NONE = (None,) * len(LATEST)


class Summary:
    """What is known of a session after the entries that were folded so far."""

    def __init__(self, data: JsonObject | None = None) -> None:
        self._data: JsonDict = dict(data or {})

    @classmethod
    def from_data(cls, data: JsonObject) -> Summary:
        """Return the summary that has this data, from `to_data` or from the official SDK."""
        return cls(data)

    def to_data(self) -> JsonDict:
        """Return the summary as JSON, with keys that this release does not know as they were."""
        return dict(self._data)

    def fold(self, entry: TranscriptEntry) -> None:
        """Add what `entry` has."""
        data = self._data
        latest = _latest(entry)
        # Most entries have none of them, and a list folds thirty thousand.
        if latest != NONE:
            found = zip(KEYS, latest, strict=True)
            data.update((key, value) for key, value in found if value is not None)
        if entry.git_branch:
            data["git_branch"] = entry.git_branch
        if entry.type == "tag" and entry.tag is not None:
            if entry.tag:
                data["tag"] = entry.tag
            else:
                data.pop("tag", None)
        if (entry.uuid or entry.is_sidechain) and "is_sidechain" not in data:
            data["is_sidechain"] = entry.is_sidechain
        if entry.cwd and "cwd" not in data:
            data["cwd"] = entry.cwd
        if entry.timestamp and "created_at" not in data:
            at = milliseconds(entry.timestamp)
            if at is not None:
                data["created_at"] = at
        if entry.type == "user" and not data.get("first_prompt_locked"):
            self._fold_prompt(entry)

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
        custom_title: str | None = None,
    ) -> SessionInfo | None:
        """Return the row of a list; None if it shows nothing, or the session is not to be shown.

        Not shown is a session of a sidechain, and one that is continued in another session.
        `custom_title` is one that is kept beside the file; it precedes those in the file.
        """
        title = _seen(custom_title) or self._text("custom_title") or self._text("ai_title")
        first = self._text("first_prompt") or self._text("command_fallback")
        shown = title or self._text("last_prompt") or self._text("summary_hint") or first
        data = self._data
        if not shown or data.get("is_sidechain") or data.get("continued_in"):
            return None
        created = data.get("created_at")
        return SessionInfo(
            session_id=session_id,
            summary=shown,
            last_modified=last_modified,
            file_size=file_size,
            custom_title=title,
            first_prompt=first,
            git_branch=self._text("git_branch"),
            cwd=data.get("relocated_cwd") or data.get("cwd") or None,
            tag=self._text("tag"),
            created_at=created if isinstance(created, int) else None,
            archived=archived,
            expires=expires,
        )

    def _fold_prompt(self, entry: TranscriptEntry) -> None:
        """Keep the first text that a user wrote; a command if there is none."""
        if entry.is_meta or entry.is_compact_summary:
            return
        for text in _texts_of(entry.message):
            command = _command_in(text)
            if command is not None:
                self._data.setdefault("command_fallback", command)
                continue
            prompt = _prompt_in(text)
            if prompt:
                self._data["first_prompt"] = prompt
                self._data["first_prompt_locked"] = True
                return

    def _text(self, key: str) -> str | None:
        found = self._data.get(key)
        # Most are missing, and a list asks ten thousand times.
        return _seen(found) if found else None


def _seen(found: object) -> str | None:
    return without_unseen(found) or None if isinstance(found, str) else None


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
    try:
        at = datetime.fromisoformat(timestamp)
        return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError):
        return None


LONGEST_PROMPT = 200

_BY_THE_CLI = re.compile(
    r"""<(?:local-command-stdout|session-start-hook|tick|goal)>
    |\[Request[ ]interrupted[ ]by[ ]user
    |<ide_(opened_file|selection)>.*</ide_\1>\Z""",
    re.VERBOSE | re.DOTALL,
)


def _texts_of(message: JsonObject) -> list[str]:
    """Return the strings of a user's message; none if it has the result of a tool."""
    content = message.get("content")
    if isinstance(content, str):
        return [content]
    blocks = [each for each in content if _json.is_object(each)] if _json.is_array(content) else []
    if any(each.get("type") == "tool_result" for each in blocks):
        return []
    texts = (each.get("text") for each in blocks if each.get("type") == "text")
    return [text for text in texts if isinstance(text, str)]


def _command_in(text: str) -> str | None:
    """Return the slash command that the CLI wrote down in `text`; None if there is none."""
    # Not a regular expression: that takes long for a text of many beginnings without an end.
    _, has_begun, rest = text.partition("<command-name>")
    command, has_ended, _ = rest.partition("</command-name>")
    return command if has_begun and has_ended else None


def _prompt_in(text: str) -> str:
    """Return `text` on one line, shortened; empty if the CLI wrote it and not the user."""
    prompt = text.replace("\n", " ").strip()
    if not prompt or _BY_THE_CLI.match(prompt):
        return ""
    return prompt if len(prompt) <= LONGEST_PROMPT else prompt[:LONGEST_PROMPT].rstrip() + "…"
