"""The examples do what their docstrings promise, on the scripted CLI."""

from __future__ import annotations

import pytest

from examples import approve, sync_script
from steersman import Agent, sync
from steersman.testing.script import Script, call, calls, say
from steersman.testing.scripted.cli import ScriptedCLI


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
