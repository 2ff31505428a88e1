"""A scripted CLI as a program: a script in, a path out that runs like the stock CLI."""

from __future__ import annotations

import asyncio
import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from steersman import Agent
from steersman.errors import UsageError
from steersman.testing.executable import executable
from steersman.testing.request import ModelRequest
from steersman.testing.script import (
    Script,
    Step,
    Usage,
    call,
    cut,
    fail,
    say,
    stall,
    step,
    think,
    when,
)
from steersman.testing.scripted.source import load, script_from_json, script_to_json
from steersman.transports.command import CommandTransport

pytestmark = pytest.mark.process

LIMIT = 20.0
SCRIPT_FILE = """
from steersman.testing import Script, ScriptedCLI, call, say

def shout(request):
    return say(request.last_text.upper())

loud = Script(shout, say("and out"), strict=True)
steps = [say("one"), say("two")]

def with_tools():
    script = Script(call("Bash", command="echo hi"), say("done"), strict=True)
    return ScriptedCLI(script, tools={"Bash": lambda given: "played " + given["command"]})
"""


def add(a: float, b: float) -> float:
    """Add two numbers."""
    return a + b


def shout(request: ModelRequest) -> Step:
    return say(request.last_text.upper())


LOUD = Script(shout)


async def test_steps_run_as_a_process_of_their_own(tmp_path: Path) -> None:
    program = executable([call("mcp__functions__add", a=2, b=3), say("five", chunks=2)], tmp_path)

    async with asyncio.timeout(LIMIT):
        result = await Agent(cli_path=program, functions=[add]).run("2 + 3?")

    assert result.answer == "five"
    assert list(program.asked[1].tool_results.values()) == ["5.0"]
    program.assert_complete()


async def test_functions_are_found_by_the_name_of_their_module(tmp_path: Path) -> None:
    program = executable(f"{__name__}:LOUD", tmp_path)

    async with asyncio.timeout(LIMIT):
        result = await Agent(cli_path=program).run("hello")

    assert result.answer == "HELLO"
    assert program.asked[0].last_text == "hello"


async def test_functions_are_found_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "my scripts.py"
    file.write_text(SCRIPT_FILE)
    program = executable(f"{file}:loud", tmp_path)

    async with asyncio.timeout(LIMIT), Agent(cli_path=program).session() as session:
        texts = [(await (await session.send(prompt))).text for prompt in ("hear", "me")]

    assert texts == ["HEAR", "and out"]
    program.assert_complete()


async def test_a_function_may_give_a_whole_cli_with_its_tools(tmp_path: Path) -> None:
    file = tmp_path / "scripts.py"
    file.write_text(SCRIPT_FILE)
    program = executable(f"{file}:with_tools", tmp_path)

    async with asyncio.timeout(LIMIT):
        await Agent(cli_path=program).run("go")

    assert list(program.asked[1].tool_results.values()) == ["played echo hi"]


async def test_processes_of_one_program_share_its_script(tmp_path: Path) -> None:
    program = executable([say("one"), say("two"), say("three")], tmp_path)
    agent = Agent(cli_path=program)

    async with asyncio.timeout(LIMIT):
        first = (await agent.run("a")).answer
        others = await asyncio.gather(agent.run("b"), agent.run("c"))

    assert first == "one"
    assert sorted(each.answer for each in others) == ["three", "two"]
    program.assert_complete()


async def test_it_runs_behind_another_command(tmp_path: Path) -> None:
    program = executable(say("from afar"), tmp_path)
    transport = CommandTransport(("env",), program=str(program))

    async with asyncio.timeout(LIMIT):
        result = await Agent(transport=transport).run("hello")

    assert result.answer == "from afar"


async def test_a_stall_is_released_from_outside(tmp_path: Path) -> None:
    program = executable(say("wait") + stall() + say(" for it"), tmp_path)

    async with asyncio.timeout(LIMIT), Agent(cli_path=program).session() as session:
        turn = await session.send("go")
        await program.wait_for_request()
        await program.release()
        result = await turn

    assert result.text == "wait for it"


