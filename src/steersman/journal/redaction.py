"""Known secrets, taken out of what is written down or shown."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping

from steersman import _json
from steersman._json import Json

__all__ = ["Redactor", "secrets_in"]

MARK = "[redacted]"
SHORTEST = 6
"""A shorter value is not replaced: it would take half of the text with it."""

_SECRET_NAME = re.compile(
    r"key|token|secret|passw|credential|auth|cookie|signature|private|dsn", re.IGNORECASE
)
_HOLDERS = frozenset({"env", "headers"})
"""Objects in a configuration whose every value may be a secret."""


class Redactor:
    """Replaces values that must not be seen, wherever they stand."""

    def __init__(self, secrets: Iterable[str]) -> None:
        found = {each for each in secrets if len(each) >= SHORTEST}
        self._texts = sorted(found, key=len, reverse=True)
        # In a line of JSON a secret stands as one of two writers wrote it.
        self._written = [
            spelling
            for each in self._texts
            for spelling in {_json.dumps(each)[1:-1], json.dumps(each)[1:-1].encode()}
        ]

    def line(self, line: bytes) -> bytes:
        """`line` without the secrets; the same object when there is none in it."""
        for each in self._written:
            if line.find(each) >= 0:
                return self._without(line)
        return line

    def _without(self, line: bytes) -> bytes:
        try:
            return _json.dumps(self._value(_json.loads(line)))
        except ValueError:
            # What cannot be taken apart is not shown in part.
            return MARK.encode()

    def text(self, text: str) -> str:
        """`text` without the secrets."""
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
    """Values that look secret by their name, or by standing where secrets stand."""
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
    """Mappings and tuples as the objects and arrays they stand for; anything else as it is."""
    if _json.is_mapping(found):
        return {str(name): _plain(value) for name, value in found.items()}
    if _json.is_sequence(found):
        return [*map(_plain, found)]
    return found
