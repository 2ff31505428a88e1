"""Finds and removes secrets in the lines of a cassette.

Secrets are found by pattern anywhere; among environment variables, headers and fields also by the
name of the field, and by how random the value looks.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from steersman import _json
from steersman._json import Json
from steersman.errors import UsageError
from steersman.journal.redaction import MARK, SHORTEST


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern for texts that must not be recorded, and the text that replaces them.

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
        """Look for the rules' patterns and for `secrets`, texts that are known to be secret."""
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
    """Return False for texts that are too short, a reference to a secret, or already replaced."""
    return len(text) >= SHORTEST and MARK not in text and not text.startswith(("$", "{", "<"))


def _looks_random(text: str) -> bool:
    if len(text) < SHORTEST_RANDOM or not _RANDOM.fullmatch(text) or _UUID.fullmatch(text):
        return False
    counts = Counter(text).values()
    bits = -sum(count / len(text) * math.log2(count / len(text)) for count in counts)
    return bits > MOST_ORDERLY and not text.startswith("/")
