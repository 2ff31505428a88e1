"""JSON-RPC 2.0 messages as MCP uses them: error codes, requests, results, errors, notifications.

The only module of `tools` that builds these messages or knows their error codes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from steersman._json import JsonDict, JsonObject, is_object
from steersman.ports import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    TOOL_USE_ID_META,
    jsonrpc_error,
)

__all__ = [
    "INTERNAL_ERROR",
    "INVALID_PARAMS",
    "INVALID_REQUEST",
    "LIST_CHANGED",
    "METHOD_NOT_FOUND",
    "PROGRESS",
    "RESOURCE_NOT_FOUND",
    "TOOL_USE_ID_META",
    "JsonRpcError",
    "Method",
    "RequestId",
    "cancellation",
    "check_no_cursor",
    "error_message",
    "jsonrpc_error",
    "jsonrpc_request",
    "jsonrpc_result",
    "meta_of",
    "notification",
    "required_text",
]

INVALID_REQUEST = -32600
RESOURCE_NOT_FOUND = -32002

LIST_CHANGED = "notifications/tools/list_changed"
PROGRESS = "notifications/progress"

RequestId: TypeAlias = int | str
Method: TypeAlias = Callable[[JsonObject], JsonObject | Awaitable[JsonObject]]
"""Returns the result of one method, given the request's `params`."""


class JsonRpcError(Exception):
    """Raised while a request is handled; the request is then answered with a JSON-RPC error."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


def jsonrpc_request(
    request_id: RequestId, method: str, params: JsonObject | None = None
) -> JsonDict:
    """Return a request."""
    request: JsonDict = {"jsonrpc": "2.0", "id": request_id, "method": method}
    if params is not None:
        request["params"] = params
    return request


def jsonrpc_result(request_id: RequestId, result: JsonObject) -> JsonDict:
    """Return the response to a request that succeeded."""
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def notification(method: str, params: JsonObject | None = None) -> JsonDict:
    """Return a message that gets no answer."""
    message: JsonDict = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        message["params"] = params
    return message


def cancellation(request_id: RequestId, reason: str) -> JsonDict:
    """Return the notification that cancels a request."""
    return notification("notifications/cancelled", {"requestId": request_id, "reason": reason})


def error_message(response: JsonObject) -> str:
    """Return the message of an error response; empty for a result."""
    error = response.get("error")
    return str(error.get("message", "")) if is_object(error) else ""


def meta_of(params: JsonObject) -> JsonObject:
    """Return `_meta` of a request's params; empty if it is missing or no object."""
    meta = params.get("_meta")
    return meta if is_object(meta) else {}


def required_text(params: JsonObject, name: str) -> str:
    """Return a text parameter. Raises `JsonRpcError` if it is missing or no text."""
    found = params.get(name)
    if not isinstance(found, str):
        raise JsonRpcError(INVALID_PARAMS, f"{name}: text is needed")
    return found


def check_no_cursor(params: JsonObject) -> None:
    """Raise `JsonRpcError` if a list is requested from a cursor: all lists have one page."""
    if params.get("cursor") is not None:
        raise JsonRpcError(INVALID_PARAMS, "cursor: there is no further page")
