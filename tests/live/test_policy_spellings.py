"""Spellings of one call on the stock CLI: what its own rules stop, ours stop too.

A few run in the suite, all of them in `make soak`. With `STEERSMAN_RECORD=1` as well, what the CLI
stopped is written to tests/samples/stopped_commands.json, which the tests without a CLI use.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from steersman import Policy
from steersman.permissions import allow, ask, deny
from steersman.testing.sandbox import CliSandbox, find_stock_cli
from steersman.testing.script import call, calls, say
from steersman_conformance.scenes.names import AGENTS, SKILLS
from tests.live.staging import LIMIT, MakeScripted
from tests.live.test_policy_shell import Asked
from tests.permissions.spellings import FILE_COMMANDS, SPELLINGS

IS_SOAK = bool(os.environ.get("STEERSMAN_SOAK"))
SAMPLE = Path(__file__).parents[1] / "samples" / "stopped_commands.json"
SHOWN = None if IS_SOAK else 9
"""Every ninth is enough for the suite."""

FILES_IN_SUITE = (
    *(
        "cd conf && cat keys",
        "pushd conf && cat keys",
        "git -C conf diff --no-index /dev/null keys",
    ),
    *("cat link", "cat dir/keys", "cd dir && cat keys", "x=conf/keys; cat $x", "cat conf/k*"),
)

pytestmark = [pytest.mark.live, pytest.mark.soak, pytest.mark.timeout(400 if IS_SOAK else 120)]


def prepare(project: Path) -> None:
    (project / "conf").mkdir()
    (project / "conf" / "keys").write_text("a=SECRET\n")
    (project / "a").write_text("a\n")
    (project / "f").write_text("x\n")
    (project / "link").symlink_to("conf/keys")
    (project / "dir").symlink_to("conf")


async def stopped(scripted: MakeScripted, tried: tuple[str, ...], **options: Any) -> list[str]:
    """Return the lines that were denied, or asked about, in order."""
    asked = Asked()
    made = (
        call("Bash", {"command": line, "timeout": 1500}, id_=f"t{n}")
        for n, line in enumerate(tried)
    )
    agent, _ = scripted(
        calls(*made),
        say("done"),
        can_use_tool=asked,
        permission_mode="default",
        allowed_tools=["Bash"],
        **options,
    )
    async with asyncio.timeout(10 * LIMIT):
        result = await agent.run("go")
    refused = {each["tool_use_id"] for each in result.permission_denials} | asked.ids
    return [line for number, line in enumerate(tried) if f"t{number}" in refused]


def record(kind: str, rule: str, by: str, lines: list[str]) -> None:
    if IS_SOAK and os.environ.get("STEERSMAN_RECORD"):
        seen = json.loads(SAMPLE.read_bytes())
        shown = subprocess.run(
            [find_stock_cli(), "--version"], capture_output=True, text=True, timeout=60, check=True
        )
        seen["cli"] = shown.stdout.split()[0]
        seen[kind] |= {"rule": rule, f"stopped by {by}": lines}
        SAMPLE.write_text(json.dumps(seen, indent=1) + "\n")


@pytest.mark.parametrize("by", ["deny", "ask"] if IS_SOAK else ["deny"])
async def test_no_spelling_runs_that_the_rule_of_the_cli_stops(
    scripted: MakeScripted, sandbox: CliSandbox, by: str
) -> None:
    prepare(sandbox.project)
    rule, tried = "Bash(mkfifo *)", SPELLINGS[:: SHOWN or 1]
    options: dict[str, dict[str, Any]] = {
        "deny": {"disallowed_tools": [rule]},
        "ask": {"settings": {"permissions": {"ask": [rule]}}},
    }

    by_cli = await stopped(scripted, tried, **options[by])

    for left in sandbox.project.glob("M*"):
        left.unlink()
    # A rule for an agent cannot be held by the CLI, so this one is ours alone.
    policy = Policy((deny if by == "deny" else ask)(rule, agents="main"))
    by_us = await stopped(scripted, tried, policy=policy)

    assert by_us == list(tried)
    assert not (sandbox.project / "M").exists()
    assert len(by_cli) > len(tried) / 3
    record("spellings", rule, by, by_cli)


async def test_no_command_reads_a_file_that_the_rule_of_the_cli_denies(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    prepare(sandbox.project)
    rule = "Read(conf/keys)"
    tried = FILE_COMMANDS if IS_SOAK else FILES_IN_SUITE

    by_us = await stopped(scripted, tried, policy=Policy(deny(rule, agents="main")))

    seen = set(json.loads(SAMPLE.read_bytes())["files"]["stopped by deny"])
    if IS_SOAK:
        by_cli = await stopped(scripted, tried, disallowed_tools=[rule])
        record("files", rule, "deny", by_cli)
        seen = set(by_cli)
    assert seen & set(tried) - set(by_us) == set()
    assert IS_SOAK or by_us == list(tried)


@pytest.mark.parametrize("kind", ["ask", "deny when"])
async def test_no_spelling_of_a_skill_or_an_agent_runs_unasked(
    scripted: MakeScripted, sandbox: CliSandbox, kind: str
) -> None:
    folder = sandbox.project / ".claude" / "skills" / "deploy"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: Ship It\ndescription: a skill\n---\nDo it.\n")
    rules = ("Skill(deploy)", "Agent(Explore)", "Agent(general-purpose)")
    guard = ask(*rules) if kind == "ask" else deny(*rules, when=bool)
    skills = [name for name, runs in SKILLS.items() if runs]
    agents = [name for name, started in AGENTS.items() if started]
    task = {"description": "d", "prompt": "sub go"}
    made = [
        *(call("Skill", {"skill": name}, id_=f"s{n}") for n, name in enumerate(skills)),
        *(
            call("Agent", {**task, "subagent_type": name} if name else task, id_=f"a{n}")
            for n, name in enumerate(agents)
        ),
    ]
    refused = Asked()
    agent, model = scripted(
        calls(*made),
        say("done"),
        policy=Policy(guard, allow("Skill", "Agent")),
        can_use_tool=refused,
        skills="all",
        setting_sources=["project"],
    )

    async with asyncio.timeout(LIMIT):
        result = await agent.run("go")

    everything = {f"s{n}" for n in range(len(skills))} | {f"a{n}" for n in range(len(agents))}
    assert {each["tool_use_id"] for each in result.permission_denials} | refused.ids == everything
    # No subagent has spoken.
    assert len(model.asked) == 2
