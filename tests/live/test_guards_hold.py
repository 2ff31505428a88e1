"""Guards on the stock CLI: whatever fails, and whatever is changed, the tool does not run.

`tests/_session/test_guard_matrix.py` plays the whole matrix on the scripted CLI: mode by kind of
guard by failure by the time of the call. Here each mode is one session of the newest and of the
oldest supported CLI, and one more session of each is killed while a guard is asked, revived and
resumed; `make soak` does this in every mode and with every failure.

What there is not:

- An older CLI does not continue the turn in which it was killed: the next prompt is guarded.
- An older CLI may not defer a call. `test_resume_handshake.py` has deferred calls of the newest.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from steersman import Hooks
from steersman.hooks import PreToolUse, block_paths, modify
from steersman.hooks import allow as let_run
from steersman.options import Revival
from steersman.permissions import Allow
from steersman.permissions.policy import Policy, allow, ask, deny
from steersman.testing.model import ScriptedModel
from steersman.testing.older_cli import find_older_cli
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import Script, Step, call, calls, say
from tests.guard_matrix import FAILURES, FEW, KINDS, MODES, Cell, Guards, cells, results_in
from tests.live.staging import LIMIT, MakeScripted, vanished
from tests.live.test_harness import LIVE_CLI, find_live_cli, stock_cli

pytestmark = [
    pytest.mark.live,
    pytest.mark.filterwarnings("ignore::steersman.options.conflicts.ShadowedCallbackWarning"),
]

IS_SOAK = bool(os.environ.get("STEERSMAN_SOAK"))
AMONG = FAILURES if IS_SOAK else FEW
CLIS: dict[str, Callable[[], Path]] = {"newest": find_live_cli, "older": find_older_cli}
LESS = ("acceptEdits", "plan")
PAIRS = [
    (which, mode)
    for which in CLIS
    for mode in MODES
    if IS_SOAK or mode == "bypassPermissions" or (which == "newest" and mode not in LESS)
]
"""The suite plays one mode on the older CLI and four on the newest, `make soak` all six."""
# The CLI refuses one of the modes to root outside a sandbox.
SANDBOX = {"IS_SANDBOX": "1"}


def touch(name: str) -> Step:
    return call("Bash", command=f"touch {name}", id_=f"toolu_{name}")


def files_in(box: CliSandbox) -> set[str]:
    return {path.name for path in box.project.iterdir() if path.is_file()}


# The matrix


def together(found: Iterable[Cell]) -> Step:
    return calls(*(cell.step for cell in found))


class Stage:
    """The calls of the matrix, and what they leave behind."""

    def __init__(self, box: CliSandbox, *played: list[Cell], stops_writes: bool) -> None:
        self._box = box
        self._stops_writes = stops_writes
        self._played = [cell for each in played for cell in each]
        for cell in self._played:
            if not cell.writes:
                (box.project / cell.name).write_text(f"content of {cell.name}")

    def check(self, asked: Any) -> None:
        """Assert that every call has a result, and that only those ran that every guard allows."""
        results = results_in(asked)
        names = {cell.name for cell in self._played}
        assert results.keys() >= names
        ran = {cell.name for cell in self._played if self._has_run(cell, results)}
        allowed = [cell for cell in self._played if cell.works]
        assert ran == {cell.name for cell in allowed if not (cell.writes and self._stops_writes)}
        assert files_in(self._box) <= names

    def _has_run(self, cell: Cell, results: dict[str, str]) -> bool:
        if cell.writes:
            return (self._box.project / cell.name).exists()
        return f"content of {cell.name}" in results[cell.name]


def stops_writes(which: str, mode: str) -> bool:
    """Return whether the CLI itself stops writes for which it has no rule."""
    return (which, mode) == ("newest", "plan")


@pytest.mark.soak
@pytest.mark.parametrize(("which", "mode"), PAIRS)
async def test_no_tool_runs_whatever_the_mode_the_guard_and_its_failure(
    scripted: MakeScripted,
    sandbox: CliSandbox,
    which: str,
    mode: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    fresh = cells("fresh", among=AMONG)
    stage, guards = Stage(sandbox, fresh, stops_writes=stops_writes(which, mode)), Guards()
    agent, model = scripted(
        Script(together(fresh), say("done"), strict=True),
        env=SANDBOX,
        permission_mode=mode,
        cli_path=stock_cli(CLIS[which]),
        **guards.options(),
    )

    with caplog.at_level(logging.CRITICAL):
        async with asyncio.timeout(2 * LIMIT), agent.session() as session:
            await (await session.send("go"))
            blocks_on_failure = session.initialized.hook_on_failure_supported

    stage.check(model.asked)
    assert {*guards.asked} >= {cell for cell in fresh if cell.kind != "rule"}
    # Another CLI may be named, of which this is not known.
    assert blocks_on_failure is (which == "newest") or LIVE_CLI in os.environ


@pytest.mark.soak
@pytest.mark.parametrize("mode", MODES if IS_SOAK else ["bypassPermissions"])
@pytest.mark.parametrize("which", CLIS if IS_SOAK else ["newest"])
async def test_guards_hold_when_the_cli_is_killed_while_it_asks_and_after_that(
    scripted: MakeScripted,
    sandbox: CliSandbox,
    which: str,
    mode: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    kinds = [kind for kind in KINDS if kind != "rule"] if IS_SOAK else ["hook", "inbox"]
    killed = [Cell(kind, "kills", "fresh") for kind in kinds]
    revived = [cells(f"revived{n}", each.kind, among=AMONG) for n, each in enumerate(killed)]
    resumed = cells("resumed", among=AMONG)
    steps = [
        step
        for n, each in enumerate(killed)
        for step in (each.step, together(revived[n]), say("done"))
    ]
    stage = Stage(sandbox, *revived, resumed, stops_writes=stops_writes(which, mode))
    guards = Guards(kill=lambda: os.kill(session.pid or 0, signal.SIGKILL))
    agent, model = scripted(
        Script(*steps, together(resumed), say("done"), strict=True),
        env=SANDBOX,
        permission_mode=mode,
        cli_path=stock_cli(CLIS[which]),
        revive=Revival(most=99, backoff=0.0),
        **guards.options(),
    )

    with caplog.at_level(logging.CRITICAL):
        async with asyncio.timeout(2 * LIMIT), agent.session() as session:
            for _ in killed:
                if (await (await session.send("go"))).text != "done":
                    # An older CLI does not continue a turn.
                    assert (await (await session.send("go on"))).text == "done"
            restarts = session.restarts
        async with asyncio.timeout(2 * LIMIT), agent.session(resume=session.id) as later:
            await (await later.send("go"))

    stage.check(model.asked)
    assert restarts == len(killed)
    played = {*killed, *(cell for each in (*revived, resumed) for cell in each)}
    assert {*guards.asked} >= {cell for cell in played if cell.kind != "rule"}


async def test_a_guard_that_allows_after_an_interrupt_allows_nothing(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    asked: asyncio.Queue[str] = asyncio.Queue()

    async def swallow(who: str) -> None:
        asked.put_nowait(who)
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        asked.put_nowait(f"{who} allows")

    async def look(event: PreToolUse) -> Any:
        if event.tool_input["command"] == "touch approver":
            return None
        await swallow("hook")
        return let_run()

    async def approve(*_given: object) -> Allow:
        await swallow("approver")
        return Allow()

    hooks = Hooks()
    hooks.on(PreToolUse)(look)
    agent, _ = scripted(touch("hook"), touch("approver"), hooks=hooks, can_use_tool=approve)

    async with asyncio.timeout(LIMIT), agent.session() as session:
        for who in ("hook", "approver"):
            turn = await session.send("go")
            assert await asked.get() == who
            await session.interrupt()
            assert (await turn).outcome == "interrupted"
            assert await asked.get() == f"{who} allows"

    assert files_in(sandbox) == set()


HOST = """
import asyncio, json, os, signal, sys
from steersman import Agent, Hooks
from steersman.hooks import PreToolUse

