"""A guard that has an ask or a denial is not skipped: by other tools, by skills, by the CLI."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from steersman import Allow, Deny, Policy
from steersman._tool_names import COMMAND_FIELDS
from steersman.messages.builtin.table import INPUTS
from steersman.permissions import PermissionContext, allow, ask, deny
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import call, say
from tests.live.staging import LIMIT, MakeScripted
from tests.live.test_tool_types import EVERY_TOOL

pytestmark = pytest.mark.live

GUARDS = {
    "ask": ask("Bash(touch N1*)"),
    "deny when": deny("Bash(touch N1*)", when=bool),
    "deny agents": deny("Bash(touch N1*)", agents=["main"]),
}


class Refuser:
    """Denies every request, and notes the tools."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, name: str, _given: dict[str, Any], _context: PermissionContext) -> Deny:
        self.asked.append(name)
        return Deny("not now")


def monitor(command: str) -> Any:
    return call("Monitor", command=command, description="a test", timeout_ms=5000, persistent=False)


@pytest.mark.parametrize("kind", GUARDS)
async def test_a_guard_about_bash_holds_for_a_monitor(
    scripted: MakeScripted, sandbox: CliSandbox, kind: str
) -> None:
    refuser = Refuser()
    agent, model = scripted(
        monitor("touch N1x"),
        say("done"),
        policy=Policy(GUARDS[kind], allow("Bash(touch *)")),
        can_use_tool=refuser,
    )

    async with asyncio.timeout(LIMIT):
        await agent.run("go")

    assert not (sandbox.project / "N1x").exists()
    assert refuser.asked == (["Monitor"] if kind == "ask" else [])
    assert len(model.asked) == 2


async def test_an_approval_that_the_cli_does_not_get_still_approves(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    refuser = Refuser()
    agent, _model = scripted(
        call("Bash", command="touch M1", description="a test"),
        say("done"),
        policy=Policy(ask("Bash(touch N1*)"), allow("Bash(touch *)")),
        can_use_tool=refuser,
    )

    async with asyncio.timeout(LIMIT):
        await agent.run("go")

    assert (sandbox.project / "M1").exists()
    assert refuser.asked == []


# Asks stay here


async def test_an_ask_rule_of_the_cli_denies_in_one_mode_and_forgets_what_was_allowed(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    """Why the policy does not hand its `ask` rules to the CLI. If this fails, look again."""
    asked: list[str] = []

    def approve(_name: str, _given: dict[str, Any], context: PermissionContext) -> Allow:
        asked.append(context.tool_use_id)
        return context.always()

    rule = "Bash(mkfifo *)"
    steps = [call("Bash", command=f"mkfifo M{n // 2}", id_=f"t{n}") for n in range(4)]
    agent, model = scripted(
        *(*steps[:2], say("done"), *steps[2:], say("done")),
        policy=Policy(ask(rule)),
        settings={"permissions": {"ask": [rule]}},
        can_use_tool=approve,
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await (await session.send("go"))
        await session.set_permission_mode("dontAsk")
        await (await session.send("go"))

    # Without the rule in the settings the first and the third call are asked about.
    assert asked == ["t0", "t1"]
    assert "running in don't ask mode" in model.asked[-1].tool_results["t3"]
    assert not (sandbox.project / "M1").exists()


# Tools and skills that run commands


async def command_tools(scripted: MakeScripted, **options: Any) -> set[str]:
    """Return the offered tools that take a command, with every tool switched on."""
    # With `SendUserMessage` among its tools the model is asked once to use it.
    agent, model = scripted(say("done"), say("done"), env=EVERY_TOOL, **options)
    async with asyncio.timeout(LIMIT):
        await agent.run("go")
    offered = {each["name"]: each["input_schema"] for each in model.asked[0].body["tools"]}
    assert "Read" in offered
    return {
        name
        for name, schema in offered.items()
        if {"command", "cmd", "code", "shell"} & schema.get("properties", {}).keys()
    }


@pytest.mark.parametrize("tools", [None, sorted(INPUTS)], ids=["default", "all that there are"])
async def test_every_offered_tool_that_takes_a_command_is_known(
    scripted: MakeScripted, tools: list[str] | None
) -> None:
    found = await command_tools(scripted, tools=tools)

    assert {"Bash", "Monitor"} <= found <= set(COMMAND_FIELDS)


@pytest.mark.parametrize(
    "options", [{"disallowed_tools": ["Bash"]}, {"policy": Policy(forbid=["Bash"])}]
)
async def test_without_bash_no_tool_that_runs_commands_is_offered(
    scripted: MakeScripted, options: dict[str, Any]
) -> None:
    assert await command_tools(scripted, **options) == set()


def add_skill(folder: Path) -> None:
    place = folder / ".claude" / "skills" / "mine"
    place.mkdir(parents=True)
    (place / "SKILL.md").write_text(
        "---\nname: mine\ndescription: a skill\nallowed-tools: Bash(touch:*)\n---\n"
        "Output: !`touch PWNED`\n"
    )


@pytest.mark.parametrize("opened", [False, True])
@pytest.mark.parametrize("by", ["the model", "a slash command"])
async def test_a_command_in_a_skill_runs_only_if_the_option_opens_it(
    scripted: MakeScripted, sandbox: CliSandbox, by: str, *, opened: bool
) -> None:
    add_skill(sandbox.project)
    steps = (call("Skill", skill="mine"), say("done")) if by == "the model" else (say("done"),)
    agent, _model = scripted(
        *steps,
        skills=["mine"],
        setting_sources=["project"],
        verbatim_prompts=False,
        skill_commands=opened,
    )

    async with asyncio.timeout(LIMIT):
        await agent.run("go" if by == "the model" else "/mine")

    assert (sandbox.project / "PWNED").exists() is opened


async def test_a_command_in_a_skill_does_not_run_beside_a_settings_file(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    add_skill(sandbox.project)
    settings = sandbox.tmp / "mine.json"
    settings.write_text('{"cleanupPeriodDays": 14}')
    agent, _model = scripted(
        say("done"),
        skills=["mine"],
        setting_sources=["project"],
        verbatim_prompts=False,
        settings=settings,
    )

    async with asyncio.timeout(LIMIT):
        await agent.run("/mine")

    assert not (sandbox.project / "PWNED").exists()
