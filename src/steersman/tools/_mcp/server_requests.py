"""What an MCP server may ask of its client, and what we answer.

The person's words go through `Caller.elicit`. A session has no model and no folders to lend, so
sampling and roots are refused, as a client does that never offered them.
"""

from __future__ import annotations

from typing import Any

from steersman import _json
from steersman.permissions import Elicitation, ElicitationAnswer
from steersman.ports import Caller, JsonObject
from steersman.tools._mcp.peer import METHOD_NOT_FOUND, rpc_error, rpc_result

__all__ = ["CAPABILITIES", "answer_server"]

CAPABILITIES: JsonObject = {"elicitation": {"form": {}, "url": {}}}
"""What we offer a server beside what the CLI offers it, which is nothing."""

INVALID_PARAMS = -32602

REFUSED = {
    "sampling/createMessage": "this client samples no model for tool servers",
    "roots/list": "this client shows no roots to tool servers",
}


async def answer_server(request: JsonObject, caller: Caller | None) -> JsonObject:
    """The response to a server's request; without a caller there is nobody to ask."""
    number, method = request["id"], request["method"]
    if method == "ping":
        return rpc_result(number, {})
    if method != "elicitation/create":
        reason = REFUSED.get(method, f"method not found: {method}")
        return rpc_error(number, METHOD_NOT_FOUND, reason)
    params = request.get("params")
    if not _json.is_object(params):
        return rpc_error(number, INVALID_PARAMS, "params: an object is needed")
    answer = ElicitationAnswer("decline")
    if caller is not None and caller.elicit is not None:
        answer = await caller.elicit(_elicitation(params, caller.server))
    return rpc_result(number, _written(answer))


def _elicitation(params: dict[str, Any], server: str) -> Elicitation:
    schema = params.get("requestedSchema")
    shape = schema if _json.is_object(schema) else None
    fields = shape.get("properties") if shape else None
    return Elicitation(
        mcp_server_name=server,
        message=str(params.get("message", "")),
        mode=str(params.get("mode", "form")),
        requested_schema=shape,
        property_order=list(fields) if _json.is_object(fields) else [],
        url=params.get("url"),
        elicitation_id=params.get("elicitationId"),
    )


def _written(answer: ElicitationAnswer) -> JsonObject:
    said: dict[str, Any] = {"action": answer.action}
    if answer.action == "accept" and answer.content is not None:
        said["content"] = dict(answer.content)
    return said
