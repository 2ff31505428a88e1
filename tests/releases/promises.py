"""What steersman promises of every CLI, and a probe of each promise.

A probe plays a short conversation on one release, in a sandbox with a scripted model, and returns a
verdict. The same probe is used to find the release at which a promise begins to hold, and to write
the table.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from steersman import Session, Turn
from steersman._releases import MEANINGS
from steersman.errors import RequestRefused
from steersman.hooks import Hooks, PreToolUse, Reply, defer, deny
from steersman.options import Revival
from steersman.options.keywords import OptionKwargs
from steersman.permissions import Allow
from steersman.stores import read_transcript
from steersman.testing.script import Answer, Scene, Script, Step, call, say, stall
from steersman.testing.stages import StagedAgent, StockStage
from steersman_conformance import catalogue, runner
from tests.live.staging import first_words, until

LIMIT = 60.0
"""Seconds for one conversation of a probe; a quiet machine needs two."""

NOT_AT_REST = 0.2
ALIKE = 1.5
"""How much more a turn may cost that sends the words of a few others again."""
ROOT_MAY_BYPASS = {"IS_SANDBOX": "1"}
"""The CLI refuses `bypassPermissions` to root without it."""


class Verdict(StrEnum):
    """What a release does with a promise."""

    YES = "yes"
    IN_PART = "in part"
    REFUSED = "refused"
    """steersman says that this release cannot do it, and does nothing else instead."""
    NO = "no"


Probe = Callable[[Path], Awaitable[Verdict]]


@dataclass(frozen=True, slots=True)
class Promise:
    """One column of the table."""

    name: str
    title: str
    means: str
    held_by: str
    """The test of the suite that looks at it more closely."""
    probe: Probe
    is_guard: bool = False
    """True if tools can run that nobody has allowed where this is broken."""
    is_ours: bool = True
    """False if only the CLI is asked, without what steersman does about it."""

    @property
    def is_capability(self) -> bool:
        """Whether a session knows it; the others are shown on the page only."""
        return self.name in MEANINGS


async def probe(promise: Promise, program: Path) -> Verdict:
    """Return how the CLI `program` keeps a promise.

    A conversation that hangs twice is a no; once may be a busy machine.
    """
    for _ in range(2):
        with suppress(TimeoutError):
            return await promise.probe(program)
    return Verdict.NO


def _verdict(held: Mapping[str, bool]) -> Verdict:
    """Return the verdict on several points of one promise."""
    if all(held.values()):
        return Verdict.YES
    return Verdict.IN_PART if any(held.values()) else Verdict.NO


@asynccontextmanager
async def _stage(program: Path, *steps: Answer | Scene) -> AsyncGenerator[StockStage, None]:
    with StockStage(Script(*steps), program) as stage:
        async with asyncio.timeout(LIMIT):
            yield stage


# --- A turn continues after a killed CLI ------------------------------------------------

WAIT = "[ -e flag ] || { touch flag; sleep 60; }"


async def _once_asked(stage: StockStage, _turn: Turn) -> None:
    await stage.wait_for_request(2, LIMIT)


async def _in_its_text(_stage: StockStage, turn: Turn) -> None:
    await first_words(turn, "Half")


async def _in_its_tool(stage: StockStage, _turn: Turn) -> None:
    await until((stage.project / "flag").exists)


async def _after_its_tool(stage: StockStage, _turn: Turn) -> None:
    await stage.wait_for_request(3, LIMIT)


Moment = Callable[[StockStage, Turn], Awaitable[None]]
MOMENTS: Mapping[Moment, tuple[Step, ...]] = {
    _once_asked: (stall(), say("All.")),
    _in_its_text: (say("Half ") + stall(), say("All.")),
    _in_its_tool: (call("Bash", command=WAIT), say("All.")),
    _after_its_tool: (call("Bash", command="echo hi"), stall(), say("All.")),
}


async def _continues_turns(program: Path) -> Verdict:
    return _verdict({moment.__name__: await _continues(program, moment) for moment in MOMENTS})


async def _continues(program: Path, moment: Moment) -> bool:
    for _ in range(2):
        with suppress(TimeoutError):
            return await _is_continued(program, moment)
    return False


async def _is_continued(program: Path, moment: Moment) -> bool:
    async with _stage(program, say("Warm."), *MOMENTS[moment]) as stage:
        agent = stage.agent(allowed_tools=["Bash"], revive=Revival(backoff=0.01))
        async with agent.session() as session:
            await (await session.send("warm up"))
            # A conversation that the CLI has not written down is begun anew, on every release.
            await until(lambda: _is_written(agent, session))
            turn = await session.send("go")
            await moment(stage, turn)
            _kill(session)
            result = await turn
            return (result.outcome, session.restarts) == ("completed", 1)


def _is_written(agent: StagedAgent, session: Session) -> bool:
    lines = read_transcript(agent.options.env, session.id or "")
    return any(b"Warm." in line for line in lines or ())


def _kill(session: Session) -> None:
    assert session.pid is not None
    os.kill(session.pid, signal.SIGKILL)


# --- A pause holds the next tool --------------------------------------------------------


async def _soft_pause(program: Path) -> Verdict:
    async with _stage(program, say("I try") + stall() + _touch("effect"), say("done")) as stage:
        asked = asyncio.Event()
        hooks = Hooks()
        hooks.on(PreToolUse, "Bash")(lambda _event: asked.set())
        agent = stage.agent(allowed_tools=["Bash"], hooks=hooks)
        async with agent.session() as session:
            turn = await session.send("go")
            await first_words(turn, "I try")
            try:
                await session.pause()
            except RequestRefused:
                return Verdict.REFUSED
            await stage.release(LIMIT)
            # The gate is a hook like that of ours: the CLI asks both about the call.
            await asked.wait()
            while_paused = (stage.project / "effect").exists()
            await session.resume()
            result = await turn
            held = not while_paused and (stage.project / "effect").exists()
            return Verdict.YES if held and result.outcome == "completed" else Verdict.NO


def _touch(name: str) -> Step:
    return call("Bash", command=f"touch {name}", id_=f"toolu_{name}")


# --- A call is deferred, and asked about again in the next session ----------------------


async def _deferral(program: Path) -> Verdict:
    async with _stage(program, _touch("late"), say("done")) as stage:
        agent = stage.agent(can_use_tool=lambda *_: Allow())
        hooks = Hooks()
        hooks.on(PreToolUse, "Bash")(lambda _event: defer())
        async with agent.session(hooks=hooks) as session:
            result = await (await session.send("go"))
        if result.terminal_reason != "tool_deferred":
            told = stage.asked[-1].tool_results.get("toolu_late", "")
            return Verdict.REFUSED if "before it knows the hooks" in told else Verdict.NO
        if (stage.project / "late").exists():
            return Verdict.NO
        return await _taken_up(agent, session, stage)


async def _taken_up(agent: StagedAgent, session: Session, stage: StockStage) -> Verdict:
    async with agent.session(resume=session.id) as resumed:
        await (await resumed.send("go on"))
    return Verdict.YES if (stage.project / "late").exists() else Verdict.IN_PART


# --- Background work is known ----------------------------------------------------------


async def _background_tasks(program: Path) -> Verdict:
    gate = "until test -e go; do sleep 0.05; done"
    steps = (call("Bash", command=gate, run_in_background=True), say("started"), say("over"))
    async with (
        _stage(program, *steps) as stage,
        stage.agent(allowed_tools=["Bash"]).session() as session,
    ):
        await (await session.send("start"))
        await until(lambda: session.state == "idle")
        while_it_runs = [task.is_background for task in session.snapshot().tasks]
        is_early = await session.wait_idle(NOT_AT_REST)
        (stage.project / "go").touch()
        last = await session.finish(LIMIT)
    return _verdict(
        {
            "it is listed": while_it_runs == [True],
            "the session waits for it": not is_early,
            "its end is known": (last.state, last.tasks) == ("completed", ()),
        }
    )


# --- A turn costs what it costs ----------------------------------------------------------


async def _turn_costs(program: Path) -> Verdict:
    """Every turn is alike, so one that costs more than another has costs of others in it."""
    async with _stage(program, *(say("alike") for _ in range(4))) as stage:
        agent = stage.agent()
        async with agent.session() as first:
            costs = [(await (await first.send("go"))).cost_usd for _ in range(2)]
        for forks in (False, True):
            async with agent.session(resume=first.id, fork_session=forks) as later:
                costs.append((await (await later.send("go"))).cost_usd)
    first_cost, *others = costs
    return _verdict(
        {str(n): 0 < each < ALIKE * first_cost for n, each in enumerate(others, start=2)}
    )


# --- What the CLI tells: the checks of `steersman conform` ---------------------------------


def _told(*names: str) -> Probe:
    """Return the probe that plays the scenes of these checks."""

    async def play(program: Path) -> Verdict:
        scenes = catalogue.chosen(names)
        observed = await runner.play(scenes, str(program), patience=LIMIT / 2)
        return _verdict(
            {
                check.name: observed[check.name] == check.expected
                for scene in scenes
                for check in scene.checks
            }
        )

    return play


# --- Nothing runs that nobody has allowed ----------------------------------------------


async def _asks_by_default(program: Path) -> Verdict:
    """With a callback, it is asked; without one, the tool is denied."""
    asked: list[str] = []

    def decide(name: str, *_: object) -> Allow:
        asked.append(name)
        return Allow()

    ran: list[bool] = []
    for callback in (decide, None):
        async with _stage(program, _touch("ran"), say("done")) as stage:
            async with stage.agent(can_use_tool=callback).session() as session:
                await (await session.send("go"))
            ran.append((stage.project / "ran").exists())
    return _verdict({"it asks": asked == ["Bash"] and ran[0], "it denies": not ran[1]})


async def _guards(program: Path) -> Verdict:
    """Guards that deny, that raise, and a tool that was taken away: none of the calls runs."""
    hooks = Hooks()

    @hooks.on(PreToolUse, "Bash")
    def guard(event: PreToolUse) -> Reply:
        if "denied" in str(event.tool_input):
            return deny("not here")
        raise LookupError("no such key")

    def decide(*_: object) -> Allow:
        raise LookupError("no such person")

    held: dict[str, bool] = {}
    bypassing: OptionKwargs = {"permission_mode": "bypassPermissions", "env": ROOT_MAY_BYPASS}
    calls: dict[str, OptionKwargs] = {
        "denied": {"hooks": hooks, **bypassing},
        "raising": {"hooks": hooks, **bypassing},
        "unanswered": {"can_use_tool": decide},
        "disallowed": {"disallowed_tools": ["Bash"], **bypassing},
    }
    for name, options in calls.items():
        async with _stage(program, _touch(name), say("done")) as stage:
            agent = stage.agent(**options)
            async with agent.session() as session:
                await (await session.send("go"))
            held[name] = not (stage.project / name).exists()
    return _verdict(held)


PROMISES: tuple[Promise, ...] = (
    Promise(
        "continues_turns",
        "continues a turn",
        MEANINGS["continues_turns"],
        "live/test_revival.py::test_killed_at_any_point_of_a_turn_each_prompt_is_answered_once",
        _continues_turns,
    ),
    Promise(
        "soft_pause",
        "soft pause",
        MEANINGS["soft_pause"],
        "live/test_pausing.py::test_a_pause_may_last_for_more_than_a_minute",
        _soft_pause,
    ),
    Promise(
        "deferral",
        "deferral",
        MEANINGS["deferral"],
        "live/test_exact_parking.py::test_a_permission_is_parked_exactly",
        _deferral,
    ),
    Promise(
        "background_tasks",
        "background work",
        MEANINGS["background_tasks"],
        "live/test_states.py::test_a_background_shell_leaves_the_session_idle_and_not_at_rest",
        _background_tasks,
    ),
    Promise(
        "turn_costs",
        "costs of turns",
        "`cost_usd` of a turn in a resumed conversation, or in a fork, is that of the turn alone",
        "live/test_going_on.py::test_a_closed_conversation_can_be_resumed_continued_and_forked",
        _turn_costs,
    ),
    Promise(
        "lifecycle",
        "lifecycle",
        MEANINGS["lifecycle"],
        "live/test_prompts_at_once.py::test_three_prompts_sent_at_once_settle_as_three_turns",
        _told("lifecycle-follows-a-prompt", "results-name-their-prompts"),
        is_ours=False,
    ),
    Promise(
        "interrupt_receipts",
        "receipts",
        MEANINGS["interrupt_receipts"],
        "live/test_interrupts.py::test_queued_prompts_stay_queued_unless_they_are_meant_too",
        _told(
            "the-interrupt-receipt-lists-waiting-prompts",
            "an-interrupt-can-take-waiting-prompts-along",
            "an-idle-interrupt-has-a-receipt",
        ),
        is_ours=False,
    ),
    Promise(
        "asks_by_default",
        "asks by default",
        MEANINGS["asks_by_default"],
        "live/test_asking.py::test_a_permission_callback_decides_what_is_written",
        _asks_by_default,
        is_guard=True,
    ),
    Promise(
        "guards",
        "guards hold",
        "no tool runs that a hook or a rule denies, or whose hook or callback raises, also with "
        "`bypassPermissions`",
        "live/test_guards_hold.py::test_no_tool_runs_whatever_the_mode_the_guard_and_its_failure",
        _guards,
        is_guard=True,
    ),
    Promise(
        "own_mode_asks",
        "asks without a mode",
        "the mode is `default` and a write is asked about when no `--permission-mode` is given; "
        "steersman gives it always",
        "conformance/test_on_real_clis.py::"
        "test_a_release_with_another_mode_of_its_own_still_asks_once_it_is_given_ours",
        _told("no-mode"),
        is_ours=False,
    ),
)
