"""Finds secrets in cassettes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from steersman import _json
from steersman._terminal import one_line
from steersman.errors import UsageError
from steersman.journal.files import Record, read_line, read_tracks
from steersman.testing.cassettes.scrubbing import RULES, Found, Rule, Scrubber
from steersman.testing.cassettes.split_text import split_secrets

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
    """Return what looks like a secret in a cassette, in order.

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
