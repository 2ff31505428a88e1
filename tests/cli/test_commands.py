"""Commands register by entry point."""

from __future__ import annotations

import argparse
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import steersman
from steersman.cli.commands import BUILT_IN, GROUP, SUMMARIES, Commands, installed
from steersman.cli.main import main
from steersman.cli.overview import summary_of

SOURCE = str(Path(steersman.__file__).parents[1])


def add_count(commands: Commands) -> None:
    """Add a command whose exit status is its argument."""
    count = commands.add_parser("count", help="exit with a number")
    count.add_argument("number", type=int)
    count.set_defaults(run=lambda chosen: chosen.number)


def add_echo(commands: Commands) -> None:
    def run(chosen: argparse.Namespace) -> int:
        sys.stdout.write(f"{chosen.text}\n")
        return 0

    echo = commands.add_parser("echo", help="print a text")
    echo.add_argument("text")
    echo.set_defaults(run=run)


def add_fail(commands: Commands) -> None:
    def run(chosen: argparse.Namespace) -> int:
        raise RuntimeError(f"{chosen.text}\x1b[2J")

    fail = commands.add_parser("fail", help="fail")
    fail.add_argument("text")
    fail.set_defaults(run=run)


COUNT = EntryPoint("count", f"{__name__}:add_count", GROUP)
ECHO = EntryPoint("echo", f"{__name__}:add_echo", GROUP)
BROKEN = EntryPoint("broken", "no_such_distribution:add_command", GROUP)


def test_a_command_of_another_distribution_is_run() -> None:
    assert main(["count", "7"], found=[*BUILT_IN, COUNT]) == 7


def test_a_command_that_cannot_be_loaded_does_not_hide_the_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["echo", "word"], found=[BROKEN, ECHO]) == 0
    assert capsys.readouterr() == ("word\n", "")

    assert main(["--help"], found=[BROKEN, ECHO]) == 0
    shown = capsys.readouterr()
    assert ["echo", "print", "a", "text"] in map(str.split, shown.out.splitlines())
    assert "the command broken cannot be loaded" in shown.err

    assert main(["broken"], found=[BROKEN, ECHO]) == 1
    assert "the command broken cannot be loaded" in capsys.readouterr().err


def test_conform_without_its_distribution_names_what_to_install(
    capsys: pytest.CaptureFixture[str],
) -> None:
    status = main(["conform", "--cli", "claude", "--json", "-"], found=BUILT_IN)

    assert status == 2
    assert "pip install steersman-conformance" in capsys.readouterr().err


def test_an_argument_that_no_command_knows_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["count", "7", "--strange"], found=[COUNT])

    assert "unrecognized arguments: --strange" in capsys.readouterr().err


def test_the_list_shows_what_each_command_says_of_itself() -> None:
    for command in BUILT_IN:
        other = EntryPoint(f"not-{command.name}", command.value, GROUP)
        assert summary_of(other) == SUMMARIES[command.name]


@pytest.mark.parametrize("words", [["nonsense"], ["--nonsense"], [], ["count"]])
def test_misuse_is_explained_on_stderr(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        status = main(words, found=[*BUILT_IN, COUNT])
    except SystemExit as error:
        status = int(str(error.code))

    shown = capsys.readouterr()
    assert (status, shown.out) == (2, "")
    assert "steersman" in shown.err


def test_an_error_is_one_text_and_a_traceback_only_with_debug(
    capsys: pytest.CaptureFixture[str],
) -> None:
    failing = EntryPoint("fail", f"{__name__}:add_fail", GROUP)

    assert main(["fail", "x"], found=[failing]) == 1
    plain = capsys.readouterr().err
    assert main(["--debug", "fail", "x"], found=[failing]) == 1
    traced = capsys.readouterr().err

    assert plain == "steersman: RuntimeError: x\\x1b[2J\n`steersman --debug ...` shows where\n"
    assert "Traceback" in traced


@pytest.mark.process
def test_a_bare_install_names_what_to_install_and_runs_the_rest() -> None:
    program = (
        "import sys; sys.modules.update(dict.fromkeys(('click', 'rich', 'prompt_toolkit')));"
        "from steersman.cli.main import main; sys.exit(main())"
    )

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", program, *words],
            env={"PYTHONPATH": SOURCE, "HOME": "/nowhere"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    refused, listed, helped = run("run", "x"), run("--help"), run("doctor", "--help")

    assert (refused.returncode, refused.stdout) == (2, "")
    assert "pip install 'steersman[terminal]'" in refused.stderr
    assert (listed.returncode, helped.returncode) == (0, 0)
    assert "  doctor " in listed.stdout


@pytest.mark.process
def test_the_list_of_commands_imports_no_command() -> None:
    program = (
        "from steersman.cli.main import main; main(['--help']); import sys; print(*sys.modules)"
    )
    run = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": SOURCE},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    loaded = set(run.stdout.splitlines()[-1].split())
    assert loaded & {"asyncio", "click", "msgspec", "prompt_toolkit", "rich", "argparse"} == set()


@pytest.mark.process
def test_closed_descriptors_are_no_reason_to_fail() -> None:
    line = f"{sys.executable} -m steersman.cli --version"
    for closed, status in ((">&-", 0), (">&- 2>&- <&-", 0), ("2>&-", 0)):
        run = subprocess.run(
            ["/bin/sh", "-c", f"{line} {closed}"],
            env={"PYTHONPATH": SOURCE},
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert (run.returncode, run.stderr) == (status, b"")


@pytest.mark.process
def test_a_shell_completes_commands_and_options() -> None:
    def completed(words: str, at: int) -> str:
        return subprocess.run(
            [sys.executable, "-m", "steersman.cli"],
            env={
                "PYTHONPATH": SOURCE,
                "_STEERSMAN_COMPLETE": "bash_complete",
                "COMP_WORDS": words,
                "COMP_CWORD": str(at),
            },
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        ).stdout

    assert "plain,doctor" in completed("steersman d", 1)
    assert "plain,--max-usd" in completed("steersman run --m", 2)


def test_our_own_commands_are_found_without_being_installed() -> None:
    assert {"cassette", "conform", "demo"} <= {command.name for command in installed()}
