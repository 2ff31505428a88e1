"""A conversation as Markdown, HTML or JSON, in parts, so that a long one is never in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from steersman import _json
from steersman.transcripts.stored import StoredMessage
from steersman.transcripts.summary import SessionInfo

__all__ = ["to_html", "to_json", "to_markdown"]


def to_markdown(
    messages: Iterable[StoredMessage], info: SessionInfo | None = None
) -> Iterator[str]:
    """Yield the conversation as Markdown."""
    yield f"# {info.summary if info else 'Conversation'}\n"
    for each in messages:
        yield f"\n## {each.type}\n\n{each.message.get('content')}\n"


def to_html(messages: Iterable[StoredMessage], info: SessionInfo | None = None) -> Iterator[str]:
    """Yield the conversation as one HTML page that loads nothing."""
    from html import escape  # noqa: PLC0415 - rarely needed

    yield f"<!doctype html><title>{escape(info.summary if info else 'Conversation')}</title>"
    for each in messages:
        yield f"<h2>{escape(each.type)}</h2><pre>{escape(str(each.message.get('content')))}</pre>"


def to_json(messages: Iterable[StoredMessage], info: SessionInfo | None = None) -> Iterator[str]:
    """Yield the conversation as one JSON object."""
    about = _json.dumps({"session_id": info.session_id, "title": info.summary} if info else None)
    yield f'{{"session":{about.decode()},"messages":['
    for number, each in enumerate(messages):
        yield ("," if number else "") + _json.dumps(each.entry.data).decode()
    yield "]}\n"
