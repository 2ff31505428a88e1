"""Passes MCP messages of the CLI to the in-process MCP servers, and asks these for their tools."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping

from steersman._json import Json, JsonDict, JsonObject, is_object, is_sequence
from steersman._protocol.events import ToolCalled
from steersman.ports import INTERNAL_ERROR, Caller, ToolServer, jsonrpc_error

LIST_CHANGED = "notifications/tools/list_changed"

NOT_IN_NAMES = re.compile("[^a-zA-Z0-9_-]")
"""What the CLI replaces by `_` in the names of MCP servers and tools."""

NO_TOOLS: frozenset[str] = frozenset()

LISTING = 1.0
"""Seconds for the CLI to list tools that have changed; it does so at once."""

DETACHING = 10.0
"""Seconds that a server's `detach` may take."""

PROTOCOL_VERSION = "2025-11-25"
"""The MCP version of the CLI's own `initialize`."""
MOST_PAGES = 100

Ask = Callable[[str, JsonObject], Awaitable[JsonObject]]
"""Gives a JSON-RPC message to the server of that key, and returns its answer."""


class ToolServers:
    """The in-process MCP servers of one session. Every message to them is answered."""

    def __init__(
        self,
        servers: Mapping[str, ToolServer],
        callers: Mapping[str, Caller],
        report: Callable[[str, BaseException | str], None],
    ) -> None:
        self._servers = dict(servers)
        self._callers = dict(callers)
        self._report = report
        self._attached: list[str] = []
        self._unlisted: dict[str, asyncio.Event] = {}
        """The servers whose tools have changed; the event is set when the CLI has listed them."""
        for caller in self._callers.values():
            self._watch_changes(caller)
        self._repeatable: dict[str, frozenset[str]] = {}
        """The tools of each server that change nothing, or nothing more when they run again."""
        self.external: dict[str, JsonDict] = {}
        """The external servers that were set at run time. They run in the CLI, not here."""

    async def attach(self) -> None:
        """Attach every server to this session. Raises `McpNotReady`."""
        for key, server in self._servers.items():
            self._attached.append(key)
            await server.attach(self._callers[key])

    async def detach(self) -> None:
        """Detach every server that was attached."""
        attached, self._attached = self._attached, []
        for key in attached:
            await self._detach(self._servers[key], self._callers[key])

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of the servers in this process."""
        return tuple(self._servers)

    async def add(self, server: ToolServer, caller: Caller) -> None:
        """Add a server under `caller.server`. Raises `McpNotReady`; then it is not added."""
        self._watch_changes(caller)
        try:
            await server.attach(caller)
        except BaseException:
            await self._detach(server, caller)
            raise
        self._servers[caller.server], self._callers[caller.server] = server, caller
        self._attached.append(caller.server)

    async def remove(self, key: str) -> None:
        """Remove and detach a server."""
        server, caller = self._servers.pop(key), self._callers.pop(key)
        self._unlisted.pop(key, None)
        if key in self._attached:
            self._attached.remove(key)
            await self._detach(server, caller)

    async def _detach(self, server: ToolServer, caller: Caller) -> None:
        try:
            async with asyncio.timeout(DETACHING):
                await server.detach(caller)
        except Exception as error:  # noqa: BLE001 - the caller's server; the others must be detached too
            self._report(f"tool server {caller.server!r}", error)

    def is_repeatable(self, tool_name: str) -> bool:
        """Whether a tool is declared as read-only or idempotent, by the CLI's name for it."""
        return any(tool_name in tools for tools in self._repeatable.values())

    def name_session(self, session_id: str) -> None:
        """Set the session id that the servers see; the CLI reports it, and may change it."""
        for caller in self._callers.values():
            caller.session_id = session_id

    async def manifests(self, version: str, timeout: float) -> dict[str, JsonDict]:
        """Return the tools of every server, for the initialize request of a CLI that continues."""
        self._unlisted.clear()
        if not self._servers:
            return {}
        return await manifests_of(self._servers, self._handle, version, timeout)

    async def answer(self, asked: ToolCalled) -> JsonObject:
        """Return the server's answer, or a JSON-RPC error.

        The result of a call that has added tools is held until the CLI has listed them: the model
        may call one of them at once.
        """
        reply = await self._handle(asked.server, asked.message)
        method = asked.message.get("method")
        if method == "tools/list":
            listed = self._unlisted.pop(asked.server, None)
            if listed is not None:
                listed.set()
        elif method == "tools/call" and self._unlisted:
            await self._wait_for_lists()
        return reply

    def _watch_changes(self, caller: Caller) -> None:
        send = caller.notify

        def notify(message: JsonObject) -> None:
            if message.get("method") == LIST_CHANGED:
                self._unlisted.setdefault(caller.server, asyncio.Event())
            send(message)

        caller.notify = notify

    async def _wait_for_lists(self) -> None:
        try:
            async with asyncio.timeout(LISTING):
                for listed in list(self._unlisted.values()):
                    await listed.wait()
        except TimeoutError:
            # An older CLI, or one that has no use for the tools.
            self._unlisted.clear()

    async def _handle(self, key: str, message: JsonObject) -> JsonObject:
        request_id = message.get("id")
        server = self._servers.get(key)
        if server is None:
            return jsonrpc_error(
                request_id,
                INTERNAL_ERROR,
                f"there is no MCP server named {key!r} in this process",
            )
        try:
            reply = await server.handle(message, self._callers[key])
        except Exception as error:  # noqa: BLE001 - the caller's server; the CLI needs an answer
            self._report(f"tool server {key!r}", error)
            return jsonrpc_error(
                request_id, INTERNAL_ERROR, f"the MCP server failed: {type(error).__name__}"
            )
        if reply is not None and message.get("method") == "tools/list":
            params = message.get("params")
            is_further_page = is_object(params) and bool(params.get("cursor"))
            before = self._repeatable.get(key, NO_TOOLS) if is_further_page else NO_TOOLS
            self._repeatable[key] = before | _repeatable(key, reply)
        # Notifications must be answered too, or the CLI waits until its timeout.
        return reply if reply is not None else {"jsonrpc": "2.0", "result": {}}


