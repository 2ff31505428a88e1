"""Asks and answers as JSON and back, for stores, web pages and other processes.

Fields that this release does not know are kept: a later one may have written them.
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import force_setattr

from steersman import _json
from steersman._json import Json, JsonDict
from steersman._struct import CONVERT_ERRORS, by_tag, read_leniently, set_source
from steersman.errors import UsageError
from steersman.permissions.asks import Answer, Ask, EarlierAnswer, Payload
from steersman.permissions.decisions import (
    UNKNOWN,
    Allow,
    Answered,
    Deny,
    DialogAnswer,
    ElicitationAnswer,
)
from steersman.permissions.questions import CanUseTool, Elicitation, QuestionAnswer, UserDialog
from steersman.permissions.updates import read_update

__all__ = ["answer_from_json", "answer_to_json", "ask_from_json", "ask_to_json"]

_PAYLOADS = by_tag((CanUseTool, Elicitation, UserDialog))
_OPTIONAL = ("turn", "expires", "assignee")
_NAMES = {"id", "session", "kind", "created", "payload", "earlier", "is_repeatable", *_OPTIONAL}

SHOWN = 60
"""How many characters of bad data an error shows: the whole may be long and private."""

StructT = TypeVar("StructT", bound=Answered)


def ask_to_json(ask: Ask) -> bytes:
    """Return `ask` as JSON; `kind` is only there to be read by others."""
    fields = {
        **ask.unknown,
        "id": ask.id,
        "session": ask.session,
        "kind": ask.kind,
        "created": ask.created,
        "payload": ask.payload.raw,
    }
    given = {name: getattr(ask, name) for name in _OPTIONAL}
    if ask.earlier is not None:
        answer = _fields_of(ask.earlier.answer)
        given["earlier"] = {"answer": answer, "by": ask.earlier.by, "at": ask.earlier.at}
    if ask.is_repeatable:
        given["is_repeatable"] = True
    return _json.dumps(
        {**fields, **{name: value for name, value in given.items() if value is not None}}
    )


def ask_from_json(data: bytes | str) -> Ask:
    """Return the ask that `ask_to_json` wrote. Raises `UsageError` if `data` is no ask."""
    found = _object(data, "an ask as JSON")
    payload = _payload(found.get("payload"))
    try:
        known = msgspec.convert(
            {name: found[name] for name in _NAMES - {"payload"} if name in found}, _Fields
        )
    except CONVERT_ERRORS as error:
        raise UsageError("data", _short(data), f"an ask as JSON: {error}") from None
    unknown = {name: value for name, value in found.items() if name not in _NAMES}
    return Ask(
        id=known.id,
        session=known.session,
        payload=payload,
        created=known.created,
        turn=known.turn,
        expires=known.expires,
        assignee=known.assignee,
        earlier=None if known.earlier is None else _earlier(known.earlier),
        is_repeatable=known.is_repeatable,
        unknown=unknown,
    )


class _Earlier(Struct):
    """The fields of an earlier answer."""

    answer: dict[str, Any]
    by: str
    at: float


def _earlier(found: _Earlier) -> EarlierAnswer:
    answer = answer_from_json(_json.dumps(found.answer))
    return EarlierAnswer(answer=answer, by=found.by, at=found.at)


class _Fields(Struct):
    """The fields of an ask beside its payload."""

    id: str
    session: str
    created: float
    turn: str | None = None
    expires: float | None = None
    assignee: str | None = None
    earlier: _Earlier | None = None
    is_repeatable: bool = False


def answer_to_json(answer: Answer) -> bytes:
    """Return an answer as JSON. Raises `UsageError` if a value in it is not JSON."""
    try:
        return _json.dumps(_fields_of(answer))
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise UsageError("answer", answer, f"values that are JSON: {error}") from None


def answer_from_json(data: bytes | str) -> Answer:
    """Return the answer that `answer_to_json` wrote, or that a web page sent.

    Raises `UsageError` if `data` is no answer. What belongs to which ask, `Ask.response` checks.
    """
    found = _object(data, "an answer as JSON")
    if "answers" in found and "behavior" not in found:
        return _read_answers(found["answers"], data)
    match found:
        case {"behavior": "allow"}:
            return _read_allow(found, data)
        case {"behavior": "deny"}:
            return _read(Deny, found, data)
        case {"behavior": str()}:
            return _read(DialogAnswer, found, data)
        case {"action": _}:
            return _read(ElicitationAnswer, found, data)
        case _:
            allowed = "an answer as JSON: an object with behavior, action or answers"
            raise UsageError("data", _short(data), allowed)


def _read(cls: type[StructT], found: JsonDict, data: bytes | str) -> StructT:
    try:
        value = msgspec.convert(found, cls)
    except (*CONVERT_ERRORS, UsageError) as error:
        raise UsageError("data", _short(data), f"an answer as JSON: {error}") from None
    return _with_unknown(value, found)


def _read_allow(found: JsonDict, data: bytes | str) -> Allow:
    # msgspec builds no decoder for updates that may be of unknown kinds; `Allow` checks the fields.
    updates = found.get("updatedPermissions")
    try:
        value = Allow(
            found.get("updatedInput"),
            [*map(read_update, updates)] if _json.is_array(updates) else updates,
            found.get("decisionClassification"),
        )
    except UsageError as error:
        raise UsageError("data", _short(data), f"an answer as JSON: {error}") from None
    return _with_unknown(value, found)


def _with_unknown(value: StructT, found: JsonDict) -> StructT:
    config = value.__struct_config__
    names = {*value.__struct_encode_fields__, config.tag_field}
    unknown = {name: each for name, each in found.items() if name not in names}
    if unknown:
        force_setattr(value, UNKNOWN, unknown)
    return value


def _read_answers(found: Json, data: bytes | str) -> list[QuestionAnswer]:
    try:
        return msgspec.convert(found, list[QuestionAnswer])
    except CONVERT_ERRORS as error:
        raise UsageError("data", _short(data), f"answers to questions as JSON: {error}") from None


def _fields_of(answer: Answer) -> JsonDict:
    if isinstance(answer, Answered):
        return {**answer.unknown, **_builtins(answer)}
    return {"answers": [{"question": each.question, "text": each.text} for each in answer]}


def _builtins(value: Struct) -> JsonDict:
    found: JsonDict = msgspec.to_builtins(value)
    return found


def _payload(found: Json) -> Payload:
    cls = _PAYLOADS.get(str(found.get("subtype"))) if _json.is_object(found) else None
    if cls is None:
        raise UsageError(
            "payload", found, f"an object whose subtype is one of {', '.join(_PAYLOADS)}"
        )
    try:
        value = read_leniently(cls, found)
    except (*CONVERT_ERRORS, TypeError) as error:
        # A field is missing that has no default.
        raise UsageError("payload", found, f"a whole request of the CLI: {error}") from None
    assert isinstance(value, CanUseTool | Elicitation | UserDialog)
    return set_source(value, found)


def _object(data: bytes | str, wanted: str) -> JsonDict:
    line = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    try:
        found = _json.loads(line)
    except ValueError as error:
        raise UsageError("data", _short(data), f"{wanted}: {error}") from None
    if not _json.is_object(found):
        raise UsageError("data", _short(data), wanted)
    return found


def _short(data: bytes | str) -> str:
    text = data if isinstance(data, str) else data[: 4 * SHOWN].decode("utf-8", "replace")
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
