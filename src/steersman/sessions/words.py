"""What a search looks at: the words of an entry, and the words that are searched for. Pure.

Words are compared as SQLite's tokenizer `unicode61` does: without case and diacritics, separated by
whatever is neither a letter nor a number.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from steersman import _json
from steersman._json import Json
from steersman.errors import UsageError
from steersman.transcripts.entries import TranscriptEntry

LONGEST_TEXT = 1 << 20
"""Characters of an entry that are searched."""
AROUND = 80
"""Characters of a snippet before and after what was found."""
_WORD = re.compile(r"[^\W_]+")
_PART = re.compile(r'"([^"]*)"?|(\S+)')


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """An entry that a search has found."""

    session_id: str
    uuid: str
    snippet: str
    """The text around what was found, on one line."""
    timestamp: str
    """When the CLI wrote the entry, in ISO 8601; empty if that is not known."""
    score: float
    """How well the entry fits, between 0 and 1: more, and in a shorter text, is better."""


@dataclass(frozen=True, slots=True)
class Query:
    """Phrases, all of which an entry must have. A phrase is one word, or several in a row."""

    phrases: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, text: str) -> Query:
        """Return what a user has typed as a query. Raises `UsageError` if it has no word."""
        parts = [quoted or plain for quoted, plain in _PART.findall(text)]
        phrases = [tuple(_words(each)) for each in parts]
        found = tuple(dict.fromkeys(each for each in phrases if each))
        if not found:
            raise UsageError("text", text, "at least one letter or digit to search for")
        return cls(found)

    def match_expression(self, column: str) -> str:
        """Return the query in the language of FTS5."""
        phrases = (f'"{" ".join(each)}"' for each in self.phrases)
        return f"{{{column}}} : ({' AND '.join(phrases)})"

    def hit(self, entry: TranscriptEntry, session_id: str) -> Hit | None:
        """Return the hit that an entry is, or None if it has not all phrases."""
        text = text_of(entry)
        words = _words(text)
        line = f" {' '.join(words)} "
        counts = [line.count(f" {' '.join(each)} ") for each in self.phrases]
        if not all(counts):
            return None
        weight = 1 + len(words) / 100
        score = sum(count / (count + weight) for count in counts) / len(counts)
        return Hit(
            session_id=session_id,
            uuid=entry.uuid,
            snippet=_snippet(text, self.phrases[0][0]),
            timestamp=entry.timestamp,
            score=round(score, 4),
        )


def may_have_text(line: bytes) -> bool:
    """Whether a line can be a message; quicker than decoding it."""
    return b'"user"' in line or b'"assistant"' in line


def text_of(entry: TranscriptEntry) -> str:
    """Return what a search looks at: texts, and what tools were given and gave back."""
    if entry.type not in ("user", "assistant"):
        return ""
    return "\n".join(_texts(entry.message.get("content")))[:LONGEST_TEXT]


def _texts(content: Json) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    blocks = content if _json.is_array(content) else []
    for block in blocks:
        if not _json.is_object(block):
            continue
        if block.get("type") == "text":
            yield from _texts(block.get("text"))
        elif block.get("type") == "tool_use":
            yield from _values(block.get("input"))
        elif block.get("type") == "tool_result":
            yield from _texts(block.get("content"))


def _values(value: Json) -> Iterator[str]:
    """Yield the texts in what a tool was given."""
    waiting: list[Json] = [value]
    while waiting:
        found = waiting.pop()
        if isinstance(found, str):
            yield found
        elif _json.is_object(found):
            waiting += reversed(list(found.values()))
        elif _json.is_array(found):
            waiting += reversed(found)


def _words(text: str) -> list[str]:
    if not text.isascii():
        apart = unicodedata.normalize("NFD", text)
        text = "".join(each for each in apart if not unicodedata.combining(each))
    return _WORD.findall(text.lower())


def _snippet(text: str, word: str) -> str:
    found = re.search(re.escape(word), text, re.IGNORECASE)
    at = found.start() if found else 0
    begin, end = max(0, at - AROUND), at + len(word) + AROUND
    shown = " ".join(text[begin:end].split())
    return ("…" if begin else "") + shown + ("…" if end < len(text) else "")


def ranked(found: Sequence[Hit], limit: int) -> list[Hit]:
    """Return the best hits; of equal ones, those that come first."""
    return sorted(found, key=lambda each: -each.score)[:limit]
