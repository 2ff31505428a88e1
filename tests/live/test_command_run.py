"""`steersman run` on the stock CLI: in a terminal, in pipes, and its exit statuses."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from steersman.testing.model import ScriptedModel
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import Answer, Script, call, say
from tests.live.commands import PROGRAM, command_env, run_command
from tests.live.terminal import Terminal

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x1b[1;1H\x9b31m"
SHOWN = "\\x1b]0;owned\\x07\\x1b[2J\\x1b[1;1H\\x9b31m"
CHOICE = {
    "question": "Which?",
    "header": "Colour",
    "multiSelect": False,
    "options": [
        {"label": "red", "description": "warm"},
        {"label": "blue", "description": "cold"},
    ],
}
MakeEnv = Callable[..., dict[str, str]]


@pytest.fixture
def environment(cli: Path, sandbox: CliSandbox) -> Iterator[MakeEnv]:
    """Makes the environment of a command whose model has a script."""
    models: list[ScriptedModel] = []

    def make(*steps: Answer, **more: str) -> dict[str, str]:
        model = ScriptedModel(Script(*steps, strict=True)).__enter__()
        models.append(model)
        return command_env(sandbox.env(model.url), cli, **more)

    yield make
    for each in models:
        each.__exit__(None, None, None)


def editor(sandbox: CliSandbox) -> str:
    """A program that replaces a word of the file that it is given."""
    path = sandbox.root / "editor"
    path.write_text('#!/bin/sh\nsed -i s/first/second/ "$1"\n')
    path.chmod(0o755)
    return str(path)


def test_a_terminal_is_asked_with_each_key_and_hostile_text_is_shown(
    environment: MakeEnv, sandbox: CliSandbox
) -> None:
    project = sandbox.project
    (project / "cart.py").write_text("total = sum(i.price for i in items)\n")
    (project / "noise").write_text(f"noise {HOSTILE}")
    steps = [
        say(f"I look{HOSTILE} first.")
        + call("Edit", file_path=str(project / "cart.py"), old_string="i.price", new_string="1"),
        call("Write", file_path=str(project / "edited"), content=f"first{HOSTILE}\n"),
        call("Bash", command="touch kept"),
        call("Bash", command="touch kept"),
        call("Bash", command="rm kept"),
        call("Bash", command="cat noise"),
        call("AskUserQuestion", questions=[CHOICE]),
        lambda request: say(f"All done: {request.tool_results}"),
    ]
    env = environment(
        call("Read", file_path=str(project / "cart.py")), *steps, EDITOR=editor(sandbox)
    )

    with Terminal([*PROGRAM, "run", "mend it"], env, project) as terminal:
        terminal.wait("+1 -1 - i.price + 1")
        terminal.wait("[y] yes [a] always here [n] no, because... [e] edit [?] why asked >")
        terminal.type("?\r")
        terminal.wait("[a] allows:")
        terminal.type("y\r")
        terminal.wait("+ first\\x1b]0;owned\\x07")
        terminal.type("e\r")
        terminal.wait("ask Bash touch kept")
        terminal.type("a\r")
        terminal.wait("ask Bash rm kept")
        terminal.type("n leave it there\r")
        terminal.wait("ask Which? 1 red warm 2 blue cold")
        terminal.type("2\r")
        status = terminal.end()

    assert status == 3
    assert f"I look{SHOWN} first." in terminal.words
    assert terminal.words.count("ask Bash touch kept") == 1, terminal.shown
    assert "denied Bash rm kept" in terminal.words
    assert '"Which?"="blue"' in terminal.words
    assert terminal.title == ""
    stored = run_command(env, project, "sessions", "show", terminal.words.split()[-1], "--whole")
    assert f"noise {SHOWN}" in " ".join(stored.stdout.split())
    assert not {"\x1b", "\x07", "\x9b"} & set(stored.stdout)
    assert (project / "cart.py").read_text() == "total = sum(1 for i in items)\n"
    assert (project / "edited").read_text().startswith("second")
    assert (project / "kept").exists()


def test_ctrl_c_interrupts_a_tool_and_leaves_no_process(
    environment: MakeEnv, sandbox: CliSandbox
) -> None:
    env = environment(call("Bash", command="touch begun; sleep 60"), NO_COLOR="1")
    policy = sandbox.root / "policy.toml"
    policy.write_text('auto_approve = ["Bash"]\n')

    with Terminal(
        [*PROGRAM, "run", "wait", "--policy", str(policy)], env, sandbox.project, columns=40
    ) as terminal:
        terminal.wait(lambda _: (sandbox.project / "begun").exists())
        terminal.type("\x03")
        status = terminal.end()

    assert status == 130
    assert "interrupted" in terminal.words
    assert b"\x1b" not in terminal.written


def test_a_pipe_gets_the_answer_only_and_a_reader_may_leave(
    environment: MakeEnv, sandbox: CliSandbox
) -> None:
    env = environment(say("The first answer."), say("The second answer, which is not read."))

    run = run_command(env, sandbox.project, "run", "-", typed="a prompt")
    with subprocess.Popen(
        [*PROGRAM, "run", "again", "--stream-json"],
        env=env,
        cwd=sandbox.project,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as closed:
        assert closed.stdout is not None
        closed.stdout.close()
        _, err = closed.communicate(timeout=30)

    assert (run.returncode, run.stdout) == (0, "The first answer.\n")
    assert "completed, $" in run.stderr
    assert closed.returncode == 1
    assert b"stdout was closed, so the turn was stopped" in err
    assert b"Traceback" not in err


def test_a_schema_a_missing_login_and_a_killed_cli_have_their_exit_statuses(
    environment: MakeEnv, sandbox: CliSandbox
) -> None:
    schema = sandbox.root / "schema.json"
    schema.write_text(json.dumps({"type": "object", "properties": {"n": {"type": "integer"}}}))
    policy = sandbox.root / "policy.toml"
    policy.write_text('auto_approve = ["Bash"]\n')
    (sandbox.project / "mine.py").write_text(
        "from steersman import Agent\nonce = Agent(revive=False)\n"
    )
    env = environment(call("StructuredOutput", n=4), call("Bash", command="kill -9 $PPID"))
    locked_out = {name: value for name, value in env.items() if name != "ANTHROPIC_API_KEY"}

    typed = run_command(env, sandbox.project, "run", "4", "--schema", str(schema))
    killed = run_command(
        *(env, sandbox.project, "run", "die", "--policy", str(policy)),
        *("--agent", "mine:once", "--json"),
    )
    refused = run_command(locked_out, sandbox.project, "run", "x")

    assert (typed.returncode, typed.stdout) == (0, '{"n": 4}\n')
    assert killed.returncode == 1
    assert json.loads(killed.stdout)["error"]["code"] == "cli_exited"
    assert (refused.returncode, refused.stdout) == (5, "")
    assert "login" in refused.stderr
    assert sys.executable not in killed.stderr
