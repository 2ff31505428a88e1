"""What the installed official package makes of lines, seen through its public client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from typing import Any

import claude_agent_sdk

Frame = dict[str, Any]


class CannedTransport(claude_agent_sdk.Transport):
    """Answers the handshake, then gives the frames and ends."""

    def __init__(self, frames: Iterable[Any]) -> None:
        self._frames = list(frames)
        self._requests: asyncio.Queue[Frame] = asyncio.Queue()

    async def connect(self) -> None:
        return None

    async def write(self, data: str) -> None:
        frame: Frame = json.loads(data)
        if frame["type"] == "control_request":
            await self._requests.put(frame)

    async def read_messages(self) -> AsyncIterator[Frame]:
        request = await self._requests.get()
        answer = {"subtype": "success", "request_id": request["request_id"], "response": {}}
        yield {"type": "control_response", "response": answer}
        for frame in self._frames:
            yield frame

    async def close(self) -> None:
        return None

    def is_ready(self) -> bool:
        return True

    async def end_input(self) -> None:
        return None


async def read_by_official(frames: Iterable[Any]) -> list[Any]:
    """Return the messages for `frames`, and what was raised as the last item."""
    found: list[Any] = []
    async with asyncio.timeout(30):
        client = claude_agent_sdk.ClaudeSDKClient(transport=CannedTransport(frames))
        try:
            await client.connect()
            async for message in client.receive_messages():
                found.append(message)  # noqa: PERF401 - those before an error are kept
        except Exception as error:  # noqa: BLE001 - what it raises is what is compared
            found.append(error)
        finally:
            await client.disconnect()
    return found
