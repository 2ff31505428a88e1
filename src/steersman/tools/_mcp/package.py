"""The `mcp` package, whichever of its majors is installed.

The one place that knows its modules. Imported only when somebody gives us one of its servers, or
wants us to connect one. What passes is JSON-RPC as plain mappings.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import fields
from functools import cache
from importlib import import_module
from typing import Any, cast

from steersman.errors import UsageError
from steersman.ports import JsonObject

__all__ = [
    "Streams",
    "Watch",
    "as_message",
    "as_plain",
    "dial_http",
    "dial_sse",
    "memory_streams",
    "need_mcp",
    "run_server",
    "spawn",
]

Streams = tuple[Any, Any]
"""What to read from and what to write to."""
Watch = Callable[[Any], Awaitable[None]]
"""Sees each HTTP response as its headers arrive."""

LONGEST_SILENCE = 3600.0
"""Seconds that a tool behind HTTP may say nothing. The CLI's own limit comes first."""
USUAL_WAIT = 30.0
VERSION_HEADER = "mcp-protocol-version"


def need_mcp(argument: str) -> None:
    """Raise `UsageError` unless the package is installed."""
    try:
        import_module("mcp")
    except ImportError:
        raise UsageError(
            argument,
            "a server of the mcp package",
            "only where that package is installed",
            hint="pip install steersman[mcp]",
        ) from None


# --- Messages --------------------------------------------------------------------------------


def as_message(plain: JsonObject, version: str = "") -> Any:
    """A JSON-RPC message for a stream; `version` tells HTTP what was agreed on.

    Raises `ValueError` when it is no JSON-RPC.
    """
    kinds = import_module("mcp.shared.message")
    message = _adapter().validate_python(dict(plain))
    if version and _stamps():
        headers = {VERSION_HEADER: version}
        return kinds.SessionMessage(message, kinds.ClientMessageMetadata(headers=headers))
    return kinds.SessionMessage(message)


def as_plain(message: Any) -> dict[str, Any]:
    """A message from a stream as a plain mapping."""
    dumped = message.message.model_dump(by_alias=True, mode="json", exclude_unset=True)
    return cast("dict[str, Any]", dumped)


@cache
def _adapter() -> Any:
    # A model of its own in 1.x, a union in 2.x.
    message = import_module("mcp.shared.message").JSONRPCMessage
    return import_module("pydantic").TypeAdapter(message)


@cache
def _stamps() -> bool:
    """Whether the sender, not the transport, tells HTTP servers the version: since 2.x."""
    metadata = import_module("mcp.shared.message").ClientMessageMetadata
    return "headers" in {each.name for each in fields(metadata)}


# --- Servers in this process -----------------------------------------------------------------


def memory_streams() -> AbstractAsyncContextManager[tuple[Streams, Streams]]:
    """The client's and the server's ends of a connection inside this process."""
    made = import_module("mcp.shared.memory").create_client_server_memory_streams()
    return cast("AbstractAsyncContextManager[tuple[Streams, Streams]]", made)


async def run_server(server: Any, streams: Streams) -> None:
    """Serve one connection, until its other end is closed."""
    changes = import_module("mcp.server.lowlevel").NotificationOptions(
        prompts_changed=True, resources_changed=True, tools_changed=True
    )
    await server.run(*streams, server.create_initialization_options(changes))


# --- Servers elsewhere -----------------------------------------------------------------------


def spawn(config: JsonObject, stderr: Any) -> AbstractAsyncContextManager[Streams]:
    """Run a server that speaks over stdin and stdout."""
    stdio = import_module("mcp.client.stdio")
    wanted = {name: config[name] for name in ("command", "args", "env", "cwd") if name in config}
    opened = stdio.stdio_client(stdio.StdioServerParameters(**wanted), errlog=stderr)
    return cast("AbstractAsyncContextManager[Streams]", opened)


@asynccontextmanager
async def dial_http(config: JsonObject, watch: Watch) -> AsyncGenerator[Streams]:
    """Speak streamable HTTP to a server."""
    http = import_module("mcp.client.streamable_http")
    async with (
        _http_client(watch)(headers=dict(config.get("headers", {}))) as client,
        http.streamable_http_client(config["url"], http_client=client) as streams,
    ):
        # 1.x gives a third thing, the session's id.
        yield streams[0], streams[1]


def dial_sse(config: JsonObject, watch: Watch) -> AbstractAsyncContextManager[Streams]:
    """Speak the older HTTP with server-sent events to a server."""
    opened = import_module("mcp.client.sse").sse_client(
        config["url"],
        headers=dict(config.get("headers", {})),
        timeout=USUAL_WAIT,
        sse_read_timeout=LONGEST_SILENCE,
        httpx_client_factory=_http_client(watch),
    )
    return cast("AbstractAsyncContextManager[Streams]", opened)


def _http_client(watch: Watch) -> Callable[..., Any]:
    make = import_module("mcp.shared._httpx_utils").create_mcp_http_client

    def make_watched(**options: Any) -> Any:
        client = make(**options)
        if options.get("timeout") is None:
            client.timeout = (USUAL_WAIT, LONGEST_SILENCE, USUAL_WAIT, USUAL_WAIT)
        client.event_hooks = {"response": [watch]}
        return client

    return make_watched
