"""Streamed text, put together: a secret may be cut in two where a model takes a breath."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from steersman import _json
from steersman._json import JsonDict
from steersman.testing.cassettes.scrubbing import Found, Scrubber, Span

__all__ = ["scrub_split_text", "split_secrets"]

TEXT_OF = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}
"""Kinds of pieces, and the field that holds the text."""


@dataclass(frozen=True, slots=True)
class _TextDelta:
    at: int
    """The place of its line among the others."""
    frame: JsonDict
    delta: JsonDict
    field: str

    @property
    def text(self) -> str:
        return str(self.delta[self.field])


def scrub_split_text(lines: Iterable[bytes], scrubber: Scrubber) -> list[bytes]:
    """The lines, where no secret stands in several pieces of one text.

    Put together, the pieces give the same text as the complete message without its secrets.
    """
    cleaned = list(lines)
    for block in _blocks(cleaned):
        spans = scrubber.spans("".join(piece.text for piece in block))
        if not spans:
            continue
        for piece, text in zip(block, _cut(block, spans), strict=True):
            piece.delta[piece.field] = text
            cleaned[piece.at] = _json.dumps(piece.frame)
    return cleaned


def split_secrets(lines: Iterable[bytes], scrubber: Scrubber) -> Iterator[tuple[int, Found]]:
    """Secrets that stand in more than one piece, each with the place of the first."""
    for block in _blocks(list(lines)):
        text = "".join(piece.text for piece in block)
        for span in scrubber.spans(text):
            begin = 0
            for piece in block:
                end = begin + len(piece.text)
                if begin <= span.start < end < span.end:
                    yield piece.at, (span.rule, text[span.start : span.end])
                begin = end


def _blocks(lines: list[bytes]) -> Iterator[list[_TextDelta]]:
    """The pieces of each text that was streamed."""
    unfinished: dict[tuple[object, object], list[_TextDelta]] = {}
    for at, line in enumerate(lines):
        frame = _event_frame(line)
        event = frame.get("event", {})
        key = (frame.get("parent_tool_use_id"), event.get("index"))
        piece = _text_delta(at, frame)
        if piece is not None:
            unfinished.setdefault(key, []).append(piece)
        elif event.get("type") == "content_block_start":
            yield unfinished.pop(key, [])
    yield from unfinished.values()


def _event_frame(line: bytes) -> JsonDict:
    if b'"stream_event"' not in line:
        return {}
    try:
        found = _json.loads(line)
    except ValueError:
        return {}
    is_event = _json.is_object(found) and _json.is_object(found.get("event"))
    return found if is_event else {}


def _text_delta(at: int, frame: JsonDict) -> _TextDelta | None:
    delta = frame.get("event", {}).get("delta")
    if not _json.is_object(delta):
        return None
    field = TEXT_OF.get(str(delta.get("type")), "")
    return _TextDelta(at, frame, delta, field) if isinstance(delta.get(field), str) else None


def _cut(block: list[_TextDelta], spans: list[Span]) -> Iterator[str]:
    """The new text of each piece: a span is replaced in the piece that it begins in."""
    begin = 0
    for piece in block:
        end, at, parts = begin + len(piece.text), begin, list[str]()
        for span in spans:
            if span.end <= begin or span.start >= end:
                continue
            if span.start >= begin:
                parts += [piece.text[at - begin : span.start - begin], span.rule.replacement]
            at = min(span.end, end)
        yield "".join((*parts, piece.text[at - begin :]))
        begin = end
