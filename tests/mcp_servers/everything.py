"""A server with a tool for each feature of MCP, made with whichever `mcp` is installed.

`python -m tests.mcp_servers.everything stdio|http|sse` runs it; over HTTP it prints its port first.
`CONNECTION_LOG` names a file that gets a line for each connection, `WANTED_TOKEN` is the bearer
token without which HTTP is refused, `SERVER_SECRET` is something that the server alone shall know.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import socket
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import BaseModel


class Name(BaseModel):
    name: str


def major() -> int:
    """The major version of the `mcp` that is installed."""
    return 1 if hasattr(importlib.import_module("mcp.shared.memory"), "anyio") else 2


def fast_server(name: str = "everything", **options: Any) -> Any:
    """A `FastMCP` of 1.x, or an `MCPServer` of 2.x."""
    if major() == 1:
        module = importlib.import_module("mcp.server.fastmcp")
        server = module.FastMCP(name, log_level="ERROR", **options)
    else:
        module = importlib.import_module("mcp.server.mcpserver")
        server = module.MCPServer(name, log_level="ERROR", **options)
    _add_tools(server, module.Context)
    _add_reading(server)
    return server


def add(a: int, b: int) -> int:
    return a + b


def greet(name: str) -> str:
    return f"Hello, {name}!"


def fail() -> str:
    raise ValueError("the pump is broken")


def secret() -> str:
    return os.environ.get("SERVER_SECRET", "none")[::-1]


def die() -> str:
    os._exit(3)


async def steps(ctx: Any) -> str:
    await ctx.report_progress(1, 2)
    await ctx.report_progress(2, 2)
    return "done"


async def ask(ctx: Any) -> str:
    answer = await ctx.elicit("What is your name?", Name)
    return f"{answer.action}: {answer.data.name if answer.action == 'accept' else 'nobody'}"


async def borrow(ctx: Any) -> str:
    """Request what this client refuses: sampling, then roots."""
    sampling: dict[str, Any] = {"messages": [], "max_tokens": 1}
    wishes: list[Any] = [(ctx.session.create_message, sampling), (ctx.session.list_roots, {})]
    refusals: list[str] = []
    for wish, arguments in wishes:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                await wish(**arguments)
        except Exception as error:  # noqa: BLE001 - its class differs between the majors
            refusals.append(str(error))
    return "; ".join(refusals)


async def wait(ctx: Any, note: str) -> str:
    _write(note, "begun")
    await ctx.report_progress(1, 2)
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        _write(note, "cancelled")
        raise
    return "slept"


async def hang() -> str:
    await asyncio.sleep(3600)
    return "slept"


def _write(path: str, text: str) -> None:
    Path(path).write_text(text)


TOOLS = (add, greet, fail, secret, die, steps, ask, borrow, wait, hang)


def _add_tools(server: Any, context: Any) -> None:
    async def grow(ctx: Any) -> str:
        server.add_tool(greet, name="late", description="Came later.")
        await ctx.session.send_tool_list_changed()
        return "grown"

    for each in (*TOOLS, grow):
        if "ctx" in each.__annotations__:
            each.__annotations__["ctx"] = context
        server.add_tool(each, description=f"Does {each.__name__}.")


def _add_reading(server: Any) -> None:
    def today() -> str:
        return "Feed the cat."

    def poem(about: str) -> str:
        return f"Write a poem about {about}."

    server.resource("memo://today")(today)
    server.prompt()(poem)


def low_level_server(name: str = "low") -> Any:
    """A low-level `Server` with the tools `echo` (text and structure) and `fail`."""
    lowlevel = importlib.import_module("mcp.server.lowlevel")
    types = importlib.import_module("mcp.types" if major() == 1 else "mcp_types")
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    plain = [{"name": "echo", "inputSchema": schema}, {"name": "fail", "inputSchema": schema}]
    tools = [types.Tool.model_validate(each) for each in plain]

    async def call(tool: str, arguments: dict[str, Any]) -> Any:
        if tool == "fail":
            raise ValueError("the low pump is broken")
        said = arguments.get("text", "")
        result = {"content": [{"type": "text", "text": said}], "structuredContent": {"said": said}}
        return types.CallToolResult.model_validate(result)

    if major() == 1:
        server = lowlevel.Server(name)

        async def list_all() -> Any:
            return tools

        server.list_tools()(list_all)
        server.call_tool()(call)
        return server

    async def on_list(_context: Any, _params: Any) -> Any:
        return types.ListToolsResult(tools=tools)

    async def on_call(_context: Any, params: Any) -> Any:
        try:
            return await call(params.name, params.arguments or {})
        except ValueError as error:
            block = {"type": "text", "text": str(error)}
            return types.CallToolResult.model_validate({"content": [block], "isError": True})

    return lowlevel.Server(name, on_list_tools=on_list, on_call_tool=on_call)


# --- As a process ----------------------------------------------------------------------------


def _note_connection() -> None:
    log = os.environ.get("CONNECTION_LOG")
    if log:
        with Path(log).open("a") as file:
            file.write(f"{os.getpid()}\n")


class _Door:
    """Counts connections, and refuses requests without the token."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            headers = {name.lower(): value for name, value in scope["headers"]}
            wanted = os.environ.get("WANTED_TOKEN")
            if wanted and headers.get(b"authorization") != f"Bearer {wanted}".encode():
                await _refuse(send)
                return
            is_stream = scope["path"] == "/sse"
            is_greeting = scope["method"] == "POST" and b"mcp-session-id" not in headers
            if is_stream or (is_greeting and scope["path"] == "/mcp"):
                _note_connection()
        await self._app(scope, receive, send)


async def _refuse(send: Any) -> None:
    body = json.dumps({"error": "unauthorized"}).encode()
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def print_port(port: int) -> None:
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()


def main(kind: str, port: int = 0, tell: Callable[[int], None] = print_port) -> None:
    server = fast_server()
    if kind == "stdio":
        _note_connection()
        server.run("stdio")
        return
    uvicorn = importlib.import_module("uvicorn")
    app = server.streamable_http_app() if kind == "http" else server.sse_app()
    listener = socket.create_server(("127.0.0.1", port))
    tell(listener.getsockname()[1])
    config = uvicorn.Config(_Door(app), log_level="error", timeout_graceful_shutdown=1)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if sys.argv[2:] else 0)
