"""Checks of what callers pass. Each returns the value to use, or raises `UsageError`. Pure."""

from __future__ import annotations

from typing import TypeVar

from steersman.errors import UsageError
from steersman.sessions.words import Query
from steersman.transcripts.keys import clean_title, is_session_id

T = TypeVar("T")


def session(session_id: object) -> str:
    """Return the id of a session."""
    if isinstance(session_id, str) and is_session_id(session_id):
        return session_id
    hint = "look at SessionInfo.session_id; a title or a path is no id"
    raise UsageError("session_id", session_id, "the id of a session, which is a UUID", hint=hint)


def entry_id(name: str, given: object) -> str | None:
    """Return the uuid of an entry, or None."""
    if given is None or (isinstance(given, str) and given):
        return given
    raise UsageError(name, given, "the uuid of a message, as a string, or None")


def count(name: str, given: object, allowed: str = "a whole number, 0 or more") -> int:
    """Return a number that is 0 or more."""
    if isinstance(given, int) and not isinstance(given, bool) and given >= 0:
        return given
    raise UsageError(name, given, allowed)


def optional_count(name: str, given: object) -> int | None:
    """Return a number that is 0 or more, or None."""
    if given is None:
        return None
    return count(name, given, "a whole number, 0 or more, or None for all")


def title(given: object) -> str:
    """Return a title on one line, without control and direction characters."""
    found = clean_title(given) if isinstance(given, str) else ""
    if found:
        return found
    raise UsageError("title", given, "a string with something to show")


def tag(given: object) -> str:
    """Return a tag, cleaned as a title is; empty for None, which removes the tag."""
    if given is None:
        return ""
    found = clean_title(given) if isinstance(given, str) else ""
    if found:
        return found
    raise UsageError("tag", given, "a string with something to show, or None to remove the tag")


def front(given: object, kind: type[T]) -> T:
    """Return another front of the same kind."""
    if isinstance(given, kind):
        return given
    raise UsageError("other", given, f"another {kind.__module__}.{kind.__qualname__}")


def query(text: object) -> Query:
    """Return what is searched for."""
    if isinstance(text, str):
        return Query.of(text)
    raise UsageError("text", text, "the words to search for, as a string")
