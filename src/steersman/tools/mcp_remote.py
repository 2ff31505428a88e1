"""`RemoteTools`: an MCP server elsewhere, served to sessions from this process.

One connection serves every session. The CLI learns neither the address nor the credentials.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Self, cast

from steersman._arguments import check_callback
from steersman._json import Json, dumps, is_mapping, is_object
from steersman.errors import Described, McpNotReady, UsageError
from steersman.journal.redaction import Redactor
from steersman.options import checks
from steersman.ports import Caller, JsonObject
from steersman.tools._mcp.connect import (
    NotProcessed,
    RemoteConnection,
    RemoteLimits,
    SharedConnection,
    connect,
    secrets_of,
)
from steersman.tools._mcp.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    LIST_CHANGED,
    METHOD_NOT_FOUND,
    PROGRESS,
    TOOL_USE_ID_META,
    JsonRpcError,
    jsonrpc_error,
    jsonrpc_request,
    jsonrpc_result,
    meta_of,
    notification,
)
from steersman.tools._mcp.package import require_mcp
from steersman.tools._mcp.peer import ConnectionLost, answer_server
from steersman.tools.results import ToolError, error_result, wire_result

__all__ = ["OnCall", "OnResult", "RemoteCall", "RemoteLimits", "RemoteTools"]

FORWARDED = ("resources/", "prompts/", "completion/", "logging/")
"""Prefixes of the methods that are forwarded to the remote, beside `tools/call`."""

logger = logging.getLogger("steersman.tools")


@dataclass(frozen=True, slots=True)
class RemoteCall:
    """A call that is about to be sent to the remote."""

    tool: str
    """The name that the model uses."""
    remote_tool: str
    """The remote's own name."""
    arguments: JsonObject
    server: str
    """The key in `mcp_servers`."""
    session_id: str
    tool_use_id: str


OnCall = Callable[[RemoteCall], Awaitable[None] | None]
OnResult = Callable[[RemoteCall, JsonObject], Awaitable[None] | None]


@dataclass(frozen=True, slots=True)
class _OpenRequest:
    """A request that the remote has not answered."""

    caller: Caller
    progress_token: Json
    """The CLI's own token; the remote was sent another one."""


