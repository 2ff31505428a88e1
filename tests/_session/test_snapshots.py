from __future__ import annotations

import asyncio
import dataclasses
from contextlib import AsyncExitStack
from typing import Any

import pytest

from steersman import Agent, Session, Toolbox, Turn, tool
from steersman.errors import CliExited
from steersman.journal import Entry, Phase
from steersman.journal.replaying import replay
from steersman.journal.snapshot import SessionSnapshot, Stats
from steersman.permissions import Allow, PermissionContext
from steersman.testing.script import Script, Step, call, calls, say, stall
from steersman.testing.scripted.cli import ScriptedCLI
from tests._session.peers import opened

MANY = 200


class Gate:
    """Lets tools and people through when it is opened, and tells of those that came."""

    def __init__(self) -> None:
        self.is_open = asyncio.Event()
        self._came: asyncio.Queue[str] = asyncio.Queue()

        @tool(read_only=True)
        async def look(at: str) -> str:
            """Look at something for long."""
            await self._pass(at)
            return f"saw {at}"

        self.look = look

    async def decide(self, name: str, _input: dict[str, Any], _context: PermissionContext) -> Allow:
        await self._pass(name)
        return Allow()

    async def reached(self, count: int) -> None:
        for _ in range(count):
            await self._came.get()

    async def _pass(self, who: str) -> None:
        self._came.put_nowait(who)
        await self.is_open.wait()


async def so_far(session: Session) -> list[Entry]:
    found: list[Entry] = []
    async for entry in session.journal():
        assert isinstance(entry, Entry)
        found.append(entry)
        if entry.seq >= session.last_seq:
            break
    return found


async def test_a_session_that_was_not_started_is_idle_and_has_nothing() -> None:
    session = Agent(transport=ScriptedCLI()).session()

    snapshot = session.snapshot()

    assert snapshot == SessionSnapshot(session_id=session.id)
    assert session.describe() == "idle"


async def test_a_snapshot_has_everything_that_is_open_and_does_not_change() -> None:
    gate = Gate()
    asked = calls(
        call("mcp__functions__look", at="left", id_="toolu_1"),
        call("mcp__functions__look", at="right", id_="toolu_2"),
        call("mcp__secret__look", at="up", id_="toolu_3"),
        call("mcp__secret__look", at="down", id_="toolu_4"),
    )
    cli = ScriptedCLI(Script(asked, say("done")))
    # Functions are approved by giving them; about other servers somebody is asked.
    servers = {"secret": Toolbox("secret", [gate.look])}

    async with opened(
        cli,
        functions=[gate.look],
        mcp_servers=servers,
        can_use_tool=gate.decide,
        clock=lambda: 1000.0,
    ) as session:
        turn = await session.send("work")
        queued = await session.send("and then")
        await gate.reached(4)
        during = session.snapshot()
        read_off = replay(await so_far(session)).snapshot
        gate.is_open.set()
        await turn
        await queued
        after = session.snapshot()

    assert (during.state, during.phase) == ("waiting_permission", Phase.RUNNING)
    ours = {each.tool_use_id: each for each in during.pending_tool_calls if each.is_ours}
    assert {key: each.arguments for key, each in ours.items()} == {
        "toolu_1": {"at": "left"},
        "toolu_2": {"at": "right"},
    }
    assert all(each.server == "functions" and each.started > 0 for each in ours.values())
    assert {each.tool_use_id for each in during.pending_tool_calls} >= {"toolu_3", "toolu_4"}
    assert [each.tool_name for each in during.pending_permissions] == ["mcp__secret__look"] * 2
    assert [each.input for each in during.pending_permissions] == [{"at": "up"}, {"at": "down"}]
    assert during.open_asks == tuple(each.request_id for each in during.pending_permissions)
    assert during.queued == (queued.uuid,)
    assert (during.stats.turns, during.stats.tool_calls) == (0, 4)
    # The prompts that wait are not in the journal: they have not happened.
    assert during.behind_ask == (queued.uuid,)
    assert dataclasses.replace(during, queued=(), behind_ask=()) == read_off
    assert (after.pending_tool_calls, after.pending_permissions) == ((), ())
    assert (after.queued, after.behind_ask) == ((), ())
    assert after.stats.turns == 2


