"""The official Python SDK, used through its public names only."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookMatcher,
    PermissionResultAllow,
    ResultMessage,
    StreamEvent,
    TextBlock,
    create_sdk_mcp_server,
    get_session_messages,
    list_sessions,
    query,
    tool,
)

from benchmarks.contestants.measuring import Order, check_answer, main, weigher

LONGEST_LINE = 256 * 1024 * 1024
NEWEST = 20


class Official:
    """One client."""

    def __init__(self, client: ClaudeSDKClient, weigh: Callable[[str], int]) -> None:
        self._client = client
        self._weigh = weigh

    async def turn(self, prompt: str) -> int:
        """Send a prompt and read the text of every message up to the result."""
        await self._client.query(prompt)
        weight, weigh = 0, self._weigh
        async for message in self._client.receive_response():
            if isinstance(message, StreamEvent):
                weight += weigh(message.event.get("delta", {}).get("text", ""))
            elif isinstance(message, AssistantMessage):
                texts = (each.text for each in message.content if isinstance(each, TextBlock))
                weight += sum(map(weigh, texts))
            elif isinstance(message, ResultMessage):
                check_answer(prompt, message.result)
        return weight

    async def send(self, prompt: str) -> None:
        """Send a prompt and read nothing."""
        await self._client.query(prompt)

    async def restart(self) -> None:
        """Raise: this SDK does not restart a CLI."""
        raise NotImplementedError

    async def close(self) -> None:
        """Disconnect."""
        await self._client.disconnect()


@tool("add", "Add two numbers.", {"a": float, "b": float})
async def add(given: dict[str, Any]) -> dict[str, Any]:
    """Add two numbers."""
    return {"content": [{"type": "text", "text": str(given["a"] + given["b"])}]}


async def on_tool(*_: Any) -> Any:
    """Return no decision."""
    return {}


async def open_official(order: Order, asked: asyncio.Event) -> Official:
    """Connect a client to the stand-in, with only the options that the order needs."""

    async def can_use_tool(*_: Any) -> PermissionResultAllow:
        asked.set()
        return PermissionResultAllow()

    options = ClaudeAgentOptions(
        cli_path=order.program,
        include_partial_messages=order.streams,
        max_buffer_size=LONGEST_LINE,
        cwd=order.folder or None,
    )
    if order.asks("permission"):
        options.can_use_tool = can_use_tool
    if order.asks("hook"):
        options.hooks = {"PreToolUse": [HookMatcher(hooks=[on_tool])]}
    if order.asks("tool"):
        options.mcp_servers = {"bench": create_sdk_mcp_server("bench", tools=[add])}
    client = ClaudeSDKClient(options)
    await client.connect()
    return Official(client, weigher(order))


async def one_shot(order: Order, prompt: str) -> int:
    """Send one prompt, with the default options, and read every message."""
    options = ClaudeAgentOptions(cli_path=order.program, cwd=order.folder)
    weight = 0
    async for message in query(prompt=prompt, options=options):
        if isinstance(message, AssistantMessage):
            texts = (each.text for each in message.content if isinstance(each, TextBlock))
            weight += sum(map(len, texts))
    return weight


def stored(order: Order, config: str) -> int:
    """List or read session files."""
    os.environ["CLAUDE_CONFIG_DIR"] = config
    if order.kind in ("list", "newest"):
        return len(list_sessions(limit=NEWEST if order.kind == "newest" else None))
    (path,) = Path(config).glob("projects/*/*.jsonl")
    found = get_session_messages(path.stem)
    return len(found if order.kind == "chain" else found[-NEWEST:])


if __name__ == "__main__":
    main(open_official, stored, one_shot)
