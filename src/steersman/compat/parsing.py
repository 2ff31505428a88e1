"""Lines of the CLI to messages of the official shapes.

The tables in `_builders` say what becomes of which line; a further type of message goes there.
Knows lines and shapes, no session.
"""

from __future__ import annotations

from typing import cast

from steersman._json import JsonDict, is_object, loads
from steersman.compat._builders import BUILDERS
from steersman.compat._errors import CLIJSONDecodeError, MessageParseError
from steersman.compat._shapes.messages import Message
from steersman.compat._shapes.raw import RAW

__all__ = ["message_from_line", "parse_message", "raw_of"]


def message_from_line(line: bytes) -> Message | None:
    """Return the message on `line`, or None if the official SDK gives none for it.

    Lines that do not begin with `{` are no messages. Raises `CLIJSONDecodeError` for broken JSON
    and `MessageParseError` for a message without a field that it must have.
    """
    if line[:1] != b"{" and not line.lstrip().startswith(b"{"):
        return None
    try:
        data = loads(line)
    except ValueError as error:
        raise CLIJSONDecodeError(line.decode("utf-8", "replace"), error) from error
    return parse_message(data)


def parse_message(data: JsonDict) -> Message | None:
    """Return the message that `data` is, or None for a type that has no shape.

    Raises `MessageParseError` for a message without a field that it must have.
    """
    # `data` may come from a custom transport, which may give anything.
    if not is_object(cast("object", data)):
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


def raw_of(message: Message) -> JsonDict:
    """Return the JSON object that the CLI sent for `message`, with every field.

    Raises `ValueError` for a message that a program made itself.
    """
    found = getattr(message, RAW, None)
    if found is None:
        raise ValueError("raw_of(): this message was made by the program; the CLI did not send it")
    return cast("JsonDict", found)
