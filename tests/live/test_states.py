"""The state is what the session does; each one can be reached, described, and cancelled in."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import time
from contextlib import aclosing
from itertools import pairwise
from typing import Any, get_args

import pytest

from steersman import Inbox, Session, Turn, TurnResult, tool
from steersman._session.listeners import EventName
from steersman.errors import ApiFailed, ChannelClosed, CliExited
from steersman.journal import Kind
from steersman.journal.snapshot import TABLE, Phase, SessionEnded, State
from steersman.messages import Result
from steersman.permissions import Allow, Deny, PermissionContext
from steersman.testing.plugin import MakeAgent
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import Script, call, calls, fail, say, stall, when
from tests.live.staging import (
    LIMIT,
    MakeScripted,
    entries_of,
    first_words,
    inhabitants,
    is_alive,
    until,
)

pytestmark = pytest.mark.live

WAITING = ("waiting_tool_call", "waiting_permission")


class Dawdler:
    """A tool that only looks, and takes as long as it is let."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.running = 0
        self.fates: list[str] = []

        @tool(read_only=True)
        async def dawdle(at: str = "") -> str:
            """Look for long."""
            self.running += 1
            try:
                await self.go.wait()
            except asyncio.CancelledError:
                self.fates.append("cancelled")
                raise
            return f"saw {at}"

        self.dawdle = dawdle


class Person:
    """Somebody who is asked, and answers when it suits them."""

    def __init__(self) -> None:
        self.answered = asyncio.Event()
        self.asked = asyncio.Event()
        self.fates: list[str] = []

    async def decide(
        self, _name: str, _input: dict[str, Any], _context: PermissionContext
    ) -> Allow | Deny:
        self.asked.set()
        try:
            await self.answered.wait()
        except asyncio.CancelledError:
            self.fates.append("cancelled")
            raise
        return Allow()


async def history(session: Session) -> list[str]:
    """The states that a session went through so far."""
    entries = await entries_of(session)
    return ["idle", *(each.details["after"] for each in entries if each.kind is Kind.PHASE)]


def phase_of(state: str) -> Phase:
    return Phase.RUNNING if state in WAITING else Phase(state)


def strays(states: list[str]) -> list[tuple[str, str]]:
    """The steps that the table of phases does not have."""
    steps = pairwise(states)
    allowed = {(phase, after) for phase, moves in TABLE.items() for after in moves.values()}
    allowed |= {(Phase.RUNNING, Phase.RUNNING)}
    return [
        (before, after)
        for before, after in steps
        if before == after or (phase_of(before), phase_of(after)) not in allowed
    ]


