from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from steersman import Session, Turn
from steersman.errors import LimitReached
from steersman.journal import Kind
from steersman.options import Caps, Limits
from steersman.testing.script import Script, Usage, call, calls, say, stall, when
from steersman.testing.scripted.cli import ScriptedCLI
from tests._session.peers import entries_of, opened

A_CALL = call("Bash", command="true")
ALLOWED: dict[str, Any] = {"allowed_tools": ["Bash"]}


def limit_of(result: Any) -> tuple[str, str, float] | None:
    """Return the limit that ended a turn, or None."""
    cause = result.cause
    return (cause.scope, cause.name, cause.limit) if isinstance(cause, LimitReached) else None


async def limit_entries(session: Session) -> list[Mapping[str, Any]]:
    """Return the details of the `LIMIT` entries of a closed session."""
    return [each.details for each in await entries_of(session) if each.kind is Kind.LIMIT]


async def test_as_many_tool_calls_as_allowed_are_made_and_the_next_one_is_too_much() -> None:
    cli = ScriptedCLI(
        Script(
            when("few", calls(A_CALL, A_CALL), say("done")),
            when("many", calls(A_CALL, A_CALL, A_CALL), say("never")),
        )
    )

    async with opened(cli, limits=Limits(turn=Caps(tool_calls=2)), **ALLOWED) as session:
        few = await (await session.send("few"))
        many = await (await session.send("many"))

    assert (few.outcome, few.cause) == ("completed", None)
    assert (many.outcome, limit_of(many)) == ("failed", ("turn", "tool_calls", 2))
    assert session.state == "completed"


async def test_round_trips_of_a_turn_are_counted_by_message_and_not_by_block() -> None:
    several = say("one") + A_CALL + A_CALL
    cli = ScriptedCLI(
        Script(when("few", several, say("done")), when("many", several, A_CALL, several + stall()))
    )

    async with opened(cli, limits=Limits(turn=Caps(turns=2)), **ALLOWED) as session:
        few = await (await session.send("few"))
        many = await (await session.send("many"))

    assert few.outcome == "completed"
    assert (many.outcome, limit_of(many)) == ("failed", ("turn", "turns", 2))


async def test_a_turn_that_takes_too_long_is_stopped_and_the_next_one_is_not() -> None:
    cli = ScriptedCLI(Script(when("slow", say("half") + stall()), when("next", say("fresh"))))

    async with opened(cli, limits=Limits(turn=Caps(seconds=0.2))) as session:
        slow = await session.send("slow")
        following = await session.send("next")
        results = [await slow, await following]

    assert (results[0].outcome, limit_of(results[0])) == ("failed", ("turn", "seconds", 0.2))
    assert results[0].text == "half"
    assert (results[1].outcome, results[1].text) == ("completed", "fresh")


async def test_a_warning_at_four_fifths_and_the_limit_are_each_recorded_once() -> None:
    cli = ScriptedCLI(Script(*([A_CALL] * 5), say("done")))

    async with opened(cli, limits=Limits(turn=Caps(tool_calls=5)), **ALLOWED) as session:
        result = await (await session.send("work"))

    usual = {"scope": "turn", "name": "tool_calls", "limit": 5}
    assert result.outcome == "completed"
    assert await limit_entries(session) == [
        {**usual, "used": 4, "is_reached": False},
        {**usual, "used": 5, "is_reached": True},
    ]


async def test_a_session_limit_withdraws_queued_prompts_and_refuses_new_ones() -> None:
    cli = ScriptedCLI(Script(A_CALL, A_CALL, say("done")))

    async with opened(cli, limits=Limits(session=Caps(turns=3)), **ALLOWED) as session:
        turn = await session.send("work")
        queued = await session.send("and then")
        results = [await turn, await queued]
        with pytest.raises(LimitReached) as refused:
            await session.send("more")
        state = session.state

    assert [each.outcome for each in results] == ["completed", "cancelled"]
    assert [limit_of(each) for each in results] == [None, ("session", "turns", 3)]
    assert (refused.value.scope, refused.value.name) == ("session", "turns")
    assert len(cli.asked) == 3
    assert state != "failed"


async def test_a_turn_limit_does_not_make_a_session_limit_forgotten() -> None:
    cli = ScriptedCLI(Script(A_CALL, A_CALL, A_CALL, say("never")))
    limits = Limits(turn=Caps(tool_calls=2), session=Caps(tool_calls=2))

    async with opened(cli, limits=limits, **ALLOWED) as session:
        result = await (await session.send("work"))
        with pytest.raises(LimitReached):
            await session.send("more")

    assert result.outcome == "failed"


async def test_a_hard_limit_kills_the_cli_and_the_session_has_failed() -> None:
    cli = ScriptedCLI(Script(say("half") + stall()))
    errors: list[object] = []
    limits = Limits(turn=Caps(seconds=0.1), is_hard=True)

    async with opened(cli, limits=limits) as session:
        session.on("error", errors.append)
        turn: Turn = await session.send("work")
        result = await turn
        await session.finish()
        with pytest.raises(LimitReached):
            await session.send("more")

    assert (result.outcome, limit_of(result)) == ("failed", ("turn", "seconds", 0.1))
    assert (session.state, session.restarts, cli.running) == ("failed", 0, 0)
    assert errors == [result.cause]


async def test_a_limit_reached_with_the_last_message_stops_no_turn() -> None:
    """The turn has completed, and the interrupt would stop the next one."""
    cli = ScriptedCLI(
        Script(
            when("one", say("first").using(Usage(1000, 1000))),
            when("two", say("second").using(Usage(1, 1))),
        )
    )

    async with opened(cli, limits=Limits(turn=Caps(tokens=1500))) as session:
        turns = [await session.send(prompt) for prompt in ("one", "two")]
        results = [await turn for turn in turns]

    assert [(each.outcome, each.cause) for each in results] == [("completed", None)] * 2


async def test_without_limits_the_cli_gets_no_usage_request() -> None:
    cli = ScriptedCLI(Script(A_CALL, say("done")))

    async with opened(cli, **ALLOWED) as session:
        await (await session.send("work"))

    assert not [
        each for each in cli.received if each.get("request", {}).get("subtype") == "get_usage"
    ]


async def test_a_limit_stops_a_turn_whose_result_is_not_awaited() -> None:
    cli = ScriptedCLI(Script(say("half") + stall()))

    async with opened(cli, limits=Limits(session=Caps(seconds=0.1))) as session:
        turn = await session.send("work")
        await asyncio.wait_for(turn.begun(), 5)
        at_rest = await session.wait_idle(5)
        result = await turn

    assert at_rest
    assert limit_of(result) == ("session", "seconds", 0.1)
