"""A CLI that dies is replaced, and every prompt is answered exactly once."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from steersman import Allow, Session, Turn, tool
from steersman._session.recovery import CONTINUE
from steersman.errors import CliExited
from steersman.hooks import HookAnswer, Hooks, PreToolUse, Stop, deny
from steersman.journal import Kind
from steersman.options import Revival
from steersman.permissions import PermissionContext
from steersman.stores import read_transcript
from steersman.testing.faults import CloseOutput, FaultPlan, FaultyTransport
from steersman.testing.model import ScriptedModel
from steersman.testing.older_cli import find_older_cli
from steersman.testing.request import ModelRequest
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import Script, Step, call, say, stall, when
from steersman.transports.subprocess import SubprocessTransport
from tests.live.staging import (
    LIMIT,
    MakeScripted,
    collect,
    entries_of,
    first_words,
    inhabitants,
    until,
)
from tests.live.test_harness import stock_cli

pytestmark = pytest.mark.live

QUICK = Revival(backoff=0.01)


def kill(session: Session) -> None:
    """Kill the CLI as the kernel would; its tools are left to us."""
    assert session.pid is not None
    os.kill(session.pid, signal.SIGKILL)


def is_written_down(words: str, env: Mapping[str, str], session_id: str | None) -> bool:
    """Whether the CLI's own file of the conversation says so."""
    lines = read_transcript(env, session_id or "")
    return any(words.encode() in line for line in lines or ())


async def settlements(session: Session) -> Counter[str]:
    """How often each prompt was settled."""
    entries = await entries_of(session)
    return Counter(uuid for each in entries if each.kind is Kind.SETTLED for uuid in each.turns)


async def restarts(session: Session) -> list[tuple[str, int]]:
    """Why a CLI was replaced, and which attempt it was."""
    return [
        (each.details["cause"], each.details["attempt"])
        for each in await entries_of(session)
        if each.kind is Kind.RESTARTED
    ]


async def states(session: Session) -> list[str]:
    """Everything that the session was, one after the other."""
    return [each.details["after"] for each in await entries_of(session) if each.kind is Kind.PHASE]


# --- Six points of a turn --------------------------------------------------------------


@dataclass(frozen=True)
class Stage:
    """A turn under way, and what can be seen of it."""

    turn: Turn
    model: ScriptedModel
    asked_before: int
    flag: Path

    async def wait_for_request(self, count: int) -> None:
        """Return once the model was asked so often in this turn."""
        await asyncio.to_thread(self.model.wait_for_request, self.asked_before + count)


async def once_written(_stage: Stage) -> None:
    """Right behind the prompt: nothing of it can be on the disk."""


async def once_asked(stage: Stage) -> None:
    """The model was asked and has not said a word."""
    await stage.wait_for_request(1)


async def in_text(stage: Stage) -> None:
    """In the middle of what it writes."""
    await first_words(stage.turn, "Half")


async def in_tool(stage: Stage) -> None:
    """While its tool runs."""
    await until(stage.flag.exists)


async def after_tool(stage: Stage) -> None:
    """The tool is done, and the model was told."""
    await stage.wait_for_request(2)


async def after_result(stage: Stage) -> None:
    """The turn is over."""
    await stage.turn


Point = Callable[[Stage], Awaitable[None]]
WAIT = "[ -e flag ] || { touch flag; sleep 60; }"
POINTS: Sequence[tuple[Point, list[Step], str]] = [
    (once_written, [say("All.")], "All."),
    (once_asked, [stall(), say("All.")], "All."),
    (in_text, [say("Half ") + stall(), say("Half and all.")], "Half and all."),
    (in_tool, [call("Bash", command=WAIT), say("All.")], "All."),
    (after_tool, [call("Bash", command="echo hi"), stall(), say("All.")], "All."),
    (after_result, [say("All.")], "All."),
]


