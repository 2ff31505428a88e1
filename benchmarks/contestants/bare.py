"""The bare loop: an asyncio protocol and msgspec, without any feature of an SDK.

No journal, no turns, no tasks, no errors. It counts what it reads and allows every tool. Its cost
is the lower bound for an SDK in Python.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any, cast

import msgspec
from msgspec import Struct

from benchmarks.contestants.measuring import Order, main


class Block(Struct, frozen=True):
    """A content block."""

    text: str = ""


class Event(Struct, frozen=True):
    """The event of a `stream_event` line."""

    delta: Block = Block()


class Body(Struct, frozen=True):
    """The message of an `assistant` line."""

    content: tuple[Block, ...] = ()


class Rpc(Struct, frozen=True):
    """A JSON-RPC message to an MCP server."""

    method: str
    id: int | None = None
    params: dict[str, Any] = {}


class Request(Struct, frozen=True):
    """A control request of the CLI."""

    subtype: str
    input: dict[str, Any] = {}
    message: Rpc | None = None


class Line(Struct, frozen=True):
    """The needed fields of any line."""

    type: str
    event: Event = Event()
    message: Any = None
    request_id: str = ""
    request: Request | None = None
    result: str = ""


class Texts(Struct, frozen=True):
    """The needed field of an `assistant` line."""

    message: Body


_lines = msgspec.json.Decoder(Line)
_texts = msgspec.json.Decoder(Texts)
_encoder = msgspec.json.Encoder()

TOOLS = [{"name": "add", "description": "Add.", "inputSchema": {"type": "object"}}]
SERVER: dict[str, Any] = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "bench", "version": "1"},
}


class Bare(asyncio.SubprocessProtocol):
    """One conversation."""

    def __init__(self, asked: asyncio.Event) -> None:
        self._asked = asked
        self._parts: list[bytes] = []
        self._weight = 0
        self._done: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.ready = asyncio.get_running_loop().create_future()
        self.exited = asyncio.get_running_loop().create_future()
        self.transport: asyncio.SubprocessTransport | None = None
        self.stdin: asyncio.WriteTransport | None = None

    def pipe_data_received(self, fd: int, data: bytes) -> None:  # noqa: ARG002 - the signature of asyncio
        """Split, decode and count lines, and answer requests."""
        head, newline, rest = data.partition(b"\n")
        self._parts.append(head)
        if not newline:
            return
        lines = [b"".join(self._parts), *rest.split(b"\n")]
        self._parts = [lines.pop()]
        for line in lines:
            self._on_line(line)

    def process_exited(self) -> None:
        """Report the exit."""
        if not self.exited.done():
            self.exited.set_result(None)

    def _on_line(self, line: bytes) -> None:
        # The most frequent kinds come first; both begin with `type`.
        if line.startswith(b'{"type":"assistant"'):
            self._weight += sum(len(each.text) for each in _texts.decode(line).message.content)
            return
        found = _lines.decode(line)
        if found.type == "stream_event":
            self._weight += len(found.event.delta.text)
        elif found.type == "control_request":
            self._answer(found.request_id, cast("Request", found.request))
        elif found.type == "control_response" and not self.ready.done():
            self.ready.set_result(None)
        elif found.type == "result":
            self._done.set_result(found.result)

    def _answer(self, request_id: str, request: Request) -> None:
        answer: Any = {}
        if request.subtype == "can_use_tool":
            self._asked.set()
            answer = {"behavior": "allow", "updatedInput": request.input}
        elif request.message is not None:
            answer = {"mcp_response": serve(request.message)}
        response = {"subtype": "success", "request_id": request_id, "response": answer}
        self.write({"type": "control_response", "response": response})

    def write(self, value: Any) -> None:
        """Send one line."""
        assert self.stdin is not None
        self.stdin.write(_encoder.encode(value) + b"\n")

    async def turn(self, prompt: str) -> int:
        """Send a prompt and count the characters up to the result."""
        self._weight, self._done = 0, asyncio.get_running_loop().create_future()
        await self.send(prompt)
        assert await self._done == f"done {prompt.split()[2]}"
        return self._weight

    async def send(self, prompt: str) -> None:
        """Send a prompt."""
        self.write({"type": "user", "message": {"role": "user", "content": prompt}})

    async def restart(self) -> None:
        """Raise: a bare loop cannot restart."""
        raise NotImplementedError

    async def close(self) -> None:
        """Close stdin and wait for the exit."""
        assert self.stdin is not None
        assert self.transport is not None
        self.stdin.close()
        await self.exited
        self.transport.close()


def serve(message: Rpc) -> Any:
    """Return the answer of the MCP server."""
    result: Any = {}
    if message.method == "initialize":
        result = SERVER
    elif message.method == "tools/list":
        result = {"tools": TOOLS}
    elif message.method == "tools/call":
        given = message.params["arguments"]
        result = {"content": [{"type": "text", "text": str(given["a"] + given["b"])}]}
    return {"jsonrpc": "2.0", "id": message.id, "result": result}


async def open_bare(order: Order, asked: asyncio.Event) -> Bare:
    """Start the CLI and initialize it."""
    environment = {"PATH": os.environ["PATH"], "CLAUDE_CODE_SDK_READS_SESSION_STATE": "1"}
    transport, conversation = await asyncio.get_running_loop().subprocess_exec(
        lambda: Bare(asked), order.program, env=environment
    )
    conversation.transport = transport
    conversation.stdin = cast("asyncio.WriteTransport", transport.get_pipe_transport(0))
    initialize: dict[str, Any] = {"subtype": "initialize"}
    if order.asks("hook"):
        initialize["hooks"] = {"PreToolUse": [{"hookCallbackIds": ["hook_0"]}]}
    if order.asks("tool"):
        initialize["sdkMcpServers"] = ["bench"]
    conversation.write({"type": "control_request", "request_id": "1", "request": initialize})
    await conversation.ready
    return conversation


if __name__ == "__main__":
    main(open_bare)
