"""Messages as JSON objects, and tests for them."""

from __future__ import annotations

from collections.abc import Callable

from steersman import _json
from steersman._json import JsonDict

__all__ = [
    "Fits",
    "Frame",
    "asks",
    "blocks_of",
    "calls_mcp_server",
    "is_result",
    "is_type",
    "part",
]

Frame = JsonDict
Fits = Callable[[Frame], bool]


def part(frame: Frame, name: str) -> Frame:
    """Return the object in a field of a message; an empty one if there is none."""
    found = frame.get(name)
    return found if _json.is_object(found) else {}


def blocks_of(frame: Frame) -> list[Frame]:
    """Return the content blocks of an assistant or user message."""
    content = part(frame, "message").get("content")
    return [block for block in content if _json.is_object(block)] if _json.is_array(content) else []


def is_type(type_: str, subtype: str | None = None) -> Fits:
    """Return a test for messages of a type, and of a subtype if one is given."""
    return lambda frame: (
        frame.get("type") == type_ and (subtype is None or frame.get("subtype") == subtype)
    )


is_result = is_type("result")


def asks(subtype: str) -> Fits:
    """Return a test for control requests of the CLI with this subtype."""
    return lambda frame: (
        frame.get("type") == "control_request" and part(frame, "request").get("subtype") == subtype
    )


def calls_mcp_server(method: str) -> Fits:
    """Return a test for messages to an in-process MCP server with this method."""
    return lambda frame: (
        asks("mcp_message")(frame) and part(frame["request"], "message").get("method") == method
    )
