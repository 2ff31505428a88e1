"""Guards on the stock CLI: whatever fails, and whatever is changed, the tool does not run."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest

from steersman import Hooks
from steersman.hooks import PreToolUse, modify
from steersman.hooks import allow as let_run
from steersman.permissions import Allow
from steersman.permissions.policy import Policy, allow, ask, deny
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import Script, Step, call, say
from tests.guard_matrix import KINDS, answering, commands, options_of
from tests.live.staging import LIMIT, MakeScripted

pytestmark = [
    pytest.mark.live,
    pytest.mark.filterwarnings("ignore::steersman.options.conflicts.ShadowedCallbackWarning"),
]

MODES = ("default", "bypassPermissions", "dontAsk")
# The CLI refuses one of the modes to root outside a sandbox.
SANDBOX = {"IS_SANDBOX": "1"}


def touch(name: str) -> Step:
    return call("Bash", command=f"touch {name}", id_=f"toolu_{name}")


def files_in(box: CliSandbox) -> set[str]:
    return {path.name for path in box.project.iterdir() if path.is_file()}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
async def test_no_tool_runs_whatever_the_mode_the_guard_and_its_failure(
    scripted: MakeScripted,
    sandbox: CliSandbox,
    kind: str,
    mode: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    names = [each.split()[-1] for each in commands(kind)]
    options = options_of(kind)
    script = Script(*map(touch, names), say("done"), strict=True)
    agent, model = scripted(script, env=SANDBOX, permission_mode=mode, **options)

    with caplog.at_level(logging.CRITICAL):
        answers = asyncio.ensure_future(answering(options.get("inbox")))
        async with asyncio.timeout(2 * LIMIT), agent.session() as session:
            await (await session.send("go"))
        answers.cancel()

    assert files_in(sandbox) == set()
    answered = {id_ for each in model.asked for id_ in each.tool_results}
    assert answered == {f"toolu_{name}" for name in names}


@pytest.mark.parametrize("mode", MODES)
async def test_a_tool_runs_on_this_stage_if_no_guard_fails(
    scripted: MakeScripted, sandbox: CliSandbox, mode: str
) -> None:
    hooks = Hooks()
    hooks.on(PreToolUse, r"^\w{,4}$")(lambda _: let_run())
    agent, _ = scripted(touch("x"), say("done"), env=SANDBOX, permission_mode=mode, hooks=hooks)

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await (await session.send("go"))

    assert files_in(sandbox) == {"x"}


@pytest.mark.parametrize("matcher", [r"^\w{,4}$", "Ba(?:s)*+h", "(?i)bash", "B(?>as)h"])
async def test_a_guard_is_called_by_an_expression_that_only_python_reads(
    scripted: MakeScripted, sandbox: CliSandbox, matcher: str
) -> None:
    hooks = Hooks()
    hooks.on(PreToolUse, matcher)(lambda _: {"permissionDecision": "deny"})
    agent, _ = scripted(touch("x"), say("done"), hooks=hooks, can_use_tool=lambda *_: Allow())

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await (await session.send("go"))

    assert files_in(sandbox) == set()


def nested(depth: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(depth):
        found = [found]
    return found


@pytest.mark.parametrize("mode", MODES)
async def test_a_guard_stops_a_call_with_deeply_nested_input(
    scripted: MakeScripted, sandbox: CliSandbox, mode: str
) -> None:
    step = call("Bash", command="touch x", extra=nested(1_100), id_="toolu_x")
    hooks = Hooks()
    hooks.on(PreToolUse)(lambda event: event.raw["no such field"])
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


# Changed input

# The denial does not come first, so the CLI does not have it.
POLICY = Policy(ask("Bash(touch asked*)"), deny("Bash(touch bad*)"), allow("Bash(touch *)"))


def changing(reply: Callable[[dict[str, Any]], Any], name: str) -> Hooks:
    hooks = Hooks()
    hooks.on(PreToolUse)(lambda _: reply({"command": f"touch {name}"}))
    return hooks


def permit(given: dict[str, Any]) -> Any:
    return let_run(updated_input=given)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("reply", [modify, permit])
async def test_a_hook_cannot_change_an_allowed_input_into_a_denied_one(
    scripted: MakeScripted, sandbox: CliSandbox, reply: Any, mode: str
) -> None:
    agent, _ = scripted(
        touch("good"),
        say("done"),
        env=SANDBOX,
        permission_mode=mode,
        policy=POLICY,
        hooks=changing(reply, "bad"),
        can_use_tool=lambda *_: Allow(),
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await (await session.send("go"))

    assert files_in(sandbox) == set()


@pytest.mark.parametrize("mode", ["default", "bypassPermissions"])
@pytest.mark.parametrize("reply", [modify, permit])
async def test_what_a_hook_changes_is_asked_about_as_changed(
    scripted: MakeScripted, sandbox: CliSandbox, reply: Any, mode: str
) -> None:
    seen: list[str] = []

    def approve(_tool: str, given: dict[str, Any], _context: object) -> Allow:
        seen.append(given["command"])
        return Allow()

    agent, _ = scripted(
        touch("good"),
        say("done"),
        env=SANDBOX,
        permission_mode=mode,
        policy=POLICY,
        hooks=changing(reply, "asked"),
        can_use_tool=approve,
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await (await session.send("go"))

    # In `bypassPermissions` the CLI may run an asked write unasked, so the policy denies it.
    is_asked = mode != "bypassPermissions"
    assert seen == (["touch asked"] if is_asked else [])
    assert files_in(sandbox) == ({"asked"} if is_asked else set())


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


@pytest.mark.parametrize("whose", ["main", "rev"])
async def test_the_leading_agent_is_main_and_its_own_type(
    scripted: MakeScripted, sandbox: CliSandbox, whose: str
) -> None:
    policy = Policy(allow("Bash", agents=[whose]), otherwise="deny")
    agent, _ = scripted(touch("own"), say("done"), policy=policy, agents=AGENTS, agent="rev")

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await (await session.send("go"))

    assert files_in(sandbox) == {"own"}
