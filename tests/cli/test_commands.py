"""Commands register by entry point."""

from __future__ import annotations

import argparse
import sys
from importlib.metadata import EntryPoint

import pytest

from steersman.cli.commands import BUILT_IN, GROUP, SUMMARIES, Commands, installed
from steersman.cli.main import main
from steersman.cli.overview import summary_of


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


def test_our_own_commands_are_found_without_being_installed() -> None:
    assert {"cassette", "conform", "demo"} <= {command.name for command in installed()}
