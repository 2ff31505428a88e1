"""The examples do what their docstrings promise, on the scripted CLI."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples import approve, hello, sync_script
from steersman import Agent, sync
from steersman.testing.script import Script, Step, call, calls, say
from steersman.testing.scripted.cli import ScriptedCLI
from tests.examples.offline import ROOT, run_offline


async def test_hello_prints_the_answer_and_its_cost(capsys: pytest.CaptureFixture[str]) -> None:
    agent = Agent(transport=ScriptedCLI(Script(say("Hello, hallo, salut.", chunks=4))))

    result = await hello.ask(agent, "Say hello.")

    assert result.outcome == "completed"
    assert capsys.readouterr().out.startswith("Hello, hallo, salut.\n[completed, 0.")


def test_the_script_without_async_asks_its_function_and_denies_deletions(
    capsys: pytest.CaptureFixture[str],
) -> None:
    script = Script(
        calls(call("mcp__functions__price", item="bread"), call("Bash", command="rm -r shop")),
        say("Bread costs 2.5 EUR.", chunks=3),
    )
    transport = ScriptedCLI(script)
    agent = sync.Agent(functions=[sync_script.price], hooks=sync_script.hooks, transport=transport)

    result = sync_script.ask(agent, "What does bread cost?")

    assert result.outcome == "completed"
    assert capsys.readouterr().out.startswith("Bread costs 2.5 EUR.\n[completed, 0.")
    assert sorted(transport.asked[-1].tool_results.values()) == [
        "2.5 EUR",
        "PreToolUse:Bash hook error: This script deletes nothing.",
    ]


async def test_the_user_may_allow_or_deny_and_the_hook_denies_downloads(
    capsys: pytest.CaptureFixture[str],
) -> None:
    questions: list[str] = []

    def answer(question: str) -> str:
        questions.append(question)
        return "y" if "touch" in question else "n"

    script = Script(
        calls(
            call("Bash", command="touch new"),
            call("Bash", command="mkdir dir"),
            call("Bash", command="curl example"),
        ),
        say("That is all."),
    )
    agent = Agent(
        hooks=approve.hooks, can_use_tool=approve.AskUser(answer), transport=ScriptedCLI(script)
    )

    result = await approve.work(agent, "Try things.")

    assert result.outcome == "completed"
    assert [question for question in questions if "curl" in question] == []
    shown = capsys.readouterr().out
    assert "denied: Bash {'command': 'mkdir dir'}" in shown
    assert "touch" not in shown


@pytest.mark.live
@pytest.mark.parametrize(
    ("name", "typed", "shown", "steps"),
    [
        ("hello", "", "Hello.\n[completed, 0.0", [say("Hello.", chunks=2)]),
        (
            "approve",
            "n\n",
            "denied: Bash {'command': 'touch new'",
            [call("Bash", command="touch new"), say("As you like.")],
        ),
    ],
)
def test_an_example_runs_on_the_stock_cli_as_it_stands(
    name: str, typed: str, shown: str, steps: list[Step]
) -> None:
    run = run_offline([f"{ROOT}/examples/{name}.py"], Script(*steps), typed=typed)

    assert run.stderr == ""
    assert shown in run.stdout


@pytest.mark.parametrize("example", [approve, hello, sync_script])
def test_every_example_explains_how_to_run_it(example: object) -> None:
    assert f"python examples/{Path(str(example.__file__)).name}" in str(example.__doc__)  # type: ignore[attr-defined]
