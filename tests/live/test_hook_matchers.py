"""Matchers mean to the CLI what they mean to us."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from steersman import Hooks
from steersman.hooks import HookEvent, PermissionRequest, PreToolUse, Reply, deny, matches, modify
from steersman.hooks import allow as let_run
from steersman.hooks import ask as ask_user
from steersman.permissions import Allow
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import Script, call, calls, say, when
from steersman_conformance.hosting import mcp_server
from steersman_conformance.stage import Stage
from tests.hooks.test_matchers import NAMES, TABLE
from tests.live.staging import LIMIT, MakeScripted, until

pytestmark = pytest.mark.live

BROKEN = ("(Write", "[", "*rite", "(?i)write")
MATCHERS = (*TABLE, *BROKEN)


def registered(matcher: str | None, number: int) -> dict[str, Any]:
    given: dict[str, Any] = {"hookCallbackIds": [str(number)]}
    return given if matcher is None else {**given, "matcher": matcher}


async def test_the_cli_calls_the_hooks_that_we_say_match(cli: Any, sandbox: CliSandbox) -> None:
    stage = Stage(str(cli), sandbox, LIMIT)
    inputs: tuple[dict[str, Any], ...] = (
        {"file_path": str(sandbox.project / "a"), "content": "x"},
        {"command": "true"},
        {"command": "true", "description": "d", "timeout_ms": 2000, "persistent": False},
        {"description": "d", "prompt": "sub go", "subagent_type": "general-purpose"},
        {"n": 1},
        {"n": 1},
    )
    # The id of a call is the name of its tool.
    uses = [call(name, given, id_=name) for name, given in zip(NAMES, inputs, strict=True)]
    hooks = {"PreToolUse": [registered(each, n) for n, each in enumerate(MATCHERS)]}

    async with (
        asyncio.timeout(LIMIT),
        stage.cli(
            when("sub go", say("sub done")),
            calls(*uses),
            say("done"),
            answers={"mcp_message": mcp_server(names=("work", "do-it"))},
        ) as raw,
    ):
        await raw.initialize(hooks=hooks, sdkMcpServers=["lab"])
        await raw.prompt("go")

    called = [frame["request"] for frame in raw.asked("hook_callback")]
    seen = {
        matcher: {each["tool_use_id"] for each in called if each["callback_id"] == str(n)}
        for n, matcher in enumerate(MATCHERS)
    }
    assert seen == {
        matcher: set() if matcher in BROKEN else {each for each in NAMES if matches(matcher, each)}
        for matcher in MATCHERS
    }


EXPRESSIONS = ("^Bash$", "Bash.*", "(Bash|Write)")
REPLIES: dict[str, Reply] = {
    "deny": deny("no commands here"),
    "ask": ask_user("really?"),
    "modify": modify({"command": "true"}),
}


@pytest.mark.parametrize("matcher", ["Bash", *EXPRESSIONS])
@pytest.mark.parametrize("event", [PreToolUse, PermissionRequest])
async def test_a_hook_for_bash_stops_the_command_of_a_monitor(
    scripted: MakeScripted, sandbox: CliSandbox, matcher: str, event: type[HookEvent]
) -> None:
    seen: list[Any] = []

    def guard(asked: Any) -> Reply:
        seen.append((asked.tool_name, asked.tool_input, asked.raw["tool_name"]))
        return deny("no commands here")

    hooks = Hooks()
    hooks.on(event, matcher)(guard)
    is_first = event is PreToolUse
    agent, _model = scripted(
        monitored(),
        hooks=hooks,
        # The command is approved, or nobody approves it.
        **({"allowed_tools": ["Bash(mkfifo *)"]} if is_first else {"can_use_tool": approve}),
    )

    async with asyncio.timeout(LIMIT):
        await agent.run("go")

    assert not (sandbox.project / "M").exists()
    assert seen == [("Bash", {"command": "mkfifo M", "description": "d"}, "Bash")]


def monitored() -> Script:
    """Return a model that starts a `Monitor`, and may be prompted again when that has ended."""
    given = {"command": "mkfifo M", "description": "d", "timeout_ms": 2000, "persistent": False}
    return Script(call("Monitor", given), say("done"))


def approve(*_: object) -> Allow:
    return Allow()


@pytest.mark.parametrize("kind", [*REPLIES, "allow"])
@pytest.mark.parametrize("matcher", ["Bash", "^Bash$"])
async def test_what_a_hook_for_bash_replies_counts_for_a_monitor_as_for_the_cli(
    scripted: MakeScripted, sandbox: CliSandbox, kind: str, matcher: str
) -> None:
    """A denial and an ask count, an approval does not; an expression does not change the input."""
    asked: list[str] = []

    def decide(name: str, *_: object) -> Allow:
        asked.append(name)
        return Allow()

    hooks = Hooks()
    hooks.on(PreToolUse, matcher)(lambda _: REPLIES.get(kind) or let_run())
    # Without a rule the CLI asks, unless it takes the approval of the hook.
    allowed = [] if kind == "allow" else ["Bash(mkfifo *)"]
    agent, _model = scripted(
        monitored(),
        hooks=hooks,
        allowed_tools=allowed,
        can_use_tool=decide,
    )

    is_stopped = kind == "deny" or (kind == "modify" and matcher != "Bash")
    made = sandbox.project / "M"
    async with asyncio.timeout(LIMIT), agent.session() as session:
        await (await session.send("go"))
        if not is_stopped:
            await until(made.exists)

    assert asked == (["Monitor"] if kind in ("ask", "allow") else [])
    assert made.exists() is not is_stopped
