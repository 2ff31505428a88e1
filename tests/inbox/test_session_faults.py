"""A background task of a session that fails is shown by the session, and by what has opened it."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

from steersman import Agent
from steersman.fleet import Fleet, Governor
from steersman.fleet.ports import JobSpec
from steersman.fleet.segments import StoreSegments
from steersman.stores import SqliteStore
from steersman.testing.request import ModelRequest
from steersman.testing.script import Script, Step, say, stall
from steersman.testing.scripted.cli import ScriptedCLI
from steersman.web import Bridge
from tests.inbox.places import LIMIT

FAULT = "the ends of turns of the conversation"
MISSING = "no such table: steersman_turns"


class Broken:
    """A store that loses a table during the first turn, and a CLI for that turn."""

    def __init__(
        self, folder: Path, table: str = "steersman_turns", then: Step | None = None
    ) -> None:
        self.path = folder / "work.db"
        self.store = SqliteStore(self.path)
        self._table = table
        self._then = then or say("Done.")
        self.cli = ScriptedCLI(Script(self._answer))

    def _answer(self, _: ModelRequest) -> Step:
        self._do(f"ALTER TABLE {self._table} RENAME TO steersman_away")
        return self._then

    def mend(self) -> None:
        self._do(f"ALTER TABLE steersman_away RENAME TO {self._table}")

    def states(self) -> list[str]:
        with closing(sqlite3.connect(self.path)) as file:
            return [state for (state,) in file.execute("SELECT state FROM steersman_turns")]

    def _do(self, statement: str) -> None:
        with closing(sqlite3.connect(self.path)) as file, file:
            file.execute(statement)


async def shown(faults: Callable[[], Mapping[str, str]], task: str = FAULT) -> dict[str, str]:
    """The faults of a task, once there are any."""
    while not any(each.startswith(task) for each in faults()):  # noqa: ASYNC110 - it is read only
        await asyncio.sleep(0.01)
    return {name: words for name, words in faults().items() if name.startswith(task)}


async def test_a_session_shows_what_fails_and_writes_it_once_that_is_mended(tmp_path: Path) -> None:
    broken = Broken(tmp_path)
    async with asyncio.timeout(LIMIT), broken.store as store:
        agent = Agent(transport=broken.cli, inbox=store.inbox())
        async with agent.session() as session:
            before = dict(session.faults)
            result = await (await session.send("go"))
            faults = await shown(lambda: session.faults)
            broken.mend()
        after = dict(session.faults)

    assert (before, result.text, after) == ({}, "Done.", {})
    assert MISSING in faults[FAULT]
    assert broken.states() == ["settled"]


async def test_a_fleet_shows_what_fails_in_a_session(tmp_path: Path) -> None:
    broken = Broken(tmp_path)
    async with asyncio.timeout(LIMIT), broken.store as store:
        governor = Governor(memory_free=0)
        async with Fleet(Agent(transport=broken.cli), store=store, governor=governor) as fleet:
            await (await fleet.send("c7", "go"))
            faults = await shown(lambda: fleet.status().faults)
            broken.mend()

    assert [*faults] == [f"{FAULT} c7"]


async def test_a_worker_shows_what_fails_in_a_session(tmp_path: Path) -> None:
    broken = Broken(tmp_path, "steersman_conversations", stall())
    async with asyncio.timeout(LIMIT), broken.store as store:
        segments = StoreSegments(
            {"default": Agent(transport=broken.cli)},
            store,
            slots=1,
            lease=3.0,
            park_after=1.0,
            is_shared=False,
            governor=Governor(memory_free=0),
        )
        spec = JobSpec(conversation="c7", prompt="go", key="k")
        running = asyncio.create_task(segments.run(spec, 1))
        faults = await shown(lambda: segments.faults, "the lease of the conversation")
        broken.mend()
        running.cancel()
        await asyncio.wait({running})

    assert ["no such table" in words for words in faults.values()] == [True]
    assert segments.faults == {}


async def test_a_bridge_shows_what_fails_in_a_session(tmp_path: Path) -> None:
    broken = Broken(tmp_path)
    agent = Agent(transport=broken.cli)
    async with (
        asyncio.timeout(LIMIT),
        broken.store as store,
        Bridge(agent, inbox=store.inbox()) as bridge,
    ):
        session = await bridge.begin("go", by="ann")
        faults = await shown(lambda: bridge.faults)
        broken.mend()

    assert [*faults] == [f"{FAULT} {session}"]
