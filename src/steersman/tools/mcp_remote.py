"""A tool server elsewhere, dialled from this process and shown to sessions as one that lives here.

One connection serves every session. The CLI learns neither the address nor the credentials.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Self

from steersman import _json
from steersman.errors import McpNotReady, UsageError
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
from steersman.tools._mcp.package import need_mcp
from steersman.tools._mcp.peer import (
    INTERNAL_ERROR,
    METHOD_NOT_FOUND,
    ConnectionLost,
    notification,
    rpc_error,
    rpc_result,
)
from steersman.tools._mcp.server_requests import answer_server
from steersman.tools._mcp.tool_names import ExposedTools, ToolFilter, show
from steersman.tools.results import ToolError, error_result, wire_result

__all__ = [
    "CallObservers",
    "OnCall",
    "OnResult",
    "RemoteCall",
    "RemoteLimits",
    "RemoteTools",
    "describe",
]

logger = logging.getLogger("steersman.tools")


@dataclass(frozen=True, slots=True)
class RemoteCall:
    """A call that is about to go to the remote."""

    tool: str
    """As the model knows it."""
    remote_tool: str
    """As the remote knows it."""
    arguments: JsonObject
    server: str
    """The key in `mcp_servers`."""
    session_id: str
    tool_use_id: str


OnCall = Callable[[RemoteCall], Awaitable[None] | None]
OnResult = Callable[[RemoteCall, JsonObject], Awaitable[None] | None]


def describe(params: JsonObject, remote_name: str, caller: Caller) -> RemoteCall:
    """The call that stands in the parameters of a `tools/call`."""
    meta, arguments = params.get("_meta"), params.get("arguments")
    return RemoteCall(
        tool=params["name"],
        remote_tool=remote_name,
        arguments=arguments if _json.is_object(arguments) else {},
        server=caller.server,
        session_id=caller.session_id,
        tool_use_id=meta.get("claudecode/toolUseId", "") if _json.is_object(meta) else "",
    )


class CallObservers:
    """The program's own callbacks. The one before a call can refuse it."""

    def __init__(self, on_call: OnCall | None, on_result: OnResult | None) -> None:
        checks.optional(checks.callable_)("on_call", on_call)
        checks.optional(checks.callable_)("on_result", on_result)
        self._on_call = on_call
        self._on_result = on_result

    async def refusal(self, call: RemoteCall, caller: Caller) -> JsonObject | None:
        """What the model reads if the call must not be made. A callback that fails refuses too."""
        if self._on_call is None:
            return None
        try:
            seen = self._on_call(call)
            if inspect.isawaitable(seen):
                await seen
        except ToolError as refused:
            return wire_result(error_result(str(refused)))
        except Exception as error:
            logger.exception("on_call failed for %r", call.tool)
            caller.report(call.tool, error)
            return wire_result(error_result(f"not run: on_call raised {type(error).__name__}"))
        return None

    async def saw(self, call: RemoteCall, answer: JsonObject, caller: Caller) -> None:
        """Show what came back: a result, or an error in the words of JSON-RPC."""
        if self._on_result is None:
            return
        try:
            seen = self._on_result(call, answer.get("result") or answer.get("error") or {})
            if inspect.isawaitable(seen):
                await seen
        except Exception as error:
            logger.exception("on_result failed for %r", call.tool)
            caller.report(call.tool, error)


PASSED = ("resources/", "prompts/", "completion/", "logging/")
"""What the remote answers itself, beside the calls of its tools."""
BAD_PARAMS = -32602
LIST_CHANGED = "notifications/tools/list_changed"
PROGRESS = "notifications/progress"

logger = logging.getLogger("steersman.tools")


@dataclass(frozen=True, slots=True)
class _Open:
    """A request that the remote has not answered: whose it is, and the CLI's progress token."""

    caller: Caller
    token: Any


