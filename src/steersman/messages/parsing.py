"""Lines to messages. Total: every JSON object becomes a message, known or `UnknownMessage`."""

from __future__ import annotations

from typing import Any, cast

import msgspec
from msgspec import Struct

from steersman import _json
from steersman._values import Wire, read
from steersman.errors import UsageError
from steersman.messages.hook_runs import HookMessage
from steersman.messages.limits import LimitMessage
from steersman.messages.nesting import by_tag
from steersman.messages.notes import NoteMessage
from steersman.messages.system import SystemMessage, SystemWire
from steersman.messages.tasks import TaskMessage
from steersman.messages.transcripts import TranscriptMessage
from steersman.messages.turns import TurnMessage

__all__ = ["Message", "UnknownMessage", "parse_message"]


class UnknownMessage(Wire, frozen=True, kw_only=True):
    """A message newer than this release; `raw` has it whole."""

    type: str = ""
    subtype: str | None = None


KnownMessage = (
    TurnMessage
    | SystemMessage
    | NoteMessage
    | LimitMessage
    | TaskMessage
    | HookMessage
    | TranscriptMessage
)
Message = KnownMessage | UnknownMessage
"""Every message, told apart by `type`; those of type `system` by `subtype`."""

_KNOWN = by_tag(KnownMessage)
_BY_TYPE = {tag: cls for tag, cls in _KNOWN.items() if not issubclass(cls, SystemWire)}
_BY_SUBTYPE = {tag: cls for tag, cls in _KNOWN.items() if issubclass(cls, SystemWire)}


class _Kind(Struct):
    type: str = ""
    subtype: str | None = None


_kind = msgspec.json.Decoder(_Kind)


def parse_message(line: bytes | dict[str, Any]) -> Message:
    """The message on `line` (or in an object already decoded).

    Raises `UsageError` when it is not a JSON object; nothing else makes it raise.
    """
    if isinstance(line, dict):
        line = _json.dumps(line)
    try:
        return cast("Message", read(_class_of(line), line))
    except _json.TooDeep:
        return UnknownMessage(type="too deep").came_from({})
    except ValueError:
        raise UsageError("line", line, "one JSON object") from None


def _class_of(line: bytes) -> type[Wire]:
    try:
        kind = _kind.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        kind = _loose_kind(_json.loads(line))
    if kind.type == "system":
        return _BY_SUBTYPE.get(kind.subtype or "", UnknownMessage)
    return _BY_TYPE.get(kind.type, UnknownMessage)


def _loose_kind(found: Any) -> _Kind:
    if not _json.is_object(found):
        raise ValueError("not a JSON object")
    words = [found.get(key) for key in ("type", "subtype")]
    kind, subtype = (word if isinstance(word, str) else None for word in words)
    return _Kind(kind or "", subtype)
