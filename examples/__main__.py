"""Run an example without a login: `python -m examples hello --offline`.

Without arguments it lists the examples. With `--offline` a scripted CLI answers, in a temporary
folder: it costs nothing and uses no network. Without `--offline` the example runs with your login.
"""

from __future__ import annotations

import argparse
import ast
import os
import runpy
import sys
from collections.abc import Mapping
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory

from steersman.testing import Script, call, executable, say
from steersman.testing.script import Answer, stall

HERE = Path(__file__).resolve().parent

SCRIPTS: Mapping[str, tuple[Answer, ...]] = {
    "answer_later": (say("A poem it is."),),
    "approve": (call("Bash", command="touch new"), say("As you like.")),
    "budget": (call("Read", file_path="README.md"), say("It holds a README.")),
    "calculator": (
        call("mcp__calc__add", a=100, b=50),
        call("mcp__calc__subtract", a=150, b=25),
        call("StructuredOutput", value=125),
        say("125."),
    ),
    "chat_bot": (say("Hello!"),),
    "ci_bot": (say("All is well."),),
    "database": (
        call("mcp__db__query", sql="SELECT name FROM users WHERE age > ?", params=[40]),
        say("Alan and Grace."),
    ),
    "hello": (say("Hello, hallo, salut.", chunks=4),),
    "hook_replies": (
        say("Hot pink."),
        call("Bash", command="./foo.sh"),
        say("It was denied."),
        call("Bash", command="echo critical"),
        say("This is not read."),
    ),
    "leave_and_go_on": (say("A poem it is."),),
    "max_budget": (say("A short summary."),),
    "partial_messages": (say("Roses are red.", chunks=3),),
    "permission_callback": (
        call("Write", file_path="hello.py", content="print('hello')"),
        say("Written."),
    ),
    "process_files": (
        call("mcp__processor__list_files"),
        call("mcp__processor__write_report", text="There are no files."),
        say("The report is written."),
    ),
    "quick_start": (
        say("A language."),
        call("Write", file_path="hello.txt", content="Hello, World!"),
        say("Written."),
    ),
    "slow_approval": (call("Bash", command="git status"), say("Nothing to push.")),
    "steer": (call("Bash", command="wc -l *.py"), say("Without the tests: 120 lines.")),
    "streaming": (
        say("Paris.", chunks=2),
        say("1 2 3") + stall(),
        say("Two million."),
        say("4"),
        say("16"),
    ),
    "structured": (
        call("StructuredOutput", mood="mixed", stars=3, complaints=["an hour"]),
        say(""),
    ),
    "subagents": (
        call("Agent", description="read", prompt="read it", subagent_type="reader"),
        say("All read."),
    ),
    "sync_script": (call("mcp__functions__price", item="bread"), say("Bread costs 2.5 EUR.")),
    "system_prompts": (say("4"), say("4")),
    "terminal_chat": (say("Hello.", chunks=2), say("Bye.")),
    "two_machines": (say("You are Ann."),),
    "which_tools": (say("Three."), say("None.")),
}
"""What the model answers in each example that can run without a login."""

ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "answer_later": ("work",),
    "ci_bot": (".",),
    "leave_and_go_on": ("begin",),
    "process_files": (".",),
    "two_machines": ("conversations.db", "customer 7", "Who am I?"),
}
"""What is passed to an example without a login that needs arguments, if you pass none."""


def main(arguments: list[str] | None = None) -> int:
    """Run an example, or list them. Returns the exit status."""
    given = sys.argv[1:] if arguments is None else arguments
    parser = argparse.ArgumentParser(prog="python -m examples", description=__doc__)
    parser.add_argument("name", nargs="?", help="the name of an example; without it, a list")
    parser.add_argument("--offline", action="store_true", help="without a login, on a script")
    chosen, rest = parser.parse_known_args(given)
    if chosen.name is None:
        print("\n".join(f"{path.stem:20} {_first_line(path)}" for path in _all()))
        return 0
    path = HERE / f"{chosen.name}.py"
    if path not in _all() or (chosen.offline and chosen.name not in SCRIPTS):
        names = SCRIPTS if chosen.offline else [path.stem for path in _all()]
        parser.error(f"name: {chosen.name} is given; there are {', '.join(names)}")
    return _run_offline(path, rest) if chosen.offline else _run(path, rest)


def _run_offline(path: Path, arguments: list[str]) -> int:
    with TemporaryDirectory() as folder, TemporaryDirectory() as project:
        program = executable(Script(*SCRIPTS[path.stem]), folder)
        before = dict(os.environ)
        os.environ.update(STEERSMAN_CLI=str(program), CLAUDE_CONFIG_DIR=f"{folder}/config")
        try:
            with chdir(project):
                return _run(path, arguments or [*ARGUMENTS.get(path.stem, ())])
        finally:
            os.environ.clear()
            os.environ.update(before)


def _run(path: Path, arguments: list[str]) -> int:
    before, sys.argv = sys.argv, [str(path), *arguments]
    try:
        runpy.run_path(str(path), run_name="__main__")
    except SystemExit as ended:
        return int(ended.code or 0)
    finally:
        sys.argv = before
    return 0


def _all() -> list[Path]:
    return [path for path in sorted(HERE.glob("*.py")) if not path.stem.startswith("_")]


def _first_line(path: Path) -> str:
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").splitlines()[0]


if __name__ == "__main__":
    sys.exit(main())
