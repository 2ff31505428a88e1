"""The `mcp` package, in whichever of its two majors is installed.

The only module that names modules of that package. They are imported when a program passes one of
its servers, or connects to an MCP server elsewhere. Messages are plain JSON-RPC mappings here.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import fields
from functools import cache
from importlib import import_module
from typing import Protocol, TypeAlias, cast

from steersman._json import Json, JsonDict, JsonObject
from steersman.errors import Described, UsageError

READ_TIMEOUT = 3600.0
"""Seconds that an HTTP response may stay silent. The CLI's own timeout for a tool is shorter."""
OTHER_TIMEOUT = 30.0
VERSION_HEADER = "mcp-protocol-version"


class ReadStream(Protocol):
    """The reading end of a connection: messages of the package, or exceptions for bad input."""

    def __aiter__(self) -> AsyncIterator[object]:
        """Iterate until the other end is closed."""
        ...


class WriteStream(Protocol):
    """The writing end of a connection."""

    async def send(self, item: object, /) -> None:
        """Write one message of the package."""
        ...

    async def aclose(self) -> None:
        """Close this end."""
        ...


Streams: TypeAlias = tuple[ReadStream, WriteStream]
OpenStreams: TypeAlias = AbstractAsyncContextManager[Streams]


class LowLevelServer(Protocol):
    """A low-level `Server` of the package."""

    def create_initialization_options(self, notification_options: object) -> object:
        """Return what the server announces in `initialize`."""
        ...

    async def run(self, read: ReadStream, write: WriteStream, options: object, /) -> None:
        """Serve one connection."""
        ...


class HttpRequest(Protocol):
    """The part of an `httpx` request that is read here."""

    method: str

    @property
    def content(self) -> bytes:
        """The body. Raises `RuntimeError` if it was streamed."""
        ...


class HttpResponse(Protocol):
    """The part of an `httpx` response that is read here."""

    status_code: int
    request: HttpRequest


OnResponse: TypeAlias = Callable[[HttpResponse], Awaitable[None]]
"""Called with each HTTP response when its headers have arrived."""


class _Model(Protocol):
    def model_dump(self, *, by_alias: bool, mode: str, exclude_unset: bool) -> JsonDict: ...


class _SessionMessage(Protocol):
    message: _Model


def require_mcp(argument: str) -> None:
    """Raise `UsageError` unless the package is installed."""
    try:
        import_module("mcp")
    except ImportError:
        raise UsageError(
            argument,
            Described("a server of the mcp package"),
            "only where that package is installed",
            hint="pip install steersman[mcp]",
        ) from None


# --- Messages --------------------------------------------------------------------------------


def as_message(plain: JsonObject, version: str = "") -> object:
    """Return the package's message for a JSON-RPC mapping. Raises `ValueError` if it is invalid.

    `version` is the negotiated protocol version, which 2.x sends in a header of HTTP requests.
    """
    module = import_module("mcp.shared.message")
    message = _adapter().validate_python(dict(plain))
    if version and _sender_sets_version():
        headers = {VERSION_HEADER: version}
        return module.SessionMessage(message, module.ClientMessageMetadata(headers=headers))
    return module.SessionMessage(message)


def message_of(line: str) -> object:
    """Return the package's message in a line of JSON. Raises `ValueError` if there is none."""
    return import_module("mcp.shared.message").SessionMessage(_adapter().validate_json(line))


def as_plain(message: object) -> JsonDict:
    """Return a message of the package as a plain JSON-RPC mapping."""
    model = cast("_SessionMessage", message).message
    return model.model_dump(by_alias=True, mode="json", exclude_unset=True)


def bad_inputs(error: ValueError) -> list[object]:
    """Return the parts of a message that pydantic could not read, if `error` is about one."""
    errors: Callable[[], list[JsonDict]] | None = getattr(error, "errors", None)
    return [] if errors is None else [each["input"] for each in errors()]


@cache
def _adapter() -> Json:
    # `JSONRPCMessage` is a model in 1.x and a union in 2.x; a `TypeAdapter` reads both.
    message = import_module("mcp.shared.message").JSONRPCMessage
    return import_module("pydantic").TypeAdapter(message)


@cache
def _sender_sets_version() -> bool:
    """Return whether the sender sets the version header (2.x) and not the transport (1.x)."""
    metadata = import_module("mcp.shared.message").ClientMessageMetadata
    return "headers" in {each.name for each in fields(metadata)}


# --- Servers in this process -----------------------------------------------------------------


def memory_streams() -> AbstractAsyncContextManager[tuple[Streams, Streams]]:
    """Open the client's and the server's end of a connection inside this process."""
    made = import_module("mcp.shared.memory").create_client_server_memory_streams()
    return cast("AbstractAsyncContextManager[tuple[Streams, Streams]]", made)


async def run_server(server: LowLevelServer, streams: Streams) -> None:
    """Serve one connection until its other end is closed."""
    changes = import_module("mcp.server.lowlevel").NotificationOptions(
        prompts_changed=True, resources_changed=True, tools_changed=True
    )
    await server.run(*streams, server.create_initialization_options(changes))


# --- Servers elsewhere -----------------------------------------------------------------------


def default_environment() -> dict[str, str]:
    """Return the variables that a server gets beside its own, as the package chooses them."""
    found: dict[str, str] = import_module("mcp.client.stdio").get_default_environment()
    return found


@asynccontextmanager
async def open_http(config: JsonObject, on_response: OnResponse) -> AsyncGenerator[Streams]:
    """Connect to a server over streamable HTTP."""
    http = import_module("mcp.client.streamable_http")
    async with (
        _http_client(on_response)(headers=dict(config.get("headers", {}))) as client,
        http.streamable_http_client(config["url"], http_client=client) as streams,
    ):
        # 1.x yields a third value, which returns the session id.
        yield streams[0], streams[1]


def open_sse(config: JsonObject, on_response: OnResponse) -> OpenStreams:
    """Connect to a server over the older HTTP transport with server-sent events."""
    opened = import_module("mcp.client.sse").sse_client(
        config["url"],
        headers=dict(config.get("headers", {})),
        timeout=OTHER_TIMEOUT,
        sse_read_timeout=READ_TIMEOUT,
        httpx_client_factory=_http_client(on_response),
    )
    return cast("OpenStreams", opened)


def _http_client(on_response: OnResponse) -> Callable[..., Json]:
    make = import_module("mcp.shared._httpx_utils").create_mcp_http_client

    def make_client(**options: object) -> object:
        client = make(**options)
        if options.get("timeout") is None:
            client.timeout = (OTHER_TIMEOUT, READ_TIMEOUT, OTHER_TIMEOUT, OTHER_TIMEOUT)
        client.event_hooks = {"response": [on_response]}
        return client

    return make_client
