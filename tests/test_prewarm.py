"""Sessions that are started ahead, on a scripted CLI."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

import steersman.sync
from steersman import Agent
from steersman.errors import StartupError, UsageError
from steersman.hooks import Hooks, PreToolUse
from steersman.ports import Channel, Launch, Receiver
from steersman.testing.script import Script, call, say
from steersman.testing.scripted.cli import Faults, ScriptedCLI

LIMIT = 10.0


async def test_the_next_sessions_without_overrides_are_those_that_are_ready() -> None:
    place = ScriptedCLI()
    agent = Agent(transport=place)
    async with asyncio.timeout(LIMIT):
        await agent.prewarm(3)
        ahead = len(place.launches)
        other = await agent.start(model="claude-sonnet-5")
        first = await agent.start("hello")
        result = await agent.run("hello")
        async with agent.session() as third:
            texts = [(await each).text for each in first.turns]
            launches = len(place.launches)
        fourth = await agent.start()
        for each in (other, first, fourth):
            await each.aclose()

    assert (ahead, launches, len(place.launches)) == (3, 4, 5)
    assert (texts, result.text, third.phase.is_over) == (["Echo: hello"], "Echo: hello", True)
    assert place.running == 0


async def test_sessions_that_nobody_takes_are_closed_by_zero_and_a_lost_one_is_replaced() -> None:
    place = ScriptedCLI()
    agent = Agent(transport=place, revive=False)
    async with asyncio.timeout(LIMIT):
        await agent.prewarm(2)
        place.exit()
        for _ in range(20):
            # The exits are reported.
            await asyncio.sleep(0)
        await agent.prewarm(1)
        running = place.running
        await agent.prewarm(0)

    assert (running, place.running, len(place.launches)) == (1, 0, 3)


async def test_an_agent_that_chooses_a_conversation_cannot_start_one_ahead() -> None:
    with pytest.raises(UsageError, match="resume"):
        await Agent(transport=ScriptedCLI(), resume="x").prewarm()
    with pytest.raises(UsageError, match="count"):
        await Agent(transport=ScriptedCLI()).prewarm(-1)


class OneThatHangs:
    """The second CLI does not open until it is given up."""

    def __init__(self, place: ScriptedCLI) -> None:
        self._place = place
        self._count = 0

    async def open(self, launch: Launch, receiver: Receiver) -> Channel:
        self._count += 1
        if self._count > 1:
            await asyncio.Event().wait()
        return await self._place.open(launch, receiver)


async def test_a_cancelled_prewarm_leaves_no_cli_that_had_started() -> None:
    place = ScriptedCLI()
    agent = Agent(transport=OneThatHangs(place))
    async with asyncio.timeout(LIMIT):
        warming = asyncio.ensure_future(agent.prewarm(2))
        for _ in range(200):
            # The first one is initialized.
            await asyncio.sleep(0)
        running = place.running
        warming.cancel()
        await asyncio.wait([warming])

    assert warming.cancelled()
    assert (running, place.running) == (1, 0)


async def test_a_cli_that_does_not_start_ahead_is_an_error_and_leaves_nothing() -> None:
    place = ScriptedCLI(faults=Faults(exit_at="initialize"))
    with pytest.raises(StartupError):
        await Agent(transport=place).prewarm(2)

    assert place.running == 0


def test_synchronous_code_can_start_sessions_ahead_too() -> None:
    place = ScriptedCLI(Script(say("Hello.")))
    agent = steersman.sync.Agent(transport=place)
    agent.prewarm()
    with agent.session() as session:
        result = session.run("hello")

    assert (result.text, len(place.launches), place.running) == ("Hello.", 1, 0)


WAYS: dict[str, Callable[[steersman.sync.Agent], object]] = {
    "session": lambda agent: agent.session().start().close(),
    "start": lambda agent: agent.start("hello").close(),
    "run": lambda agent: agent.run("hello"),
    "query": lambda agent: list(agent.query("hello")),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_of_synchronous_code_takes_a_session_that_is_ready(way: str) -> None:
    place = ScriptedCLI()
    agent = steersman.sync.Agent(transport=place, model="model-a")
    agent.prewarm()

    WAYS[way](agent)

    (launch,) = place.launches
    assert "--model=model-a" in launch.argv
    assert place.running == 0


@pytest.mark.parametrize("way", ["session", "run"])
def test_synchronous_code_takes_none_that_is_ready_for_another_transport_or_option(
    way: str,
) -> None:
    ready, other = ScriptedCLI(), ScriptedCLI()
    agent = steersman.sync.Agent(transport=ready)
    agent.prewarm()

    for words in ({"transport": other}, {"model": "model-b"}):
        if way == "run":
            agent.run("hello", **words)
        else:
            agent.session(**words).start().close()

    assert (len(other.launches), len(ready.launches), ready.running) == (1, 2, 1)
    agent.prewarm(0)


def test_a_hook_that_comes_after_the_start_ahead_guards_the_next_session() -> None:
    hooks, seen = Hooks(), list[str]()
    place = ScriptedCLI(Script(call("Bash", command="ls"), say("Done.")))
    agent = steersman.sync.Agent(transport=place, hooks=hooks, allowed_tools=["Bash"])
    agent.prewarm()
    hooks.on(PreToolUse)(lambda event: seen.append(event.tool_name))

    with agent.session() as session:
        session.run("go")
    agent.prewarm(0)

    assert (seen, len(place.launches), place.running) == (["Bash"], 2, 0)
