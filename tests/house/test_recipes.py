"""Every block of the recipes runs, on the scripted CLI."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from steersman import Agent, sync
from steersman.errors import AskChanged
from steersman.testing.script import Answer, Script, call, say
from steersman.testing.scripted.cli import ScriptedCLI
from steersman.transports.command import CommandTransport

pytestmark = pytest.mark.timeout(30)

ROOT = Path(__file__).parents[2]
TITLE_AND_BLOCK = re.compile(r"^## ([^\n]+)\n(.*?)^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGE = (ROOT / "docs/recipes.md").read_text(encoding="utf-8")
BLOCKS = {title: block for title, _, block in TITLE_AND_BLOCK.findall(PAGE)}


def recipe(title: str) -> dict[str, Any]:
    """Run a block, and return the names that it defines."""
    names: dict[str, Any] = {"Agent": Agent, "__name__": __name__}
    exec(compile(BLOCKS[title], title, "exec", dont_inherit=True), names)
    return names


def scripted(*steps: Answer) -> ScriptedCLI:
    return ScriptedCLI(Script(*steps))


async def test_approve_from_a_page() -> None:
    found = recipe("Approve from a page")
    agent: Agent = found["approved_by_page"]
    steps = (call("Bash", command="touch new"), say("Done."))
    running = asyncio.ensure_future(agent.run("go", transport=scripted(*steps)))
    change = await anext(found["inbox"].watch())

    (shown,) = await found["open_asks"]()
    with pytest.raises(AskChanged):
        await found["decide"](shown["id"], "another", "ann", yes=True)
    assert await found["decide"](shown["id"], shown["seen"], "ann", yes=True) == "answered"

    assert change.ask.tool_name == shown["tool"] == "Bash"
    assert (await running).text == "Done."


async def test_steer_a_turn_while_it_works() -> None:
    found = recipe("Steer a turn while it works")
    steps = (call("Bash", command="ls"), say("Only the units."))
    agent = Agent(transport=scripted(*steps), allowed_tools=["Bash"])

    assert await found["corrected"](agent, "fix it", "only units") == "Only the units."


async def test_resume_after_a_crash() -> None:
    found = recipe("Resume after a crash")

    assert await found["pay"](Agent(transport=scripted(say("Paid."))), "7") == "completed"


async def test_limit_the_cost() -> None:
    found = recipe("Limit the cost")
    careful: Agent = found["careful"]
    assert careful.options.limits.session.usd == 1.0
    cheap = careful.options.limits

    agent = Agent(transport=scripted(say("Short.")), limits=cheap)
    assert await found["cheaply"](agent, "go") == "Short."


async def test_test_without_a_key() -> None:
    await recipe("Test without a key")["test_the_answer_is_passed_on"]()


def test_docker_and_ssh() -> None:
    """The agents are made; what such a transport does is tested elsewhere."""
    found = recipe("Docker and ssh")

    assert found["in_docker"].options.cwd is not None
    assert isinstance(found["CommandTransport"](("ssh", "host")), CommandTransport)


async def test_secrets_that_the_agent_cannot_read() -> None:
    found = recipe("Secrets that the agent cannot read")
    transport = scripted(call("mcp__functions__weather", city="Ulm"), say("Sunny."))

    await found["forecaster"].run("go", transport=transport)

    assert list(transport.asked[-1].tool_results.values()) == ["sunny in Ulm"]


def test_in_a_notebook(capsys: pytest.CaptureFixture[str]) -> None:
    agent = sync.Agent(transport=scripted(say("Hello.", chunks=2)))

    assert recipe("In a notebook")["ask"]("hi", agent) == "Hello."
    assert capsys.readouterr().out == "Hello."


async def test_structured_output() -> None:
    found = recipe("Structured output")
    transport = scripted(call("StructuredOutput", number="7", total=2.5))

    invoice = await found["read_invoice"](Agent(transport=transport), "7: 2.50")

    assert invoice == found["Invoice"]("7", 2.5)


async def test_subagents() -> None:
    found = recipe("Subagents")
    options = found["with_critic"].options
    agent = Agent(options, transport=scripted(say("Nothing to criticize.")))

    assert await found["agents_used"](agent, "go") == []
    assert list(options.agents) == ["critic"]


def test_every_recipe_is_run() -> None:
    functions = [name for name in globals() if name.startswith("test_")]
    run = {re.sub(r"\W+", "_", title).lower() for title in BLOCKS}

    assert {f"test_{each}" for each in run} <= set(functions)
    assert len(BLOCKS) == PAGE.count("```python") == 10
