"""JSON bytes ⇄ plain values, for every JSON that JavaScript can write.

msgspec reads and writes nearly all of it. It refuses lone surrogates, which the CLI forwards
unchanged, and a few spellings of numbers; the standard library reads and writes those.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, TypeGuard

import msgspec

Json: TypeAlias = Any
"""A decoded JSON value of any kind."""
JsonDict: TypeAlias = dict[str, Json]
"""A JSON object that was decoded or built here, and may be changed."""
JsonObject: TypeAlias = Mapping[str, Json]
"""A JSON object that is only read."""

LONGEST_INTEGER = 4000

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


class TooDeep(ValueError):
    """A value is JSON, but nested beyond what Python can decode."""


def loads(line: bytes) -> Json:
    """Return the value on `line`. Raises `ValueError` for bad JSON, `TooDeep` for deep nesting."""
    try:
        return _decode(line)
    except RecursionError:
        raise TooDeep("nested too deeply") from None
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return _loads_slowly(line)


def _loads_slowly(line: bytes) -> Json:
    # Bytes that are not UTF-8 are replaced: a control request that has some must be answered too.
    import json  # noqa: PLC0415 - rarely needed

    text = line.decode("utf-8", "replace")
    try:
        return json.loads(text, parse_int=_to_number)
    except RecursionError:
        raise TooDeep("nested too deeply") from None


def _to_number(digits: str) -> float:
    # Python refuses integers of thousands of digits; JavaScript reads them as infinity.
    return int(digits) if len(digits) < LONGEST_INTEGER else float(digits)


def dumps(value: Json) -> bytes:
    """Return `value`, which may hold msgspec structs, as a line of JSON without a newline."""
    try:
        return _encode(value)
    except UnicodeEncodeError:
        import json  # noqa: PLC0415 - as above

        # Infinity and NaN become null, as msgspec writes them.
        plain = _finite(msgspec.to_builtins(value))
        return json.dumps(plain, separators=(",", ":"), allow_nan=False).encode("ascii")


def dump_line(value: Json) -> bytes:
    """Return `value` as a line of JSON that ends in a newline."""
    return dumps(value) + b"\n"


def _finite(value: Json) -> Json:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if is_object(value):
        return {name: _finite(each) for name, each in value.items()}
    return [_finite(each) for each in value] if is_array(value) else value


def is_object(found: object) -> TypeGuard[JsonDict]:
    """Whether a decoded value is a JSON object."""
    return isinstance(found, dict)


def is_array(found: object) -> TypeGuard[list[Json]]:
    """Whether a decoded value is a JSON array."""
    return isinstance(found, list)


def is_mapping(given: object) -> TypeGuard[JsonObject]:
    """Whether a caller's value can be written as a JSON object."""
    # Nearly always a dict, and `isinstance` with an abstract class takes four times as long.
    return isinstance(given, dict) or isinstance(given, Mapping)  # noqa: SIM101


def is_sequence(given: object) -> TypeGuard[Sequence[Json]]:
    """Whether a caller's value can be written as a JSON array."""
    return isinstance(given, list | tuple)
