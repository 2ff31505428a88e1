"""Removes known secrets from text that is stored or shown."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping

from steersman import _json
from steersman._json import Json

__all__ = ["Redactor", "secrets_in"]

MARK = "[redacted]"
SHORTEST = 6
"""Shorter values are not replaced: they occur in ordinary text."""

_SECRET_NAME = re.compile(
    r"key|token|secret|passw|credential|auth|cookie|signature|private|dsn", re.IGNORECASE
)
_HOLDERS = frozenset({"env", "headers"})
"""Fields of a configuration in which every value may be a secret."""


class Redactor:
    """Replaces secret values wherever they occur."""

    def __init__(self, secrets: Iterable[str]) -> None:
        found = {each for each in secrets if len(each) >= SHORTEST}
        self._texts = sorted(found, key=len, reverse=True)
        # In JSON a secret is escaped as one of the two encoders does it.
        self._written = [
            spelling
            for each in self._texts
            for spelling in {_json.dumps(each)[1:-1], json.dumps(each)[1:-1].encode()}
        ]

    def line(self, line: bytes) -> bytes:
        """Return `line` without the secrets; the same object if it contains none."""
        for each in self._written:
            if line.find(each) >= 0:
                return self._without(line)
        return line

    def _without(self, line: bytes) -> bytes:
        try:
            return _json.dumps(self._value(_json.loads(line)))
        except ValueError:
            # A line that cannot be decoded may hide a secret, so none of it is shown.
            return MARK.encode()

    def text(self, text: str) -> str:
        """Return `text` without the secrets."""
        for secret in self._texts:
            text = text.replace(secret, MARK)
        return text

    def _value(self, value: Json) -> Json:
        if isinstance(value, str):
            return self.text(value)
        if _json.is_object(value):
            return {self.text(name): self._value(each) for name, each in value.items()}
        return [self._value(each) for each in value] if _json.is_array(value) else value


def secrets_in(env: Mapping[str, str], *configurations: Json) -> Iterator[str]:
    """Yield values whose name looks secret, or that are in an object such as `env` or `headers`."""
    yield from (value for name, value in env.items() if _SECRET_NAME.search(name))
    for each in configurations:
        yield from _walk(_plain(each), inside=False)


def _walk(found: Json, *, inside: bool) -> Iterator[str]:
    if isinstance(found, str) and inside:
        yield found
    elif _json.is_object(found):
        for name, value in found.items():
            is_secret = inside or name in _HOLDERS or bool(_SECRET_NAME.search(name))
            yield from _walk(value, inside=is_secret)
    elif _json.is_array(found):
        for value in found:
            yield from _walk(value, inside=inside)


def _plain(found: Json) -> Json:
    """Return mappings as dicts and tuples as lists, at every level; other values unchanged."""
    if _json.is_mapping(found):
        return {str(name): _plain(value) for name, value in found.items()}
    if _json.is_sequence(found):
        return [*map(_plain, found)]
    return found