class RemoteTools:
    """The tools of a server that this process connects to, for one session or for many.

    `config` is the CLI's own form: `{"command": ..., "args": [...], "env": {...}}`, or
    `{"type": "http" or "sse", "url": ..., "headers": {...}}`. It connects when the first session
    needs it and lets go with the last; `async with` holds it open in between. A remote that dies is
    dialled again at the next call.
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
        """Nothing is connected yet.

        `tools` are the only ones shown, by the remote's names; `rename` gives them others.
        `on_call` sees each call before it is sent and refuses it by raising `ToolError`;
        `on_result` sees what came back.
        """
        checks.server("config", config)
        if not isinstance(config, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError("config", f"a {type(config).__name__}", "a configuration")
        need_mcp("config")
        if not isinstance(limits, RemoteLimits):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError("limits", limits, "a RemoteLimits value")
        self._config = checks.plain("config", config)
        self._names = ToolFilter(tools, rename)
        self._onlookers = CallObservers(on_call, on_result)
        self._limits = limits
        self._redact = Redactor(secrets_of(self._config)).text
        self._line = SharedConnection(self._dial, limits.retry_pause)
        self._shown: ExposedTools | None = None
        self._callers: list[Caller] = []
        self._open: dict[int, _Open] = {}

    def __repr__(self) -> str:
        return f"RemoteTools({self._label!r}, sessions={len(self._callers)})"

    @property
    def tool_names(self) -> tuple[str, ...]:
        return self._names.promised if self._shown is None else tuple(self._shown.tools)

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection now."""
        return self._line.remote is not None

    async def __aenter__(self) -> Self:
        self._line.join()
        try:
            await self._line.now(self._label)
        except BaseException:
            await self._line.leave()
            raise
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self._line.leave()

    async def attach(self, caller: Caller) -> None:
        self._line.join()
        self._callers.append(caller)
        await self._line.now(caller.server)

    async def detach(self, caller: Caller) -> None:
        if caller in self._callers:
            self._callers.remove(caller)
            await self._line.leave()

    async def handle(self, message: JsonObject, caller: Caller) -> JsonObject | None:
        number, method = message.get("id"), message.get("method")
        if number is None or not isinstance(method, str):
            # The remote was greeted by us, and a call that is taken back is cancelled here.
            return None
        if method == "ping":
            return rpc_result(number, {})
        params: Any = message.get("params") or {}
        if not _json.is_object(params):
            return rpc_error(number, BAD_PARAMS, "params: an object is needed")
        try:
            answer = await self._answer(method, params, caller)
        except (ConnectionLost, McpNotReady) as error:
            return rpc_error(number, INTERNAL_ERROR, self._why(error, caller))
        return {**answer, "id": number}

    # Answers

    async def _answer(self, method: str, params: JsonObject, caller: Caller) -> JsonObject:
        if method == "initialize":
            return rpc_result(
                0, _offered((await self._line.unless_just_failed(caller.server)).hello)
            )
        if method == "tools/list":
            await self._line.unless_just_failed(caller.server)
            return rpc_result(0, {"tools": [*self._known().tools.values()]})
        if method == "tools/call":
            return await self._call(params, caller)
        if method.startswith(PASSED):
            return await self._ask(method, params, caller)
        return rpc_error(0, METHOD_NOT_FOUND, f"method not found: {method}")

    async def _call(self, params: JsonObject, caller: Caller) -> JsonObject:
        name = params.get("name")
        remote_name = self._known().remote_names.get(name) if isinstance(name, str) else None
        if remote_name is None:
            return rpc_error(0, BAD_PARAMS, f"name: there is no tool {name!r}")
        call = describe(params, remote_name, caller)
        refusal = await self._onlookers.refusal(call, caller)
        if refusal is not None:
            return rpc_result(0, refusal)
        try:
            answer = await self._ask("tools/call", {**params, "name": remote_name}, caller)
        except (ConnectionLost, McpNotReady) as error:
            caller.report(call.tool, error)
            raise
        await self._onlookers.saw(call, answer, caller)
        return answer

    async def _ask(self, method: str, params: JsonObject, caller: Caller) -> JsonObject:
        remote = await self._line.unless_just_failed(caller.server)
        try:
            return await self._put(remote, method, params, caller)
        except NotProcessed:
            # It came back as another process.
            remote = await self._line.now(caller.server)
            return await self._put(remote, method, params, caller)

    async def _put(
        self, remote: RemoteConnection, method: str, params: JsonObject, caller: Caller
    ) -> JsonObject:
        """The remote's answer. On a shared connection ids and progress tokens must be ours."""
        number = remote.next_number()
        meta = params.get("_meta")
        token = meta.get("progressToken") if _json.is_object(meta) else None
        if _json.is_object(meta) and token is not None:
            params = {**params, "_meta": {**meta, "progressToken": number}}
        self._open[number] = _Open(caller, token)
        try:
            return await remote.ask(
                {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            )
        finally:
            del self._open[number]

    # The connection

    async def _dial(self, name: str) -> RemoteConnection:
        remote = await connect(name, self._config, self._heard, self._asked, self._limits)
        try:
            self._show(remote, name)
        except BaseException:
            await remote.aclose()
            raise
        return remote

    def _show(self, remote: RemoteConnection, name: str) -> None:
        before, self._shown = self._shown, show(remote.tools, self._names, name)
        if before is not None and before != self._shown:
            self._tell_all(notification(LIST_CHANGED))

    def _known(self) -> ExposedTools:
        assert self._shown is not None
        return self._shown

    # What the remote says by itself

    def _heard(self, message: JsonObject) -> None:
        method, params = message["method"], message.get("params")
        if method == PROGRESS and _json.is_object(params):
            call = self._open.get(params.get("progressToken", 0))
            if call is not None and call.token is not None:
                call.caller.notify({**message, "params": {**params, "progressToken": call.token}})
        elif method == LIST_CHANGED and self._line.remote is not None:
            self._line.remote.peer.run(self._list_again(self._line.remote))
        else:
            self._tell_all(message)

    async def _list_again(self, remote: RemoteConnection) -> None:
        try:
            remote.tools = await remote.list_tools()
            self._show(remote, self._label)
        except (ConnectionLost, ValueError, McpNotReady) as error:
            logger.warning("the tools of %r could not be listed again: %s", self, error)

    def _tell_all(self, message: JsonObject) -> None:
        for caller in self._callers:
            caller.notify(message)

    async def _asked(self, request: JsonObject) -> JsonObject:
        """Whom a question is for is not said: it must be plain from who is calling."""
        asking = {id(each.caller): each.caller for each in self._open.values()}
        callers = [*asking.values()] or self._callers
        return await answer_server(request, callers[0] if len(callers) == 1 else None)

    # Words

    @property
    def _label(self) -> str:
        return self._redact(str(self._config.get("url") or self._config.get("command")))

    def _why(self, error: ConnectionLost | McpNotReady, caller: Caller) -> str:
        if isinstance(error, McpNotReady):
            return error.what
        lost = f"the tool server {caller.server!r} was lost during the call: {error}"
        return self._redact(f"{lost}; whether it ran is not known")


def _offered(hello: JsonObject) -> JsonObject:
    """What the remote said of itself; changes of its tools are told in any case."""
    offers = hello.get("capabilities")
    if not (_json.is_object(offers) and _json.is_object(offers.get("tools"))):
        return hello
    tools = {**offers["tools"], "listChanged": True}
    return {**hello, "capabilities": {**offers, "tools": tools}}
