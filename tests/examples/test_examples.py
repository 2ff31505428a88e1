"""The examples do what their docstrings promise, on the scripted CLI."""

from __future__ import annotations

import pytest

from examples import approve
from steersman import Agent
from steersman.testing.script import Script, call, calls, say
from steersman.testing.scripted.cli import ScriptedCLI


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
