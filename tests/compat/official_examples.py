"""Runs an example of the official package as it stands: by its own package, or by ours."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from scripts.official_examples import place
from steersman.testing.model import ScriptedModel
from steersman.testing.request import ModelRequest
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import Script, Step, call, say, stall
from tests.examples.offline import ROOT, stock_cli

LIMIT = 120.0
MANY = 100
OURS = ("-m", "steersman.compat")

CALLS: dict[str, Step] = {
    "./foo.sh": call("Bash", command="./foo.sh --help"),
    "Hello from hooks": call("Bash", command="echo hooks"),
    "ls /nonexistent": call("Bash", command="ls /nonexistent_directory"),
    "CRITICAL": call("Bash", command="echo CRITICAL"),
    "important_config": call("Write", file_path="important_config.txt", content="test"),
    "regular_file": call("Write", file_path="regular_file.txt", content="test"),
    "hello.txt": call("Write", file_path="hello.txt", content="Hello"),
    "hello.py": call("Bash", command="touch made"),
    "15 + 27": call("mcp__calc__add", a=15, b=27),
    "divided by": call("mcp__calc__divide", a=100, b=7),
    "square root": call("mcp__calc__sqrt", n=144),
    "to the power": call("mcp__calc__power", base=2, exponent=8),
    "bash echo": call("Bash", command="echo bash"),
    "sleep command for 5": call("Bash", command="sleep 5"),
    "sleep command for 60": call("Bash", command="sleep 60"),
    "README.md": call("Read", file_path="README.md"),
}
"""What the model calls first, by what the prompt says, where that tool is offered."""


class Ran(NamedTuple):
    """What became of an example."""

    status: int
    stdout: str
    stderr: str
    asked: list[str]
    """The prompts and the results of tools that the model was sent."""


def examples() -> Path:
    """Find the examples, or skip the test; where CI runs, a test that cannot run has failed."""
    found = place()
    if not found.is_dir():
        why = "the official examples are not here: run scripts/official_examples.py"
        if os.environ.get("CI"):
            pytest.fail(why)
        pytest.skip(why)
    return found


def run_example(words: Sequence[str], *, is_official: bool = False) -> Ran:
    """Run an example in an environment that knows no login and no network."""
    asked: list[str] = []

    def answer(request: ModelRequest) -> Step:
        asked.append(request.last_text)
        if request.tool_results:
            asked.extend(request.tool_results.values())
            return say("I have used a tool.")
        if "Count from" in request.last_text:
            return say("One") + stall()
        for text, step in CALLS.items():
            name = str(step).partition("'")[2].partition("'")[0]
            if text in request.last_text and name in request.tools:
                return step
        return say("Python, Rust and 4.")

    script = Script(*[answer] * MANY, strict=True)
    runner = () if is_official else OURS
    with CliSandbox() as box, ScriptedModel(script) as model:
        (box.project / "README.md").write_text("Read me.\n")
        added = {"STEERSMAN_CLI": str(stock_cli()), "PYTHONPATH": str(ROOT / "src")}
        run = subprocess.run(
            [sys.executable, *runner, *words],
            cwd=box.project,
            env=box.env(model.url, added),
            input="",
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        texts = [each.replace(str(box.root), "") for each in (run.stdout, run.stderr)]
    assert script.surprises == []
    stdout, stderr = map(_normal, texts)
    return Ran(run.returncode, stdout, stderr, asked)


def _normal(text: str) -> str:
    """Return a text without what differs from run to run."""
    text = re.sub(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", "UUID", text)
    text = re.sub(r"\b(toolu|msg|req)_\w+", "ID", text)
    text = re.sub(r"\d{4}-\d\d-\d\d[ T][\d:,.]+Z?", "TIME", text)
    text = re.sub(r"steersman-\w{8}|cc-socks/\d+", "FOLDER", text)
    # Ours names the prompts that a message is for: it gives each one a uuid.
    text = re.sub(r", 'user_message_uuids'(: \['UUID'\])?", "", text)
    text = re.sub(r"(?<=types received: )\w+(?:, \w+)+", lambda m: _sorted(m.group()), text)
    return re.sub(r"\b\d+(?:\.\d+)?ms\b|_ms['\"]?[:=] ?\d+|\d+\.\d{4,}", "NUMBER", text)


def _sorted(words: str) -> str:
    """Return words of a set in an order."""
    return ", ".join(sorted(words.split(", ")))
