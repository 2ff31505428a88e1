"""Every recorded attack on the stock CLI: what its own rules stop, ours stop too.

A few run in the suite, all of them in `make soak`. With `STEERSMAN_RECORD=1` as well, what the CLI
stopped is written to tests/samples/stopped_commands.json, which the tests without a CLI use.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from steersman import Policy
from steersman.permissions import allow, ask, deny
from steersman.testing.sandbox import CliSandbox, find_stock_cli
from steersman.testing.script import Script, call, calls, say
from steersman_conformance.scenes.names import AGENTS, SKILLS
from tests.live.staging import LIMIT, MakeScripted
from tests.live.test_policy_shell import Asked
from tests.permissions.spellings import ATTACKS, NOT_APPROVED, Call
from tests.permissions.test_spellings import NOT_KNOWN

IS_SOAK = bool(os.environ.get("STEERSMAN_SOAK"))
SAMPLE = Path(__file__).parents[1] / "samples" / "stopped_commands.json"
STEP = 1 if IS_SOAK else 9
"""Every ninth of the commands is enough for the suite."""
MOST_IN_SUITE = 20
RECORDED = {"Bash(mkfifo *)": "spellings", "Read(conf/keys)": "files"}
"""Where the sample has what the CLI stopped."""

HELD_BY_US_ALONE = {("Agent(Explore)", "deny"), ("Agent(Explore)", "ask"), ("Skill(deploy)", "ask")}
"""Rules that the CLI has, and by which it stops nothing where `allowed_tools` names the tool."""

pytestmark = [pytest.mark.live, pytest.mark.soak, pytest.mark.timeout(400 if IS_SOAK else 120)]


def prepare(project: Path) -> None:
    (project / "conf").mkdir()
    (project / "conf" / "keys").write_text("a=SECRET\n")
    (project / "a").write_text("a\n")
    (project / "f").write_text("x\n")
    (project / "link").symlink_to("conf/keys")
    (project / "dir").symlink_to("conf")
    (project / "here").symlink_to("/proc/self/cwd")
    folder = project / ".claude" / "skills" / "deploy"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: Ship It\ndescription: a skill\n---\nDo it.\n")
    subprocess.run(["git", "init", "-q", project], check=True, timeout=60)


async def stopped(
    scripted: MakeScripted, tried: Sequence[Call], **options: Any
) -> list[dict[str, Any]]:
    """Return the inputs of the calls that were denied, or asked about, in order."""
    asked = Asked()
    made = (call(tool, given, id_=f"t{n}") for n, (tool, given) in enumerate(tried))
    agent, model = scripted(
        Script(calls(*made), say("done")),
        can_use_tool=asked,
        permission_mode="default",
        allowed_tools=["Bash", "Read", "Skill", "Agent", "WebFetch"],
        skills="all",
        setting_sources=["project"],
        **options,
    )
    async with asyncio.timeout(10 * LIMIT):
        result = await agent.run("go")
    refused = {each["tool_use_id"] for each in result.permission_denials} | asked.ids
    # The CLI refuses a skill and an agent by its own rules in the result alone.
    found = {name: text for each in model.asked for name, text in each.tool_results.items()}
    refused |= {name for name, text in found.items() if "permission rule" in text}
    return [given for number, (_, given) in enumerate(tried) if f"t{number}" in refused]


def record(rule: str, by: str, lines: list[str]) -> None:
    kind = RECORDED.get(rule)
    if kind and IS_SOAK and os.environ.get("STEERSMAN_RECORD"):
        seen = json.loads(SAMPLE.read_bytes())
        shown = subprocess.run(
            [find_stock_cli(), "--version"], capture_output=True, text=True, timeout=60, check=True
        )
        seen["cli"] = shown.stdout.split()[0]
        seen[kind] |= {"rule": rule, f"stopped by {by}": lines}
        SAMPLE.write_text(json.dumps(seen, indent=1) + "\n")


@pytest.mark.parametrize("by", ["deny", "ask"] if IS_SOAK else ["deny"])
@pytest.mark.parametrize("rule", ATTACKS)
async def test_no_attack_runs_that_the_rule_of_the_cli_stops(
    scripted: MakeScripted, sandbox: CliSandbox, rule: str, by: str
) -> None:
    prepare(sandbox.project)
    tried = ATTACKS[rule][:: STEP if len(ATTACKS[rule]) > MOST_IN_SUITE else 1]
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

    let = [given for _, given in tried if given not in by_us]
    assert [given for given in let if given in by_cli] == []
    assert [given for given in let if given.get("command") not in NOT_KNOWN] == []
    assert not (sandbox.project / "M").exists()
    assert by_cli or (rule, by) in HELD_BY_US_ALONE
    record(rule, by, [str(given.get("command")) for given in by_cli if "command" in given])


@pytest.mark.parametrize("is_listed", [False, True], ids=["allow", "auto_approve"])
@pytest.mark.parametrize("rule", NOT_APPROVED)
async def test_the_cli_runs_nothing_unasked_that_our_approval_does_not_cover(
    scripted: MakeScripted, sandbox: CliSandbox, rule: str, *, is_listed: bool
) -> None:
    tried = NOT_APPROVED[rule]
    policy = Policy(auto_approve=[rule]) if is_listed else Policy(allow(rule))

    asked = await stopped(scripted, tried, policy=policy)

    assert asked == [given for _, given in tried]
    assert not (sandbox.project / "copy").exists()


@pytest.mark.parametrize("kind", ["ask", "deny when"])
async def test_no_spelling_of_a_skill_or_an_agent_runs_unasked(
    scripted: MakeScripted, sandbox: CliSandbox, kind: str
) -> None:
    prepare(sandbox.project)
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
