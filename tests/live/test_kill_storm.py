"""The CLI is killed at random points, again and again; `make soak` does it fifty times."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections import Counter

import pytest

from steersman import Session
from steersman.journal import Entry, Kind
from steersman.options import Revival
from steersman.testing.request import ModelRequest
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import Script, Step, call, say
from tests.live.staging import LIMIT, MakeScripted, collect, entries_of, inhabitants, until

IS_SOAK = bool(os.environ.get("STEERSMAN_SOAK"))
SESSIONS = 25 if IS_SOAK else 1
KILLS = 2
"""In each session: together 50, or 2 in the suite."""
PROMPTS = 3
FURTHEST = 90
"""About as many journal entries as these prompts have."""

pytestmark = [pytest.mark.live, pytest.mark.soak]


class Diligent(Script):
    """A model that uses a tool and then answers, whoever asks it to go on."""

    def answer(self, request: ModelRequest) -> Step:
        last = request.body["messages"][-1]["content"]
        blocks = last if isinstance(last, list) else []
        if any(block.get("type") == "tool_result" for block in blocks):
            return say("All of it is done.", 3)
        return say("I look.", 2) + call("Bash", command="echo hi")


async def kill_at(session: Session, points: list[int]) -> None:
    """Kill the CLI when the journal has come so far; each of them once."""
    async for entry in session.journal():
        assert isinstance(entry, Entry)
        if points and entry.seq >= points[0] and session.pid is not None:
            points.pop(0)
            try:
                os.kill(session.pid, signal.SIGKILL)
            except ProcessLookupError:
                # It has exited, and is not replaced yet.
                points.insert(0, entry.seq + 1)
        if not points:
            return


@pytest.mark.parametrize("seed", range(SESSIONS))
async def test_killed_at_random_points_every_prompt_settles_once_and_no_process_is_left(
    scripted: MakeScripted, sandbox: CliSandbox, seed: int
) -> None:
    dice = random.Random(seed)
    points = sorted(dice.sample(range(5, FURTHEST), KILLS))
    agent, _model = scripted(
        Diligent(), allowed_tools=["Bash"], revive=Revival(most=KILLS + 1, backoff=0.01)
    )

    async with asyncio.timeout(2 * LIMIT):
        async with agent.session() as session:
            killing = asyncio.create_task(kill_at(session, points))
            turns = [await session.send(f"prompt {number}") for number in range(PROMPTS)]
            results = [await turn for turn in turns]
            pieces = ["".join(await collect(turn.text())) for turn in turns]
            killing.cancel()
        async with asyncio.timeout(2):
            await until(lambda: not inhabitants(sandbox.root))

    entries = await entries_of(session)
    told = Counter(uuid for each in entries if each.kind is Kind.SETTLED for uuid in each.turns)
    assert [each.outcome for each in results] == ["completed"] * PROMPTS
    assert [each.text for each in results] == pieces
    assert told == {turn.uuid: 1 for turn in turns}
    assert session.restarts >= 1
