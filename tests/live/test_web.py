"""The bridge on the stock CLI: lost connections, many viewers, and a killed server."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from steersman import Allow
from steersman.journal.files import Record
from steersman.stores import SqliteStore
from steersman.testing.model import ScriptedModel
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import Script, call, say, stall, step
from steersman.web import Bridge, Client
from tests.live.staging import MakeScripted
from tests.web.staging import Served, frames, records_until_settled, serving
from tests.web.staging import say as send

WORDS = [f"word{number} " for number in range(200)]
SPOKEN = [
    part
    for place in range(0, len(WORDS), 10)
    for part in (say("", chunks=WORDS[place : place + 10]), stall(0.001))
]
"""A turn that takes long enough to be dropped in its middle."""
DROPS = 20


async def followed_by_socket(served: Served, session: str) -> tuple[list[Any], int]:
    """All records of a turn over connections that are dropped after ten; and how many drops."""
    seen: list[Any] = []
    drops = 0
    while not seen or seen[-1]["kind"] != "settled":
        async with served.live() as ws:
            await send(ws, type="follow", session=session, after=seen[-1]["seq"] if seen else 0)
            count = 0
            async for frame in frames(ws):
                if "seq" in frame:
                    seen.append(frame)
                    count += 1
                    if count == 10 or frame["kind"] == "settled":
                        break
            # Gone without a word, as a phone in a tunnel.
            ws.transport.abort()
        drops += 1
    return seen, drops


async def followed_by_events(served: Served, session: str) -> tuple[list[Any], int]:
    """All records of a turn over an event stream that is dropped 20 times."""
    seen: list[Any] = []
    drops = 0
    async with served.http() as http:
        while not seen or seen[-1]["kind"] != "settled":
            last = {"Last-Event-ID": str(seen[-1]["seq"])} if seen else {}
            path = f"/sessions/{session}/events"
            async with http.stream("GET", path, headers=last) as response:
                async for line in response.aiter_lines():
                    if line.startswith("data: "):
                        seen.append(json.loads(line[6:]))
                        if len(seen) % 5 == 0 and drops < DROPS:
                            break
                        if seen[-1]["kind"] == "settled":
                            break
            drops += 1
    return seen, drops


async def test_twenty_drops_in_a_turn_lose_nothing_and_fifty_viewers_see_the_same(
    scripted: MakeScripted, tmp_path: Path
) -> None:
    agent, _ = scripted(step(*SPOKEN))
    bridge = Bridge(agent, journals=tmp_path)
    async with serving(bridge) as served, served.http() as http:
        body = {"text": "go", "key": "once"}
        answers = [await http.post("/sessions", json=body) for _ in range(3)]
        session = answers[0].json()["session"]["id"]

        async def viewer() -> list[Any]:
            async with served.live() as ws:
                await send(ws, type="follow", session=session, after=0)
                return await records_until_settled(ws, session)

        viewers = [asyncio.create_task(viewer()) for _ in range(50)]
        dropped = asyncio.create_task(followed_by_socket(served, session))
        streamed = asyncio.create_task(followed_by_events(served, session))
        seen = await asyncio.gather(*viewers)
        (by_socket, socket_drops), (by_events, event_drops) = await dropped, await streamed

    whole = seen[0]
    assert [record["seq"] for record in whole] == [*range(1, len(whole) + 1)]
    assert len(whole) > len(WORDS)
    assert all(each == whole for each in seen)
    assert by_socket == by_events == whole
    assert min(socket_drops, event_drops) >= DROPS
    assert len({answer.json()["turn"] for answer in answers}) == 1
    assert sum(record["kind"] == "settled" for record in whole) == 1


SERVER = """
import asyncio, sys
import uvicorn
from steersman import Agent
from steersman.journal.files import Record
from steersman.stores import SqliteStore
from steersman.web import Bridge

cli, project, journals, port, token, *env = sys.argv[1:]

