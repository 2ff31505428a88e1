"""A segment as an activity of an engine of one's own."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path

import pytest

from steersman import Agent
from steersman.fleet import segment
from steersman.stores import SqliteStore
from steersman.testing.script import Script, say, stall
from steersman.testing.scripted.cli import ScriptedCLI

LIMIT = 20.0


async def test_a_segment_that_is_run_again_with_its_key_asks_the_model_once(tmp_path: Path) -> None:
    place = ScriptedCLI(Script(say("Paid.")))
    async with asyncio.timeout(LIMIT), SqliteStore(tmp_path / "work.db") as store:
        agent = Agent(transport=place, inbox=store.inbox())
        results = [await segment(agent, "a", "pay", key="7") for _ in range(2)]

    assert [each.outcome for each in results] == ["completed"] * 2
    assert [each.last_text for each in place.asked] == ["pay"]
    assert place.running == 0


@pytest.mark.parametrize("is_stored", [True, False], ids=["stored", "not stored"])
async def test_a_segment_that_is_cancelled_leaves_its_turn_to_the_next_one_if_it_is_stored(
    tmp_path: Path, *, is_stored: bool
) -> None:
    place = ScriptedCLI(Script(say("half") + stall()))
    async with asyncio.timeout(LIMIT), SqliteStore(tmp_path / "work.db") as store:
        agent = Agent(transport=place, inbox=store.inbox() if is_stored else None)
        running = asyncio.Task(segment(agent, "a", "pay", key="7"))
        await place.wait_for_stall()
        running.cancel()
        await asyncio.wait({running})
        interrupts = [each for each in place.received if "'interrupt'" in str(each)]
        keys: list[str | None] = []
        if is_stored:
            async with aclosing(store.ready()) as ready:
                keys = [turn.key for turn in (await anext(ready)).turns]

    assert (running.cancelled(), place.running) == (True, 0)
    assert keys == (["7"] if is_stored else [])
    assert bool(interrupts) != is_stored