def _repeatable(key: str, reply: JsonObject) -> frozenset[str]:
    """Return the tools of a list that are declared as read-only or idempotent."""
    result = reply.get("result")
    tools = result.get("tools") if is_object(result) else None
    return frozenset(
        f"mcp__{NOT_IN_NAMES.sub('_', key)}__{NOT_IN_NAMES.sub('_', str(each.get('name')))}"
        for each in (tools if is_sequence(tools) else ())
        if is_object(each) and _may_repeat(each.get("annotations"))
    )


def _may_repeat(hints: Json) -> bool:
    return is_object(hints) and True in (hints.get("readOnlyHint"), hints.get("idempotentHint"))


async def manifests_of(
    keys: Iterable[str], ask: Ask, version: str, timeout: float
) -> dict[str, JsonDict]:
    """Return the manifest of each server that gives one in time; the CLI asks the others itself.

    A manifest is what a CLI asks a server at its start, asked before that start. A CLI that
    continues a turn requests the model before it has listed the tools of our servers; a call of one
    of them then fails. With a manifest in the initialize request it has them from the beginning.
    """
    names = list(keys)
    asked = [_manifest(key, ask, version, timeout) for key in names]
    found = await asyncio.gather(*asked)
    return {key: each for key, each in zip(names, found, strict=True) if each is not None}


async def _manifest(key: str, ask: Ask, version: str, timeout: float) -> JsonDict | None:
    client: JsonDict = {"name": "claude-code", "version": version}
    params: JsonDict = {
        "protocolVersion": PROTOCOL_VERSION,
        "capabilities": {},
        "clientInfo": client,
    }
    try:
        async with asyncio.timeout(timeout):
            initialized = await _request(key, ask, "initialize", params)
            if initialized is None:
                return None
            await ask(key, {"jsonrpc": "2.0", "method": "notifications/initialized"})
            tools = await _tools(key, ask)
    except TimeoutError:
        return None
    if tools is None:
        return None
    return {"initializeResult": initialized, "toolsListResult": {"tools": tools}}


async def _tools(key: str, ask: Ask) -> list[Json] | None:
    tools: list[Json] = []
    params: JsonDict = {}
    for _ in range(MOST_PAGES):
        page = await _request(key, ask, "tools/list", params)
        listed = None if page is None else page.get("tools")
        if page is None or not is_sequence(listed):
            return None
        tools += listed
        if not page.get("nextCursor"):
            return tools
        params = {"cursor": page["nextCursor"]}
    return None


async def _request(key: str, ask: Ask, method: str, params: JsonObject) -> JsonDict | None:
    # The ids are strings, so that they are no ids of the CLI, which counts.
    message: JsonDict = {"jsonrpc": "2.0", "id": f"steersman-{method}", "method": method}
    answer = await ask(key, {**message, "params": params})
    result = answer.get("result")
    return dict(result) if is_object(result) else None
