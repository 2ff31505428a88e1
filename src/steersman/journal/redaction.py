"""Removes secrets from text that is stored or shown.

A known secret is one that the session was given: `secrets_in` finds them, whole and in parts. Free
text, such as an error or stderr, may contain others; `shown` also removes those that have the
format of a well-known service. Lines of the journal are searched for known secrets only.
"""

from __future__ import annotations

import base64
import binascii
import functools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from urllib.parse import unquote, unquote_plus, urlsplit

from steersman import _json
from steersman._json import Json

MARK = "[redacted]"
SHORTEST = 6
"""Shorter values are not replaced: they occur in ordinary text."""

SHAPES = re.compile(
    r"""
      \bsk-(?:ant-)?[\w-]{16,}
    | \b(?:AKIA|ASIA)[0-9A-Z]{16}\b
    | \b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{30,})
    | \bglpat-[\w-]{20,}
    | \bxox[abeprs]-[A-Za-z0-9-]{10,}
    | \bAIza[\w-]{35}
    | \beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}
    | -----BEGIN\ [A-Z ]*PRIVATE\ KEY-----[\s\S]*?(?:-----END\ [A-Z ]*PRIVATE\ KEY-----|\Z)
    | (?<=://)[^\s/:@"']+:[^\s/@"']{3,}(?=@)
    | (?i:(?<=bearer\ ))[\w.~+/=-]{16,}
    | \b[A-Z][A-Z0-9_]*(?:KEY|TOKEN|SECRET|PASSWORD|_PAT)[A-Z0-9_]*=[^\s"'\\]{8,}
    """,
    re.VERBOSE,
)
"""Matches keys and tokens in the formats of well-known services."""

_SECRET_NAME = re.compile(
    r"key|token|secret|passw|passphrase|credential|auth|cookie|signature|private|dsn"
    r"|(?:^|[-_])(?:pat|pass)(?:$|[-_])|[-_]pwd$",
    re.IGNORECASE,
)
_SECRET_FLAG = re.compile(
    r"key|token|secret|password|passwd|passphrase|credentials?|auth|authorization|bearer|cookie"
    r"|pat|pass|pwd|signature|sig|dsn"
)
"""A word of a flag, of a query field or of a variable on a command line, in lower case."""
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_JOINED = re.compile(r"(?:api|access|auth|client|private|secret|session)(?:key|token|secret)")
_HOLDERS = frozenset({"env", "headers"})
"""Fields of a configuration in which every value may be a secret."""
_ARGUMENTS = "args"
_SCHEME = re.compile(r"(?i:bearer|basic|token|apikey|digest|negotiate)\s+(\S.*)", re.DOTALL)
_ASSIGNMENT = re.compile(r"(-{0,2}[A-Za-z_][\w.-]*)(?:=|:\s+)(.+)", re.DOTALL)
_ADDRESS = re.compile(r"[A-Za-z][\w+.-]*://[^\s\"']+")


class Redactor:
    """Replaces secret values wherever they occur."""

    def __init__(self, secrets: Iterable[str]) -> None:
        found = {each for each in secrets if len(each) >= SHORTEST}
        self._texts = sorted(found, key=len, reverse=True)
        # In JSON a secret is escaped as one of the two encoders does it.
        written = {spelling for each in self._texts for spelling in _spellings(each)}
        # A line with a secret also has each of its parts, so only the shortest are looked for.
        self._written = [
            each for each in written if not any(part != each and part in each for part in written)
        ]

    def line(self, line: bytes) -> bytes:
        """Return `line` without the secrets; the same object if it contains none."""
        for each in self._written:
            if line.find(each) >= 0:
                return self._without(line)
        return line

    def _without(self, line: bytes) -> bytes:
        try:
            value = _json.loads(line)
            # Few secrets are in one line: the others are not looked for in each of its strings.
            written = _json.dumps(value)
            present = [
                each for each in self._texts if any(one in written for one in _spellings(each))
            ]
            return _json.dumps(_replaced(value, present))
        except (ValueError, RecursionError):
            # A line that cannot be decoded or searched may hide a secret, so none of it is shown.
            return MARK.encode()

    def text(self, text: str) -> str:
        """Return `text` without the secrets."""
        return _without(text, self._texts)

    def shown(self, text: str) -> str:
        """Return free text without the secrets, and without what looks like a key or token."""
        return SHAPES.sub(MARK, self.text(text))


def _spellings(secret: str) -> tuple[bytes, bytes]:
    return _json.dumps(secret)[1:-1], json.dumps(secret)[1:-1].encode()


