"""Finds and removes secrets in the lines of a cassette, also those that are split across events.

Secrets are found by pattern anywhere; among environment variables, headers and fields also by the
name of the field, and by how random the value looks.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from steersman import _json
from steersman._json import Json, JsonDict
from steersman._terminal import one_line
from steersman.errors import UsageError
from steersman.journal.files import Record, read_line, read_tracks
from steersman.journal.redaction import MARK, SHORTEST


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern for strings that must not be recorded, and the string that replaces them.

    If the pattern has a group called `secret`, only that group is replaced.
    """

    name: str
    pattern: str
    replacement: str = MARK

    def __post_init__(self) -> None:
        try:
            re.compile(self.pattern)
        except re.error as error:
            raise UsageError("pattern", self.pattern, f"a regular expression ({error})") from None

    def spans(self, text: str) -> Iterator[Span]:
        """Yield the places in `text` that the rule applies to."""
        for found in re.finditer(self.pattern, text):
            start, end = found.span("secret" if "secret" in found.groupdict() else 0)
            if text[start:end] != self.replacement:
                yield Span(start, end, self)


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a text that a rule applies to."""

    start: int
    end: int
    rule: Rule


_NAMES = (
    r"(?:proxy-)?authorization|(?:[\w-]*[-_])?api[-_]?key|[\w-]*secret[-_]?(?:access[-_]?)?key"
    r"|(?:client|app|shared|webhook)[-_]?secret|private[-_]?key|passwd|password|passphrase"
    r"|(?:access|auth|refresh|bearer|oauth|id|session|csrf)[-_]?token|(?:set-)?cookie"
)
"""Names of fields whose value is always a secret."""

RULES: tuple[Rule, ...] = (
    Rule("Anthropic key", r"\bsk-ant-[\w-]{8,}"),
    Rule("API key", r"\bsk-(?:proj-|live-|test-)?[A-Za-z0-9]{20,}"),
    Rule("AWS access key", r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    Rule("GitHub token", r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_\w{40,})"),
    Rule("Slack token", r"\bxox[abeprs]-[A-Za-z0-9-]{10,}"),
    Rule("Google key", r"\bAIza[\w-]{35}"),
    Rule("JSON web token", r"\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}"),
    Rule(
        "private key",
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    ),
    Rule(
        "password in a URL", r"\b[a-z][a-z0-9+.-]{0,30}://[^\s/:@\"']+:(?P<secret>[^\s/@\"']{3,})@"
    ),
    Rule(
        "authorization header",
        r"(?i)\b(?:proxy-)?authorization[\"']?\s*[:=]\s*[\"']?(?:(?:bearer|basic|token)\s+)?"
        r"(?P<secret>[\w.~+/=-]{8,})",
    ),
    Rule("bearer token", r"(?i)\bbearer\s+(?P<secret>(?=[\w.~+/=-]*\d)[\w.~+/=-]{16,})"),
    Rule(
        "secret in a field",
        rf"(?i)[\"'](?:{_NAMES})[\"']\s*:\s*[\"'](?P<secret>[^\s\"'\\$\[<{{][^\"'\\]{{5,}})",
    ),
    Rule(
        "secret in a variable",
        r"\b[A-Z][A-Z0-9_]*(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)[A-Z0-9_]*="
        r"[\"']?(?P<secret>[^\s\"'$\[<{\\][^\s\"'\\]{7,})",
    ),
    Rule(
        "secret in a header",
        r"(?i)\b(?:x-api-key|cookie)\s*:\s*(?P<secret>[^\s\"'\[$][^\s\"']{5,})",
    ),
)
"""Keys and tokens of common services, and values of fields that hold secrets."""

_SECRET_FIELD = re.compile(_NAMES, re.IGNORECASE)
_SECRET_VARIABLE = re.compile(r"key|token|secret|passw|credential|auth|cookie", re.IGNORECASE)
_HOLDERS = frozenset({"env", "environment", "headers", "http_headers"})

BY_NAME = Rule("secret by its name", "")
BY_LOOKS = Rule("random value among variables or headers", "")

SHORTEST_RANDOM = 20
MOST_ORDERLY = 3.6
"""Bits per character: text and paths have fewer, keys have more."""

_RANDOM = re.compile(r"(?=.*\d)(?=.*[A-Za-z])[\w+/=.~-]+")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


Found = tuple[Rule, str]
"""A rule and the secret that it found."""


class Scrubber:
    """Finds secrets in lines and removes them."""

    def __init__(self, rules: Sequence[Rule] = RULES, secrets: Iterable[str] = ()) -> None:
        """Look for the rules' patterns and for `secrets`, strings that are known to be secret."""
        known = sorted({each for each in secrets if len(each) >= SHORTEST}, key=len, reverse=True)
        self._rules = (*map(_known, known), *rules)

    def line(self, line: bytes) -> bytes:
        """Return `line` without secrets; the same object if there are none."""
        try:
            value = _json.loads(line)
            cleaned = self.value(value)
        except (ValueError, RecursionError):
            text = line.decode("utf-8", "surrogateescape")
            cleaned = self.text(text)
            return line if cleaned == text else cleaned.encode("utf-8", "surrogateescape")
        return line if cleaned == value else _json.dumps(cleaned)

    def value(self, value: Json, place: str = "", *, is_held: bool = False) -> Json:
        """Return a decoded value without secrets; `place` is the name of its field."""
        if isinstance(value, str):
            return replaced(value, self._spans_at(value, place, is_held=is_held))
        if _json.is_object(value):
            holds = is_held or place in _HOLDERS
            return {
                self.text(name): self.value(each, name, is_held=holds)
                for name, each in value.items()
            }
        if _json.is_array(value):
            return [self.value(each, place, is_held=is_held) for each in value]
        return value

    def text(self, text: str) -> str:
        """Return `text` without secrets."""
        return replaced(text, self.spans(text))

    def spans(self, text: str) -> list[Span]:
        """Return the places of secrets in `text`, in order and without overlap."""
        found = [span for rule in self._rules for span in rule.spans(text)]
        return _apart(found)

    def found_in(self, value: Json, place: str = "", *, is_held: bool = False) -> Iterator[Found]:
        """Yield the secrets inside a decoded value, each with the rule that found it."""
        if isinstance(value, str):
            for span in self._spans_at(value, place, is_held=is_held):
                yield span.rule, value[span.start : span.end]
        elif _json.is_object(value):
            holds = is_held or place in _HOLDERS
            for name, each in value.items():
                yield from self.found_in(name)
                yield from self.found_in(each, name, is_held=holds)
        elif _json.is_array(value):
            for each in value:
                yield from self.found_in(each, place, is_held=is_held)

    def _spans_at(self, text: str, place: str, *, is_held: bool) -> list[Span]:
        spans = self.spans(text)
        if spans or not _may_be_secret(text):
            return spans
        if _SECRET_FIELD.fullmatch(place) or (is_held and _SECRET_VARIABLE.search(place)):
            return [Span(0, len(text), BY_NAME)]
        return [Span(0, len(text), BY_LOOKS)] if is_held and _looks_random(text) else []