async def main():
    store = SqliteStore(journals + "/asks.db")
    agent = Agent(cli_path=cli, cwd=project, inherit_env=False,
                  env=dict(pair.split("=", 1) for pair in env))
    bridge = Bridge(agent, inbox=store.inbox(), journals=journals, token=token)
    config = uvicorn.Config(bridge, port=int(port), log_level="warning", access_log=False)
    await uvicorn.Server(config).serve()

try:
    asyncio.run(main())
except KeyboardInterrupt:
    pass
"""

TOKEN = "a-token-for-this-test"


@pytest.fixture
def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


@asynccontextmanager
async def server(
    cli: Path, sandbox: CliSandbox, model: ScriptedModel, journals: Path, port: int
) -> AsyncGenerator[asyncio.subprocess.Process, None]:
    """A bridge in a process of its own, which ends with the block, or is killed in it."""
    env = [f"{name}={value}" for name, value in sandbox.env(model.url).items()]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", SERVER, str(cli), str(sandbox.project), str(journals)),
        *(str(port), TOKEN, *env),
        env={"PYTHONPATH": os.pathsep.join(sys.path), "PATH": "/usr/bin:/bin"},
    )
    try:
        await answering(port)
        yield process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGINT)
        async with asyncio.timeout(20):
            await process.wait()


async def answering(port: int) -> None:
    """Wait until the server accepts connections."""
    async with asyncio.timeout(20):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.02)
            else:
                writer.close()
                return


async def test_a_killed_server_comes_back_with_the_open_ask_and_its_answer_continues_the_turn(
    cli: Path, sandbox: CliSandbox, tmp_path: Path, free_port: int
) -> None:
    ask = call("Bash", command="echo x >> made-it", description="make a file")
    script = Script(ask, ask, say("done"), strict=True)
    url = f"http://127.0.0.1:{free_port}"
    with ScriptedModel(script) as model:
        async with Client(url, token=TOKEN) as client:
            async with server(cli, sandbox, model, tmp_path, free_port) as first:
                begun = await client.begin("make a file", key="k")
                session = begun.session.id
                follow = client.follow(session)
                before = await records_up_to(follow, "asked")
                asked = await stored_ask(tmp_path, session)
                first.kill()
                await first.wait()
            async with server(cli, sandbox, model, tmp_path, free_port):
                listed = await client.sessions()
                asks = await client.asks()
                outcome = await client.answer(asks[0], Allow())
                page = [record async for record in up_to(client, session, before[-1].seq)]
                # The same follower, which makes its connection again by itself.
                before += await records_up_to(follow, "settled")
                await follow.aclose()

    assert [each.id for each in asks] == [asked]
    assert outcome.how == "answered"
    assert [(each.id, each.state, each.asks) for each in listed] == [(session, "broken_off", 1)]
    assert page == before[: len(page)]
    assert [record.seq for record in before] == [*range(1, len(before) + 1)]
    assert before[-1].details["outcome"] == "completed"
    assert before[-1].turns == (begun.turn,)
    assert (sandbox.project / "made-it").read_text() == "x\n"


async def records_up_to(follow: AsyncIterator[Record], kind: str) -> list[Record]:
    """The next records, up to the first of a kind."""
    found: list[Record] = []
    async for record in follow:
        found.append(record)
        if record.kind == kind:
            break
    return found


async def stored_ask(journals: Path, session: str) -> str:
    """The id of the ask, once the store has it."""
    store = SqliteStore(journals / "asks.db")
    try:
        async with asyncio.timeout(10):
            async for change in store.inbox().watch():
                if change.ask.session == session:
                    return change.ask.id
    finally:
        await store.aclose()
    raise AssertionError("not reached")


async def up_to(client: Client, session: str, last: int) -> AsyncGenerator[Any, None]:
    """The records of a session up to a number, over a connection of their own."""
    follow = client.follow(session)
    async for record in follow:
        yield record
        if record.seq >= last:
            break
    await follow.aclose()
