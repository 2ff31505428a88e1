"""A client of a toolbox, in the place of a session."""

from __future__ import annotations

import asyncio
from typing import Any

from steersman.ports import Caller, JsonObject
from steersman.tools import Toolbox


class Client:
    """Sends requests to a toolbox as one session does."""

    def __init__(self, *tools: Any, box: Toolbox | None = None) -> None:
        self.toolbox = box or Toolbox("box", tools)
        self.notifications: list[JsonObject] = []
        self.reported: list[tuple[str, BaseException]] = []
        self.caller = Caller("session-1", "key", self.notifications.append, self._report)

    async def send(self, message: JsonObject) -> Any:
        async with asyncio.timeout(5):
            return await self.toolbox.handle(message, self.caller)

    async def ask(self, method: Any, params: Any = None) -> Any:
        return await self.send({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})

    async def call(self, name: str, /, **arguments: Any) -> Any:
        meta = {"claudecode/toolUseId": "toolu_1", "progressToken": 3}
        answer = await self.ask("tools/call", {"name": name, "arguments": arguments, "_meta": meta})
        return answer["result"]

    def _report(self, tool: str, error: BaseException) -> None:
        self.reported.append((tool, error))


def text(words: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}]}


def failure(words: str) -> dict[str, Any]:
    return {**text(words), "isError": True}
