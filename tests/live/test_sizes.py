"""Long prompts, many agents, many servers and many rules: none of them stands on a command line."""

from __future__ import annotations

import asyncio

import pytest

from steersman import Session
from steersman.permissions import Deny
from steersman.testing.script import say
from tests.live.staging import LIMIT, MakeScripted, collect, words_of

pytestmark = pytest.mark.live

ARGV = 8 * 1024


def argv_size(session: Session) -> int:
    return sum(len(word.encode()) + 1 for word in words_of(session.pid))


async def rules_of(session: Session) -> dict[str, set[str]]:
    """The rules that the CLI says are in force, by what they do."""
    answer = await session.control("list_permission_rules")
    found: dict[str, set[str]] = {"allow": set(), "deny": set(), "ask": set()}
    for each in answer["state"]["rules"]:
        found[each["behavior"]].add(each["rule"])
    return found


async def test_much_of_everything_starts_with_a_short_command_line(scripted: MakeScripted) -> None:
    prompt = "Be brief. " * 200_000 + "THE END OF IT"
    agents = {
        f"agent-{n}": {"description": f"does {n}", "prompt": "Do it. " * 20} for n in range(500)
    }
    servers = {f"server-{n}": {"command": "false", "env": {"N": str(n)}} for n in range(200)}
    agent, model = scripted(
        say("brief"),
        system_prompt=prompt,
        agents=agents,
        mcp_servers=servers,
        env={"MCP_TIMEOUT": "1000"},
        # Two hundred processes start in the first turn.
        request_timeout=LIMIT,
    )

    async with asyncio.timeout(2 * LIMIT), agent.session() as session:
        size = argv_size(session)
        known = {each.name for each in session.initialized.agents}
        result = await (await session.send("go"))
        status = await session.control("mcp_status")

    assert size < ARGV
    assert set(agents) <= known
    assert {each["name"] for each in status["mcpServers"]} == set(servers)
    assert (result.outcome, result.text) == ("completed", "brief")
    assert prompt in model.asked[0].system


def refuse(*_: object) -> Deny:
    """Answer for the person: with nobody to ask, questions are taken away by a rule of ours."""
    return Deny("no")


async def test_long_lists_of_rules_reach_the_cli_whole(scripted: MakeScripted) -> None:
    allowed = [f"Bash(command-{n} --flag:*)" for n in range(300)]
    denied = [f"Read(/secret/{n}/**)" for n in range(300)]
    directories = [f"/tmp/dir-{n}-{'x' * 20}" for n in range(100)]
    agent, _model = scripted(
        allowed_tools=allowed,
        disallowed_tools=denied,
        add_dirs=directories,
        can_use_tool=refuse,
        memory=True,
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        size = argv_size(session)
        rules = await rules_of(session)

    assert size < ARGV
    assert rules == {"allow": set(allowed), "deny": set(denied), "ask": set()}


STRANGE = (
    "Bash(echo a, b)",
    "Bash(echo a,Read)",
    "Bash(echo (nested), (brackets))",
    "Bash(git commit -m 'one, two':*)",
    "WebFetch(domain:example.com)",
    "mcp__calc__*",
    "Read(/tmp/a b/**)",
    'Bash(echo "quoted, (too)")',
    "Bash(printf %s\\, x)",
)


@pytest.mark.parametrize("how_many", [1, 300])
async def test_commas_and_brackets_make_no_second_rule(
    scripted: MakeScripted, how_many: int
) -> None:
    allowed = [*STRANGE, *(f"Bash(filler-{n})" for n in range(how_many))]
    agent, _model = scripted(
        allowed_tools=allowed,
        disallowed_tools=["Bash(rm -rf a, b)"],
        can_use_tool=refuse,
        memory=True,
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        rules = await rules_of(session)

    assert rules["allow"] == {as_shown(rule) for rule in allowed}
    assert rules["deny"] == {"Bash(rm -rf a, b)"}


def as_shown(rule: str) -> str:
    """The rule in the CLI's own spelling, with a backslash before what could end it."""
    tool, bracket, content = rule.removesuffix(")").partition("(")
    escaped = content.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
    return f"{tool}({escaped})" if bracket else rule


async def test_a_long_prompt_and_a_long_answer_come_through(scripted: MakeScripted) -> None:
    question, answer = "why? " * 100_000, "because. " * 300_000
    agent, model = scripted(say(answer, chunks=50))

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turn = await session.send(question)
        told = await collect(turn.text())
        result = await turn

    assert "".join(told) == result.text == answer
    assert question.strip() in model.asked[0].last_text