class SaysItAgain(Script):
    """A CLI that is killed may have asked for the next prompt already: the next one asks again.

    Not at once, so that it is killed before it has answered.
    """

    def answer(self, request: ModelRequest) -> Step:
        is_next = request.last_text == "and then"
        return stall(0.5) + say("Behind.") if is_next else super().answer(request)


SECOND = ("in_tool",)
KILLS = [
    pytest.param(is_first, *point, id=f"{'first' if is_first else 'second'}-{point[0].__name__}")
    for is_first in (True, False)
    for point in POINTS
    if is_first or os.environ.get("STEERSMAN_SOAK") or point[0].__name__ in SECOND
]
"""In the second turn of a session the suite tries one of the points, `make soak` all."""


@pytest.mark.soak
@pytest.mark.parametrize(("is_first", "point", "steps", "text"), KILLS)
async def test_killed_at_any_point_of_a_turn_each_prompt_is_answered_once(
    scripted: MakeScripted,
    sandbox: CliSandbox,
    point: Point,
    steps: list[Step],
    text: str,
    *,
    is_first: bool,
) -> None:
    before = [] if is_first else [say("Warm.")]
    script = SaysItAgain(*before, *steps, strict=True)
    agent, model = scripted(script, allowed_tools=["Bash"], revive=QUICK)

    async with asyncio.timeout(LIMIT), agent.session() as session:
        for _ in before:
            await (await session.send("warm up"))
        turn, queued = await session.send("go"), await session.send("and then")
        await point(Stage(turn, model, len(before), sandbox.project / "flag"))
        kill(session)
        done, behind = await turn, await queued
        pieces = "".join(await collect(turn.text()))

    assert (done.outcome, done.text, pieces) == ("completed", text, text)
    assert (behind.outcome, behind.text) == ("completed", "Behind.")
    assert (await settlements(session))[turn.uuid] == 1
    assert (await settlements(session))[queued.uuid] == 1
    assert (session.restarts, await restarts(session)) == (1, [("cli_exited", 1)])
    assert "starting" in (await states(session))[1:]
    model.script.assert_complete()


async def test_killed_between_its_last_message_and_the_result_the_text_is_told_once(
    scripted: MakeScripted,
) -> None:
    """The CLI may not have saved the message, and then the model writes it again."""
    hooks, ended = Hooks(), list[str]()

    @hooks.on(Stop)
    async def die_once(event: Stop) -> None:
        if not ended:
            ended.append(event.session_id)
            kill(session)

    agent, _model = scripted(Script(say("All."), say("All.")), revive=QUICK, hooks=hooks)

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turn = await session.send("go")
        done = await turn
        pieces = "".join(await collect(turn.text()))

    assert (done.outcome, done.text, pieces) == ("completed", "All.", "All.")
    assert session.restarts == 1


@pytest.mark.parametrize("kept", [None, 0, 1, 2, 2.5])
async def test_killed_before_more_than_its_queue_was_saved_the_prompt_is_sent_again(
    scripted: MakeScripted, sandbox: CliSandbox, kept: float | None
) -> None:
    """No CLI resumes such a file, and none begins a conversation whose file is there."""
    script = Script(say("Half ") + stall(), say("Half and all."), say("Next."), strict=True)
    agent, model = scripted(script, revive=QUICK)

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turn = await session.send("go")
        await first_words(turn, "Half")
        await until(lambda: is_written_down('"type":"user"', agent.options.env or {}, session.id))
        assert session.pid is not None
        os.kill(session.pid, signal.SIGSTOP)
        keep_only(sandbox, session.id, kept)
        kill(session)
        done = await turn
        following = await (await session.send("and then"))

    assert (done.outcome, done.text) == ("completed", "Half and all.")
    assert (following.outcome, following.text) == ("completed", "Next.")
    asked = [each.model_request for each in model.requests if each.kind == "main"]
    assert [each.last_text for each in asked if each] == ["go", "go", "and then"]
    assert session.restarts == 1


