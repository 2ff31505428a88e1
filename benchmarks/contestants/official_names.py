"""A program on the public names of the official Python SDK, whichever package has them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.contestants.measuring import Order, check_answer, main, weigher

LONGEST_LINE = 256 * 1024 * 1024
NEWEST = 20


class Client:
    """One client."""

    def __init__(self, sdk: Any, client: Any, weigh: Callable[[str], int]) -> None:
        self._sdk = sdk
        self._client = client
        self._weigh = weigh

    async def turn(self, prompt: str) -> int:
        """Send a prompt and read the text of every message up to the result."""
        sdk = self._sdk
        stream, assistant, result, text = (
            *(sdk.StreamEvent, sdk.AssistantMessage),
            *(sdk.ResultMessage, sdk.TextBlock),
        )
        await self._client.query(prompt)
        weight, weigh = 0, self._weigh
        async for message in self._client.receive_response():
            if isinstance(message, stream):
                weight += weigh(message.event.get("delta", {}).get("text", ""))
            elif isinstance(message, assistant):
                texts = (each.text for each in message.content if isinstance(each, text))
                weight += sum(map(weigh, texts))
            elif isinstance(message, result):
                check_answer(prompt, message.result)
        return weight

    async def send(self, prompt: str) -> None:
        """Send a prompt and read nothing."""
        await self._client.query(prompt)

    async def restart(self) -> None:
        """Raise: the official API has no such thing."""
        raise NotImplementedError

    async def close(self) -> None:
        """Disconnect."""
        await self._client.disconnect()


async def add(given: dict[str, Any]) -> dict[str, Any]:
    """Add two numbers."""
    return {"content": [{"type": "text", "text": str(given["a"] + given["b"])}]}


async def on_tool(*_: Any) -> Any:
    """Return no decision."""
    return {}


async def open_client(sdk: Any, order: Order, asked: asyncio.Event) -> Client:
    """Connect a client to the stand-in, with only the options that the order needs."""

    async def can_use_tool(*_: Any) -> Any:
        asked.set()
        return sdk.PermissionResultAllow()

    options = sdk.ClaudeAgentOptions(
        cli_path=order.program,
        include_partial_messages=order.streams,
        max_buffer_size=LONGEST_LINE,
        cwd=order.folder or None,
    )
    if order.asks("permission"):
        options.can_use_tool = can_use_tool
    if order.asks("hook"):
        options.hooks = {"PreToolUse": [sdk.HookMatcher(hooks=[on_tool])]}
    if order.asks("tool"):
        schema = {"a": float, "b": float}
        tools = [sdk.tool("add", "Add two numbers.", schema)(add)]
        options.mcp_servers = {"bench": sdk.create_sdk_mcp_server("bench", tools=tools)}
    client = sdk.ClaudeSDKClient(options)
    await client.connect()
    return Client(sdk, client, weigher(order))


async def one_shot(sdk: Any, order: Order, prompt: str) -> int:
    """Send one prompt, with the default options, and read every message."""
    options = sdk.ClaudeAgentOptions(cli_path=order.program, cwd=order.folder)
    weight = 0
    async for message in sdk.query(prompt=prompt, options=options):
        if isinstance(message, sdk.AssistantMessage):
            texts = (each.text for each in message.content if isinstance(each, sdk.TextBlock))
            weight += sum(map(len, texts))
    return weight


def stored(sdk: Any, order: Order, config: str) -> int:
    """List or read session files."""
    os.environ["CLAUDE_CONFIG_DIR"] = config
    if order.kind in ("list", "newest"):
        return len(sdk.list_sessions(limit=NEWEST if order.kind == "newest" else None))
    (path,) = Path(config).glob("projects/*/*.jsonl")
    found = sdk.get_session_messages(path.stem)
    return len(found if order.kind == "chain" else found[-NEWEST:])


def run(sdk: Any) -> None:
    """Run the order on the command line with a package."""

    async def open_one(order: Order, asked: asyncio.Event) -> Client:
        return await open_client(sdk, order, asked)

    async def shoot(order: Order, prompt: str) -> int:
        return await one_shot(sdk, order, prompt)

    main(open_one, lambda order, config: stored(sdk, order, config), shoot)
