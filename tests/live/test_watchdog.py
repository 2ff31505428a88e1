"""A CLI that has gone mute is noticed, stopped and replaced; one that lives is left alone."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from steersman import Allow, Session, Turn
from steersman.errors import Stalled
from steersman.journal import Kind
from steersman.messages import ApiRetry
from steersman.options import Revival, Watchdog
from steersman.permissions import PermissionContext
from steersman.testing.model import ScriptedModel
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import Script, Step, call, fail, say, stall
from tests.live.staging import (
    LIMIT,
    MakeScripted,
    entries_of,
    entry_where,
    first_words,
    until,
)

pytestmark = pytest.mark.live

NEVER: dict[str, Any] = {
    "first_token": None,
    "between_events": None,
    "tool": None,
    "retry": None,
    "interrupt": 0.3,
}


@dataclass(frozen=True)
class Stage:
    """A turn under way."""

    session: Session
    turn: Turn
    model: ScriptedModel
    flag: Path


async def asked(stage: Stage) -> None:
    """The model was asked."""
    await asyncio.to_thread(stage.model.wait_for_request)


async def writing(stage: Stage) -> None:
    """It writes."""
    await first_words(stage.turn, "Half")


async def in_tool(stage: Stage) -> None:
    """A tool runs."""
    await until(stage.flag.exists)


async def retrying(stage: Stage) -> None:
    """The API has failed."""
    await entry_where(
        stage.session,
        lambda entry: entry.kind is Kind.MESSAGE and isinstance(entry.message, ApiRetry),
    )


Reach = Callable[[Stage], Awaitable[None]]
WEDGED: list[tuple[str, float, Reach, list[Step]]] = [
    ("first_token", 4.0, asked, [stall(), say("All.")]),
    ("between_events", 1.0, writing, [say("Half ") + stall(), say("Half and all.")]),
    ("tool", 1.0, in_tool, [call("Bash", command="touch flag; sleep 60"), say("All.")]),
    ("retry", 1.0, retrying, [fail(529), say("All.")]),
]


@pytest.mark.parametrize(("phase", "limit", "reach", "steps"), WEDGED, ids=[w[0] for w in WEDGED])
async def test_a_cli_that_is_wedged_is_noticed_in_each_phase_and_replaced(
    scripted: MakeScripted,
    sandbox: CliSandbox,
    phase: str,
    limit: float,
    reach: Reach,
    steps: list[Step],
) -> None:
    agent, model = scripted(
        *steps,
        say("Behind."),
        allowed_tools=["Bash"],
        watchdog=Watchdog(**{**NEVER, phase: limit}),
        revive=Revival(backoff=0.01),
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turn, queued = await session.send("go"), await session.send("and then")
        await reach(Stage(session, turn, model, sandbox.project / "flag"))
        wedged = session.pid
        assert wedged is not None
        os.kill(wedged, signal.SIGSTOP)
        done, behind = await turn, await queued
        entries = await entries_of(session)

    assert (done.outcome, done.text) == ("completed", steps[-1].parts[0].text)  # type: ignore[union-attr]
    assert (behind.outcome, behind.text) == ("completed", "Behind.")
    assert (session.restarts, session.pid == wedged) == (1, False)
    stalled = [each for each in entries if each.kind is Kind.STALLED]
    assert [(each.details["phase"], each.turns) for each in stalled] == [(phase, (turn.uuid,))]
    assert stalled[0].details["since"] >= limit
    restarted = [each.details["cause"] for each in entries if each.kind is Kind.RESTARTED]
    assert restarted == ["stalled"]


async def test_without_revival_a_wedged_cli_fails_the_turn_and_says_where(
    scripted: MakeScripted,
) -> None:
    agent, _model = scripted(
        Script(say("Half") + stall()),
        watchdog=Watchdog(**{**NEVER, "between_events": 1.0}),
        revive=False,
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turn = await session.send("go")
        await first_words(turn, "Half")
        assert session.pid is not None
        os.kill(session.pid, signal.SIGSTOP)
        done = await turn

    assert (done.outcome, done.text) == ("failed", "Half")
    assert isinstance(done.cause, Stalled)
    assert (done.cause.phase, done.cause.last_event) == ("between_events", "stream_event")
    assert session.state == "failed"


async def test_a_model_that_says_nothing_is_interrupted_and_the_cli_stays(
    scripted: MakeScripted,
) -> None:
    agent, _model = scripted(
        Script(say("Half") + stall(), say("All.")),
        watchdog=Watchdog(**{**NEVER, "between_events": 1.0, "interrupt": 10.0}),
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        pid = session.pid
        stopped = await (await session.send("go"))
        done = await (await session.send("again"))
        still = session.pid

    assert (stopped.outcome, stopped.text) == ("failed", "Half")
    assert isinstance(stopped.cause, Stalled)
    assert (done.outcome, done.text) == ("completed", "All.")
    assert (session.restarts, still) == (0, pid)


async def test_waiting_for_a_person_is_never_timed(scripted: MakeScripted) -> None:
    async def ponder(_name: str, _given: dict[str, Any], _context: PermissionContext) -> Allow:
        with suppress(TimeoutError):
            async with asyncio.timeout(2.5):
                await asyncio.Event().wait()
        return Allow()

    agent, _model = scripted(
        call("Bash", command="touch file"),
        say("Done."),
        can_use_tool=ponder,
        watchdog=Watchdog(**{**NEVER, "between_events": 1.0, "tool": 1.0}),
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        done = await (await session.send("go"))
        entries = await entries_of(session)

    assert (done.outcome, done.text) == ("completed", "Done.")
    assert [each for each in entries if each.kind is Kind.STALLED] == []
    assert session.restarts == 0


async def test_a_cli_that_is_slow_but_alive_is_left_alone(scripted: MakeScripted) -> None:
    words = [say(f"{n} ") + stall(0.6) for n in range(6)]
    slow = words[0]
    for each in words[1:]:
        slow = slow + each
    agent, _model = scripted(slow, watchdog=Watchdog(**{**NEVER, "between_events": 2.0}))

    async with asyncio.timeout(LIMIT), agent.session() as session:
        done = await (await session.send("count"))
        entries = await entries_of(session)

    assert (done.outcome, done.text) == ("completed", "0 1 2 3 4 5 ")
    assert [each for each in entries if each.kind is Kind.STALLED] == []
