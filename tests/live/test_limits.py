"""Limits of our own: every turn that reaches one settles, and says which."""

from __future__ import annotations

import asyncio

import pytest

from steersman import Session, Turn
from steersman.errors import LimitReached
from steersman.journal import Kind
from steersman.options import Budget, Caps, Limits
from steersman.testing.plugin import MakeAgent
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import Usage, call, say, stall, when
from tests.live.staging import LIMIT, MakeScripted, entries_of, inhabitants

pytestmark = pytest.mark.live

EXPENSIVE = Usage(1000, 100_000)
"""Far more than a dollar, whatever the model."""

CAPS = {
    "usd": Caps(usd=0.5),
    "tokens": Caps(tokens=50_000),
    "turns": Caps(turns=1),
    "tool_calls": Caps(tool_calls=1),
    "seconds": Caps(seconds=2),
}

FEW = [
    pytest.param(name, marks=() if name in ("usd", "seconds") else pytest.mark.soak_only)
    for name in CAPS
]
"""What is counted is the same for a turn, a session and a hard limit: the suite tries two."""

WORK = when(
    "work",
    call("Bash", command="true").using(EXPENSIVE),
    call("Bash", command="echo 1; sleep 30; echo 2"),
    say("never"),
)


async def reached(session: Session, turn: Turn) -> tuple[str, str, str]:
    """How a turn ended, and by which limit; the journal says the same."""
    result = await turn
    told = [each.details for each in await entries_of(session) if each.kind is Kind.LIMIT]

    assert isinstance(result.cause, LimitReached)
    assert result.cause.used >= result.cause.limit
    assert (told[-1]["scope"], told[-1]["name"]) == (result.cause.scope, result.cause.name)
    assert told[-1]["is_reached"]
    return result.outcome, result.cause.scope, result.cause.name


@pytest.mark.parametrize("name", CAPS)
async def test_a_turn_that_reaches_its_limit_is_interrupted_and_the_session_goes_on(
    scripted: MakeScripted, name: str
) -> None:
    agent, model = scripted(
        WORK,
        when("next", say("fresh")),
        allowed_tools=["Bash"],
        limits=Limits(turn=CAPS[name]),
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        ending = await reached(session, await session.send("work"))
        fresh = await (await session.send("next"))
        restarts = session.restarts

    assert ending == ("failed", "turn", name)
    assert (fresh.outcome, fresh.text) == ("completed", "fresh")
    assert restarts == 0
    assert len(model.asked) <= 3


@pytest.mark.parametrize("name", FEW)
async def test_a_session_that_reaches_its_limit_takes_no_more_prompts(
    scripted: MakeScripted, name: str
) -> None:
    agent, _model = scripted(WORK, allowed_tools=["Bash"], limits=Limits(session=CAPS[name]))

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turn = await session.send("work")
        queued = await session.send("and then")
        ending = await reached(session, turn)
        taken_back = await queued
        with pytest.raises(LimitReached) as refused:
            await session.send("more")
        await session.wait_idle(LIMIT)
        state = session.state

    assert ending == ("failed", "session", name)
    assert taken_back.outcome == "cancelled"
    assert isinstance(taken_back.cause, LimitReached)
    assert (refused.value.scope, refused.value.name) == ("session", name)
    assert state == "idle"


@pytest.mark.parametrize("name", FEW)
async def test_a_hard_limit_ends_the_whole_tree(
    scripted: MakeScripted, sandbox: CliSandbox, name: str
) -> None:
    limits = Limits(turn=CAPS[name], is_hard=True)
    agent, _model = scripted(WORK, allowed_tools=["Bash"], limits=limits)

    async with asyncio.timeout(LIMIT), agent.session() as session:
        ending = await reached(session, await session.send("work"))
        last = await session.finish(LIMIT)
        left = inhabitants(sandbox.root)
        with pytest.raises(LimitReached):
            await session.send("more")

    assert ending == ("failed", "turn", name)
    assert (last.state, left, session.restarts) == ("failed", {}, 0)


async def test_money_spent_before_a_resume_does_not_count(scripted: MakeScripted) -> None:
    agent, _model = scripted(
        when("dear", say("that was dear").using(EXPENSIVE)),
        when("cheap", say("that was cheap"), say("and this too")),
        limits=Limits(session=Caps(usd=0.5, tokens=50_000)),
    )

    async with asyncio.timeout(LIMIT):
        async with agent.session() as first:
            dear = await (await first.send("dear"))
            with pytest.raises(LimitReached):
                await first.send("cheap")
        async with agent.session(resume=first.id) as second:
            cheap = [await (await second.send(f"cheap {n}")) for n in range(2)]

    # It ended by itself, with the very word that reached the limit.
    assert (dear.outcome, dear.cause) == ("completed", None)
    assert dear.cost_usd > 0.5
    assert [each.outcome for each in cheap] == ["completed", "completed"]


async def test_a_warning_comes_before_the_limit(scripted: MakeScripted) -> None:
    agent, _model = scripted(
        # Enough for the first words of a CLI on a busy machine.
        say("half") + stall(),
        limits=Limits(turn=Caps(seconds=4), warn_at=0.9),
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        result = await (await session.send("talk"))
        told = [each for each in await entries_of(session) if each.kind is Kind.LIMIT]

    assert [each.details["is_reached"] for each in told] == [False, True]
    assert 0.2 < told[1].at - told[0].at < 0.8
    assert result.text == "half"


@pytest.mark.parametrize("name", ["usd", pytest.param("seconds", marks=pytest.mark.soak_only)])
async def test_every_cli_keeps_to_a_limit(live_cli: MakeAgent, name: str) -> None:
    """Older ones too can be asked what was spent, in the middle of a turn."""
    agent = live_cli(
        WORK, complete=False, allowed_tools=["Bash"], limits=Limits(session=CAPS[name])
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        ending = await reached(session, await session.send("work"))
        with pytest.raises(LimitReached):
            await session.send("more")

    assert ending == ("failed", "session", name)


async def test_a_turn_that_uses_up_a_shared_budget_is_interrupted_and_others_are_refused(
    scripted: MakeScripted,
) -> None:
    agent, _model = scripted(WORK, allowed_tools=["Bash"], budget=Budget(usd=0.01))

    async with asyncio.timeout(LIMIT), agent.session() as session:
        ending = await reached(session, await session.send("work"))
        async with agent.session() as other:
            with pytest.raises(LimitReached, match="the budget has reached its limit"):
                await other.send("next")

    assert ending == ("failed", "budget", "usd")
