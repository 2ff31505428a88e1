"""The CLI's side of the host's in-process MCP servers."""

from __future__ import annotations

import asyncio
import itertools
import json
from dataclasses import dataclass
from typing import cast

from steersman._json import Json, JsonDict, JsonObject
from steersman.testing.scripted.host import Host, HostClosed, HostRefused
from steersman.testing.scripted.launch import Settings

PROTOCOL_VERSION = "2025-11-25"
ACCEPTED_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", PROTOCOL_VERSION)
TRIES = 2
"""The number of attempts to connect to a server."""


@dataclass(frozen=True, slots=True)
class McpResult:
    """The result of an MCP tool: `content` for the model, `value` for the `user` message."""

    content: Json
    is_error: bool
    value: Json


class McpServer:
    """One in-process MCP server of the host, reached by control requests."""

    def __init__(self, name: str, host: Host, settings: Settings) -> None:
        self.name = name
        self.status = "pending"
        self.tools: dict[str, JsonDict] = {}
        self.info: JsonDict = {}
        """The `serverInfo` of the server."""
        self._host = host
        self._settings = settings
        self._numbers = itertools.count()

    @property
    def tool_names(self) -> list[str]:
        """The full names of the tools, as the model uses them."""
        return [f"mcp__{self.name}__{tool}" for tool in self.tools]

    async def connect(self) -> None:
        """Initialize the server and list its tools; a server that does not answer has failed."""
        for _ in range(TRIES):
            try:
                async with asyncio.timeout(self._settings.connect_timeout):
                    await self._initialize()
                    await self.list_tools()
            except TimeoutError:
                continue
            except (HostRefused, HostClosed, _RpcError):
                break
            self.status = "connected"
            return
        self.status = "failed"

    async def list_tools(self) -> None:
        """Read the current list of tools."""
        found = await self._request("tools/list")
        self.tools = {tool["name"]: tool for tool in found.get("tools", ())}

    async def call(self, tool: str, arguments: JsonObject, tool_use_id: str) -> McpResult:
        """Call a tool. Errors are results too. Raises `HostClosed`."""
        params: JsonDict = {"name": tool, "arguments": arguments}
        try:
            found = await self._request(
                "tools/call", params, self._settings.tool_timeout, tool_use_id
            )
        except (HostRefused, _RpcError) as error:
            return McpResult(str(error), is_error=True, value=f"Error: {error}")
        except TimeoutError:
            text = f"MCP tool {tool} timed out"
            return McpResult(text, is_error=True, value=f"Error: {text}")
        return _result_of(found, f"mcp__{self.name}__{tool}")

    async def _initialize(self) -> None:
        self._numbers = itertools.count()
        client = {
            "name": "claude-code",
            "title": "Claude Code",
            "version": "2.1.325",
            "description": "Anthropic's agentic coding tool",
            "websiteUrl": "https://claude.com/claude-code",
        }
        params = {
            "protocolVersion": PROTOCOL_VERSION,
            "capabilities": {},
            "clientInfo": client,
        }
        found = await self._request("initialize", params)
        self.info = found.get("serverInfo") or {}
        if found.get("protocolVersion") not in ACCEPTED_VERSIONS:
            raise _RpcError("Server's protocol version is not supported")
        await self._ask({"jsonrpc": "2.0", "method": "notifications/initialized"}, None)

    async def _request(
        self,
        method: str,
        params: JsonDict | None = None,
        timeout: float | None = None,
        tool_use_id: str | None = None,
    ) -> JsonDict:
        number = next(self._numbers)
        message: JsonDict = {"method": method, "jsonrpc": "2.0", "id": number}
        if tool_use_id is not None and params is not None:
            params["_meta"] = {"claudecode/toolUseId": tool_use_id, "progressToken": number}
        if params is not None:
            message["params"] = params
        response = await self._ask(message, number, timeout)
        if "error" in response:
            raise _RpcError(str(response["error"].get("message")))
        return cast("JsonDict", response.get("result") or {})

    async def _ask(
        self, message: JsonDict, number: int | None, timeout: float | None = None
    ) -> JsonDict:
        """Return the JSON-RPC response; a response with another id is dropped."""
        try:
            async with asyncio.timeout(timeout):
                answer = await self._host.ask(
                    self._envelope(message),
                    withdraw=lambda: self._cancel(number),
                    outlives_turn=message["method"] != "tools/call",
                )
                response = _response_in(answer, number)
                if response is None:
                    await asyncio.get_running_loop().create_future()
                return response or {}
        except TimeoutError:
            self._cancel(number)
            raise

    def _cancel(self, number: int | None) -> None:
        params = {"requestId": number, "reason": "AbortError: remote-cancel"}
        message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
        self._host.notify(self._envelope(message))

    def _envelope(self, message: JsonObject) -> JsonDict:
        return {"subtype": "mcp_message", "server_name": self.name, "message": message}


class McpServers:
    """All in-process MCP servers of the host."""

    def __init__(self, host: Host, settings: Settings) -> None:
        self._host = host
        self._settings = settings
        self._servers: dict[str, McpServer] = {}

    def add(self, name: str) -> McpServer:
        """Add and return a new server, which is not connected."""
        server = self._servers[name] = McpServer(name, self._host, self._settings)
        return server

    def __contains__(self, name: str) -> bool:
        return name in self._servers

    def __getitem__(self, name: str) -> McpServer:
        return self._servers[name]

    @property
    def tool_names(self) -> list[str]:
        """The full names of all tools."""
        return [name for each in self._servers.values() for name in each.tool_names]

    def find(self, tool_name: str) -> tuple[McpServer, str] | None:
        """Return the server of a tool and the tool's name there; None for an unknown tool."""
        for server in self._servers.values():
            prefix = f"mcp__{server.name}__"
            tool = tool_name.removeprefix(prefix)
            if tool_name.startswith(prefix) and tool in server.tools:
                return server, tool
        return None

    def listed(self) -> list[JsonDict]:
        """Return the servers' states, for `system/init`."""
        return [
            {"name": each.name, "status": each.status, "source": "sdk"}
            for each in self._servers.values()
        ]

    def status(self) -> list[JsonDict]:
        """Return the servers' states, for `mcp_status`."""
        return [
            {
                "name": each.name,
                "status": each.status,
                **({"serverInfo": each.info} if each.info else {}),
                "transport": "sdk",
                "scope": "dynamic",
                "source": "sdk",
                "tools": [
                    {"name": name, "annotations": tool.get("annotations") or {}}
                    for name, tool in each.tools.items()
                ],
            }
            for each in self._servers.values()
        ]


class _RpcError(Exception):
    """A JSON-RPC error."""


def _response_in(answer: Json, number: int | None) -> JsonDict | None:
    found = cast("JsonDict", answer).get("mcp_response") if isinstance(answer, dict) else None
    response = cast("JsonDict", found) if isinstance(found, dict) else None
    return response if response is not None and response.get("id") == number else None


def _result_of(found: JsonDict, tool_name: str) -> McpResult:
    blocks: list[JsonDict] = found.get("content") or []
    if found.get("isError"):
        text = "\n".join(str(block.get("text", "")) for block in blocks)
        return McpResult(text, is_error=True, value=f"Error: {text}")
    structured = found.get("structuredContent")
    if structured is not None:
        content = json.dumps(structured, separators=(",", ":"))
        return McpResult(content, is_error=False, value={"structuredContent": structured})
    if not blocks:
        text = f"({tool_name} completed with no output)"
        return McpResult(text, is_error=False, value=[])
    return McpResult(blocks, is_error=False, value=blocks)
