"""Answers of a scene's host to control requests: permissions, hooks, MCP messages.

One function for each subtype; it returns the answer, a `Refusal`, or `HOLD` to leave the request
open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from steersman import _json
from steersman._json import Json, JsonDict
from steersman_conformance.frames import part

__all__ = ["HOLD", "Answers", "Refusal", "allow", "hold", "mcp_server", "standard_answers"]

Answers = Mapping[str, Callable[[JsonDict], Any]]
"""Functions from a request to its answer, by subtype."""

HOLD: Final = object()
"""Returned by an answer function to leave the request open."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error response."""

    reason: str


def allow(request: JsonDict) -> JsonDict:
    """Allow the tool with its input, which older CLIs require in the answer."""
    return {"behavior": "allow", "updatedInput": request.get("input")}


def hold(_request: JsonDict) -> object:
    """Leave a request open."""
    return HOLD


def standard_answers() -> Answers:
    """Return a host that allows all tools, has empty hook replies, and serves one tool."""
    return {
        "can_use_tool": allow,
        "hook_callback": lambda _: {},
        "mcp_message": mcp_server(),
    }


def mcp_server(
    call: Callable[[JsonDict], Any] = lambda _: "done",
    *,
    names: tuple[str, ...] = ("work",),
    read_only: bool = False,
) -> Callable[[JsonDict], Any]:
    """Return an MCP server whose tools call `call` with the parameters of `tools/call`."""

    def serve(request: JsonDict) -> Json:
        message: JsonDict = part(request, "message")
        answers: dict[str, Callable[[], Any]] = {
            "initialize": lambda: _initialize_result(message),
            "tools/list": lambda: {"tools": [_tool(name, read_only=read_only) for name in names]},
            "tools/call": lambda: _content(call(part(message, "params"))),
        }
        result = answers.get(str(message.get("method")), JsonDict)()
        return HOLD if result is HOLD else rpc(message, result)

    return serve


def rpc(message: JsonDict, result: Json) -> JsonDict:
    """Return the control response with a JSON-RPC result."""
    response: JsonDict = {"jsonrpc": "2.0", "result": result}
    if "id" in message:
        response["id"] = message["id"]
    return {"mcp_response": response}


def _initialize_result(message: JsonDict) -> JsonDict:
    version = part(message, "params").get("protocolVersion")
    info = {"name": "conform", "version": "1"}
    return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}


def _tool(name: str, *, read_only: bool) -> JsonDict:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    tool: JsonDict = {"name": name, "description": "Works.", "inputSchema": schema}
    return {**tool, "annotations": {"readOnlyHint": True}} if read_only else tool


def _content(answer: Json) -> Json:
    if answer is HOLD or _json.is_object(answer):
        return answer
    return {"content": [{"type": "text", "text": str(answer)}]}
