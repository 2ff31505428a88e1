"""Lines of the CLI to messages of the official shapes.

The tables in `_builders` name what makes which message; a further type of message goes there.
Knows lines and shapes, no session.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from steersman._json import Json, JsonDict, is_object, loads
from steersman.compat._builders import BUILDERS
from steersman.compat._errors import CLIJSONDecodeError, MessageParseError
from steersman.compat._shapes.messages import RAW, Message, StreamEvent

PARTIAL = b'{"type":"stream_event",'
"""How the CLI begins the lines that are by far the most."""


class _Partial(Struct, gc=False):
    """The fields of a `stream_event` line that its message has."""

    uuid: str
    session_id: str
    event: Json
    parent_tool_use_id: str | None = None


_decode_partial = msgspec.json.Decoder(_Partial).decode


def message_from_line(line: bytes) -> Message | None:
    """Return the message on `line`, or None if the official SDK gives none for it.

    Lines that do not begin with `{` are no messages. Raises `CLIJSONDecodeError` for broken JSON
    and `MessageParseError` for a message without a field that it must have.
    """
    if line.startswith(PARTIAL):
        try:
            found = _decode_partial(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            pass  # Read in full, for the official text about what is wrong.
        else:
            # Half the time of decoding the whole line; `raw_of` does that when it is asked.
            message = StreamEvent(
                found.uuid, found.session_id, found.event, found.parent_tool_use_id
            )
            setattr(message, RAW, line)
            return message
    elif not line.lstrip().startswith(b"{"):
        return None
    try:
        data = loads(line)
    except ValueError as error:
        raise CLIJSONDecodeError(line.decode("utf-8", "replace"), error) from error
    return None if _is_for_the_host(data) else parse_message(data)


def parse_message(data: JsonDict) -> Message | None:
    """Return the message that `data` is, or None for a type that has no shape.

    Raises `MessageParseError` for a message without a field that it must have.
    """
    # A custom transport may give anything.
    if not is_object(data):
        found = type(data).__name__
        raise MessageParseError(f"Invalid message data type (expected dict, got {found})", data)
    kind = data.get("type")
    if not kind:
        raise MessageParseError("Message missing 'type' field", data)
    build = BUILDERS.get(kind) if isinstance(kind, str) else None
    if build is None:
        return None
    try:
        message = build(data)
    except KeyError as error:
        raise MessageParseError(
            f"Missing required field in {kind} message: {error}", data
        ) from error
    except TypeError as error:
        raise MessageParseError(f"Invalid {kind} message: {error}", data) from error
    setattr(message, RAW, data)
    return message


def _is_for_the_host(data: JsonDict) -> bool:
    """Return whether the CLI sent `data` for the SDK alone: programs never see it."""
    is_state = data.get("subtype") == "session_state_changed" and data.get("type") == "system"
    return is_state and data.get("sdk_host_only") is True


def raw_of(message: Message) -> JsonDict:
    """Return the JSON object that the CLI sent for `message`, with every field.

    Raises `ValueError` for a message that a program made itself.
    """
    kept: bytes | JsonDict | None = getattr(message, RAW, None)
    if kept is None:
        raise ValueError("raw_of(): this message was made by the program; the CLI did not send it")
    if not isinstance(kept, bytes):
        return kept
    found: JsonDict = loads(kept)
    setattr(message, RAW, found)
    return found
