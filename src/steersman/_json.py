"""JSON bytes ⇄ plain values, for every JSON that JavaScript can write.

msgspec does the work. It refuses lone surrogates, which the CLI forwards as they are, and a few
number spellings; those go through the standard library, both ways.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

import msgspec

__all__ = ["dumps", "is_array", "is_mapping", "is_object", "is_sequence", "loads"]

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


def loads(line: bytes) -> Any:
    """The value on `line`. Raises `ValueError` when it is not JSON, or nested beyond reason."""
    try:
        return _decode(line)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return _loads_slowly(line)


def _loads_slowly(line: bytes) -> Any:
    try:
        return json.loads(line.decode("utf-8"))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def dumps(value: Any) -> bytes:
    """One line of JSON for `value`, which may hold msgspec structs; no newline at its end."""
    try:
        return _encode(value)
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(value), separators=(",", ":")).encode("ascii")


def is_object(found: object) -> TypeGuard[dict[str, Any]]:
    """Whether a decoded value is a JSON object."""
    return isinstance(found, dict)


def is_array(found: object) -> TypeGuard[list[Any]]:
    """Whether a decoded value is a JSON array."""
    return isinstance(found, list)


def is_mapping(given: object) -> TypeGuard[Mapping[str, Any]]:
    """Whether a caller's value can stand for a JSON object."""
    return isinstance(given, Mapping)


def is_sequence(given: object) -> TypeGuard[Sequence[Any]]:
    """Whether a caller's value can stand for a JSON array."""
    return isinstance(given, list | tuple)
