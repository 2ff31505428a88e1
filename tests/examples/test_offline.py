"""`python -m examples NAME --offline` runs the examples without a login."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from examples.__main__ import ARGUMENTS, SCRIPTS, main
from tests.examples.offline import ROOT

PRINTED: Mapping[str, str] = {
    "answer_later": "completed A poem it is.",
    "approve": "? [y/N] As you like.\ndenied: Bash {'command': 'touch new'",
    "budget": "completed: 0.00",
    "calculator": "Answer(value=125.0)",
    "chat_bot": "general 17: Hello!",
    "ci_bot": "All is well.",
    "database": "Alan and Grace.",
    "hello": "Hello, hallo, salut.\n[completed, 0.0",
    "hook_replies": "It was denied.\n[a hook ended the turn: a critical error",
    "leave_and_go_on": "completed A poem it is.",
    "max_budget": "A short summary.\n[0.0",
    "partial_messages": "Roses are red.\n[complete: 14 characters]",
    "permission_callback": "asked about Write",
    "process_files": "Final state: completed, 2 tool calls",
    "quick_start": "A language.\nClaude uses Write\nClaude: Written.\ndone for 0.0",
    "slow_approval": "Nothing to push.",
    "steer": "withdrawn: True\nWithout the tests: 120 lines.",
    "streaming": "1 2 3  [interrupted]",
    "structured": "Review(mood='mixed', stars=3, complaints=['an hour'])",
    "subagents": "All read.",
    "sync_script": "Bread costs 2.5 EUR.\n[completed, 0.0",
    "system_prompts": "--- preset and more\n4",
    "two_machines": "You are Ann.",
    "which_tools": "[]: none",
}
TYPED = {"approve": "n\n", "chat_bot": "general 17 Hello!\n"}
AS_A_PROGRAM = "terminal_chat"
"""It reads its stdin as a pipe."""


@contextmanager
def typed(text: str) -> Generator[None]:
    """Let the user type a text."""
    before, sys.stdin = sys.stdin, io.StringIO(text)
    try:
        yield
    finally:
        sys.stdin = before


@pytest.mark.parametrize("name", PRINTED)
def test_an_example_runs_offline(
    name: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)

    with typed(TYPED.get(name, "")):
        status = main([name, "--offline"])

    shown = capsys.readouterr()
    assert (status, shown.err) == (0, "")
    assert PRINTED[name] in shown.out
    assert list(tmp_path.iterdir()) == []


def test_an_example_runs_offline_as_a_program() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "examples", AS_A_PROGRAM, "--offline"],
        input="hi\n",
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (run.returncode, run.stderr) == (0, "")
    assert "Hello.\n[completed, 0.0" in run.stdout


def test_there_are_fifteen_and_each_has_a_script() -> None:
    assert len(SCRIPTS) >= 15
    assert SCRIPTS.keys() == {*PRINTED, AS_A_PROGRAM}
    assert ARGUMENTS.keys() <= SCRIPTS.keys()


def test_the_examples_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0

    lines = capsys.readouterr().out.splitlines()
    names = {path.stem for path in (ROOT / "examples").glob("[!_]*.py")}
    assert {line.split()[0] for line in lines} == names


def test_a_name_that_is_not_an_example_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["helo", "--offline"])

    assert "helo is given; there are answer_later, approve" in capsys.readouterr().err