def _known(secret: str) -> Rule:
    """Return a rule for a known secret, as plain text and as it is written inside JSON."""
    spellings = {re.escape(each) for each in (secret, json.dumps(secret)[1:-1])}
    return Rule("known secret", "|".join(sorted(spellings)))


def replaced(text: str, spans: Iterable[Span]) -> str:
    """Return `text` with every span replaced as its rule demands."""
    parts, end = list[str](), 0
    for span in spans:
        parts += [text[end : span.start], span.rule.replacement]
        end = span.end
    return "".join((*parts, text[end:])) if parts else text


def _apart(spans: list[Span]) -> list[Span]:
    """Return the spans in order; overlapping ones become one, with the rule of the first."""
    apart: list[Span] = []
    for span in sorted(spans, key=lambda each: (each.start, -each.end)):
        if apart and span.start < apart[-1].end:
            first = apart.pop()
            span = Span(first.start, max(first.end, span.end), first.rule)  # noqa: PLW2901
        apart.append(span)
    return apart


def _may_be_secret(text: str) -> bool:
    """Return False for strings that are too short, a reference to a secret, or already replaced."""
    return len(text) >= SHORTEST and MARK not in text and not text.startswith(("$", "{", "<"))


def _looks_random(text: str) -> bool:
    if len(text) < SHORTEST_RANDOM or not _RANDOM.fullmatch(text) or _UUID.fullmatch(text):
        return False
    counts = Counter(text).values()
    bits = -sum(count / len(text) * math.log2(count / len(text)) for count in counts)
    return bits > MOST_ORDERLY and not text.startswith("/")


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


SHOWN = 4
"""How many characters of a secret a finding shows: enough to find it, too few to use it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A text in a file that looks like a secret."""

    path: str
    line: int
    rule: str
    excerpt: str
    """The first characters of the secret."""

    def __str__(self) -> str:
        return one_line(f"{self.path}:{self.line}: {self.rule}: {self.excerpt}")


def lint(path: str | os.PathLike[str], rules: Sequence[Rule] = RULES) -> list[Finding]:
    """Return the strings of a cassette that look like secrets, in order.

    Raises `UsageError` if the file cannot be read or is not a cassette.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise UsageError("path", str(path), f"a file that can be read ({error.strerror})") from None
    read_tracks(data)
    lines = data.split(b"\n")
    scrubber = Scrubber(rules)
    found = {
        (number, rule.name, secret): None
        for number, (rule, secret) in (*_in_lines(lines, scrubber), *_between(lines, scrubber))
    }
    return [
        Finding(str(path), number + 1, rule, f"{secret[:SHOWN]}…")
        for number, rule, secret in sorted(found)
    ]


def _in_lines(lines: list[bytes], scrubber: Scrubber) -> Iterator[tuple[int, Found]]:
    for number, line in enumerate(lines):
        try:
            found = [*scrubber.found_in(_json.loads(line))] if line else []
        except (ValueError, RecursionError):
            found = [*scrubber.found_in(line.decode("utf-8", "replace"))]
        for each in found:
            yield number, each
        for each in scrubber.found_in(_hidden(line)):
            yield number, each


def _hidden(line: bytes) -> str:
    """Return the text that a record holds as base64."""
    if b'"base64"' not in line:
        return ""
    record = read_line(line)
    return record.line.decode("utf-8", "replace") if isinstance(record, Record) else ""


def _between(lines: list[bytes], scrubber: Scrubber) -> Iterator[tuple[int, Found]]:
    """Yield the secrets that are split across several streamed events."""
    records = [read_line(line) if line else None for line in lines]
    carried = [record.line if isinstance(record, Record) else b"" for record in records]
    return split_secrets(carried, scrubber)
