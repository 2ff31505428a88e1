"""A pause holds tools and prompts for as long as one likes; a hard one stops the whole tree."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from steersman import Session, tool
from steersman.journal import Entry, Kind
from steersman.options import Caps, Limits, Watchdog
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import Step, call, calls, say, stall, when
from tests.live.staging import LIMIT, MakeScripted, entries_of, entry_where, first_words, until

pytestmark = pytest.mark.live

LONGER_THAN_A_MINUTE = 65.0


class Looker:
    """Tools that only look, so that the CLI runs them side by side; they tell that they ran."""

    def __init__(self) -> None:
        self.seen: list[str] = []

        @tool(read_only=True)
        async def look(at: str) -> str:
            """Look at something."""
            self.seen.append(at)
            return f"saw {at}"

        self.look = look


def is_held(entry: Entry) -> bool:
    """Whether the CLI asks at our gate."""
    return entry.kind is Kind.CONTROL and b'"callback_id":"gate"' in entry.line


async def held(session: Session, count: int = 1) -> None:
    """Return once so many tools wait at the gate."""
    after = 0
    for _ in range(count):
        after = (await entry_where(session, is_held, after=after)).seq


async def outlive(seconds: float) -> None:
    """Let a pause last: nothing tells that it is still one, but the clock."""
    await asyncio.sleep(seconds)


def looking_around(file: Path) -> Step:
    return (
        say("I look")
        + stall()
        + calls(
            call("mcp__functions__look", at="left"),
            call("mcp__functions__look", at="right"),
            call("Bash", command=f"touch {file}"),
        )
    )


async def test_a_pause_of_more_than_a_minute_holds_parallel_tools_and_prompts(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    looker, file = Looker(), sandbox.project / "touched"
    agent, model = scripted(
        when("look around", looking_around(file), say("I have seen it.")),
        when("and then", say("That too.")),
        functions=[looker.look],
        allowed_tools=["Bash"],
        # Each of them is far shorter than the pause.
        watchdog=Watchdog(first_token=20, between_events=20, tool=20, retry=20),
        limits=Limits(turn=Caps(seconds=30), session=Caps(seconds=40)),
    )

    async with asyncio.timeout(LIMIT + LONGER_THAN_A_MINUTE), agent.session() as session:
        turn = await session.send("look around")
        await first_words(turn, "I look")
        await session.pause()
        queued = await session.send("and then")
        model.release()
        await held(session, 2)
        await outlive(LONGER_THAN_A_MINUTE)
        paused = (session.state, looker.seen[:], file.exists(), len(model.asked), queued.delivery)
        described = session.describe()
        await session.resume()
        results = [await turn, await queued]
        await session.idle(LIMIT)
        resumed = session.state
        entries = await entries_of(session)

    assert paused == ("paused", [], False, 1, "queued")
    assert described == "paused"
    assert [(each.outcome, each.text) for each in results] == [
        ("completed", "I look\n\nI have seen it."),
        ("completed", "That too."),
    ]
    assert sorted(looker.seen) == ["left", "right"]
    assert file.exists()
    assert resumed == "idle"
    assert not any(each.kind in (Kind.STALLED, Kind.LIMIT) for each in entries)