class RemoteTools:
    """The tools of a server that this process connects to, for one session or for many.

    `config` is the CLI's own form: `{"command": ..., "args": [...], "env": {...}}`, or
    `{"type": "http" or "sse", "url": ..., "headers": {...}}`. The connection is opened for the
    first session and closed after the last; `async with` keeps it open in between. If the remote
    exits, the next call connects again.
    """

    def __init__(
        self,
        config: JsonObject,
        *,
        tools: Collection[str] | Callable[[str], bool] | None = None,
        rename: Mapping[str, str] | Callable[[str], str] | None = None,
        on_call: OnCall | None = None,
        on_result: OnResult | None = None,
        limits: RemoteLimits = RemoteLimits(),  # noqa: B008 - it is frozen
    ) -> None:
        """Check the arguments. Nothing is connected yet.

        `tools` selects the tools to expose, by the remote's names; `rename` gives them other names.
        `on_call` gets each call before it is sent and refuses it by raising `ToolError`;
        `on_result` gets the result.
        """
        checks.server("config", config)
        if not isinstance(cast("object", config), Mapping):
            raise UsageError("config", Described.kind_of(config), "a configuration")
        require_mcp("config")
        if not isinstance(cast("object", limits), RemoteLimits):
            raise UsageError("limits", limits, "a RemoteLimits value")
        self._config = checks.plain("config", config)
        self._names = ToolFilter(tools, rename)
        self._observers = CallObservers(on_call, on_result)
        self._limits = limits
        self._redact = Redactor(secrets_of(self._config)).shown
        self._shared = SharedConnection(self._connect, limits.retry_pause)
        self._exposed: ExposedTools | None = None
        self._callers: list[Caller] = []
        self._open: dict[int, _OpenRequest] = {}

    def __repr__(self) -> str:
        return f"RemoteTools({self._label!r}, sessions={len(self._callers)})"

    @property
    def tool_names(self) -> tuple[str, ...]:
        if self._exposed is None:
            return self._names.names_before_connecting
        return tuple(self._exposed.tools)

    @property
    def is_connected(self) -> bool:
        """Whether there is an open connection."""
        return self._shared.remote is not None

    async def __aenter__(self) -> Self:
        self._shared.join()
        try:
            await self._shared.require(self._label)
        except BaseException:
            await self._shared.leave()
            raise
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self._shared.leave()

    async def attach(self, caller: Caller) -> None:
        self._shared.join()
        self._callers.append(caller)
        await self._shared.require(caller.server)

    async def detach(self, caller: Caller) -> None:
        if caller in self._callers:
            self._callers.remove(caller)
            await self._shared.leave()

    async def handle(self, message: JsonObject, caller: Caller) -> JsonObject | None:
        request_id, method = message.get("id"), message.get("method")
        if request_id is None or not isinstance(method, str):
            # `initialized` was sent when we connected; a cancelled call is cancelled as a task.
            return None
        if method == "ping":
            return jsonrpc_result(request_id, {})
        params: Json = message.get("params") or {}
        if not is_object(params):
            return jsonrpc_error(request_id, INVALID_PARAMS, "params: an object is needed")
        try:
            response = await self._respond(method, params, caller)
        except JsonRpcError as error:
            return jsonrpc_error(request_id, error.code, str(error))
        except (ConnectionLost, McpNotReady) as error:
            return jsonrpc_error(request_id, INTERNAL_ERROR, self._explain(error, caller))
        return {**response, "id": request_id}

    # --- Requests of the CLI

    async def _respond(self, method: str, params: JsonObject, caller: Caller) -> JsonObject:
        if method == "initialize":
            remote = await self._shared.require_unless_just_failed(caller.server)
            return jsonrpc_result(0, _with_list_changed(remote.initialize_result))
        if method == "tools/list":
            await self._shared.require_unless_just_failed(caller.server)
            return jsonrpc_result(0, {"tools": [*self._known().tools.values()]})
        if method == "tools/call":
            return await self._call(params, caller)
        if method.startswith(FORWARDED):
            return await self._forward(method, params, caller)
        raise JsonRpcError(METHOD_NOT_FOUND, f"method not found: {method}")

    async def _call(self, params: JsonObject, caller: Caller) -> JsonObject:
        name = params.get("name")
        remote_name = self._known().remote_names.get(name) if isinstance(name, str) else None
        if remote_name is None:
            raise JsonRpcError(INVALID_PARAMS, f"name: there is no tool {name!r}")
        call = _describe(params, remote_name, caller)
        refusal = await self._observers.refusal(call, caller)
        if refusal is not None:
            return jsonrpc_result(0, refusal)
        try:
            response = await self._forward("tools/call", {**params, "name": remote_name}, caller)
        except (ConnectionLost, McpNotReady) as error:
            caller.report(call.tool, error)
            raise
        await self._observers.on_response(call, response, caller)
        return response

    async def _forward(self, method: str, params: JsonObject, caller: Caller) -> JsonObject:
        remote = await self._shared.require_unless_just_failed(caller.server)
        try:
            return await self._send(remote, method, params, caller)
        except NotProcessed:
            # The remote was restarted and does not know our session: connect and send again.
            remote = await self._shared.require(caller.server)
            return await self._send(remote, method, params, caller)

    async def _send(
        self, remote: RemoteConnection, method: str, params: JsonObject, caller: Caller
    ) -> JsonObject:
        """Send a request with an id and a progress token that are unique on this connection."""
        request_id = remote.next_id()
        meta = meta_of(params)
        token = meta.get("progressToken")
        if token is not None:
            params = {**params, "_meta": {**meta, "progressToken": request_id}}
        self._open[request_id] = _OpenRequest(caller, token)
        limits = self._limits
        try:
            async with asyncio.timeout(limits.call):
                response = await remote.request(jsonrpc_request(request_id, method, params))
        except TimeoutError:
            what = f"the MCP server {caller.server!r} did not answer within {limits.call:g} s"
            raise JsonRpcError(
                INTERNAL_ERROR, f"{what}; whether the call ran is not known"
            ) from None
        finally:
            del self._open[request_id]
        size = len(dumps(response))
        if size > limits.result:
            what = f"the answer of the MCP server {caller.server!r} has {size} bytes"
            raise JsonRpcError(INTERNAL_ERROR, f"{what}, and the limit is {limits.result}")
        return response

    # --- The connection

    async def _connect(self, name: str) -> RemoteConnection:
        remote = await connect(
            name, self._config, self._on_notification, self._on_request, self._limits
        )
        try:
            self._expose(remote, name)
        except BaseException:
            await remote.aclose()
            raise
        return remote

    def _expose(self, remote: RemoteConnection, name: str) -> None:
        before, self._exposed = self._exposed, expose(remote.tools, self._names, name)
        if before is not None and before != self._exposed:
            self._notify_all(notification(LIST_CHANGED))

    def _known(self) -> ExposedTools:
        assert self._exposed is not None
        return self._exposed

    # --- Messages that the remote sends by itself

    def _on_notification(self, message: JsonObject) -> None:
        method, params = message["method"], message.get("params")
        if method == PROGRESS and is_object(params):
            request = self._open.get(params.get("progressToken", 0))
            if request is not None and request.progress_token is not None:
                translated = {**params, "progressToken": request.progress_token}
                request.caller.notify({**message, "params": translated})
        elif method == LIST_CHANGED and self._shared.remote is not None:
            self._shared.remote.peer.run_in_background(self._list_again(self._shared.remote))
        else:
            self._notify_all(message)

    async def _list_again(self, remote: RemoteConnection) -> None:
        try:
            remote.tools = await remote.list_tools()
            self._expose(remote, self._label)
        except (ConnectionLost, ValueError, McpNotReady) as error:
            logger.warning("the tools of %r could not be listed again: %s", self, error)

    def _notify_all(self, message: JsonObject) -> None:
        for caller in self._callers:
            caller.notify(message)

    async def _on_request(self, request: JsonObject) -> JsonObject:
        """Answer a request of the remote, which does not name the session that it is for.

        If requests of exactly one session are open, or there is only one session, that one is
        asked. Otherwise the request is declined.
        """
        with_requests = {id(each.caller): each.caller for each in self._open.values()}
        callers = [*with_requests.values()] or self._callers
        return await answer_server(request, callers[0] if len(callers) == 1 else None)

    # --- Texts

    @property
    def _label(self) -> str:
        return self._redact(str(self._config.get("url") or self._config.get("command")))

    def _explain(self, error: ConnectionLost | McpNotReady, caller: Caller) -> str:
        if isinstance(error, McpNotReady):
            return error.what
        lost = f"the MCP server {caller.server!r} was lost during the call: {error}"
        return self._redact(f"{lost}; whether the call ran is not known")


