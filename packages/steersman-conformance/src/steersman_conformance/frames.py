"""Frames as they are on the wire, and tests for them. Knows JSON, nothing else."""

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
    """The object inside a frame; an empty one if there is none."""
    found = frame.get(name)
    return found if _json.is_object(found) else {}


def blocks_of(frame: Frame) -> list[Frame]:
    """The content blocks of an assistant or user frame."""
    content = part(frame, "message").get("content")
    return [block for block in content if _json.is_object(block)] if _json.is_array(content) else []


def is_type(type_: str, subtype: str | None = None) -> Fits:
    """A test for frames of a type, and of a subtype if one is given."""
    return lambda frame: (
        frame.get("type") == type_ and (subtype is None or frame.get("subtype") == subtype)
    )


is_result = is_type("result")


def asks(subtype: str) -> Fits:
    """A test for requests of the CLI's."""
    return lambda frame: (
        frame.get("type") == "control_request" and part(frame, "request").get("subtype") == subtype
    )


def calls_mcp_server(method: str) -> Fits:
    """A test for messages to our tool servers."""
    return lambda frame: (
        asks("mcp_message")(frame) and part(frame["request"], "message").get("method") == method
    )