async def test_what_was_not_reached_is_named(tmp_path: Path) -> None:
    program = executable([say("one"), say("two"), when("x", say("three"))], tmp_path)

    async with asyncio.timeout(LIMIT):
        await Agent(cli_path=program).run("a")

    for _ in range(2):
        with pytest.raises(AssertionError, match=r"step 2 of 2 .*'two'.*when\('x'\) step 1 of 1"):
            program.assert_complete()


async def test_what_went_wrong_in_the_script_is_told(tmp_path: Path) -> None:
    file = tmp_path / "scripts.py"
    file.write_text("def broken(request): return 1 / 0\nsteps = [broken]\n")
    program = executable(f"{file}:steps", tmp_path)

    async with asyncio.timeout(LIMIT), Agent(cli_path=program).session() as session:
        result = await (await session.send("a"))

    assert result.outcome == "failed"
    with pytest.raises(AssertionError, match="broken raised ZeroDivisionError"):
        program.assert_complete()


def test_the_name_can_be_called_whether_its_module_was_imported_or_not(tmp_path: Path) -> None:
    """`from steersman.testing import executable` is the module after an import of the module."""
    module: Any = importlib.import_module("steersman.testing.executable")

    program = module(say("one"), tmp_path)

    assert isinstance(program, module.Executable)
    assert program.is_file()


def test_functions_cannot_be_written_down(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="module:name"):
        executable([shout], tmp_path)


@pytest.mark.parametrize(
    "place", ["nowhere", "no.such.module:name", "json:no_such_name", "missing.py:name", "no.json"]
)
def test_a_script_that_is_not_there_is_told_of_at_once(tmp_path: Path, place: str) -> None:
    with pytest.raises(UsageError, match="script"):
        executable(place, tmp_path)


def test_every_kind_of_step_survives_being_written_down() -> None:
    script = Script(
        say("a", chunks=["", "a"]) + think("b") + call("C", {"d": 1}, id_="e") + cut(),
        step(stall(0.5), stall(), fail(429, "slow", 1.5), usage=Usage(7), stop_reason="refusal"),
        when("f", say("g")),
    ).branch("h", say("i"))

    again = script_from_json(json.loads(json.dumps(script_to_json(script))), strict=False)

    assert again.steps == script.steps
    assert again.branches == script.branches


def test_steps_may_be_written_by_hand(tmp_path: Path) -> None:
    file = tmp_path / "steps.json"
    file.write_text('[{"say": "Hello."}, [{"think": "hm"}, {"call": "Bash", "input": {}}]]')

    assert load(str(file)).script.steps == (say("Hello."), think("hm") + call("Bash"))


def test_it_tells_its_version_and_what_it_needs() -> None:
    run = [sys.executable, "-m", "steersman.testing"]

    def outcome(words: list[str]) -> subprocess.CompletedProcess[str]:
        env = {"PYTHONPATH": str(Path(__file__).parents[2] / "src")}
        return subprocess.run(words, capture_output=True, text=True, env=env, check=False)

    version = outcome([*run, "--version"])
    misused = outcome(run)
    missing = outcome([*run, "--script", "no_such:thing"])

    assert (version.returncode, version.stdout) == (0, "2.1.325 (Claude Code)\n")
    assert (misused.returncode, misused.stderr[:6]) == (2, "usage:")
    assert (missing.returncode, "no_such" in missing.stderr) == (2, True)


def test_it_reads_a_file_as_well_as_a_pipe(tmp_path: Path) -> None:
    program = executable(say("read"), tmp_path)
    told = tmp_path / "stdin"
    told.write_text('{"type": "user", "message": {"role": "user", "content": "hi"}}\n')

    with told.open() as stdin:
        run = subprocess.run(
            [program, "--verbose"], stdin=stdin, capture_output=True, text=True, check=True
        )

    assert run.stderr == ""
    assert json.loads(run.stdout.rstrip("\n").split("\n")[-1])["result"] == "read"
