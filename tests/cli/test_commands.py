"""Commands register by entry point."""

from __future__ import annotations

import argparse
import inspect
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import cast

import pytest

import steersman
from steersman.cli.commands import BUILT_IN, GROUP, SUMMARIES, Commands, installed, summary_of
from steersman.cli.completion import candidates, complete
from steersman.cli.main import main
from steersman.cli.parsers import Parser

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


def add_pair(commands: Commands) -> None:
    def run(chosen: argparse.Namespace) -> int:
        sys.stdout.write(f"{chosen.pair} {chosen.last}\n")
        return 0

    pair = commands.add_parser("pair", help="print what was given")
    pair.add_argument("pair", nargs="+")
    pair.add_argument("--last", type=int)
    pair.set_defaults(run=run)


COUNT = EntryPoint("count", f"{__name__}:add_count", GROUP)
ECHO = EntryPoint("echo", f"{__name__}:add_echo", GROUP)
PAIR = EntryPoint("pair", f"{__name__}:add_pair", GROUP)
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
    assert main(["count", "7", "--strange"], found=[COUNT]) == 2
    assert "unrecognized arguments: --strange" in capsys.readouterr().err


def test_the_list_shows_what_each_command_says_of_itself() -> None:
    for command in BUILT_IN:
        place = f"steersman.cli.parsers:add_{command.name}"
        other = EntryPoint(f"not-{command.name}", place, GROUP)
        assert summary_of(other) == SUMMARIES[command.name]


@pytest.mark.parametrize("words", [["nonsense"], ["--nonsense"], [], ["count"]])
def test_misuse_is_explained_on_stderr(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    status = main(words, found=[*BUILT_IN, COUNT])

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
        "import sys; sys.modules.update(dict.fromkeys(('rich', 'prompt_toolkit')));"
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
    assert loaded & {"asyncio", "msgspec", "prompt_toolkit", "rich", "argparse"} == set()


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
@pytest.mark.parametrize("name", [each.name for each in BUILT_IN])
def test_the_help_of_a_command_imports_nothing_that_carries_it_out(name: str) -> None:
    program = (
        f"from steersman.cli.main import main; main(['{name}', '--help']);"
        "import sys; print(*sys.modules)"
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
    assert f"usage: steersman {name}" in run.stdout
    assert (
        loaded & {"asyncio", "msgspec", "rich", "steersman.errors", "importlib.metadata"} == set()
    )


def leaves(parser: Parser, *above: str) -> Iterator[tuple[tuple[str, ...], Parser]]:
    """The parsers that run something, each with the words that lead to it."""
    for action in parser.arguments():
        if action.nargs == argparse.PARSER:
            for name, each in cast("dict[str, Parser]", action.choices).items():
                yield from leaves(each, *above, name)
            return
    yield above, parser


def test_each_parser_names_a_function_that_takes_its_words() -> None:
    root = Parser(prog="steersman")
    commands = root.add_subparsers()
    for command in BUILT_IN:
        command.load()(commands)

    for _, parser in leaves(root):
        run = parser.get_default("run")
        place, with_stdin = run.args
        module, _, name = place.partition(":")
        function = inspect.unwrap(getattr(import_module(module), name))
        words = {action.dest for action in parser.arguments() if action.dest != "help"}
        words -= {"project", "is_all", "config", "store"} if module.endswith("sessions") else set()
        sessions = [None] if module.endswith("sessions") else []
        stdin = {"stdin": None} if with_stdin else {}
        inspect.signature(function).bind(*sessions, **dict.fromkeys(words), **stdin)


@pytest.mark.parametrize(
    "words",
    [
        ["pair", "--last", "3", "one", "two"],
        ["pair", "one", "--last", "3", "two"],
        ["pair", "one", "two", "--last=3"],
        ["pair", "--last", "3", "--", "one", "two"],
    ],
)
def test_options_stand_before_between_or_after_arguments(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words, found=[PAIR]) == 0
    assert capsys.readouterr().out == "['one', 'two'] 3\n"


def test_an_option_is_not_abbreviated_and_after_two_dashes_there_is_none(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["pair", "one", "--la", "3"], found=[PAIR]) == 2
    refused = capsys.readouterr().err
    assert main(["pair", "--last", "3", "--", "-x", "--la"], found=[PAIR]) == 0

    assert "usage: steersman pair" in refused
    assert "unrecognized arguments: --la" in refused
    assert capsys.readouterr().out == "['-x', '--la'] 3\n"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--slots", "0"], "0 is not at least 1 and at most 1000"),
        (["--slots", "many"], "'many' is not a number"),
        (["--park-after", "0"], "0 is not above 0"),
        (["--drain-timeout", "nan"], "nan is not at least 0"),
    ],
)
def test_a_number_out_of_its_range_is_refused(
    words: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fleet", "worker", "--agent", "a:b", *words]) == 2
    assert text in capsys.readouterr().err


def completed(*words: str) -> list[str]:
    """What bash gets for a line of words, the last of which is begun."""
    return [
        word
        for word, _ in candidates(list(BUILT_IN), list(words[:-1]), words[-1])
        if word.startswith(words[-1])
    ]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["d"], ["demo", "doctor"]),
        (["--v"], ["--version"]),
        (["--debug", "rep"], ["report"]),
        (["run", "--m"], ["--model", "--max-usd"]),
        (["sessions", "re"], ["rename"]),
        (["sessions", "export", "id", "--fo"], ["--format"]),
        (["sessions", "export", "--format", ""], ["markdown", "html", "json"]),
        (["sessions", "export", "--output", ""], []),
        (["run", "--cwd", ""], []),
        (["nonsense", ""], []),
    ],
)
def test_a_shell_completes_commands_options_and_choices(words: list[str], found: list[str]) -> None:
    assert completed(*words) == found


def test_a_command_that_cannot_be_loaded_completes_nothing() -> None:
    assert list(candidates([BROKEN], ["broken"], "")) == []


@pytest.mark.process
def test_bash_completes_with_the_script_that_it_is_given(tmp_path: Path) -> None:
    program = tmp_path / "steersman"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m steersman.cli "$@"\n')
    program.chmod(0o755)
    line = (
        'eval "$(_STEERSMAN_COMPLETE=bash_source steersman)";'
        "COMP_WORDS=(steersman sessions export --format '');COMP_CWORD=4;"
        '_steersman_complete steersman; echo "${COMPREPLY[@]}"'
    )
    run = subprocess.run(
        ["bash", "-c", line],
        env={"PYTHONPATH": SOURCE, "PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    assert (run.stdout, run.stderr) == ("markdown html json\n", "")


@pytest.mark.parametrize(
    ("shell", "row"), [("bash", "chat"), ("zsh", "chat:a conv"), ("fish", "chat\ta conv")]
)
def test_each_shell_gets_its_own_rows(
    shell: str, row: str, capsys: pytest.CaptureFixture[str]
) -> None:
    line = {"COMP_WORDS": "steersman\nch", "COMP_CWORD": "1"}

    assert complete(BUILT_IN, f"{shell}_complete", line) == 0
    assert capsys.readouterr().out.startswith(row)
    assert complete(BUILT_IN, f"{shell}_strange", line) == 2


def test_our_own_commands_are_found_without_being_installed() -> None:
    assert {"cassette", "conform", "demo"} <= {command.name for command in installed()}