async def test_a_session_goes_through_the_states_of_the_table_and_no_others(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    dawdler, person = Dawdler(), Person()
    agent, _model = scripted(
        call("mcp__functions__dawdle", at="left"),
        call("Bash", command=f"touch {sandbox.project}/file"),
        say("done"),
        functions=[dawdler.dawdle],
        can_use_tool=person.decide,
    )
    session = agent.session()
    seen = [session.state]

    async with asyncio.timeout(LIMIT), session:
        seen.append(session.state)
        turn = await session.send("work")
        await until(lambda: dawdler.running == 1)
        seen.append(session.state)
        dawdler.go.set()
        await person.asked.wait()
        seen.append(session.state)
        await session.pause()
        seen.append(session.state)
        await session.resume()
        person.answered.set()
        await turn
        await session.wait_idle(LIMIT)
        seen.append(session.state)
    states = await history(session)

    assert seen == ["idle", "idle", *WAITING, "paused", "idle"]
    assert states == [
        "idle",
        "starting",
        "idle",
        "running",
        "waiting_tool_call",
        "running",
        "waiting_permission",
        "paused",
        "waiting_permission",
        "running",
        "idle",
        "completed",
    ]
    assert strays(states) == []


async def test_a_permission_outranks_a_tool_and_the_snapshot_has_them_all(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    dawdler, person = Dawdler(), Person()
    agent, _model = scripted(
        calls(
            call("mcp__functions__dawdle", at="left"),
            call("mcp__functions__dawdle", at="right"),
            call("Read", file_path="/etc/hostname"),
        ),
        say("done"),
        functions=[dawdler.dawdle],
        can_use_tool=person.decide,
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turn = await session.send("work")
        await until(lambda: dawdler.running == 2)
        await person.asked.wait()
        both = session.snapshot()
        described = session.describe()
        person.answered.set()
        await until(lambda: not session.snapshot().pending_permissions)
        tools_only = session.state
        dawdler.go.set()
        result = await turn

    assert both.state == "waiting_permission"
    ours = [each for each in both.pending_tool_calls if each.is_ours]
    assert [(each.name, each.server, each.arguments) for each in ours] == [
        ("mcp__functions__dawdle", "functions", {"at": "left"}),
        ("mcp__functions__dawdle", "functions", {"at": "right"}),
    ]
    assert len(both.pending_tool_calls) == 3
    (asked,) = both.pending_permissions
    assert (asked.tool_name, asked.input) == ("Read", {"file_path": "/etc/hostname"})
    assert both.open_asks == (asked.request_id,)
    assert both.since >= min(each.started for each in ours) > 0
    assert re.fullmatch(r"waiting for you \d s", described)
    assert tools_only == "waiting_tool_call"
    assert result.outcome == "completed"


async def test_a_session_whose_cli_is_lost_for_good_has_failed(
    scripted: MakeScripted,
) -> None:
    agent, _model = scripted(say("half") + stall(), revive=False)

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turn = await session.send("talk")
        await first_words(turn, "half")
        assert session.pid is not None
        os.kill(session.pid, signal.SIGKILL)
        result = await turn
        last = await session.finish(LIMIT)

    assert isinstance(result.cause, CliExited)
    assert (session.state, last.state) == ("failed", "failed")
    assert strays(await history(session)) == []


# Cancelling


async def outlive(seconds: float) -> None:
    """Wait until a clock that was started with a tool has run out: its effect is due by now."""
    await asyncio.sleep(seconds)


async def assert_cancelled(session: Session, sandbox: CliSandbox, turns: list[Turn]) -> list[str]:
    """Cancel, and see that nothing is left: no process, no open turn, no further word."""
    pid = session.pid
    await session.cancel()
    left = inhabitants(sandbox.root)
    results: list[TurnResult] = [await turn for turn in turns]
    snapshot = session.snapshot()

    assert left == {}
    assert pid is None or not is_alive(pid)
    assert session.state == "cancelled"
    assert [each.outcome for each in results] == ["cancelled"] * len(turns)
    assert (snapshot.pending_permissions, snapshot.pending_tool_calls) == ((), ())
    assert (snapshot.open_asks, snapshot.queued, snapshot.tasks) == ((), (), ())
    assert snapshot.stats.completed is not None
    with pytest.raises(ChannelClosed):
        await session.send("more")
    states = await history(session)
    assert strays(states) == []
    return states


async def test_cancelled_before_it_was_started(scripted: MakeScripted) -> None:
    agent, _model = scripted()
    session = agent.session()
    told: list[str] = []
    session.on("complete", lambda snapshot: told.append(snapshot.state))

    async with asyncio.timeout(LIMIT):
        await session.cancel()
        with pytest.raises(Exception, match="not started before"):
            await session.start()
        await until(lambda: bool(told))

    assert session.state == "cancelled"
    assert told == ["cancelled"]


@pytest.mark.parametrize("after", [0.0, 0.05, 0.3])
@pytest.mark.parametrize("ending", ["cancel", "aclose"])
async def test_ended_while_it_is_starting(
    scripted: MakeScripted, sandbox: CliSandbox, after: float, ending: str
) -> None:
    agent, _model = scripted()
    session = agent.session()

    async with asyncio.timeout(LIMIT):
        starting = asyncio.create_task(session.start())
        await asyncio.sleep(after)
        state = session.state
        await (session.cancel() if ending == "cancel" else session.aclose())
        left = inhabitants(sandbox.root)
        (error,) = await asyncio.gather(starting, return_exceptions=True)

    assert state in ("idle", "starting")
    assert left == {}
    if state == "starting":
        # The answer of the CLI may cross the end.
        assert error is session or isinstance(error, ChannelClosed)
        assert session.state == ("cancelled" if ending == "cancel" else "completed")
    else:
        await session.aclose()
    assert inhabitants(sandbox.root) == {}


async def test_cancelled_while_idle(scripted: MakeScripted, sandbox: CliSandbox) -> None:
    agent, _model = scripted(say("hello"))

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await (await session.send("talk"))
        await session.wait_idle(LIMIT)
        states = await assert_cancelled(session, sandbox, [])

    assert states[-2:] == ["idle", "cancelled"]


async def test_cancelled_in_the_middle_of_a_text(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    agent, _model = scripted(say("half") + stall())

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turns = [await session.send("talk"), await session.send("and then")]
        await first_words(turns[0], "half")
        states = await assert_cancelled(session, sandbox, turns)
        result = await turns[0]

    assert states[-2:] == ["running", "cancelled"]
    assert result.text == "half"


async def test_cancelled_while_a_tool_of_ours_and_bash_run(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    dawdler = Dawdler()
    effect = sandbox.project / "effect"
    agent, _model = scripted(
        call("Bash", command=f"(sleep 1; touch {effect}) & sleep 0.1", run_in_background=True)
        + call("mcp__functions__dawdle"),
        functions=[dawdler.dawdle],
        allowed_tools=["Bash"],
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turns = [await session.send("work")]
        await until(lambda: dawdler.running == 1)
        assert session.state == "waiting_tool_call"
        states = await assert_cancelled(session, sandbox, turns)
        await outlive(1.2)

    assert "waiting_tool_call" in states[-3:]
    assert dawdler.fates == ["cancelled"]
    assert not effect.exists()


async def test_cancelled_while_somebody_is_asked(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    person = Person()
    agent, _model = scripted(
        call("Bash", command=f"touch {sandbox.project}/effect"), can_use_tool=person.decide
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turns = [await session.send("work")]
        await person.asked.wait()
        assert session.state == "waiting_permission"
        states = await assert_cancelled(session, sandbox, turns)

    assert "waiting_permission" in states[-3:]
    assert person.fates == ["cancelled"]
    assert not (sandbox.project / "effect").exists()


async def test_cancelled_while_an_ask_waits_in_the_inbox(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    inbox = Inbox()
    agent, _model = scripted(call("Bash", command=f"touch {sandbox.project}/effect"), inbox=inbox)

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turns = [await session.send("work")]
        async with aclosing(inbox.watch()) as changes:
            await anext(changes)
        assert session.state == "waiting_permission"
        await assert_cancelled(session, sandbox, turns)

    assert await inbox.list() == []
    assert not (sandbox.project / "effect").exists()


# In words


async def test_a_retry_and_a_wait_are_put_into_words(scripted: MakeScripted) -> None:
    agent, model = scripted(fail(529, retry_after=2), stall() + say("at last"))

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turn = await session.send("talk")
        await until(lambda: session.snapshot().retrying is not None)
        described = session.describe()
        retrying = session.snapshot().retrying
        await asyncio.to_thread(model.release)
        result = await turn
        after = session.snapshot().retrying

    assert retrying is not None
    assert (retrying.attempt, retrying.error) == (1, "overloaded")
    assert re.fullmatch(rf"retrying 1/{retrying.most} in \d s", described)
    assert result.text == "at last"
    assert after is None


async def test_it_is_said_for_how_long_somebody_is_waited_for(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    person = Person()
    later = 0.0
    agent, _model = scripted(
        call("Bash", command=f"touch {sandbox.project}/file"),
        say("done"),
        can_use_tool=person.decide,
        clock=lambda: time.time() + later,
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turn = await session.send("work")
        await person.asked.wait()
        later = 40.0
        described = session.describe()
        person.answered.set()
        await turn

    assert described in ("waiting for you 40 s", "waiting for you 41 s")


# Settled, idle, and parked


def is_notice(request: Any) -> bool:
    """Whether the CLI itself wrote the last prompt, because background work has ended."""
    return "<task-notification>" in request.latest


async def test_settled_idle_and_at_rest_are_three_things(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    """Two subagents in the background: the turn settles, then the session is idle, then at rest."""
    look = {"description": "look", "subagent_type": "general-purpose", "run_in_background": True}
    gate = f"until test -e {sandbox.project}/go; do sleep 0.05; done"
    script = Script(
        when(is_notice, say("one is back"), say("both are back")),
        when(
            "send two",
            calls(
                call("Agent", {**look, "prompt": "look left"}),
                call("Agent", {**look, "prompt": "look right"}),
            ),
            say("sent"),
        ),
    )
    for side in ("left", "right"):
        script.branch(f"look {side}", call("Bash", command=gate), say("found"))
    agent, _model = scripted(script, allowed_tools=["Bash"])

    async with asyncio.timeout(LIMIT), agent.session() as session:
        settled = await (await session.send("send two"))
        await until(lambda: session.state == "idle")
        described = session.describe()
        at_rest = await session.wait_idle(0.3)
        tasks = session.snapshot().tasks
        (sandbox.project / "go").touch()
        finished = await session.wait_idle(LIMIT)
        after = (session.describe(), session.snapshot().tasks)

    assert settled.outcome == "completed"
    assert described == "background: 2 agents"
    assert (at_rest, finished) == (False, True)
    assert [each.is_agent for each in tasks] == [True, True]
    assert after == ("idle", ())


async def test_a_background_shell_leaves_the_session_idle_and_not_at_rest(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    gate = f"until test -e {sandbox.project}/go; do sleep 0.05; done"
    agent, _model = scripted(
        when(is_notice, say("it is over")),
        when("start", call("Bash", command=gate, run_in_background=True), say("started")),
        when("meanwhile", say("here")),
        allowed_tools=["Bash"],
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await (await session.send("start"))
        await until(lambda: session.state == "idle")
        parked = (session.describe(), await session.wait_idle(0.2))
        with pytest.raises(TimeoutError):
            await session.finish(0.2)
        meanwhile = await (await session.send("meanwhile"))
        (sandbox.project / "go").touch()
        last = await session.finish(LIMIT)

    assert parked == ("background: 1 task", False)
    assert meanwhile.text == "here"
    assert (last.state, last.tasks) == ("completed", ())


async def test_somebody_in_the_background_may_ask(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    """The session waits for a person, though its turn is settled; then it is parked again."""
    person, file = Person(), sandbox.project / "file"
    look = {"description": "look", "subagent_type": "general-purpose", "run_in_background": True}
    script = Script(
        when(is_notice, say("it is back")),
        when("send", call("Agent", {**look, "prompt": "look around"}), say("sent")),
    ).branch("look around", stall() + call("Bash", command=f"touch {file}"), stall() + say("ok"))
    agent, model = scripted(script, can_use_tool=person.decide)

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await (await session.send("send"))
        await until(lambda: session.state == "idle")
        await asyncio.to_thread(model.release)
        await person.asked.wait()
        asking = (session.state, session.describe()[:15])
        person.answered.set()
        await until(file.exists)
        await until(lambda: session.state != "waiting_permission")
        parked = (session.state, session.describe())
        await asyncio.to_thread(model.release)
        finished = await session.wait_idle(LIMIT)
    states = await history(session)

    assert asking == ("waiting_permission", "waiting for you")
    assert parked == ("idle", "background: 1 agent")
    assert finished
    assert strays(states) == []


async def test_every_event_is_told(scripted: MakeScripted, sandbox: CliSandbox) -> None:
    dawdler, person = Dawdler(), Person()
    dawdler.go.set()
    person.answered.set()
    agent, _model = scripted(
        call("mcp__functions__dawdle", at="left"),
        call("Bash", command=f"touch {sandbox.project}/file"),
        say("done"),
        fail(400),
        functions=[dawdler.dawdle],
        can_use_tool=person.decide,
    )
    session = agent.session()
    heard: dict[str, list[Any]] = {name: [] for name in get_args(EventName)}
    for name in get_args(EventName):
        session.on(name, heard[name].append)
    left: list[Any] = []
    leave = session.on("message", left.append)

    async with asyncio.timeout(LIMIT), session:
        leave()
        done = await (await session.send("work"))
        failed = await (await session.send("fail"))
        await session.finish(LIMIT)

    names = ["mcp__functions__dawdle", "Bash"]
    assert [each.name for each in heard["tool_call"]] == names
    assert [each.name for each in heard["tool_result"]] == names
    assert all(each.duration > 0 and each.started > 0 for each in heard["tool_result"])
    assert [each.tool_name for each in heard["ask"]] == ["Bash"]
    assert [each for each in heard["message"] if isinstance(each, Result)] == [
        done.result,
        failed.result,
    ]
    assert [type(each) for each in heard["error"]] == [ApiFailed]
    assert [each.after for each in heard["state_change"]] == (await history(session))[1:]
    assert heard["complete"] == [SessionEnded.of(session.snapshot(), failed)]
    assert left == []


async def test_every_cli_comes_to_rest(live_cli: MakeAgent) -> None:
    """Older ones too, and what they did in the background is over as well."""
    agent = live_cli(
        call("Bash", command="true", run_in_background=True),
        say("started"),
        say("it is over"),
        complete=False,
        allowed_tools=["Bash"],
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        result = await (await session.send("start"))
        at_rest = await session.wait_idle(LIMIT)
        state = session.state
        last = await session.finish(LIMIT)

    assert (result.outcome, at_rest, state) == ("completed", True, "idle")
    assert last.state == "completed"
    assert strays(await history(session)) == []


def test_every_state_of_the_seed_is_one_of_ours() -> None:
    """Each of them is reached by a test above, on the stock CLI."""
    assert set(get_args(State)) == {*WAITING, *(phase.value for phase in Phase)}