hooks = Hooks()
hooks.on(PreToolUse)(lambda _: os.kill(os.getpid(), signal.SIGKILL))

async def main(options):
    async with Agent(hooks=hooks, **options).session() as session:
        await (await session.send("go"))

asyncio.run(main(json.loads(sys.argv[1])))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("which", CLIS)
async def test_no_tool_runs_if_the_program_is_killed_while_its_guard_is_asked(
    sandbox: CliSandbox, which: str
) -> None:
    with ScriptedModel(Script(touch("x"), say("done"))) as model:
        options = {
            "cwd": str(sandbox.project),
            "cli_path": str(stock_cli(CLIS[which])),
            "inherit_env": False,
            "permission_mode": "bypassPermissions",
            "env": sandbox.env(model.url, SANDBOX),
        }
        host = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", HOST, json.dumps(options)),
            env={"PYTHONPATH": os.pathsep.join(sys.path), "PATH": "/usr/bin:/bin"},
        )
        async with asyncio.timeout(LIMIT):
            assert await host.wait() == -signal.SIGKILL

        assert await vanished(sandbox.root, within=LIMIT) == {}
        assert files_in(sandbox) == set()


# Calls and matchers that are hard to read

MATCHERS = (r"^\w{,4}$", "Ba(?:s)*+h", "(?i)bash", "B(?>as)h")