async def test_the_last_snapshot_says_when_it_began_and_ended_and_what_it_cost() -> None:
    now = [1000.0]
    cli = ScriptedCLI(Script(call("Bash", command="true"), say("done")))

    async with (
        asyncio.timeout(5),
        Agent(transport=cli, allowed_tools=["Bash"], clock=lambda: now[0]).session() as session,
    ):
        now[0] = 1010.0
        result = await (await session.send("work"))
        now[0] = 1020.0
    last = session.snapshot()

    assert last.state == "completed"
    assert last.since == 1020.0
    assert last.stats == Stats(
        started=1000.0,
        completed=1020.0,
        tool_calls=1,
        messages=last.stats.messages,
        turns=1,
        cost_usd=result.cost_usd,
    )
    assert last.stats.messages > 3


@pytest.mark.parametrize("hard", [False, True])
async def test_a_snapshot_of_a_paused_session_keeps_what_is_open(*, hard: bool) -> None:
    gate = Gate()
    cli = ScriptedCLI(Script(call("Bash", command="touch x"), say("done")))

    async with opened(cli, can_use_tool=gate.decide) as session:
        turn = await session.send("work")
        await gate.reached(1)
        await session.pause(hard=hard)
        during = session.snapshot()
        described = session.describe()
        gate.is_open.set()
        await session.resume()
        result = await turn

    assert (during.state, len(during.pending_permissions)) == ("paused", 1)
    assert described == "paused"
    assert result.outcome == "completed"


# Many at once


class Crew:
    """Many sessions in one process, each with a CLI of its own and in the middle of a turn."""

    def __init__(self) -> None:
        self.clis: list[ScriptedCLI] = []
        self.sessions: list[Session] = []
        self.turns: list[Turn] = []

    async def hire(self, stack: AsyncExitStack, step: Step) -> None:
        cli = ScriptedCLI(Script(step))
        agent = Agent(transport=cli, revive=False)
        session = await stack.enter_async_context(agent.session())
        self.clis.append(cli)
        self.sessions.append(session)
        self.turns.append(await session.send("work"))
        await cli.wait_for_stall()

    @property
    def standing(self) -> list[tuple[str, int, bool]]:
        """How each of them stands: its state, how much it heard, and whether it is done."""
        return [
            (session.state, session.last_seq, turn.is_settled)
            for session, turn in zip(self.sessions, self.turns, strict=True)
        ]


async def test_killing_any_of_two_hundred_sessions_disturbs_no_other() -> None:
    crew = Crew()

    async with asyncio.timeout(60), AsyncExitStack() as stack:
        for number in range(MANY):
            await crew.hire(stack, say(f"half {number}") + stall() + say(" and whole"))
        killed = range(0, MANY, 10)
        disturbed: list[int] = []
        for number in killed:
            before = crew.standing
            crew.clis[number].exit(9)
            await crew.turns[number]
            after = crew.standing
            disturbed += [n for n in range(MANY) if before[n] != after[n] and n != number]
        for number in set(range(MANY)) - set(killed):
            await crew.clis[number].release()
        results = [await turn for turn in crew.turns]
        states = [session.state for session in crew.sessions]

    assert disturbed == []
    for number, result in enumerate(results):
        if number in killed:
            assert (result.outcome, result.text) == ("failed", f"half {number}")
            assert isinstance(result.cause, CliExited)
            assert states[number] == "failed"
        else:
            assert (result.outcome, result.text) == ("completed", f"half {number} and whole")
    assert [session.state for session in crew.sessions].count("completed") == MANY - len(killed)
