"""Known secrets, taken out of what is written down or shown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from steersman import _json

__all__ = ["Redactor", "secrets_in"]

MARK = "[redacted]"
SHORTEST = 6
"""A shorter value is not replaced: it would take half of the text with it."""

_SECRET_NAME = re.compile(
    r"key|token|secret|passw|credential|auth|cookie|session|signature|private|dsn", re.IGNORECASE
)
_HOLDERS = frozenset({"env", "headers"})
"""Objects in a configuration whose every value may be a secret."""


class Redactor:
    """Replaces values that must not be seen, wherever they stand."""

    def __init__(self, secrets: Iterable[str]) -> None:
        found = sorted({each for each in secrets if len(each) >= SHORTEST}, key=len, reverse=True)
        self._texts = found
        # In a line of JSON a secret stands as JSON would write it.
        self._lines = [_json.dumps(each)[1:-1] for each in found]

    def line(self, line: bytes) -> bytes:
        """`line` without the secrets; the same object when there is none in it."""
        for secret in self._lines:
            if secret in line:
                line = line.replace(secret, MARK.encode())
        return line

    def text(self, text: str) -> str:
        """`text` without the secrets."""
        for secret in self._texts:
            text = text.replace(secret, MARK)
        return text


def secrets_in(env: Mapping[str, str], *configurations: Any) -> Iterator[str]:
    """Values that look secret by their name, or by standing where secrets stand."""
    yield from (value for name, value in env.items() if _SECRET_NAME.search(name))
    for each in configurations:
        yield from _walk(each, inside=False)


def _walk(found: Any, *, inside: bool) -> Iterator[str]:
    if isinstance(found, str):
        if inside:
            yield found
    elif isinstance(found, Mapping):
        for name, value in cast("Mapping[Any, Any]", found).items():
            yield from _walk(
                value, inside=inside or name in _HOLDERS or bool(_SECRET_NAME.search(str(name)))
            )
    elif isinstance(found, list | tuple):
        for value in cast("Iterable[Any]", found):
            yield from _walk(value, inside=inside)
