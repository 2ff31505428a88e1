"""`everything` as a process, and a host that talks to MCP servers as a session does."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import Any, Self

from steersman.permissions import Elicitation, ElicitationAnswer
from steersman.ports import Caller, JsonObject, ToolServer
from tests.mcp_servers import everything

ROOT = Path(__file__).parents[2]
MODULE = "tests.mcp_servers.everything"
PATIENCE = 20


def paths() -> str:
    """Return the PYTHONPATH with which a child finds this tree and the same `mcp`."""
    return os.pathsep.join(
        [*filter(None, [os.environ.get("PYTHONPATH")]), str(ROOT / "src"), str(ROOT)]
    )


def stdio_config(**env: str) -> dict[str, Any]:
    """Return the configuration of `everything` over stdin and stdout."""
    return {
        "command": sys.executable,
        "args": ["-m", MODULE, "stdio"],
        "env": {"PYTHONPATH": paths(), **env},
    }


def tiny_config(**env: str) -> dict[str, Any]:
    """Return the configuration of `tiny`, which starts quickly."""
    return {
        "command": sys.executable,
        "args": [str(ROOT / "tests/mcp_servers/tiny.py")],
        "env": env,
    }


@dataclass
class Running:
    """A server that runs on a port."""

    kind: str
    port: int
    process: ForkServerProcess

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/{'mcp' if self.kind == 'http' else 'sse'}"

    def config(self, **headers: str) -> dict[str, Any]:
        return {"type": self.kind, "url": self.url, "headers": headers}

    def kill(self) -> None:
        self.process.kill()
        self.wait()

    def wait(self) -> None:
        self.process.join(PATIENCE)
        assert self.process.exitcode is not None


@cache
def nursery() -> ForkServerContext:
    """Return the context that forks HTTP servers: importing `mcp` for each takes a second."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["mcp.server.mcpserver", "mcp.server.fastmcp", "uvicorn"])
    return context


def serve(kind: str, port: int, env: Mapping[str, str], port_told: Connection) -> None:
    """Run a server in a process that has none of this one's environment."""
    os.environ.clear()
    os.environ.update(env)
    everything.main(kind, port, port_told.send)


@contextmanager
def running(kind: str, *, port: int = 0, env: Mapping[str, str] | None = None) -> Iterator[Running]:
    """Run `everything` over `http` or `sse`, on a port of its own."""
    heard, told = nursery().Pipe(duplex=False)
    known = {"PATH": os.environ.get("PATH", ""), **(env or {})}
    process = nursery().Process(target=serve, args=(kind, port, known, told))
    process.start()
    told.close()
    with heard:
        try:
            assert heard.poll(PATIENCE)
            yield Running(kind, heard.recv(), process)
        finally:
            process.kill()
            process.join(PATIENCE)
            process.close()


@dataclass
class Host:
    """One session, as an MCP server sees it."""

    server: ToolServer
    key: str = "key"
    answer: ElicitationAnswer | None = None
    notifications: list[JsonObject] = field(default_factory=list[JsonObject])
    asked: list[Elicitation] = field(default_factory=list[Elicitation])
    reported: list[tuple[str, BaseException]] = field(
        default_factory=list[tuple[str, BaseException]]
    )

    def __post_init__(self) -> None:
        self.arrived = asyncio.Event()
        self.caller = Caller(
            f"session of {self.key}",
            self.key,
            self._on_notification,
            report=lambda tool, error: self.reported.append((tool, error)),
            elicit=self._elicit,
        )

    async def __aenter__(self) -> Self:
        try:
            async with asyncio.timeout(PATIENCE):
                await self.server.attach(self.caller)
        except BaseException:
            await self.server.detach(self.caller)
            raise
        return self

    async def __aexit__(self, *_error: object) -> None:
        async with asyncio.timeout(PATIENCE):
            await self.server.detach(self.caller)

    async def send(self, message: JsonObject) -> Any:
        async with asyncio.timeout(PATIENCE):
            return await self.server.handle(message, self.caller)

    async def ask(self, method: str, *, number: int | str = 7, **params: Any) -> Any:
        return await self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})

    async def initialize(self) -> Any:
        answer = await self.ask(
            "initialize",
            number=0,
            protocolVersion="2025-11-25",
            capabilities={},
            clientInfo={"name": "claude-code", "version": "2"},
        )
        assert await self.send({"jsonrpc": "2.0", "method": "notifications/initialized"}) is None
        return answer["result"]

    async def call(self, tool: str, /, *, meta: JsonObject | None = None, **arguments: Any) -> Any:
        more: dict[str, Any] = {} if meta is None else {"_meta": meta}
        answer = await self.ask("tools/call", name=tool, arguments=arguments, **more)
        assert answer["id"] == 7
        return answer

    async def text_of(self, tool: str, /, **arguments: Any) -> str:
        """Return the text of a tool's result, or the message of a JSON-RPC error."""
        answer = await self.call(tool, **arguments)
        if "error" in answer:
            return str(answer["error"]["message"])
        return "".join(block["text"] for block in answer["result"]["content"])

    async def wait_for(self, method: str) -> JsonObject:
        """Return the next notification with that method, once it has arrived."""
        async with asyncio.timeout(PATIENCE):
            while True:
                for each in self.notifications:
                    if each["method"] == method:
                        self.notifications.remove(each)
                        return each
                self.arrived.clear()
                await self.arrived.wait()

    def _on_notification(self, message: JsonObject) -> None:
        self.notifications.append(message)
        self.arrived.set()

    async def _elicit(self, elicitation: Elicitation) -> ElicitationAnswer:
        self.asked.append(elicitation)
        return self.answer or ElicitationAnswer("decline")
