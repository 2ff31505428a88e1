"""Brings a turn to a state, lets an event happen, and reads what the rows are then.

The table of docs/durable-model.md has a cell for each; `test_model` compares the two.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

from steersman import Agent, Allow
from steersman.errors import SessionInUse
from steersman.options import Park
from steersman.permissions import Policy
from tests.simulation.durable.outcome import Outcome
from tests.simulation.durable.plans import KEY, Plan
from tests.simulation.durable.playing import in_world
from tests.simulation.durable.world import LEASE, Process, World, later

LONG = 3.0
CONVERSATION = "customer 7"


async def _opened(agent: Agent) -> Any:
    return await agent.open(CONVERSATION)


class Stage:
    """One turn, on the host that has it or had it, and a person."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.person = Process(world, "person")
        self.host = Process(world, "host")
        self.session: Any = None
        self.turn: Any = None

    async def begin(self) -> None:
        """Have a new host open the conversation, and send the prompt."""
        await self.open()
        self.turn = await self.host.start(self.session.send(f"pay {KEY}", key=KEY))

    async def open(self) -> None:
        policy = Policy(otherwise="ask") if self.world.plan.is_exact else None
        agent = Agent(
            transport=self.host,
            inbox=self.host.inbox,
            park=Park(lease=LEASE),
            clock=self.world.clock,
            wait=2 * LEASE,
            policy=policy,
        )
        self.session = await self.host.start(_opened(agent))

    async def asked(self) -> Any:
        async with contextlib.aclosing(self.person.inbox.watch()) as watch:
            return (await anext(watch)).ask

    async def answer(self) -> None:
        await self.person.inbox.answer(await self.asked(), Allow(), by="ann")

    async def has(self, what: str) -> None:
        while not any(each.what == what for each in self.world.log):  # noqa: ASYNC110 - virtual time
            await asyncio.sleep(0.05)

    async def next_host(self) -> None:
        """Have another host open the conversation, which takes nothing up by itself."""
        self.host = Process(self.world, "next host")
        await self.open()

    async def taken_up(self) -> None:
        if self.session.state == "completed":
            await self.next_host()
            (self.turn,) = await self.host.start(self.session.resume_turns())


async def thinks(stage: Stage) -> None:
    await stage.begin()
    await later(LONG / 3)


async def asks(stage: Stage) -> None:
    await stage.begin()
    await stage.asked()
    # The CLI requests the permission, or the hook has it: both take a moment.
    await later(0.5)


async def runs(stage: Stage) -> None:
    await stage.begin()
    await stage.answer()
    await stage.has("tool begins")
    await later(0.1)


async def parked(stage: Stage) -> None:
    await asks(stage)
    await stage.session.park()


async def parked_and_answered(stage: Stage) -> None:
    await parked(stage)
    await stage.answer()


async def park(stage: Stage) -> None:
    if stage.session.state == "completed":
        await stage.next_host()
    await stage.session.park()


async def aclose(stage: Stage) -> None:
    if stage.session.state == "completed":
        await stage.next_host()
    await stage.session.aclose()


async def take_up_and_park(stage: Stage) -> None:
    await stage.taken_up()
    await stage.session.park()


async def kill(stage: Stage) -> None:
    stage.host.kill()
    await later(2 * LEASE)


async def stop(stage: Stage) -> None:
    """Stop the host until its guard has ended the CLI, shortly before its lease is over."""
    await stage.taken_up()
    ((until,),) = stage.world.database.execute(LEASE_END)
    stage.host.stop(until - stage.world.clock() - 0.2)
    await later(2 * LEASE)


async def lose_store(stage: Stage) -> None:
    await stage.taken_up()
    stage.host.away_until = stage.world.now + 2 * LEASE
    await later(3 * LEASE)


async def lose_cli(stage: Stage) -> None:
    await stage.taken_up()
    stage.host.kill_cli()
    await go_on(stage)


async def open_again(stage: Stage) -> None:
    """Have a second host open the conversation that the first one has."""
    await stage.taken_up()
    first = stage.session, stage.turn
    with contextlib.suppress(SessionInUse):
        await stage.next_host()
    stage.session, stage.turn = first
    await go_on(stage)


async def withdraw(stage: Stage) -> None:
    await stage.taken_up()
    assert not await stage.turn.withdraw()
    await go_on(stage)


async def interrupt(stage: Stage) -> None:
    await stage.taken_up()
    await stage.session.interrupt()
    await stage.session.aclose()


async def cancel(stage: Stage) -> None:
    await stage.taken_up()
    await stage.session.cancel()


async def expire(stage: Stage) -> None:
    for ask in await stage.person.inbox.list():
        await stage.person.inbox.expire(ask)
    await stage.taken_up()
    await stage.turn
    await stage.session.aclose()


async def go_on(stage: Stage) -> None:
    """The person answers, and a host is there that goes on."""
    await stage.taken_up()
    waiting = asyncio.ensure_future(_result(stage.turn))
    while not waiting.done():
        for ask in await stage.person.inbox.list():
            await stage.person.inbox.answer(ask, Allow(), by="ann")
        await asyncio.sleep(0.1)
    await stage.session.aclose()


async def _result(turn: Any) -> Any:
    return await turn


Act = Callable[[Stage], Awaitable[None]]

STATES: dict[str, Act] = {
    "the model thinks": thinks,
    "an ask waits": asks,
    "the tool runs": runs,
    "parked": parked,
    "parked, answered": parked_and_answered,
}
EVENTS: dict[str, Act] = {
    "`park()`": park,
    "`aclose()`, SIGTERM": aclose,
    "`resume_turns()`, `park()`": take_up_and_park,
    "`kill -9`": kill,
    "`interrupt()`": interrupt,
    "`cancel()`": cancel,
    "`expire()`": expire,
    "`withdraw()`": withdraw,
    "SIGSTOP, SIGCONT": stop,
    "the store is away": lose_store,
    "the CLI dies": lose_cli,
    "a second host": open_again,
    "goes on": go_on,
}
LEASE_END = "SELECT lease_until FROM steersman_conversations"


def look_at(state: str, event: str, *, is_exact: bool) -> str:
    """Return the rows of the turn and of its last ask, as they stand in the table."""
    plan = Plan(0, is_exact, LONG, LONG, 1, (), (), denies=False, grace=5.0)
    out = Outcome(plan)

    async def play(world: World) -> None:
        stage = Stage(world)
        await STATES[state](stage)
        await EVENTS[event](stage)
        # What is written in the background.
        await later(LONG)

    in_world(plan, out, play)
    if out.failure:
        return out.failure
    ((_, turn, outcome),) = out.rows
    shown = outcome if turn == "settled" else turn
    if not out.asks:
        return shown
    last = out.asks[-1]
    used = ", used" if last.mark else ", spent" if last.was_used and last.state != "closed" else ""
    return f"{shown}; {last.state}{used}"
