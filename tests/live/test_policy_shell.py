"""Command lines on the stock CLI: our verdicts are never weaker than its own rules."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from steersman import Deny, Policy
from steersman.permissions import Match, PermissionContext, allow, deny
from steersman.permissions.shell import grants_command
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import Step, call, calls, say
from tests.live.staging import LIMIT, MakeScripted
from tests.permissions.command_lines import lines

pytestmark = pytest.mark.live

OTHER_COMMANDS = (
    """git commit -m "it's"; touch PWNED; git commit -m "it's\"""",
    "git status\n>/dev/null touch PWNED",
    """git log "'$(touch PWNED)'\"""",
)
# The CLI refuses these itself, before any rule.
WITH_CONTROL_CHARACTERS = (
    "git status\r>/dev/null touch PWNED",
    "git status\r\n2>&1 touch PWNED",
    "git status\x0btouch PWNED",
)
PLAIN = (
    *("mkfifo a1", " mkfifo a2 ", "mkfifo\ta3", "mkfifo a4;", "mkfifo a5; mkfifo b5"),
    *("mkfifo a6 && mkfifo b6", "mkfifo a7||mkfifo b7", "mkfifo a8|mkfifo b8", "mkfifo 'a 9'"),
    *('mkfifo "it\'s"', "mkfifo 'a;b'", "mkfifo 'a|b' \"c&d\"", "mkfifo 'a\"b'", "mkfifo '$x'"),
    *("mkfifo '$(x)'", "mkfifo '`x`'", "mkfifo a=b", "mkfifo a,b+c@d%e:f"),
    *("mkfifo x*", "mkfifo y?", "mkfifo [z]", "mkfifo ~", "mkfifo --mode=600 m1", "mkfifo ''"),
    *(
        "mkfifo a10 2>&1",
        "mkfifo a11 >/dev/null",
        "mkfifo a12 2> /dev/null",
        "mkfifo a13 </dev/null",
    ),
    *(
        "mkfifo a14 >/dev/null 2>&1 | mkfifo b14",
        "mkfifo \"a\"b'c'",
        "mkfifo '\u00e9'",
        "mkfifo -m '600' n1",
    ),
    *("mkfifo '#'", "mkfifo '!'", "mkfifo '-x'", 'mkfifo "-"x'),
    *(
        "mkfifo '>' f",
        "mkfifo ~root",
        "mkfifo a-",
        "mkfifo ./q1",
        "mkfifo ../q2",
        "mkfifo a]",
    ),
)


class Asked:
    """An approver that denies every call, and notes which ones it was asked about."""

    def __init__(self) -> None:
        self.ids: set[str] = set()

    def __call__(self, _name: str, _given: dict[str, Any], context: PermissionContext) -> Deny:
        self.ids.add(context.tool_use_id)
        return Deny("no")


def step(tried: tuple[str, ...]) -> Step:
    made = (call("Bash", {"command": line}, id_=f"t{n}") for n, line in enumerate(tried))
    return calls(*made)


async def stopped(scripted: MakeScripted, tried: tuple[str, ...], **options: Any) -> set[str]:
    """Return the lines that were denied, or asked about."""
    asked = Asked()
    agent, _ = scripted(
        step(tried), say("done"), can_use_tool=asked, permission_mode="default", **options
    )
    async with asyncio.timeout(3 * LIMIT):
        result = await agent.run("go")
    refused = {each["tool_use_id"] for each in result.permission_denials} | asked.ids
    return {line for number, line in enumerate(tried) if f"t{number}" in refused}


async def test_an_approval_does_not_run_another_command(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    policy = Policy(allow("Bash(git *)"))

    found = await stopped(scripted, OTHER_COMMANDS + WITH_CONTROL_CHARACTERS, policy=policy)

    assert found == set(OTHER_COMMANDS)
    assert not (sandbox.project / "PWNED").exists()


async def test_what_we_grant_the_cli_grants_by_the_same_rule(scripted: MakeScripted) -> None:
    made = (re.sub(r"\b(?:git|rm|touch|mk)\b", "mkfifo", line) for line in lines(6000, seed=0))
    by_chance = [line for line in made if grants_command("mkfifo *", line) is Match.YES]
    granted = (*PLAIN, *dict.fromkeys(by_chance[:100]))

    found = await stopped(scripted, granted, allowed_tools=["Bash(mkfifo *)"])

    assert found == set()
    assert {line for line in PLAIN if grants_command("mkfifo *", line) is not Match.YES} == set()
    assert len(by_chance) > 100


async def test_our_denial_stops_what_the_denial_of_the_cli_stops_in_lines_made_by_chance(
    scripted: MakeScripted,
) -> None:
    rule, names = "Bash(mkdir *)", {"git": "true", "rm": "mkdir", "touch": ":", "mk": "false"}
    made = (
        re.sub(r"\b(?:git|rm|touch|mk)\b", lambda found: names[found.group()], line)
        for line in lines(2000, seed=1)
    )
    tried = tuple([line for line in made if "mkdir" in line and line.isprintable()][:100])

    by_cli = await stopped(scripted, tried, allowed_tools=["Bash"], disallowed_tools=[rule])

    policy = Policy(deny(rule))
    let = {
        line
        for line in by_cli
        if policy.explain("Bash", {"command": line}).verdict not in ("ask", "deny")
    }
    assert let == set()
    assert len(by_cli) > 20
