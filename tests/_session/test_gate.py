from __future__ import annotations

import asyncio
from typing import Any

import pytest

from steersman import Agent
from steersman.agent import Session
from steersman.errors import ChannelClosed, LimitReached, RequestRefused, UsageError
from steersman.journal import Kind
from steersman.options import Caps, Limits, Watchdog
from steersman.testing.script import Script, call, calls, say, stall, when
from steersman.testing.scripted.cli import ScriptedCLI
from tests._session.peers import FramePeer, entries_of, opened


class Tools:
    """A Bash tool that records its commands."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    async def run(self, given: dict[str, Any]) -> str:
        self.ran.append(given["command"])
        return "done"

    def cli(self, *steps: Any) -> ScriptedCLI:
        return ScriptedCLI(Script(*steps), tools={"Bash": self.run})


ALLOWED: dict[str, Any] = {"allowed_tools": ["Bash"]}


async def held(session: Session, count: int = 1) -> None:
    """Wait until the gate holds `count` tool calls."""
    found = 0
    async for entry in session.journal():
        found += entry.kind is Kind.CONTROL and b'"callback_id":"gate"' in entry.line  # type: ignore[union-attr]
        if found == count:
            return


async def history(session: Session) -> list[str]:
    """Return the states of a closed session, in order."""
    entries = await entries_of(session)
    return ["idle", *(each.details["after"] for each in entries if each.kind is Kind.PHASE)]


async def test_a_pause_holds_every_tool_until_it_is_resumed() -> None:
    tools = Tools()
    cli = tools.cli(
        say("I try") + stall() + calls(call("Bash", command="one"), call("Bash", command="two")),
        say("done"),
    )

    async with opened(cli, **ALLOWED) as session:
        turn = await session.send("work")
        await cli.wait_for_stall()
        await session.pause()
        await cli.release()
        await held(session)
        at_the_gate = (session.state, tools.ran[:])
        await session.resume()
        result = await turn

    assert at_the_gate == ("paused", [])
    assert result.outcome == "completed"
    assert sorted(tools.ran) == ["one", "two"]


async def test_prompts_are_held_while_paused_and_sent_in_order_afterwards() -> None:
    cli = ScriptedCLI()

    async with opened(cli) as session:
        await session.pause()
        turns = [await session.send(prompt) for prompt in ("one", "two")]
        steered = await session.send("first", when="now")
        queued = session.snapshot().queued
        asked = len(cli.asked)
        await session.resume()
        results = [await turn for turn in (steered, *turns)]

    assert queued == tuple(turn.uuid for turn in (steered, *turns))
    assert asked == 0
    assert [each.text for each in results] == ["Echo: first", "Echo: one", "Echo: two"]


async def test_a_pause_while_idle_only_changes_the_state() -> None:
    async with opened(ScriptedCLI()) as session:
        await session.pause()
        await session.resume()

    assert await history(session) == ["idle", "starting", "idle", "paused", "idle", "completed"]


async def test_a_second_pause_and_a_second_resume_change_nothing() -> None:
    tools = Tools()
    cli = tools.cli(call("Bash", command="one"), say("done"))

    async with opened(cli, **ALLOWED) as session:
        await session.resume()
        await session.pause()
        await session.pause()
        await session.pause(hard=True)
        await session.pause()
        turn = await session.send("work")
        await session.resume()
        await session.resume()
        result = await turn
        registered = [each for each in cli.received if each.get("request", {}).get("hooks")]

    assert (result.outcome, tools.ran) == ("completed", ["one"])
    assert len(registered) == 1
    assert (await history(session)).count("paused") == 1


async def test_a_turn_that_needs_no_tool_continues_and_settles_while_paused() -> None:
    cli = ScriptedCLI(Script(say("half") + stall() + say(" and whole")))

    async with opened(cli) as session:
        turn = await session.send("talk")
        await cli.wait_for_stall()
        await session.pause()
        await cli.release()
        result = await turn
        state = session.state
        at_rest = await session.wait_idle(5)
        await session.resume()
        after = session.state

    assert result.text == "half and whole"
    assert (state, at_rest, after) == ("paused", True, "idle")


async def test_an_interrupt_while_paused_ends_the_turn_and_not_the_pause() -> None:
    tools = Tools()
    cli = tools.cli(when("work", call("Bash", command="one")), when("more", say("fresh")))

    async with opened(cli, **ALLOWED) as session:
        await session.pause()
        await session.resume()
        turn = await session.send("work")
        await session.pause()
        await held(session)
        await turn.interrupt()
        result = await turn
        state = session.state
        more = await session.send("more")
        await session.resume()
        fresh = await more

    assert (result.outcome, state, tools.ran) == ("interrupted", "paused", [])
    assert fresh.text == "fresh"


async def test_a_hard_pause_lets_nothing_through_in_either_direction() -> None:
    tools = Tools()
    cli = tools.cli(call("Bash", command="one"), say("done"))

    async with opened(cli, **ALLOWED) as session:
        turn = await session.send("work")
        await session.pause(hard=True)
        before = session.last_seq
        await asyncio.sleep(0)
        unmoved = (session.last_seq - before, tools.ran[:], session.state)
        await session.resume()
        result = await turn

    assert unmoved == (0, [], "paused")
    assert (result.outcome, tools.ran) == ("completed", ["one"])


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("ending", ["aclose", "cancel"])
async def test_a_paused_session_can_be_ended(ending: str, *, hard: bool) -> None:
    tools = Tools()
    cli = tools.cli(say("I try") + stall() + call("Bash", command="one"))

    async with opened(cli, close_grace=0.2, **ALLOWED) as session:
        turn = await session.send("work")
        await cli.wait_for_stall()
        await session.pause(hard=hard)
        queued = await session.send("and then")
        if not hard:
            await cli.release()
            await held(session)
        await (session.cancel() if ending == "cancel" else session.aclose())
        results = [await turn, await queued]

    assert tools.ran == []
    assert session.state == ("cancelled" if ending == "cancel" else "completed")
    assert results[0].outcome in ("cancelled", "interrupted")
    assert results[1].outcome == "cancelled"
    assert cli.running == 0


async def test_neither_the_clock_nor_the_watchdog_runs_while_paused() -> None:
    tools = Tools()
    cli = tools.cli(stall() + call("Bash", command="one"), say("done"))
    limit = 0.3

    async with opened(
        cli,
        watchdog=Watchdog(first_token=limit, between_events=limit, tool=limit),
        limits=Limits(turn=Caps(seconds=limit), session=Caps(seconds=limit)),
        **ALLOWED,
    ) as session:
        turn = await session.send("work")
        # The CLI has not started the prompt yet: its start must not start the clock either.
        await session.pause()
        await cli.wait_for_stall()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(turn.result(), 3 * limit)
        await cli.release()
        await held(session)
        await session.resume()
        result = await turn

    kinds = {each.kind for each in await entries_of(session)}
    assert (result.outcome, tools.ran) == ("completed", ["one"])
    assert not kinds & {Kind.STALLED, Kind.LIMIT}


async def test_the_clock_continues_after_a_pause() -> None:
    cli = ScriptedCLI(Script(say("half") + stall()))

    async with opened(cli, limits=Limits(turn=Caps(seconds=0.2))) as session:
        turn = await session.send("work")
        await cli.wait_for_stall()
        await session.pause()
        await session.resume()
        result = await turn

    assert isinstance(result.cause, LimitReached)


async def test_a_cli_that_exits_while_paused_is_restarted_with_the_gate_closed() -> None:
    tools = Tools()
    cli = tools.cli(
        say("I try") + stall() + call("Bash", command="one"),
        call("Bash", command="two"),
        say("done"),
    )

    async with opened(cli, **ALLOWED) as session:
        turn = await session.send("work")
        await cli.wait_for_stall()
        await session.pause()
        cli.exit(9)
        await held(session)
        at_the_gate = (session.state, session.restarts, tools.ran[:])
        await session.resume()
        result = await turn

    assert at_the_gate == ("paused", 1, [])
    assert (result.outcome, tools.ran) == ("completed", ["two"])


async def test_a_cli_that_was_restarted_with_the_gate_is_not_told_of_it_again() -> None:
    cli = ScriptedCLI(Script(say("one") + stall(), say("two"), say("three")))

    async with opened(cli) as session:
        turn = await session.send("work")
        await cli.wait_for_stall()
        await session.pause()
        await session.resume()
        cli.exit(9)
        await turn
        await session.pause()
        await session.resume()
        await (await session.send("more"))
    entries = await entries_of(session)

    sent = [each.line for each in entries if each.kind is Kind.SENT]
    # Two handshakes, and the first pause.
    assert sum(b'"subtype":"initialize"' in line for line in sent) == 3
    assert sum(b'"gate"' in line for line in sent) == 2


async def test_an_old_cli_cannot_be_paused_between_tools_and_the_error_names_the_remedy() -> None:
    peer = FramePeer()

    async with opened(peer.transport) as session:
        with pytest.raises(RequestRefused, match=r"pause\(hard=True\)"):
            await session.pause()
        state = session.state
        await session.pause(hard=True)
        paused = session.state
        await session.resume()

    assert (state, paused) == ("idle", "paused")


async def test_a_session_that_does_not_run_cannot_be_paused() -> None:
    session = Agent(transport=ScriptedCLI()).session()
    with pytest.raises(ChannelClosed):
        await session.pause()

    async with asyncio.timeout(5), session:
        with pytest.raises(UsageError):
            await session.pause(hard="yes")  # type: ignore[arg-type]
    with pytest.raises(ChannelClosed):
        await session.pause()
    with pytest.raises(ChannelClosed):
        await session.resume()


async def test_a_stopped_cli_is_sent_no_request_and_the_error_names_the_remedy() -> None:
    cli = ScriptedCLI(Script(say("half") + stall()))

    async with opened(cli) as session:
        turn = await session.send("talk")
        await cli.wait_for_stall()
        await session.pause(hard=True)
        for request in (session.set_model("x"), session.control("x"), session.interrupt()):
            with pytest.raises(RequestRefused, match=r"resume\(\) first"):
                await request
        await session.resume()
        await turn.interrupt()
        result = await turn

    assert result.outcome == "interrupted"


async def test_a_resume_while_the_cli_is_being_replaced_waits_for_it() -> None:
    tools = Tools()
    cli = tools.cli(
        say("I try") + stall(),
        call("Bash", command="two"),
        say("done"),
    )

    async with opened(cli, **ALLOWED) as session:
        turn = await session.send("work")
        await cli.wait_for_stall()
        await session.pause()
        cli.exit(9)
        async for entry in session.journal():
            if entry.kind is Kind.RESTARTED:  # type: ignore[union-attr]
                break
        await session.resume()
        result = await turn
        await session.wait_idle(5)

    states = await history(session)
    since = states[states.index("paused") + 1 :]
    assert (result.outcome, tools.ran) == ("completed", ["two"])
    assert since[0] == "starting"
    assert since[since.index("paused") :] == ["paused", "running", "idle", "completed"]
