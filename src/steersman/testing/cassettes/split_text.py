"""Finds and removes secrets that are split across several `content_block_delta` events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from steersman import _json
from steersman._json import JsonDict
from steersman.testing.cassettes.scrubbing import Found, Scrubber, Span

TEXT_OF = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}
"""Types of deltas, and the field that holds their text."""


@dataclass(frozen=True, slots=True)
class _TextDelta:
    at: int
    """The index of the delta's line."""
    frame: JsonDict
    body: JsonDict
    field: str

    @property
    def text(self) -> str:
        return str(self.body[self.field])


def scrub_split_text(lines: Iterable[bytes], scrubber: Scrubber) -> list[bytes]:
    """Return the lines without the secrets that are split across deltas of one block.

    The joined deltas give the same text as the scrubbed complete message.
    """
    cleaned = list(lines)
    for block in _blocks(cleaned):
        spans = scrubber.spans("".join(delta.text for delta in block))
        if not spans:
            continue
        for delta, text in zip(block, _cut(block, spans), strict=True):
            delta.body[delta.field] = text
            cleaned[delta.at] = _json.dumps(delta.frame)
    return cleaned


def split_secrets(lines: Iterable[bytes], scrubber: Scrubber) -> Iterator[tuple[int, Found]]:
    """Yield the secrets that span several deltas, each with the index of its first line."""
    for block in _blocks(list(lines)):
        text = "".join(delta.text for delta in block)
        for span in scrubber.spans(text):
            begin = 0
            for delta in block:
                end = begin + len(delta.text)
                if begin <= span.start < end < span.end:
                    yield delta.at, (span.rule, text[span.start : span.end])
                begin = end


def _blocks(lines: list[bytes]) -> Iterator[list[_TextDelta]]:
    """Yield the deltas of each content block."""
    unfinished: dict[tuple[object, object], list[_TextDelta]] = {}
    for at, line in enumerate(lines):
        frame = _event_frame(line)
        event = frame.get("event", {})
        key = (frame.get("parent_tool_use_id"), event.get("index"))
        delta = _text_delta(at, frame)
        if delta is not None:
            unfinished.setdefault(key, []).append(delta)
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
    """Yield the new text of each delta: a span is replaced in the delta in which it begins."""
    begin = 0
    for delta in block:
        end, at, parts = begin + len(delta.text), begin, list[str]()
        for span in spans:
            if span.end <= begin or span.start >= end:
                continue
            if span.start >= begin:
                parts += [delta.text[at - begin : span.start - begin], span.rule.replacement]
            at = min(span.end, end)
        yield "".join((*parts, delta.text[at - begin :]))
        begin = end
