"""Faults on the stock CLI, kept: `make soak` plays many rounds of each, the suite one or a few.

What each must not break, and the faults that other tests keep, are listed in docs/harnesses.md.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from steersman.journal import Kind
from steersman.journal.files import Record
from steersman.journal.replaying import replay
from steersman.stores import PostgresStore, read_journal
from steersman.testing.request import ModelRequest
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import Script, Step, call, say
from steersman.web import Bridge, Client
from tests.full_disk import FullDisk
from tests.live.staging import MakeScripted, inhabitants, until
from tests.postgres import PostgresServer
from tests.web.staging import begun, inside, numbers, serving, until_settled
from tests.web.test_live import deaf_viewer

IS_SOAK = bool(os.environ.get("STEERSMAN_SOAK"))
ROUNDS = 20 if IS_SOAK else 2
TURNS, AT_ONCE = (2000, 4) if IS_SOAK else (12, 2)
LIMIT = 3000.0 if IS_SOAK else 60.0
MOST_MEMORY = 64 << 20
"""Bytes that the host may take more for many turns than for one."""

pytestmark = [pytest.mark.live, pytest.mark.soak, pytest.mark.timeout(LIMIT + 60.0)]


class Answers(Script):
    """A model that says which prompt it answers."""

    def answer(self, request: ModelRequest) -> Step:
        return say(f"answer to {request.last_text}.", 3)


class Looks(Script):
    """A model that runs a tool for each prompt, and then answers."""

    def answer(self, request: ModelRequest) -> Step:
        last = request.body["messages"][-1]["content"]
        blocks = last if isinstance(last, list) else []
        if any(block.get("type") == "tool_result" for block in blocks):
            return say("done")
        return call("Bash", command="echo hi >> looked; sleep 0.3")


async def prompted(client: Client, session: str, followed: AsyncIterator[Record]) -> list[Record]:
    """Send a prompt, and return the records up to the end of its turn."""
    turn = await client.send(session, "more")
    found: list[Record] = []
    while not found or turn not in found[-1].turns:
        found += await until_settled(followed)
    return found


@pytest.mark.parametrize("disk", ["disk"], indirect=True)
async def test_a_disk_that_is_full_again_and_again_gives_no_number_twice(
    scripted: MakeScripted,
    disk: tuple[Path, FullDisk],
) -> None:
    folder, full = disk
    draw = random.Random(1)
    agent, _ = scripted(Answers())
    bridge = Bridge(agent, journals=folder)
    async with serving(bridge, limit=LIMIT) as served, served.client() as client:
        session, followed, seen = await begun(client)
        for _ in range(ROUNDS):
            with full():
                for _ in range(draw.randint(1, 2)):
                    seen += await prompted(client, session, followed)
            await inside(bridge)._conversations.find(session).close()
            seen += await prompted(client, session, followed)
        await followed.aclose()
    stored = [*read_journal(folder / f"{session}.jsonl")]

    assert numbers(seen) == [*range(1, len(seen) + 1)]
    assert numbers(stored) == sorted(set(numbers(stored)))
    shown = {record.seq: record for record in seen}
    assert all(
        (entry.at, entry.line) == (shown[entry.seq].at, shown[entry.seq].line)
        for entry in stored
        if entry.seq in shown
    )


async def test_a_store_that_is_gone_in_a_turn_loses_no_turn_and_settles_it_once(
    scripted: MakeScripted,
    sandbox: CliSandbox,
    postgres_server: PostgresServer,
    postgres_url: str,
) -> None:
    looked = sandbox.project / "looked"
    async with asyncio.timeout(LIMIT), PostgresStore(postgres_url) as store:
        agent, _ = scripted(Looks(), allowed_tools=["Bash"], inbox=store.inbox())
        work = store.work
        async with agent.open("customer 7") as session:
            assert session.id is not None
            for number in range(ROUNDS):
                turn = await session.send("look", key=f"invoice {number}")
                await until(lambda: looked.exists() and len(looked.read_text()) > 3 * number)  # noqa: B023 - called here
                postgres_server.stop(immediate=bool(number % 2))
                # Its end is written when the server is back.
                postgres_server.start()
                assert (await turn).outcome == "completed"
            place = session.id
        left = await work.unsettled(place)

    assert left == []
    assert looked.read_text() == "hi\n" * ROUNDS


async def test_viewers_that_do_not_read_hold_back_nobody_else(
    scripted: MakeScripted, tmp_path: Path
) -> None:
    agent, _ = scripted(Answers())
    bridge = Bridge(agent, journals=tmp_path)
    async with serving(bridge, limit=LIMIT) as served, served.client() as client:
        session = (await client.begin("first")).session.id
        deaf = [await deaf_viewer(served.port, bridge.token or "", session) for _ in range(5)]
        readers = [client.follow(session) for _ in range(5)]
        found = [await until_settled(reader) for reader in readers]
        for _ in range(ROUNDS):
            await client.send(session, "more")
            for place, reader in enumerate(readers):
                found[place] += await until_settled(reader)
        for reader in readers:
            await reader.aclose()
        for viewer in deaf:
            viewer.close()

    assert all(numbers(seen) == [*range(1, len(seen) + 1)] for seen in found)
    assert all(seen[-1].seq == found[0][-1].seq for seen in found)


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def memory() -> int:
    """The bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def test_many_turns_settle_once_each_and_leave_nothing(
    scripted: MakeScripted, sandbox: CliSandbox, tmp_path: Path
) -> None:
    # The model is in this process, and each request has the whole conversation.
    agent, _ = scripted(Answers(), keep=2 * AT_ONCE)
    held: list[int] = []

    def journal_of(number: int) -> Path:
        return tmp_path / f"{number}.jsonl"

    async def play(number: int) -> None:
        journal = journal_of(number)
        async with agent.session(journal=journal, journal_memory=1 << 20) as session:
            for turn in range(TURNS // AT_ONCE):
                result = await session.run(f"p{number}-{turn}")
                assert result.text.strip() == f"answer to p{number}-{turn}."
                held.append(memory())

    def read(number: int) -> tuple[int, int]:
        entries = [*read_journal(journal_of(number))]
        assert numbers(entries) == [*range(1, len(entries) + 1)]
        assert [each.at for each in entries] == sorted(each.at for each in entries)
        settled = [uuid for each in entries if each.kind is Kind.SETTLED for uuid in each.turns]
        return len(set(settled)), len(replay(entries).turns)

    async with asyncio.timeout(LIMIT):
        # The first sessions load modules, and threads that stay.
        async with agent.session() as session:
            await session.run("warm up")
        files, before = descriptors(), memory()
        await asyncio.gather(*map(play, range(AT_ONCE)))
        await until(lambda: not inhabitants(sandbox.root))

    assert [*map(read, range(AT_ONCE))] == [(TURNS // AT_ONCE, TURNS // AT_ONCE)] * AT_ONCE
    assert max(held) - before <= MOST_MEMORY
    assert descriptors() <= files
