"""What the tests of the bridge share: a server on loopback, a scripted agent, and raw frames."""

from __future__ import annotations

import asyncio
import json
import socket
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any
from weakref import WeakKeyDictionary

import httpx
import uvicorn
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from steersman import Agent
from steersman.journal import Entry
from steersman.journal.files import Record
from steersman.testing.script import Answer, Script
from steersman.testing.scripted.cli import ScriptedCLI
from steersman.web import Bridge, Client
from steersman.web.client import Follow

LIMIT = 40.0
"""Seconds for a whole test; each needs a small part of it."""

Frame = dict[str, Any]


def inside(thing: object) -> Any:
    """What is not public of a thing, for tests of what it holds."""
    return thing


def scripted_agent(*steps: Answer, **options: Any) -> Agent:
    """An agent whose CLI is scripted, in this process."""
    return Agent(transport=ScriptedCLI(Script(*steps)), **options)


class Served:
    """A bridge behind a real server."""

    def __init__(self, bridge: Bridge, port: int, token: str | None = None) -> None:
        self.bridge = bridge
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self._token = bridge.token if token is None else token
        self.headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}

    def http(self) -> httpx.AsyncClient:
        """A client with the token."""
        return httpx.AsyncClient(base_url=self.url, headers=self.headers, trust_env=False)

    def client(self) -> Client:
        """Our own client."""
        return Client(self.url, token=self._token)

    def live(self, **headers: str) -> connect:
        """A WebSocket with the token."""
        return connect(
            f"ws://127.0.0.1:{self.port}/live",
            additional_headers={**self.headers, **headers},
            max_size=None,
            compression=None,
            proxy=None,
        )


@asynccontextmanager
async def serving(
    app: Any, bridge: Bridge | None = None, token: str | None = None, limit: float = LIMIT
) -> AsyncGenerator[Served, None]:
    """Run `app`, a bridge or something that has one mounted, behind uvicorn on loopback."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(app, log_config=None, ws_per_message_deflate=False)
        config.load()
        server = uvicorn.Server(config)
        server.lifespan = config.lifespan_class(config)
        await server.startup(sockets=[listener])
        served = Served(bridge or app, listener.getsockname()[1], token)
        try:
            async with asyncio.timeout(limit):
                yield served
        finally:
            await served.bridge.aclose()
            await server.shutdown(sockets=[listener])


_unread: WeakKeyDictionary[ClientConnection, deque[Frame]] = WeakKeyDictionary()
"""Frames that came in one message with those that were read."""


async def frames(ws: ClientConnection) -> AsyncIterator[Frame]:
    """Every frame that comes, one by one; whoever reads on later gets the rest."""
    unread = _unread.setdefault(ws, deque())
    while True:
        while unread:
            yield unread.popleft()
        try:
            message = await ws.recv()
        except ConnectionClosed:
            return
        unread += map(json.loads, str(message).split("\n"))


async def frame_where(ws: ClientConnection, is_it: Callable[[Frame], bool]) -> Frame:
    """The first frame from now on that is the one; those before it are not read again."""
    async for frame in frames(ws):
        if is_it(frame):
            return frame
    raise AssertionError("the connection ended")


async def say(ws: ClientConnection, **frame: Any) -> None:
    """Send one frame."""
    await ws.send(json.dumps(frame))


async def done(ws: ClientConnection, number: str, verb: str, **fields: Any) -> Frame:
    """Do a verb and return the frame with its answer."""
    await say(ws, type="do", id=number, verb=verb, **fields)
    return await frame_where(ws, lambda frame: frame.get("id") == number)


async def records_until_settled(ws: ClientConnection, session: str) -> list[Frame]:
    """The records of a session up to the end of its first turn."""
    found: list[Frame] = []
    async for frame in frames(ws):
        if frame.get("session") == session and "seq" in frame:
            found.append(frame)
            if frame["kind"] == "settled":
                break
    return found


async def until_settled(followed: AsyncIterator[Record]) -> list[Record]:
    """The records up to the end of the next turn."""
    found: list[Record] = []
    async for record in followed:
        found.append(record)
        if record.kind == "settled":
            break
    return found


async def begun(client: Client) -> tuple[str, Follow, list[Record]]:
    """A session whose first turn has ended, what follows it, and what it has shown so far."""
    session = (await client.begin("first")).session.id
    followed = client.follow(session)
    return session, followed, await until_settled(followed)


def numbers(records: Iterable[Record | Entry]) -> list[int]:
    return [each.seq for each in records]
