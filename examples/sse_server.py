"""A web server with two routes for a page: events of a session as they happen, and approvals.

Run it with `python examples/sse_server.py "a task"`, then `curl -N 127.0.0.1:8000/events` in any
number of terminals, and `curl -X POST 127.0.0.1:8000/asks/ID/allow` for each request in the stream.
It uses your own login. It has no login itself: keep it on this machine.
"""

from __future__ import annotations

import asyncio
import json
import sys

from steersman import Agent, Allow, Deny, Inbox, Session
from steersman.errors import AskError
from steersman.journal import Kind, Lagged


class Server:
    """Serves one session over plain HTTP/1.1."""

    def __init__(self, session: Session, inbox: Inbox) -> None:
        self._session = session
        self._inbox = inbox

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request."""
        method, path, *_ = (await reader.readline()).decode().split()
        while (await reader.readline()).strip():
            pass  # The headers are not needed.
        if (method, path) == ("GET", "/events"):
            await self._events(writer)
        elif method == "POST" and path.startswith("/asks/"):
            writer.write(await self._answer(*path.split("/")[2:4]))
        else:
            writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    async def _events(self, writer: asyncio.StreamWriter) -> None:
        """Write every entry of the session as an event; each viewer reads at its own pace."""
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        async for entry in self._session.journal():
            if isinstance(entry, Lagged) or entry.kind in (Kind.SENT, Kind.CONTROL):
                continue
            data = entry.line.decode() if entry.line else json.dumps(dict(entry.details))
            writer.write(f"id: {entry.seq}\nevent: {entry.kind.value}\ndata: {data}\n\n".encode())
            await writer.drain()

    async def _answer(self, ask_id: str, verdict: str = "") -> bytes:
        answer = Allow() if verdict == "allow" else Deny("denied on the page")
        try:
            await self._inbox.answer(ask_id, answer, by="page")
        except AskError as error:
            return f"HTTP/1.1 409 Conflict\r\n\r\n{error.what}".encode()
        return b"HTTP/1.1 204 No Content\r\n\r\n"


async def serve(agent: Agent, inbox: Inbox, task: str, port: int) -> str:
    """Do the task while the server runs, and return the answer."""
    async with agent.session() as session:
        server = await asyncio.start_server(Server(session, inbox), "127.0.0.1", port)
        async with server:
            print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/events", flush=True)
            result = await (await session.send(task))
    return result.answer


if __name__ == "__main__":
    inbox = Inbox()
    task = " ".join(sys.argv[1:]) or "Create a file called hello.txt."
    print(asyncio.run(serve(Agent(inbox=inbox), inbox, task, 8000)))
