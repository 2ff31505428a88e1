"""Manifests: what a CLI asks an in-process MCP server at its start, asked before that start.

A CLI that continues a turn requests the model before it has listed the tools of our servers; a call
of one of them then fails. With a manifest in the initialize request it has them from the beginning.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from steersman._json import Json, JsonDict, JsonObject, is_object, is_sequence

PROTOCOL_VERSION = "2025-11-25"
"""The MCP version of the CLI's own `initialize`."""
MOST_PAGES = 100

Ask = Callable[[str, JsonObject], Awaitable[JsonObject]]
"""Gives a JSON-RPC message to the server of that key, and returns its answer."""


async def manifests_of(
    keys: Iterable[str], ask: Ask, version: str, timeout: float
) -> dict[str, JsonDict]:
    """Return the manifest of each server that gives one in time; the CLI asks the others itself."""
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
    # The ids are texts, so that they are no ids of the CLI, which counts.
    message: JsonDict = {"jsonrpc": "2.0", "id": f"steersman-{method}", "method": method}
    answer = await ask(key, {**message, "params": params})
    result = answer.get("result")
    return dict(result) if is_object(result) else None
