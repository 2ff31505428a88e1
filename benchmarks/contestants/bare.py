"""The bare loop: `loop.add_reader`, reads of 64 KB and msgspec, without any feature of an SDK.

No journal, no turns, no tasks, no errors. It counts what it reads and allows every tool. Its cost
is the lower bound for an SDK in Python.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from typing import Any, cast

import msgspec
from msgspec import Struct

from benchmarks.contestants.measuring import Order, check_answer, main, weigher


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


READ = 64 * 1024
EXITING = 10.0


class Bare:
    """One conversation."""

    def __init__(self, order: Order, asked: asyncio.Event) -> None:
        self._asked = asked
        self._weigh = weigher(order)
        self._rest: list[bytes] = []
        self._weight = 0
        self._answers: list[bytes] = []
        self._unsent = b""
        self._loop = asyncio.get_running_loop()
        self._done: asyncio.Future[str] = self._loop.create_future()
        self.ready = self._loop.create_future()
        environment = {"PATH": os.environ["PATH"], "CLAUDE_CODE_SDK_READS_SESSION_STATE": "1"}
        self._process = subprocess.Popen(  # noqa: S603 - the stand-in
            [order.program], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._stdin, False)
        os.set_blocking(self._stdout, False)
        self._loop.add_reader(self._stdout, self._on_readable)

    def _on_readable(self) -> None:
        """Split, decode and count lines, and answer requests: one read, at most one write."""
        data = os.read(self._stdout, READ)
        if not data:
            self._loop.remove_reader(self._stdout)
            return
        lines = data.split(b"\n")
        if self._rest:
            if len(lines) == 1:
                self._rest.append(data)
                return
            lines[0] = b"".join([*self._rest, lines[0]])
        last = lines.pop()
        self._rest = [last] if last else []
        for line in lines:
            self._on_line(line)
        if self._answers:
            self._flush()

    def _on_line(self, line: bytes) -> None:
        # The most frequent kinds come first; both begin with `type`.
        if line.startswith(b'{"type":"assistant"'):
            self._weight += sum(
                self._weigh(each.text) for each in _texts.decode(line).message.content
            )
            return
        found = _lines.decode(line)
        if found.type == "stream_event":
            self._weight += self._weigh(found.event.delta.text)
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
        line = _encoder.encode({"type": "control_response", "response": response})
        self._answers.append(line + b"\n")

    def write(self, value: Any) -> None:
        """Send one line."""
        self._answers.append(_encoder.encode(value) + b"\n")
        self._flush()

    def _flush(self) -> None:
        """Write as much as the pipe takes now, and the rest when it takes more."""
        is_waiting = bool(self._unsent)
        self._unsent += b"".join(self._answers)
        self._answers.clear()
        if is_waiting:
            return
        self._send()
        if self._unsent:
            self._loop.add_writer(self._stdin, self._send)

    def _send(self) -> None:
        try:
            self._unsent = self._unsent[os.write(self._stdin, self._unsent) :]
        except BlockingIOError:
            return
        if not self._unsent:
            self._loop.remove_writer(self._stdin)

    async def turn(self, prompt: str) -> int:
        """Send a prompt and count the characters up to the result."""
        self._weight, self._done = 0, asyncio.get_running_loop().create_future()
        await self.send(prompt)
        check_answer(prompt, await self._done)
        return self._weight

    async def send(self, prompt: str) -> None:
        """Send a prompt."""
        self.write({"type": "user", "message": {"role": "user", "content": prompt}})

    async def restart(self) -> None:
        """Raise: a bare loop cannot restart."""
        raise NotImplementedError

    async def close(self) -> None:
        """Close the pipes and wait for the exit."""
        self._loop.remove_reader(self._stdout)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(EXITING)


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
    conversation = Bare(order, asked)
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
