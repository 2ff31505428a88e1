"""An MCP server that lives in this process, made of Python functions.

JSON-RPC messages go in, answers come out. Knows nothing of the CLI or of sessions.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from steersman._json import is_object
from steersman.errors import UsageError
from steersman.ports import Caller, JsonObject
from steersman.tools.context import ToolContext
from steersman.tools.definition import Tool, as_tool
from steersman.tools.running import run_tool

__all__ = ["Toolbox"]

PROTOCOL_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")

INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

logger = logging.getLogger("steersman.tools")


class Toolbox:
    """Tools under one name; may serve several sessions at once.

    The name is for people: the key in `mcp_servers` is the route and the prefix of the tools.
    """

    def __init__(
        self,
        name: str,
        tools: Iterable[Tool[..., Any] | Callable[..., Any]] = (),
        *,
        version: str = "1.0.0",
    ) -> None:
        if not isinstance(cast("object", name), str) or not name:
            raise UsageError("name", name, "a name that is not empty")
        self.name = name
        self.version = version
        self._callers: set[Caller] = set()
        self._tools: dict[str, Tool[..., Any]] = {}
        for each in map(as_tool, tools):
            self._add(each)
        self._answers: dict[str, Callable[[Mapping[str, Any]], JsonObject]] = {
            "initialize": self._initialize,
            "ping": lambda _: {},
            "tools/list": self._list,
        }

    def __repr__(self) -> str:
        return f"Toolbox({self.name!r}, tools={list(self._tools)})"

    @property
    def tool_names(self) -> tuple[str, ...]:
        return tuple(self._tools)

    @property
    def tools(self) -> tuple[Tool[..., Any], ...]:
        """The tools, in the order they were given."""
        return tuple(self._tools.values())

    async def attach(self, caller: Caller) -> None:
        """A session begins; it will hear of changes."""
        self._callers.add(caller)

    async def detach(self, caller: Caller) -> None:
        """A session is over."""
        self._callers.discard(caller)

    async def handle(self, message: JsonObject, caller: Caller) -> JsonObject | None:
        method, request_id = message.get("method"), message.get("id")
        if request_id is None or (method is None and ("result" in message or "error" in message)):
            return None
        try:
            result = await self._result(method, message, caller)
        except _Refused as refusal:
            return _answer(request_id, error={"code": refusal.code, "message": str(refusal)})
        except Exception:
            logger.exception("toolbox %r failed to answer %r", self.name, method)
            error = {"code": INTERNAL_ERROR, "message": f"internal error in {method!r}"}
            return _answer(request_id, error=error)
        return _answer(request_id, result=result)

    async def _result(self, method: Any, message: JsonObject, caller: Caller) -> JsonObject:
        params: Any = message.get("params") or {}
        if not isinstance(params, Mapping):
            raise _Refused(INVALID_PARAMS, "params: an object is needed")
        if method == "tools/call":
            return await self._call(cast("JsonObject", params), message["id"], caller)
        if not isinstance(method, str):
            raise _Refused(INVALID_REQUEST, "method: a string is needed")
        answer = self._answers.get(method)
        if answer is None:
            raise _Refused(METHOD_NOT_FOUND, f"method not found: {method}")
        return answer(cast("JsonObject", params))

    async def _call(self, params: JsonObject, request_id: int | str, caller: Caller) -> JsonObject:
        name, given = params.get("name"), params.get("arguments")
        tool = self._tools.get(name) if isinstance(name, str) else None
        if tool is None:
            raise _Refused(INVALID_PARAMS, f"name: there is no tool {name!r}")
        if not isinstance(given, Mapping) and given is not None:
            raise _Refused(INVALID_PARAMS, "arguments: an object is needed")
        context = _context_of(tool.name, params, request_id, caller)
        return await run_tool(tool, cast("JsonObject", given or {}), context)

    def _initialize(self, params: Mapping[str, Any]) -> JsonObject:
        asked = params.get("protocolVersion")
        return {
            "protocolVersion": asked if asked in PROTOCOL_VERSIONS else PROTOCOL_VERSIONS[-1],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": self.name, "version": self.version},
        }

    def _list(self, _: Mapping[str, Any]) -> JsonObject:
        return {"tools": [each.listed() for each in self._tools.values()]}

    def _add(self, new: Tool[..., Any]) -> None:
        old = self._tools.get(new.name)
        if old is not None:
            raise UsageError(
                f"tools of {self.name!r}",
                new.name,
                "one tool of each name",
                hint=f"{_origin(old)} and {_origin(new)} share it; give one another name=",
            )
        self._tools[new.name] = new


class _Refused(Exception):
    """A request that gets a JSON-RPC error."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


def _context_of(
    tool_name: str, params: JsonObject, request_id: int | str, caller: Caller
) -> ToolContext:
    given = params.get("_meta")
    meta = given if is_object(given) else {}
    return ToolContext(
        tool_name=tool_name,
        tool_use_id=meta.get("claudecode/toolUseId", ""),
        session_id=caller.session_id,
        server=caller.server,
        request_id=request_id,
        caller=caller,
        progress_token=meta.get("progressToken"),
        loop=asyncio.get_running_loop(),
    )


def _origin(each: Tool[..., Any]) -> str:
    handler = each.handler
    name = getattr(handler, "__qualname__", type(handler).__qualname__)
    return f"{getattr(handler, '__module__', '?')}.{name}"


def _answer(request_id: int | str, **body: JsonObject) -> JsonObject:
    return {"jsonrpc": "2.0", "id": request_id, **body}