class CallObservers:
    """The program's callbacks `on_call` and `on_result`."""

    def __init__(self, on_call: OnCall | None, on_result: OnResult | None) -> None:
        checks.optional(checks.callback("the call"))("on_call", on_call)
        checks.optional(checks.callback("call", "result"))("on_result", on_result)
        self._on_call = on_call
        self._on_result = on_result

    async def refusal(self, call: RemoteCall, caller: Caller) -> JsonObject | None:
        """Return the result for the model if the call must not be sent, else `None`.

        A callback that fails refuses the call too.
        """
        if self._on_call is None:
            return None
        try:
            returned = self._on_call(call)
            if inspect.isawaitable(returned):
                await returned
        except ToolError as refused:
            return wire_result(error_result(str(refused)))
        except Exception as error:
            logger.exception("on_call failed for %r", call.tool)
            caller.report(call.tool, error)
            return wire_result(error_result(f"not run: on_call raised {type(error).__name__}"))
        return None

    async def on_response(self, call: RemoteCall, response: JsonObject, caller: Caller) -> None:
        """Pass the result, or the JSON-RPC error, to `on_result`."""
        if self._on_result is None:
            return
        try:
            found: JsonObject = response.get("result") or response.get("error") or {}
            returned = self._on_result(call, found)
            if inspect.isawaitable(returned):
                await returned
        except Exception as error:
            logger.exception("on_result failed for %r", call.tool)
            caller.report(call.tool, error)


