"""A pause holds tools and prompts for as long as one likes; a hard one stops the whole tree."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from steersman import Hooks, Session, Toolbox, tool
from steersman.errors import RequestRefused
from steersman.hooks import PreToolUse, Reply, deny
from steersman.journal import Entry, Kind
from steersman.options import Caps, Limits, Watchdog
from steersman.testing.plugin import MakeAgent
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import Step, call, calls, say, stall, when
from tests.live.staging import (
    LIMIT,
    MakeScripted,
    entries_of,
    entry_where,
    first_words,
    inhabitants,
    until,
)

pytestmark = pytest.mark.live

LONGER_THAN_A_MINUTE = 65.0

SHORT = Watchdog(first_token=20, between_events=20, tool=20, retry=20)
"""Each of them is far shorter than such a pause."""


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


async def paused_at_the_gate(scripted: MakeScripted, sandbox: CliSandbox) -> set[Kind]:
    """Three tools and a prompt are held; none of the clocks runs."""
    looker, file = Looker(), sandbox.project / "touched"
    agent, model = scripted(
        when("look around", looking_around(file), say("I have seen it.")),
        when("and then", say("That too.")),
        functions=[looker.look],
        allowed_tools=["Bash"],
        watchdog=SHORT,
        limits=Limits(turn=Caps(seconds=30), session=Caps(seconds=40)),
    )

    async with agent.session() as session:
        turn = await session.send("look around")
        await first_words(turn, "I look")
        await session.pause()
        queued = await session.send("and then")
        model.release()
        await held(session, 2)
        await outlive(LONGER_THAN_A_MINUTE)
        paused = (session.state, looker.seen[:], file.exists(), len(model.asked), queued.delivery)
        await session.resume()
        results = [await turn, await queued]
        await session.wait_idle(LIMIT)
        entries = await entries_of(session)

    assert paused == ("paused", [], False, 1, "queued")
    assert [(each.outcome, each.text) for each in results] == [
        ("completed", "I look\n\nI have seen it."),
        ("completed", "That too."),
    ]
    assert sorted(looker.seen) == ["left", "right"]
    assert file.exists()
    return {each.kind for each in entries}


async def stopped_in_the_text(scripted: MakeScripted) -> set[Kind]:
    """The model goes on meanwhile, and the CLI hears it when it wakes up."""
    agent, model = scripted(
        say("half") + stall() + say(" and whole"),
        watchdog=SHORT,
        limits=Limits(turn=Caps(seconds=30)),
    )

    async with agent.session() as session:
        turn = await session.send("talk")
        await first_words(turn, "half")
        await session.pause(hard=True)
        # The guard is told at once, and does it when the kernel lets it run.
        await until(lambda: kernel_state(session.pid) == "T")
        model.release()
        await outlive(LONGER_THAN_A_MINUTE)
        paused = (session.state, turn.is_settled)
        await session.resume()
        result = await turn
        entries = await entries_of(session)

    assert paused == ("paused", False)
    assert (result.outcome, result.text) == ("completed", "half and whole")
    return {each.kind for each in entries}


@pytest.mark.soak_only
@pytest.mark.timeout(2 * LIMIT + 2 * LONGER_THAN_A_MINUTE)
async def test_a_pause_may_last_for_more_than_a_minute(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    """Soft and hard side by side, since each takes its time."""
    async with asyncio.timeout(2 * LIMIT + LONGER_THAN_A_MINUTE), asyncio.TaskGroup() as both:
        soft = both.create_task(paused_at_the_gate(scripted, sandbox))
        hard = both.create_task(stopped_in_the_text(scripted))

    assert not (soft.result() | hard.result()) & {Kind.STALLED, Kind.LIMIT, Kind.RESTARTED}


def dawdling(box: CliSandbox, seconds: float = 0.5) -> str:
    """A command that says that it runs, and leaves a trace in the end."""
    return f"touch {box.project}/started; sleep {seconds}; touch {box.project}/effect"


async def test_a_hard_pause_stops_bash_where_it_stands(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    """It runs in a session of its own, which no signal to the CLI's group would reach."""
    effect = sandbox.project / "effect"
    agent, model = scripted(
        call("Bash", command=dawdling(sandbox)), say("done"), allowed_tools=["Bash"]
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turn = await session.send("work")
        await until((sandbox.project / "started").exists)
        await session.pause(hard=True)
        at_return, queued = states_below(session, sandbox), session.snapshot()
        await outlive(2)
        paused = (session.state, effect.exists(), len(model.asked))
        await session.resume()
        result = await turn

    assert at_return == {"T"}
    assert [each.name for each in queued.pending_tool_calls] == ["Bash"]
    assert paused == ("paused", False, 1)
    assert (result.outcome, result.answer) == ("completed", "done")
    assert effect.exists()


async def test_a_hard_pause_returns_when_the_tree_is_stopped_and_not_before(
    scripted: MakeScripted,
) -> None:
    agent, _model = scripted(say("done"))

    async with asyncio.timeout(LIMIT), agent.session() as session:
        guard = parent_of(session.pid)
        os.kill(guard, signal.SIGSTOP)
        pausing = asyncio.create_task(session.pause(hard=True))
        await asyncio.wait([pausing], timeout=0.2)
        while_guard_is_stopped = (pausing.done(), kernel_state(session.pid))
        os.kill(guard, signal.SIGCONT)
        await pausing
        at_return = kernel_state(session.pid)
        await session.resume()
        result = await (await session.send("go"))

    assert while_guard_is_stopped[0] is False
    assert while_guard_is_stopped[1] != "T"
    assert (at_return, result.outcome) == ("T", "completed")


async def test_a_hard_pause_that_is_cancelled_leaves_the_tree_running(
    scripted: MakeScripted,
) -> None:
    agent, _model = scripted(say("done"))

    async with asyncio.timeout(LIMIT), agent.session() as session:
        guard = parent_of(session.pid)
        os.kill(guard, signal.SIGSTOP)
        pausing = asyncio.create_task(session.pause(hard=True))
        await asyncio.wait([pausing], timeout=0.05)
        pausing.cancel()
        await asyncio.wait([pausing])
        os.kill(guard, signal.SIGCONT)
        result = await (await session.send("go"))

    assert (result.outcome, session.restarts) == ("completed", 0)


def states_below(session: Session, sandbox: CliSandbox) -> set[str]:
    """What the kernel says that the CLI and its tools do; `T` is stopped."""
    tools = [pid for pid, words in inhabitants(sandbox.root).items() if "sleep 0.5" in words]
    assert tools
    return {kernel_state(pid) for pid in (session.pid, *tools)}


def kernel_state(pid: int | None) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def parent_of(pid: int | None) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("ending", ["aclose", "cancel"])
async def test_a_paused_session_can_be_ended_and_nothing_runs_on(
    scripted: MakeScripted, sandbox: CliSandbox, ending: str, *, hard: bool
) -> None:
    started, effect = sandbox.project / "started", sandbox.project / "effect"
    first = say("I try") + stall() if not hard else say("I try")
    agent, model = scripted(
        first + call("Bash", command=dawdling(sandbox)), say("never"), allowed_tools=["Bash"]
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turn = await session.send("work")
        if hard:
            await until(started.exists)
        else:
            await first_words(turn, "I try")
        await session.pause(hard=hard)
        queued = await session.send("and then")
        if not hard:
            model.release()
            await held(session)
        await (session.cancel() if ending == "cancel" else session.aclose())
        left = inhabitants(sandbox.root)
        results = [await turn, await queued]
        await outlive(1)

    assert left == {}
    assert (started.exists(), effect.exists()) == (hard, False)
    assert session.state == ("cancelled" if ending == "cancel" else "completed")
    assert results[0].outcome in ("interrupted", "cancelled")
    assert results[1].outcome == "cancelled"
    assert len(model.asked) == 1


async def test_a_pause_while_idle_holds_the_next_prompt(scripted: MakeScripted) -> None:
    agent, model = scripted(say("one"), say("two"))

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await (await session.send("first"))
        await session.wait_idle(LIMIT)
        await session.pause()
        await session.pause()
        held_back = await session.send("second")
        await outlive(0.5)
        paused = (session.state, len(model.asked), held_back.delivery)
        await session.resume()
        result = await held_back

    assert paused == ("paused", 1, "queued")
    assert result.text == "two"


async def test_hooks_tools_and_servers_are_the_same_after_a_pause(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    """The CLI learns of our gate by a second handshake, which must not lose the first one."""
    looker, added, hooks = Looker(), Looker(), Hooks()
    file = sandbox.project / "forbidden"

    @hooks.on(PreToolUse, "Bash")
    async def refuse(_event: PreToolUse) -> Reply:
        return deny("not here")

    agent, model = scripted(
        call("mcp__functions__look", at="ours"),
        call("mcp__late__look", at="added"),
        call("Bash", command=f"touch {file}"),
        say("done"),
        functions=[looker.look],
        hooks=hooks,
        allowed_tools=["Bash", "mcp__late"],
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await session.mcp_set_servers({"late": Toolbox("late", [added.look])})
        await session.pause()
        await session.resume()
        result = await (await session.send("work"))
        told = model.asked[-1].tool_results.values()

    assert result.outcome == "completed"
    assert (looker.seen, added.seen) == (["ours"], ["added"])
    assert "not here" in " ".join(told)
    assert not file.exists()


async def test_background_work_goes_on_and_is_known_while_paused(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    command = f"until test -e {sandbox.project}/go; do sleep 0.05; done"
    agent, _model = scripted(
        call("Bash", command=command, run_in_background=True),
        say("It runs."),
        say("It is over."),
        allowed_tools=["Bash"],
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await (await session.send("work"))
        await session.pause()
        running = session.snapshot().tasks
        described = session.describe()
        at_rest = await session.wait_idle(0.3)
        (sandbox.project / "go").touch()
        await session.resume()
        finished = await session.wait_idle(LIMIT)
        tasks = session.tasks

    assert [each.is_background for each in running] == [True]
    assert described == "paused; background: 1 task"
    assert (at_rest, finished) == (False, True)
    assert [each.is_running for each in tasks] == [False]


@pytest.mark.parametrize("hard", [False, True])
async def test_a_cli_that_is_killed_while_paused_comes_back_paused(
    scripted: MakeScripted, sandbox: CliSandbox, *, hard: bool
) -> None:
    effect = sandbox.project / "effect"
    agent, _model = scripted(
        say("I try") + stall(),
        call("Bash", command=f"touch {effect}"),
        say("done"),
        allowed_tools=["Bash"],
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turn = await session.send("work")
        await first_words(turn, "I try")
        await session.pause(hard=hard)
        assert session.pid is not None
        os.kill(session.pid, signal.SIGKILL)
        await held(session)
        paused = (session.state, session.restarts, effect.exists())
        await session.resume()
        result = await turn

    assert paused == ("paused", 1, False)
    assert (result.outcome, result.answer) == ("completed", "done")
    assert effect.exists()


async def test_a_cli_that_cannot_be_held_between_tools_says_so_and_can_be_stopped(
    live_cli: MakeAgent,
) -> None:
    agent = live_cli(say("one"), complete=False)

    async with asyncio.timeout(LIMIT), agent.session() as session:
        if session.initialized.capabilities:
            await session.pause()
        else:
            with pytest.raises(RequestRefused, match=r"pause\(hard=True\)"):
                await session.pause()
            await session.pause(hard=True)
        turn = await session.send("first")
        paused = (session.state, turn.delivery)
        await session.resume()
        result = await turn

    assert paused == ("paused", "queued")
    assert result.text == "one"
