"""Sessions that write their journal to a file, and what is left of them when things go wrong."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from steersman.agent import Agent, Session
from steersman.errors import UsageError
from steersman.journal import Entry, Kind
from steersman.journal.files import Record, read_tracks
from steersman.journal.replaying import replay
from steersman.ports import Channel, Launch, Receiver, Transport
from steersman.stores import read_journal
from steersman.testing.script import Script, call, say
from steersman.testing.scripted.cli import ScriptedCLI
from tests._session.peers import FramePeer, entries_of
from tests.full_disk import without_room

LIMIT = 10.0


def echoing() -> ScriptedCLI:
    script = Script(call("Bash", command="echo hi"), say("It says hi.", chunks=3), say("Bye."))
    return ScriptedCLI(script, tools={"Bash": lambda _input: "hi"})


async def two_turns(session: Session) -> None:
    for prompt in ("run it", "and now"):
        await (await session.send(prompt))


def plain(entries: list[Entry]) -> list[Record]:
    return [Record.of(entry) for entry in entries]


async def test_the_file_has_what_the_session_saw(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    agent = Agent(transport=echoing(), journal=path, allowed_tools=["Bash"])

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await two_turns(session)
    entries = await entries_of(session)

    assert plain(list(read_journal(path))) == plain(entries)
    told = replay(read_journal(path))
    assert [result.text for result in told.turns.values()] == ["It says hi.", "Bye."]
    assert told.snapshot == session.snapshot()


@dataclass
class Watched:
    """A transport that reads the journal file whenever a line is about to be sent."""

    inner: Transport
    path: Path
    unwritten: list[bytes] = field(default_factory=list[bytes])
    sent: int = 0

    async def open(self, launch: Launch, receiver: Receiver) -> Channel:
        channel: Any = await self.inner.open(launch, receiver)
        write = channel.write

        def watch(data: bytes) -> None:
            kept = {entry.line for entry in read_journal(self.path) if entry.kind is Kind.SENT}
            lines = data.splitlines()
            self.sent += len(lines)
            self.unwritten += [line for line in lines if line not in kept]
            write(data)

        channel.write = watch
        return cast("Channel", channel)


async def test_a_line_is_in_the_file_before_it_is_sent(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    transport = Watched(ScriptedCLI(Script(call("mcp__functions__look"), say("Done."))), path)

    async def look() -> str:
        """Answer at once, while the chunk with the request is still being read."""
        return "nothing"

    agent = Agent(transport=transport, journal=path, functions=[look])

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await two_turns(session)

    assert transport.sent >= 4
    assert transport.unwritten == []


async def test_a_session_goes_on_in_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"

    for _ in range(2):
        agent = Agent(transport=echoing(), journal=path, allowed_tools=["Bash"])
        async with asyncio.timeout(LIMIT), agent.session() as session:
            await two_turns(session)

    assert [each.header.track for each in read_tracks(path.read_bytes())] == [0, 1]
    assert len(replay(read_journal(path)).turns) == 4


async def test_two_sessions_at_once_cannot_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    first, second = (Agent(transport=echoing(), journal=path) for _ in range(2))

    async with asyncio.timeout(LIMIT), first.session():
        with pytest.raises(UsageError, match="not in use"):
            await second.start()


async def test_a_full_disk_does_not_hurt_the_session(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    agent = Agent(transport=echoing(), journal=path, allowed_tools=["Bash"])

    async with asyncio.timeout(LIMIT), agent.session() as session:
        with without_room(path.stat().st_size + 300):
            result = await (await session.send("run it"))
        second = await (await session.send("and now"))
    entries = await entries_of(session)

    assert (result.outcome, second.outcome) == ("completed", "completed")
    faults = [each.details for each in entries if each.kind is Kind.FAULT]
    assert [each["where"] for each in faults] == ["journal file"]
    kept = plain(list(read_journal(path)))
    assert kept == plain(entries)[: len(kept)]


async def test_known_secrets_are_not_in_the_file(tmp_path: Path) -> None:
    path, key = tmp_path / "journal.jsonl", "sk-ant-" + "this-is-not-a-key"
    agent = Agent(
        transport=ScriptedCLI(Script(say(f"the key is {key}"))),
        journal=path,
        env={"ANTHROPIC_API_KEY": key},
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        result = await (await session.send("what is the key?"))

    assert key in result.text
    assert key.encode() not in path.read_bytes()


HOST = """
import asyncio, sys
from steersman.agent import Agent
from steersman.testing.script import Script, say, stall
from steersman.testing.scripted.cli import ScriptedCLI

async def main():
    cli = ScriptedCLI(Script(say("One."), say("half a ") + stall() + say("sentence")))
    async with Agent(transport=cli, journal=sys.argv[1]).session() as session:
        await (await session.send("first"))
        turn = await session.send("second")
        async for chunk in turn.text():
            print(turn.uuid, flush=True)
        await turn

asyncio.run(main())
"""


def test_a_host_that_is_killed_leaves_all_that_it_had_seen(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with subprocess.Popen([sys.executable, "-c", HOST, str(path)], stdout=subprocess.PIPE) as host:
        assert host.stdout is not None
        uuid = host.stdout.readline().decode().strip()
        host.kill()

    told = replay(read_journal(path))

    assert told.state == "running"
    assert [each.text for each in told.turns.values()] == ["One."]
    assert uuid not in told.turns
    assert told.text == "One.\n\nhalf a "
    assert told.snapshot.session_id


def flights(directory: Path) -> list[dict[str, Any]]:
    return [json.loads(each.read_bytes()) for each in sorted(directory.iterdir())]


async def test_a_cli_that_dies_leaves_a_flight_record(tmp_path: Path) -> None:
    def on_frame(peer: FramePeer, frame: dict[str, Any]) -> None:
        if frame["type"] == "user":
            peer.wire.write_stderr(b"out of memory\n")
            peer.wire.exit(137)

    agent = Agent(
        transport=FramePeer(on_frame).transport,
        flight_recorder=tmp_path,
        revive=False,
        model="sonnet",
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        result = await (await session.send("go"))

    assert result.cause is not None
    told = flights(tmp_path)
    assert told
    assert {each["error"]["code"] for each in told} == {result.cause.code}
    assert "out of memory" in told[-1]["stderr_tail"]
    assert "model" in told[-1]["options"]
    assert "sonnet" not in json.dumps(told[-1]["options"])
    assert told[-1]["sent"][-1]["frame"]["message"]["content"] == "go"


async def test_a_session_without_an_error_leaves_none(tmp_path: Path) -> None:
    agent = Agent(transport=echoing(), flight_recorder=tmp_path, allowed_tools=["Bash"])

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await two_turns(session)

    assert flights(tmp_path) == []