def _replaced(value: Json, secrets: Sequence[str]) -> Json:
    """Return `value` without the secrets, in keys and strings at any depth."""
    if isinstance(value, str):
        return _without(value, secrets)
    if _json.is_object(value):
        return {_without(name, secrets): _replaced(each, secrets) for name, each in value.items()}
    return [_replaced(each, secrets) for each in value] if _json.is_array(value) else value


def _without(text: str, secrets: Sequence[str]) -> str:
    for secret in secrets:
        text = text.replace(secret, MARK)
    return text


def secrets_in(env: Mapping[str, str], *configurations: Json) -> Iterator[str]:
    """Yield the secret values, and the secret parts of others.

    A value is secret if its name looks so, or if it is in an object such as `env` or `headers`.
    The parts are the token of a header, the password and the secret fields of an address, and the
    values of secret flags in `args`. A configuration may be JSON as text.
    """
    for name, value in env.items():
        yield from _secrets_of(name, value, is_secret=_is_secret_name(name))
    for each in configurations:
        yield from _walk(_decoded(each))


@functools.lru_cache(maxsize=1024)
def _is_secret_name(name: str) -> bool:
    """Whether a variable of this name is secret. Sessions of one program have the same ones."""
    return _SECRET_NAME.search(name) is not None


def _walk(configuration: Json) -> Iterator[str]:
    """Yield the secrets in a configuration, however deeply it is nested."""
    stack: list[tuple[Json, str, bool]] = [(configuration, "", False)]
    while stack:
        found, place, inside = stack.pop()
        if isinstance(found, str):
            yield from _secrets_of(place, found, is_secret=inside)
        elif _json.is_mapping(found):
            for key, value in found.items():
                name = str(key)
                is_secret = inside or name in _HOLDERS or bool(_SECRET_NAME.search(name))
                stack.append((value, name, is_secret))
        elif _json.is_sequence(found):
            if place == _ARGUMENTS:
                yield from _in_arguments([each for each in found if isinstance(each, str)])
            stack += [(value, place, inside) for value in found]


def _secrets_of(name: str, value: str, *, is_secret: bool) -> Iterator[str]:
    """Yield `value` if it is secret, and its secret parts."""
    if is_secret:
        yield value
        scheme = _SCHEME.fullmatch(value.strip())
        if scheme:
            yield scheme[1]
            yield from _password_in(scheme[1])
        if "cookie" in name.lower():
            yield from (each.partition("=")[2].strip() for each in value.split(";"))
    if "://" in value:
        for address in _ADDRESS.findall(value):
            yield from _in_address(address)


def _password_in(encoded: str) -> Iterator[str]:
    """Yield the password of a Basic header."""
    try:
        text = base64.b64decode(encoded, validate=True).decode()
    except (binascii.Error, ValueError):
        return
    yield text.partition(":")[2]


def _in_address(address: str) -> Iterator[str]:
    """Yield the password and the secret query fields of an address, as written and decoded."""
    try:
        parts = urlsplit(address)
        user, password = parts.username or "", parts.password or ""
    except ValueError:
        return
    # A token may be written in place of the user.
    found = [password or (user if parts.scheme.startswith("http") else "")]
    for field in re.split("[&;]", f"{parts.query}&{parts.fragment}"):
        name, _, value = field.partition("=")
        if _is_secret_word(unquote(name)):
            found.append(value)
    for each in filter(None, found):
        yield from {each, unquote(each), unquote_plus(each)}


def _in_arguments(args: Sequence[str]) -> Iterator[str]:
    """Yield the values of secret flags, assignments and headers on a command line."""
    for argument, following in pairwise((*args, "")):
        assigned = _ASSIGNMENT.fullmatch(argument)
        if assigned is None:
            is_flag = argument.startswith("-") and not following.startswith("-")
            if is_flag and _is_secret_word(argument):
                yield from _secrets_of(argument, following, is_secret=True)
        elif _is_secret_word(assigned[1]):
            yield from _secrets_of(assigned[1], assigned[2], is_secret=True)
        elif argument.startswith("-"):
            # The value of a flag may be a header or an assignment itself.
            yield from _in_arguments((assigned[2],))


def _is_secret_word(name: str) -> bool:
    words = [each.lower() for each in _WORDS.findall(name)]
    return any(_SECRET_FLAG.fullmatch(each) or _JOINED.fullmatch(each) for each in words)


def _decoded(configuration: Json) -> Json:
    if isinstance(configuration, str) and configuration.lstrip().startswith(("{", "[")):
        try:
            return _json.loads(configuration.encode("utf-8", "surrogatepass"))
        except ValueError:
            return None
    return configuration
