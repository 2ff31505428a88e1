"""What a scene's host answers when the CLI asks: permissions, hooks, tools.

A function per kind of request; it gives the answer, a `Refusal`, or `HOLD` to leave it open.
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
"""By the subtype of the request."""

HOLD: Final = object()
"""The scene will answer later, or never."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error response."""

    reason: str


def allow(request: JsonDict) -> JsonDict:
    """Let the tool run; older CLIs want the input back."""
    return {"behavior": "allow", "updatedInput": request.get("input")}


def hold(_request: JsonDict) -> object:
    """Leave a request open."""
    return HOLD


def standard_answers() -> Answers:
    """A host that allows everything, has no opinion, and serves one tool."""
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
    """An MCP server whose tools all do `call`, which gets the parameters of `tools/call`."""

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
    """The control answer that carries a JSON-RPC result."""
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
