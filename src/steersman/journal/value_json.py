"""Snapshots and results of turns as JSON and back, for web pages and other processes.

Fields that this release does not know are kept in `unknown`, also those of values inside: an object
has them by name, and a list by position.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from types import MappingProxyType
from typing import TypeVar

import msgspec

from steersman import _json
from steersman._json import Json, JsonDict
from steersman._struct import CONVERT_ERRORS
from steersman.errors import SteersmanError, UsageError
from steersman.journal.json_form import shortened
from steersman.journal.results import TurnResult
from steersman.journal.snapshot import SessionSnapshot
from steersman.journal.text import AssistantText
from steersman.messages.parsing import parse_message, to_json
from steersman.messages.turns import Result

T = TypeVar("T")


def snapshot_to_json(snapshot: SessionSnapshot) -> bytes:
    """Return `snapshot` as JSON."""
    return _written(snapshot, snapshot.unknown, {"unknown": None})


def snapshot_from_json(data: bytes | str) -> SessionSnapshot:
    """Return the snapshot that `snapshot_to_json` wrote. Raises `UsageError` if it is none."""
    found = _object(data, "a snapshot as JSON")
    snapshot = _converted(found, SessionSnapshot, data, "a snapshot as JSON")
    return replace(snapshot, unknown=_rest(found, _plain(snapshot)))


def result_to_json(result: TurnResult) -> bytes:
    """Return `result` as JSON.

    `said` has the main agent's messages and `result` the CLI's result message, as they came.
    `cause` has the code, the text and the plain fields of the error.
    """
    own = {
        "unknown": None,
        "text": result.text,
        "said": [_json.loads(line) for line in result.said.lines],
        "cause": None if result.cause is None else _cause_fields(result.cause),
        "result": None if result.result is None else _json.loads(to_json(result.result)),
    }
    return _written(result, result.unknown, own)


def result_from_json(data: bytes | str) -> TurnResult:
    """Return the result that `result_to_json` wrote. Raises `UsageError` if it is none."""
    wanted = "the result of a turn as JSON"
    found = _object(data, wanted)
    said, cause, last = found.get("said"), found.get("cause"), found.get("result")
    plain = {name: value for name, value in found.items() if name not in _OWN}
    result = _converted(plain, TurnResult, data, wanted)
    rest = _rest(plain, _plain(result))
    message = parse_message(_json.dumps(last)) if _json.is_object(last) else None
    return replace(
        result,
        said=AssistantText(tuple(map(_json.dumps, said)) if _json.is_array(said) else ()),
        cause=_read_cause(cause) if _json.is_object(cause) else None,
        result=message if isinstance(message, Result) else None,
        unknown=rest,
    )


_OWN = frozenset({"said", "cause", "result", "unknown"})
"""Fields of a result that are no plain values."""


# Plain values


def _written(value: object, unknown: JsonDict, own: JsonDict) -> bytes:
    found = {**_plain(value, own), **{name: each for name, each in own.items() if each is not None}}
    try:
        return _json.dumps(_merged(found, unknown))
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise UsageError("value", type(value).__name__, f"values that are JSON: {error}") from None


def _plain(value: object, own: Mapping[str, object] = MappingProxyType({})) -> JsonDict:
    """Return the fields of a dataclass as plain values, except `own`."""
    skipped = {*own, *_OWN}
    return {
        each.name: msgspec.to_builtins(getattr(value, each.name), enc_hook=_as_dict)
        for each in fields(value)  # type: ignore[arg-type]  # always a dataclass
        if each.name not in skipped
    }


def _as_dict(value: object) -> object:
    if _json.is_mapping(value):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


def _rest(found: Json, known: Json) -> JsonDict:
    """Return what `found` has and `known` has not, in objects at any depth."""
    if _json.is_sequence(found) and _json.is_sequence(known):
        pairs = {str(at): pair for at, pair in enumerate(zip(found, known, strict=False))}
    elif _json.is_object(found) and _json.is_object(known):
        pairs = {name: (value, known.get(name, _MISSING)) for name, value in found.items()}
    else:
        return {}
    rest = {
        name: value if other is _MISSING else _rest(value, other)
        for name, (value, other) in pairs.items()
    }
    return {name: value for name, value in rest.items() if pairs[name][1] is _MISSING or value}


_MISSING = object()


def _merged(value: Json, rest: JsonDict) -> Json:
    """Return `value` with what `_rest` has found beside it."""
    if not rest:
        return value
    if _json.is_sequence(value):
        return [_merged(each, _below(rest, str(at))) for at, each in enumerate(value)]
    if not _json.is_object(value):
        return value
    merged = {name: _merged(each, _below(rest, name)) for name, each in value.items()}
    return {**{name: each for name, each in rest.items() if name not in value}, **merged}


def _below(rest: JsonDict, name: str) -> JsonDict:
    found = rest.get(name)
    return found if _json.is_object(found) else {}


def _converted(found: JsonDict, cls: type[T], data: bytes | str, wanted: str) -> T:
    known = {name: value for name, value in found.items() if name != "unknown"}
    try:
        return msgspec.convert(known, cls)
    except CONVERT_ERRORS as error:
        raise UsageError("data", shortened(data), f"{wanted}: {error}") from None


def _object(data: bytes | str, wanted: str) -> JsonDict:
    line = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else bytes(data)
    try:
        found = _json.loads(line)
    except ValueError as error:
        raise UsageError("data", shortened(data), f"{wanted}: {error}") from None
    if not _json.is_object(found):
        raise UsageError("data", shortened(data), wanted)
    return found


# Causes


def _cause_fields(cause: SteersmanError) -> JsonDict:
    """Return code, text and plain fields of an error. Its evidence is part of the text."""
    plain = {
        # `Described` is a kind of `str`, which no encoder takes.
        name: str(value) if isinstance(value, str) else value
        for name, value in vars(cause).items()
        if (value is None or isinstance(value, str | int | float)) and not name.startswith("_")
    }
    return {"code": cause.code, "reason": str(cause), "fields": plain}


def _read_cause(found: JsonDict) -> SteersmanError:
    """Return the error; one of a class that this release does not know is a `SteersmanError`."""
    known, text = found.get("fields"), str(found.get("reason", ""))
    fields_of = dict(known) if _json.is_object(known) else {}
    cls = _by_code().get(str(found.get("code")), SteersmanError)
    error = SteersmanError(str(fields_of.pop("what", text)), hint=str(fields_of.pop("hint", "")))
    if cls is not SteersmanError:
        # Each class has other parameters; its fields are all that it is.
        rebuilt = cls.__new__(cls, text)
        rebuilt.__dict__.update(error.__dict__)
        error = rebuilt
    error.args = (text,)
    error.__dict__.update(fields_of)
    return error


def _by_code() -> dict[str, type[SteersmanError]]:
    found, waiting = dict[str, type[SteersmanError]](), [SteersmanError]
    while waiting:
        cls = waiting.pop()
        found.setdefault(cls.code, cls)
        waiting += cls.__subclasses__()
    return found
