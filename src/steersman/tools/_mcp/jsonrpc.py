"""JSON-RPC, as MCP servers speak it: codes, refusals, answers, notifications."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from steersman.ports import JsonObject

__all__ = [
    "INTERNAL_ERROR",
    "INVALID_PARAMS",
    "INVALID_REQUEST",
    "METHOD_NOT_FOUND",
    "RESOURCE_NOT_FOUND",
    "Answers",
    "Refused",
    "answer",
    "notification",
    "refusal",
    "refuse_cursor",
    "text_of",
]

INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
RESOURCE_NOT_FOUND = -32002

Answers = Mapping[str, Callable[[Mapping[str, Any]], JsonObject | Awaitable[JsonObject]]]
"""What gives the result of each method, of its params."""


class Refused(Exception):
    """A request that gets a JSON-RPC error."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


def answer(request_id: int | str, result: JsonObject) -> JsonObject:
    """Answer a request."""
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def refusal(request_id: int | str, code: int, reason: str) -> JsonObject:
    """Refuse a request."""
    error = {"code": code, "message": reason}
    return {"jsonrpc": "2.0", "id": request_id, "error": error}


def notification(method: str) -> JsonObject:
    """Tell the client something that has no answer."""
    return {"jsonrpc": "2.0", "method": f"notifications/{method}"}


def text_of(params: Mapping[str, Any], name: str) -> str:
    """Find a text that a request cannot be without."""
    found = params.get(name)
    if not isinstance(found, str):
        raise Refused(INVALID_PARAMS, f"{name}: text is needed")
    return found


def refuse_cursor(params: Mapping[str, Any]) -> None:
    """Lists are given whole, so a client can have no cursor of ours."""
    if params.get("cursor") is not None:
        raise Refused(INVALID_PARAMS, "cursor: there is no further page")