async def test_a_guard_is_called_by_an_expression_that_only_python_reads(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    hooks = Hooks()
    for number, matcher in enumerate(MATCHERS):

        def guard(event: PreToolUse, command: str = f"touch x{number}") -> Any:
            return (
                {"permissionDecision": "deny"} if event.tool_input["command"] == command else None
            )

        hooks.on(PreToolUse, matcher)(guard)
    steps = [touch(f"x{number}") for number, _ in enumerate(MATCHERS)]
    agent, _ = scripted(
        calls(*steps, touch("y")), say("done"), hooks=hooks, can_use_tool=lambda *_: Allow()
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await (await session.send("go"))

    assert files_in(sandbox) == {"y"}


def nested(depth: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(depth):
        found = [found]
    return found


async def test_a_guard_stops_a_call_with_deeply_nested_input(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    step = call("Bash", command="touch x", extra=nested(1_100), id_="toolu_x")
    hooks = Hooks()
    hooks.on(PreToolUse)(lambda event: event.raw["no such field"])
    mode = "bypassPermissions"
    agent, _ = scripted(step, say("done"), env=SANDBOX, permission_mode=mode, hooks=hooks)

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await (await session.send("go"))

    assert files_in(sandbox) == set()


def approving(kind: str) -> dict[str, Any]:
    """Return the options of a guard that approves everything that it can read."""
    if kind == "can_use_tool":
        return {"can_use_tool": lambda *_: Allow()}
    hooks = Hooks()
    hooks.on(PreToolUse)(lambda _: let_run())
    return {"hooks": hooks, "permission_mode": "bypassPermissions"}


@pytest.mark.parametrize("kind", ["can_use_tool", "hook"])
async def test_a_request_that_is_too_long_to_be_read_is_refused(
    scripted: MakeScripted, sandbox: CliSandbox, kind: str
) -> None:
    command = f"touch x # {'long ' * 60_000}"
    step = call("Bash", command=command, id_="toolu_x")
    agent, model = scripted(
        step, say("done"), env=SANDBOX, max_buffer_size=200_000, **approving(kind)
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        result = await (await session.send("go"))

    assert result.text == "done"
    assert files_in(sandbox) == set()
    assert [each for asked in model.asked for each in asked.tool_results] == ["toolu_x"]


# Replies without a verdict


async def test_a_guard_that_ends_the_turn_stops_the_tool(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    hooks = Hooks()
    hooks.on(PreToolUse)(lambda _: {"continue": False, "stopReason": "enough"})
    mode = "bypassPermissions"
    agent, model = scripted(touch("x"), env=SANDBOX, permission_mode=mode, hooks=hooks)

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await (await session.send("go"))

    assert files_in(sandbox) == set()
    assert len(model.asked) == 1


# Changed input

# The denial does not come first, so the CLI does not have it.
POLICY = Policy(ask("Bash(touch asked*)"), deny("Bash(touch bad*)"), allow("Bash(touch *)"))

REPLIES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "modify": modify,
    "permit": lambda given: let_run(updated_input=given),
}


def change(event: PreToolUse) -> Any:
    """Change `touch good-modify-bad` into `touch bad-modify`, and so on."""
    _, how, name = event.tool_input["command"].split("-")
    return REPLIES[how]({"command": f"touch {name}-{how}"})


@pytest.mark.parametrize("mode", ["default", "bypassPermissions", "dontAsk"])
async def test_what_a_hook_changes_is_decided_about_as_changed(
    scripted: MakeScripted, sandbox: CliSandbox, mode: str
) -> None:
    seen: list[str] = []
    hooks = Hooks()
    hooks.on(PreToolUse)(change)

    def approve(_tool: str, given: dict[str, Any], _context: object) -> Allow:
        seen.append(given["command"])
        return Allow()

    steps = [touch(f"good-{how}-{name}") for how in REPLIES for name in ("bad", "asked", "fine")]
    agent, _ = scripted(
        calls(*steps),
        say("done"),
        env=SANDBOX,
        permission_mode=mode,
        policy=POLICY,
        hooks=hooks,
        can_use_tool=approve,
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await (await session.send("go"))

    # In `bypassPermissions` the CLI may run an asked write unasked, so the policy denies it.
    asked = {"asked-modify", "asked-permit"} if mode != "bypassPermissions" else set()
    assert set(seen) == {f"touch {name}" for name in asked}
    assert files_in(sandbox) == {"fine-modify", "fine-permit", *asked}


async def test_an_approver_cannot_change_the_input_into_a_denied_one(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    agent, _ = scripted(
        touch("asked"),
        say("done"),
        policy=POLICY,
        can_use_tool=lambda *_: Allow({"command": "touch bad"}),
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await (await session.send("go"))

    assert files_in(sandbox) == set()


async def test_an_approver_that_changes_its_input_in_place_is_decided_about_again(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    def approve(_name: str, given: dict[str, Any], _context: object) -> Allow:
        given["command"] = given["command"].replace("asked", "bad")
        return Allow()

    agent, _ = scripted(touch("asked"), say("done"), policy=POLICY, can_use_tool=approve)

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await (await session.send("go"))

    assert files_in(sandbox) == set()


# What is read without a call


@pytest.mark.parametrize("guard", ["policy", "block_paths"])
async def test_a_file_that_a_prompt_names_is_read_without_a_hook_but_not_past_a_denial(
    scripted: MakeScripted, sandbox: CliSandbox, guard: str
) -> None:
    """The page says so of both. If this fails, look again."""
    (sandbox.project / ".env").write_text("SECRET_OF_THE_FILE")
    hooks = Hooks()
    hooks.on(PreToolUse)(block_paths(".env"))
    options = {"hooks": hooks} if guard == "block_paths" else {"policy": Policy(deny("Read(.env)"))}
    agent, model = scripted(say("done"), verbatim_prompts=False, **options)

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await (await session.send("look at @.env"))

    is_read = "SECRET_OF_THE_FILE" in json.dumps(model.asked[0].body)
    assert is_read is (guard == "block_paths")


async def test_the_text_of_a_skill_is_read_through_a_link_without_a_rule_about_files(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    """The page says so. If this fails, look again."""
    (sandbox.project / ".env").write_text("---\ndescription: x\n---\nSECRET_OF_THE_FILE\n")
    folder = sandbox.project / ".claude" / "skills" / "mine"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").symlink_to("../../../.env")
    agent, model = scripted(
        call("Skill", skill="mine", id_="t_skill"),
        say("done"),
        policy=Policy(deny("Read(.env)"), allow("Skill")),
        skills=["mine"],
        setting_sources=["project"],
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await (await session.send("go"))

    assert "SECRET_OF_THE_FILE" in json.dumps(model.asked[-1].body)


# Agents

AGENTS = {
    name: {"description": name, "prompt": f"you are {name}", "tools": ["Bash"]}
    for name in ("main", "rev")
}


async def test_a_subagent_called_main_is_not_the_main_agent(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    start = call(
        "Agent", description="d", prompt="sub go", subagent_type="main", run_in_background=False
    )
    script = Script(start, touch("own"), say("done"))
    script.branch("sub go", touch("sub"), say("sub done"))
    policy = Policy(allow("Bash", agents=["main"]), deny("Bash"), allow("Agent"))
    agent, model = scripted(script, policy=policy, agents=AGENTS)

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await (await session.send("go"))

    answered = {id_ for each in model.asked for id_ in each.tool_results}
    assert {"toolu_sub", "toolu_own"} <= answered
    assert files_in(sandbox) == {"own"}


async def test_the_leading_agent_is_main_and_its_own_type(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    policy = Policy(
        allow("Bash(touch own)", agents=["main"]),
        allow("Bash(touch typed)", agents=["rev"]),
        otherwise="deny",
    )
    step = calls(touch("own"), touch("typed"), touch("other"))
    agent, _ = scripted(step, say("done"), policy=policy, agents=AGENTS, agent="rev")

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await (await session.send("go"))

    assert files_in(sandbox) == {"own", "typed"}
