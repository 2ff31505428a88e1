"""JSON bytes ⇄ plain values, for every JSON that JavaScript can write.

msgspec does the work. It refuses lone surrogates, which the CLI forwards as they are, and a few
number spellings; those go through the standard library, both ways.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

__all__ = ["dumps", "loads"]

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
