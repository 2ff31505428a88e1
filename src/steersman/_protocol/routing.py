"""Lines → the fields that decide where they go; values → lines.

A line is decoded only as far as routing needs. Reading never raises.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import Struct, field

from steersman import _json
from steersman._struct import DECODE_ERRORS, WireStruct, read_leniently

# msgspec cannot mix `Raw` with `None` in a union, so absence is an empty `Raw`.
NOTHING = msgspec.Raw()


class RoutingFields(WireStruct, frozen=True, kw_only=True):
    """The fields that decide where a line goes and which turn it belongs to."""

    type: str = ""
    subtype: str | None = None
    request_id: str | None = None
    request: msgspec.Raw = NOTHING
    response: msgspec.Raw = NOTHING
    parent_tool_use_id: str | None = None
    tool_use_id: str | None = None
    uuid: str | None = None
    is_replay: bool = field(default=False, name="isReplay")
    command_uuid: str | None = None
    state: str | None = None
    session_id: str | None = None
    user_message_uuid: str | None = None
    user_message_uuids: list[str] | None = None
    origin: dict[str, Any] | None = None
    permission_mode: str | None = field(default=None, name="permissionMode")
    abandoned_blocks: Any = None


# The tag is decoded with the fields: if a line has `type` twice, the last one counts.
class StreamEventFields(Struct, frozen=True, gc=False, tag_field="type", tag="stream_event"):
    """Routing fields of a `stream_event` line. Most lines are of this type, so they are few."""

    parent_tool_use_id: str | None = None
    session_id: str | None = None
    abandoned_blocks: Any = None
    """Set on the event that abandons what was streamed before."""


class Response(Struct, frozen=True, kw_only=True):
    """The inner object of a control response."""

    subtype: str = "success"
    request_id: str = ""
    response: msgspec.Raw = NOTHING
    error: str = "no reason given"
    error_code: str | None = None


_routes = msgspec.json.Decoder(RoutingFields)
read_stream_event = msgspec.json.Decoder(StreamEventFields).decode
"""Decodes a `stream_event` line. Raises one of `DECODE_ERRORS` if it is another or malformed."""


def read_routing(line: bytes) -> RoutingFields | None:
    """Return the routing fields of `line`, or None if it is not a JSON object."""
    try:
        return _routes.decode(line)
    except DECODE_ERRORS:
        return _route_loosely(line)


def _route_loosely(line: bytes) -> RoutingFields | None:
    try:
        found = _json.loads(line)
    except _json.TooDeep:
        return read_head(line)
    except ValueError:
        return None
    if not _json.is_object(found):
        return None
    raws = {
        key: msgspec.Raw(_json.dumps(found.pop(key)))
        for key in ("request", "response")
        if key in found
    }
    return msgspec.structs.replace(read_leniently(RoutingFields, found), **raws)


def read_head(line: bytes) -> RoutingFields | None:
    """Return the type and id of an object too deep or too long to decode, by its beginning.

    A control request must be refused, for which these two suffice.
    """
    kind, request_id = _TYPE.search(line), _REQUEST_ID.search(line)
    if kind is None or not line.lstrip().startswith(b"{"):
        return None
    return RoutingFields(
        type=kind[1].decode("utf-8", "replace"),
        request_id=None if request_id is None else request_id[1].decode("utf-8", "replace"),
    )


def callback_of(line: bytes) -> str:
    """Return the hook that a line too deep or too long to decode calls; empty if it calls none."""
    found = _CALLBACK.search(line)
    return "" if found is None else found[1].decode("utf-8", "replace")


_CALLBACK = re.compile(rb'"subtype":\s*"hook_callback",\s*"callback_id":\s*"([^"\\]+)"')
_TYPE = re.compile(rb'"type":\s*"([^"\\]+)"')
_REQUEST_ID = re.compile(rb'"request_id":\s*"([^"\\]+)"')


def plain_value(raw: msgspec.Raw) -> Any:
    """Return the plain value of a raw field; an empty object if it is missing or malformed."""
    try:
        return _json.loads(bytes(raw)) if bytes(raw) else {}
    except ValueError:
        return {}