def _describe(params: JsonObject, remote_name: str, caller: Caller) -> RemoteCall:
    """Return the call in the params of a `tools/call`."""
    arguments = params.get("arguments")
    return RemoteCall(
        tool=params["name"],
        remote_tool=remote_name,
        arguments=arguments if is_object(arguments) else {},
        server=caller.server,
        session_id=caller.session_id,
        tool_use_id=meta_of(params).get(TOOL_USE_ID_META, ""),
    )


def _with_list_changed(result: JsonObject) -> JsonObject:
    """Return an `initialize` result that announces changes of the tools, if there are tools.

    After a reconnect the tools may differ, also if the remote itself never announces changes.
    """
    capabilities = result.get("capabilities")
    if not (is_object(capabilities) and is_object(capabilities.get("tools"))):
        return result
    tools = {**capabilities["tools"], "listChanged": True}
    return {**result, "capabilities": {**capabilities, "tools": tools}}


class ToolFilter:
    """The arguments `tools` and `rename` of a `RemoteTools`, checked."""

    def __init__(
        self,
        tools: Collection[str] | Callable[[str], bool] | None,
        rename: Mapping[str, str] | Callable[[str], str] | None,
    ) -> None:
        if isinstance(tools, str) or not (tools is None or callable(tools) or _are_names(tools)):
            raise UsageError("tools", tools, "names, a function of a name, or None")
        if not (rename is None or callable(rename) or _is_renaming(rename)):
            raise UsageError("rename", rename, "names by name, a function of a name, or None")
        self._keeps: Callable[[str], bool] = lambda _: True
        self.required: tuple[str, ...] = ()
        """The tools that the server must have, by the server's names."""
        if callable(tools):
            check_callback("tools", tools, "a name")
            self._keeps = tools
        elif tools is not None:
            self.required = tuple(tools)
            self._keeps = self.required.__contains__
        self._rename: Callable[[str], str] = str
        if callable(rename):
            check_callback("rename", rename, "a name")
            self._rename = rename
        elif rename is not None:
            renamed = dict(rename)
            self._rename = lambda name: renamed.get(name, name)

    @property
    def names_before_connecting(self) -> tuple[str, ...]:
        """The exposed names of the required tools."""
        return tuple(map(self._rename, self.required))

    def exposed_name(self, name: str) -> str | None:
        """Return the name under which a tool of the server is exposed; `None` if it is not."""
        return self._rename(name) if self._keeps(name) else None


@dataclass(frozen=True, slots=True)
class ExposedTools:
    """The tools as the CLI sees them."""

    tools: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    """The entries of `tools/list`, by exposed name."""
    remote_names: Mapping[str, str] = field(default_factory=dict[str, str])
    """The server's names, by exposed name."""


def expose(listed: Collection[JsonObject], names: ToolFilter, server: str) -> ExposedTools:
    """Filter and rename the tools that a server listed.

    Raises `McpNotReady` if a required one is missing, `UsageError` if two get the same name.
    """
    there = [str(each.get("name", "")) for each in listed]
    missing = [name for name in names.required if name not in there]
    if missing:
        raise McpNotReady(server, "failed", f"it has no tool {missing[0]!r}, but {there}")
    tools: dict[str, JsonObject] = {}
    remote_names: dict[str, str] = {}
    for remote_name, tool in zip(there, listed, strict=True):
        name = names.exposed_name(remote_name)
        if name is None:
            continue
        if name in tools:
            both = f"{remote_names[name]!r} and {remote_name!r}"
            raise UsageError("rename", name, "one tool of each name", hint=f"{both} share it")
        tools[name] = {**tool, "name": name}
        remote_names[name] = remote_name
    return ExposedTools(tools, remote_names)


def _are_names(given: object) -> bool:
    try:
        return all(isinstance(each, str) for each in cast("Collection[object]", given))
    except TypeError:
        return False


def _is_renaming(given: object) -> bool:
    return is_mapping(given) and all(
        isinstance(each, str) for pair in given.items() for each in pair
    )