def keep_only(sandbox: CliSandbox, session_id: str | None, lines: float | None) -> None:
    """Leave so many lines of the CLI's file, perhaps a part of one more; None removes the file."""
    (file,) = sandbox.config.glob(f"projects/*/{session_id}.jsonl")
    found = file.read_bytes().splitlines(keepends=True)
    assert [b'"queue-operation"' in each for each in found[:3]] == [True, True, False]
    file.unlink()
    if lines is not None:
        whole = int(lines)
        cut = found[0][:9] if lines > whole else b""
        file.write_bytes(b"".join(found[:whole]) + cut)


# --- What was open when it died --------------------------------------------------------


async def test_killed_while_a_permission_is_open_the_person_is_asked_again(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    asked: list[str | None] = []
    is_open = asyncio.Event()

    async def ask(_name: str, _given: dict[str, Any], context: PermissionContext) -> Allow:
        asked.append(context.tool_use_id)
        if len(asked) == 1:
            is_open.set()
            await asyncio.Event().wait()
        return Allow()

    file = sandbox.project / "file"
    write = {"file_path": str(file), "content": "once"}
    agent, model = scripted(
        call("Write", write, id_="first"),
        call("Write", write, id_="second"),
        say("Written."),
        can_use_tool=ask,
        revive=QUICK,
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turn = await session.send("write it")
        await is_open.wait()
        was = session.state
        kill(session)
        done = await turn

    assert (was, done.outcome, done.text) == ("waiting_permission", "completed", "Written.")
    assert asked == ["first", "second"]
    assert file.read_text() == "once"
    assert (await settlements(session))[turn.uuid] == 1
    assert session.snapshot().open_asks == ()
    model.script.assert_complete()


async def test_killed_while_our_own_tool_runs_it_is_cancelled_and_may_run_again(
    scripted: MakeScripted,
) -> None:
    """Tools are at-least-once: a tool that must not act twice looks at its `call_key`."""
    begun, cancelled = asyncio.Event(), asyncio.Event()
    ran: list[int] = []

    @tool
    async def count() -> int:
        """Count."""
        ran.append(len(ran))
        if len(ran) > 1:
            return len(ran)
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return 0

    agent, _model = scripted(
        call("mcp__functions__count"),
        # No model answers in no time, and the next CLI learns of our tools meanwhile.
        stall(0.5) + call("mcp__functions__count"),
        say("Counted."),
        functions=[count],
        revive=QUICK,
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turn = await session.send("count")
        await begun.wait()
        was = session.state
        kill(session)
        await cancelled.wait()
        done = await turn

    assert (was, done.outcome, done.text) == ("waiting_tool_call", "completed", "Counted.")
    assert ran == [0, 1]
    assert session.snapshot().pending_tool_calls == ()


async def test_killed_while_a_hook_is_open_the_next_cli_asks_it_again(
    scripted: MakeScripted,
) -> None:
    is_open, hooks, asked = asyncio.Event(), Hooks(), list[str]()

    @hooks.on(PreToolUse, "Bash")
    async def guard(event: PreToolUse) -> HookAnswer:
        asked.append(str(event.tool_input["command"]))
        if len(asked) == 1:
            is_open.set()
            await asyncio.Event().wait()
        return None

    agent, _model = scripted(
        call("Bash", command="echo one"),
        call("Bash", command="echo two"),
        say("Echoed."),
        hooks=hooks,
        allowed_tools=["Bash"],
        revive=QUICK,
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turn = await session.send("echo")
        await is_open.wait()
        kill(session)
        done = await turn

    assert (done.outcome, done.text) == ("completed", "Echoed.")
    assert asked == ["echo one", "echo two"]


async def test_the_old_tree_is_gone_before_the_next_cli_starts(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    """The CLI's Bash is in a session of its own, and would outlive it."""
    at_start: list[list[str]] = []

    class Watching(SubprocessTransport):
        async def open(self, launch: Any, receiver: Any) -> Any:
            at_start.append(
                [each for each in inhabitants(sandbox.root).values() if "sleep" in each]
            )
            return await super().open(launch, receiver)

    flag = sandbox.project / "flag"
    agent, _model = scripted(
        call("Bash", command="touch flag; sleep 61"), say("All."), allowed_tools=["Bash"]
    )

    async with (
        asyncio.timeout(LIMIT),
        agent.session(transport=Watching(), revive=QUICK) as session,
    ):
        turn = await session.send("go")
        await until(flag.exists)
        sleeping = [each for each in inhabitants(sandbox.root).values() if "sleep 61" in each]
        kill(session)
        done = await turn

    assert sleeping
    assert at_start == [[], []]
    assert done.outcome == "completed"


# --- What was told to stop -------------------------------------------------------------


@pytest.mark.parametrize("is_settled", [True, False], ids=["settled", "unsettled"])
async def test_a_turn_that_was_interrupted_before_the_crash_is_not_run_again(
    scripted: MakeScripted, *, is_settled: bool
) -> None:
    agent, model = scripted(
        when("stop me", say("Half") + stall()), when("go on", say("All.")), revive=QUICK
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turn = await session.send("stop me")
        await first_words(turn, "Half")
        if is_settled:
            await turn.interrupt()
        behind = await session.send("go on")
        stopping = asyncio.ensure_future(turn.interrupt())
        await asyncio.sleep(0)
        kill(session)
        await stopping
        stopped, done = await turn, await behind

    assert (stopped.outcome, stopped.text) == ("interrupted", "Half")
    assert (done.outcome, done.text) == ("completed", "All.")
    assert [each.last_text for each in model.asked] == ["stop me", "go on"]
    assert session.restarts == 1


# --- Prompts that steer ----------------------------------------------------------------


async def test_a_prompt_that_was_folded_before_the_crash_is_not_sent_again(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    """The next CLI does not know its uuid, and would run it a second time."""
    flag = sandbox.project / "flag"
    agent, model = scripted(
        Script(
            call("Bash", command="touch flag; while [ ! -e go ]; do sleep 0.05; done"),
            stall(),
            say("Both."),
            strict=True,
        ),
        allowed_tools=["Bash"],
        revive=QUICK,
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turn = await session.send("first")
        await until(flag.exists)
        folded = await session.send("second", when="next")
        (sandbox.project / "go").touch()
        await asyncio.to_thread(model.wait_for_request, 2, LIMIT)
        await folded.begun()
        kill(session)
        results = await turn, await folded

    assert [each.outcome for each in results] == ["completed", "completed"]
    assert [each.text for each in results] == ["Both.", "Both."]
    assert [turn.delivery, folded.delivery] == ["completed", "folded"]
    assert [each.cost_usd > 0 for each in results] == [True, False]
    assert set((await settlements(session)).values()) == {1}
    model.script.assert_complete()


async def test_a_prompt_that_still_waited_at_the_crash_is_sent_again(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    agent, model = scripted(
        call("Bash", command=WAIT),
        say("First."),
        say("Second."),
        allowed_tools=["Bash"],
        revive=QUICK,
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turn = await session.send("first")
        await until((sandbox.project / "flag").exists)
        waiting = await session.send("second", when="next")
        kill(session)
        results = await turn, await waiting

    assert [each.outcome for each in results] == ["completed", "completed"]
    assert {each.text for each in results} <= {"First.", "Second."}
    assert set((await settlements(session)).values()) == {1}
    assert "second" in str(model.asked[-1].body["messages"])


# --- Ends that nobody saw --------------------------------------------------------------


async def test_a_turn_that_finished_unread_is_completed_with_the_text_that_was_written_down(
    scripted: MakeScripted,
) -> None:
    agent, model = scripted(say("Said and done."), say("Behind."))
    # The CLI ends in order, after everything; we hear nothing of it but its first lines.
    transport = FaultyTransport(
        SubprocessTransport(), FaultPlan(0, CloseOutput('"status":"requesting"'))
    )

    async with asyncio.timeout(LIMIT), agent.session(transport=transport, revive=QUICK) as session:
        turn = await session.send("go")
        await asyncio.to_thread(model.wait_for_request)
        await until(lambda: is_written_down("Said and done.", agent.options.env, session.id))
        kill(session)
        done = await turn
        pieces = "".join(await collect(turn.text()))
        behind = await (await session.send("and then"))

    assert (done.outcome, done.text, done.result) == ("completed", "Said and done.", None)
    assert pieces == done.text
    assert behind.text == "Behind."
    assert len(model.asked) == 2


async def test_a_key_sent_again_by_another_process_gives_the_answer_that_was_given(
    scripted: MakeScripted,
) -> None:
    agent, model = scripted(say("Paid."), say("Behind."))

    async with asyncio.timeout(LIMIT):
        async with agent.session() as first:
            paid = await (await first.send("pay", key="invoice 7"))
        async with agent.session(resume=first.id) as second:
            turns = [await second.send("pay", key="invoice 7") for _ in range(10)]
            again = await turns[0]
            pieces = "".join(await collect(turns[0].text()))
            behind = await (await second.send("and then"))

    assert {id(turn) for turn in turns} == {id(turns[0])}
    assert (paid.uuid, again.uuid) == (again.uuid, turns[0].uuid)
    assert (again.outcome, again.text, again.cost_usd) == ("completed", "Paid.", 0.0)
    assert pieces == "Paid."
    assert behind.text == "Behind."
    assert [each.last_text for each in model.asked] == ["pay", "and then"]


async def test_a_key_sent_again_after_the_host_was_lost_has_the_turn_go_on(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    agent, model = scripted(
        call("Bash", command=WAIT, id_="toolu_7"),
        say("Paid."),
        allowed_tools=["Bash"],
        revive=False,
    )

    async with asyncio.timeout(LIMIT):
        async with agent.session() as first:
            await first.send("pay", key="invoice 7")
            await until((sandbox.project / "flag").exists)
            await until(lambda: is_written_down("toolu_7", agent.options.env, first.id))
            kill(first)
        async with agent.session(resume=first.id) as second:
            paid = await (await second.send("pay", key="invoice 7"))

    assert (paid.outcome, paid.text) == ("completed", "Paid.")
    assert [each.last_text for each in model.asked] == ["pay", CONTINUE]


@pytest.mark.ci_only
async def test_an_older_cli_does_not_hang_on_a_key_that_it_knows(scripted: MakeScripted) -> None:
    """It drops the prompt and says nothing; what it has written down tells."""
    agent, model = scripted(say("Paid."), cli_path=stock_cli(find_older_cli))

    async with asyncio.timeout(LIMIT):
        async with agent.session() as first:
            await (await first.send("pay", key="invoice 7"))
            await until(lambda: is_written_down("Paid.", agent.options.env, first.id))
        async with agent.session(resume=first.id) as second:
            again = await (await second.send("pay", key="invoice 7"))

    assert (again.outcome, again.text) == ("completed", "Paid.")
    assert len(model.asked) == 1


# --- CLIs that do not come back --------------------------------------------------------


async def test_a_cli_that_always_dies_fails_the_session_with_the_first_cause(
    scripted: MakeScripted,
) -> None:
    agent, model = scripted(Script(*[stall()] * 10), revive=Revival(most=2, backoff=0.01))

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turn, queued = await session.send("go"), await session.send("and then")
        for attempt in range(1, 4):
            await asyncio.to_thread(model.wait_for_request, attempt, LIMIT)
            kill(session)
            await until(lambda: session.state == "failed" or session.restarts == attempt)  # noqa: B023 - awaited here
        results = await turn, await queued

    assert [each.outcome for each in results] == ["failed", "failed"]
    assert all(isinstance(each.cause, CliExited) for each in results)
    assert (session.state, session.restarts) == ("failed", 2)
    assert await restarts(session) == [("cli_exited", 1), ("cli_exited", 2)]
    assert set((await settlements(session)).values()) == {1}


async def test_without_revival_a_dead_cli_ends_the_session(scripted: MakeScripted) -> None:
    agent, _model = scripted(Script(say("Half") + stall()), revive=False)

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turn = await session.send("go")
        await first_words(turn, "Half")
        kill(session)
        done = await turn

    assert (done.outcome, done.text) == ("failed", "Half")
    assert isinstance(done.cause, CliExited)
    assert (session.state, session.restarts, await restarts(session)) == ("failed", 0, [])


# --- Guards ----------------------------------------------------------------------------

REVIVALS = 8
ABREAST = 4


async def test_a_guard_that_denies_holds_through_every_revival(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    """Without `--await-initialize` the CLI would run the tool before it knows our hook."""
    hooks, asked = Hooks(), list[str]()

    @hooks.on(PreToolUse, "Write")
    def guard(event: PreToolUse) -> HookAnswer:
        asked.append(str(event.tool_input["file_path"]))
        return deny("nothing is written here")

    def write(request: ModelRequest) -> Step:
        path = str(sandbox.project / request.first_text.rpartition(" ")[2])
        return call("Write", file_path=path, content="written")

    agent, _model = scripted(
        Script(*[write] * 400),
        hooks=hooks,
        permission_mode="acceptEdits",
        revive=Revival(most=99, backoff=0.0),
    )

    async def survive(name: str) -> int:
        async with agent.session() as session:
            await session.send(f"write {name}")
            for revival in range(1, REVIVALS // ABREAST + 1):
                before = asked.count(str(sandbox.project / name))
                await until(lambda: asked.count(str(sandbox.project / name)) > before)  # noqa: B023 - awaited here
                kill(session)
                await until(lambda: session.restarts == revival)  # noqa: B023 - awaited here
            await session.cancel()
            return session.restarts

    async with asyncio.timeout(2 * LIMIT):
        survived = await asyncio.gather(*(survive(f"file-{n}") for n in range(ABREAST)))

    assert sum(survived) == REVIVALS
    assert len(asked) >= REVIVALS
    assert list(sandbox.project.glob("file-*")) == []


# --- Older CLIs ------------------------------------------------------------------------


@pytest.mark.ci_only
async def test_an_older_cli_fails_the_turn_that_had_begun_and_runs_those_behind_it(
    scripted: MakeScripted,
) -> None:
    """It has no `--await-initialize`: run again, a turn would slip past our hooks."""
    agent, model = scripted(
        when("warm up", say("Warm.")),
        when("go", say("Half") + stall()),
        when("and then", say("Behind.")),
        cli_path=stock_cli(find_older_cli),
    )

    async with asyncio.timeout(LIMIT), agent.session(revive=QUICK) as session:
        await (await session.send("warm up"))
        # It writes late, and a conversation that it has not written down is begun anew.
        await until(lambda: is_written_down("Warm.", agent.options.env, session.id))
        turn, queued = await session.send("go"), await session.send("and then")
        await first_words(turn, "Half")
        kill(session)
        lost, behind = await turn, await queued

    assert (lost.outcome, lost.text) == ("failed", "Half")
    assert isinstance(lost.cause, CliExited)
    assert (behind.outcome, behind.text) == ("completed", "Behind.")
    assert session.restarts == 1
    assert [each.last_text for each in model.asked] == ["warm up", "go", "and then"]


@pytest.mark.ci_only
async def test_an_older_cli_runs_a_prompt_that_it_had_not_seen(scripted: MakeScripted) -> None:
    agent, model = scripted(say("All."), cli_path=stock_cli(find_older_cli))

    async with asyncio.timeout(LIMIT), agent.session(revive=QUICK) as session:
        turn = await session.send("go")
        kill(session)
        done = await turn

    assert (done.outcome, done.text) == ("completed", "All.")
    assert len(model.asked) == 1
