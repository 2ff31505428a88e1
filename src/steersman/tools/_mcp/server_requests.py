"""Answers to the requests that an MCP server may send to its client.

`elicitation/create` goes to the user through `Caller.elicit`. A session has neither a model nor
folders for a server, so sampling and roots are refused, as by a client that never offered them.
"""

from __future__ import annotations

from steersman._json import JsonDict, is_object
from steersman.permissions import Elicitation, ElicitationAnswer
from steersman.ports import Caller, JsonObject
from steersman.tools._mcp.jsonrpc import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    jsonrpc_error,
    jsonrpc_result,
)

CAPABILITIES: JsonObject = {"elicitation": {"form": {}, "url": {}}}
"""The capabilities that servers are offered. The CLI itself offers none."""

REFUSED = {
    "sampling/createMessage": "this client samples no model for MCP servers",
    "roots/list": "this client shows no roots to MCP servers",
}


async def answer_server(request: JsonObject, caller: Caller | None) -> JsonObject:
    """Return the response to a server's request; without a caller, elicitations are declined."""
    request_id, method = request["id"], request["method"]
    if method == "ping":
        return jsonrpc_result(request_id, {})
    if method != "elicitation/create":
        reason = REFUSED.get(method, f"method not found: {method}")
        return jsonrpc_error(request_id, METHOD_NOT_FOUND, reason)
    params = request.get("params")
    if not is_object(params):
        return jsonrpc_error(request_id, INVALID_PARAMS, "params: an object is needed")
    answer = ElicitationAnswer("decline")
    if caller is not None and caller.elicit is not None:
        answer = await caller.elicit(_elicitation(params, caller.server))
    return jsonrpc_result(request_id, _encode(answer))


def _elicitation(params: JsonObject, server: str) -> Elicitation:
    requested = params.get("requestedSchema")
    schema = requested if is_object(requested) else None
    fields = schema.get("properties") if schema else None
    return Elicitation(
        mcp_server_name=server,
        message=str(params.get("message", "")),
        mode=str(params.get("mode", "form")),
        requested_schema=schema,
        property_order=list(fields) if is_object(fields) else [],
        url=params.get("url"),
        elicitation_id=params.get("elicitationId"),
    )


def _encode(answer: ElicitationAnswer) -> JsonObject:
    encoded: JsonDict = {"action": answer.action}
    if answer.action == "accept" and answer.content is not None:
        encoded["content"] = dict(answer.content)
    return encoded
