"""The examples of the official package, run as they stand by `python -m steersman.compat`.

`.ci/run` runs those that start one CLI and do not wait; `make soak` runs all, and compares what
they print with what they print on the official package.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.compat.official_examples import examples, run_example
from tests.examples.offline import ROOT

pytestmark = [pytest.mark.live, pytest.mark.process]

SHORT = {
    ("filesystem_agents.py",): "SUCCESS: Received full response",
    ("hooks.py", "ContinueControl"): "Result ended",
    ("plugin_example.py",): "- demo-plugin (path:",
    ("streaming_mode_trio.py",): "Conversation complete!",
    ("tool_permission_callback.py",): "Allowing bash command: touch made",
}
"""Examples, and what each prints if all went well."""

LONG = [
    ("agents.py",),
    ("hooks.py", "all"),
    ("include_partial_messages.py",),
    ("max_budget_usd.py",),
    ("mcp_calculator.py",),
    ("quick_start.py",),
    ("setting_sources.py", "all"),
    ("stderr_callback_example.py",),
    ("system_prompt.py",),
    ("tools_option.py",),
    *(
        ("streaming_mode.py", name)
        for name in (
            "basic_streaming",
            "multi_turn_conversation",
            "manual_message_handling",
            "with_options",
            "bash_command",
        )
    ),
]
"""Further examples, which print the same whenever they are run."""

WAITING = [
    ("streaming_mode.py", name)
    for name in (
        "concurrent_responses",
        "with_interrupt",
        "async_iterable_prompt",
        "control_protocol",
        "error_handling",
    )
]
"""Examples that wait for some seconds, and print what has happened until then."""

FOR_IPYTHON = "streaming_mode_ipython.py"
"""Cells with `await` outside of functions: run as IPython runs them."""
STORES = "session_stores"

CELLS = """\
import ast, asyncio, inspect, sys
source = open(sys.argv[1]).read()
code = compile(source, sys.argv[1], "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)

async def main():
    found = eval(code, {"__name__": "cells"})
    await found if inspect.isawaitable(found) else None

asyncio.run(main())
"""


def test_every_example_is_run_here() -> None:
    known = {words[0] for words in (*SHORT, *LONG)} | {FOR_IPYTHON, STORES, "plugins"}

    assert {each.name for each in examples().iterdir()} - {"__pycache__"} == known


@pytest.mark.ci_only
@pytest.mark.parametrize(("words", "said"), SHORT.items(), ids=map(" ".join, SHORT))
def test_an_example_runs_as_it_stands(words: tuple[str, ...], said: str) -> None:
    ran = run_example([str(examples() / words[0]), *words[1:]])

    assert ran.status == 0, ran.stderr
    assert "Traceback" not in ran.stderr
    assert said in ran.stdout
    assert ran.asked


def test_the_reference_stores_can_be_imported(tmp_path: Path) -> None:
    """They are adapters to copy, not programs; what they need of the package is imported."""
    folder = examples() / STORES
    names = sorted(each.stem for each in folder.glob("*_session_store.py"))
    (tmp_path / "program.py").write_text(
        f"import sys\nsys.path.insert(0, {str(folder)!r})\n"
        + "".join(f"import {name}\n" for name in names)
        + "from claude_agent_sdk import SessionStore\n"
        + "print([each.__name__ for name in sys.argv[1:] for each in"
        " vars(sys.modules[name]).values() if isinstance(each, type)"
        " and SessionStore in each.__mro__[1:]])\n"
    )

    run = subprocess.run(
        [sys.executable, "-m", "steersman.compat", "program.py", *names],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT / "src"), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (run.stderr, run.returncode) == ("", 0)
    assert len(names) == 3
    assert run.stdout.count("SessionStore") == 3


@pytest.mark.soak_only
@pytest.mark.parametrize("words", [*LONG, *SHORT], ids=" ".join)
def test_an_example_prints_what_it_prints_on_the_official_package(words: tuple[str, ...]) -> None:
    program = [str(examples() / words[0]), *words[1:]]

    theirs, ours = run_example(program, is_official=True), run_example(program)

    assert (ours.status, ours.stdout) == (theirs.status, theirs.stdout)


@pytest.mark.soak_only
@pytest.mark.parametrize("words", WAITING, ids=" ".join)
def test_an_example_that_waits_runs_as_it_stands(words: tuple[str, ...]) -> None:
    ran = run_example([str(examples() / words[0]), *words[1:]])

    assert ran.status == 0, ran.stderr
    assert "Traceback" not in ran.stderr
    assert "error:" not in ran.stdout.lower()


@pytest.mark.soak_only
def test_the_cells_for_ipython_run_as_they_stand(tmp_path: Path) -> None:
    runner = tmp_path / "cells.py"
    runner.write_text(CELLS)

    ran = run_example([str(runner), str(examples() / FOR_IPYTHON)])

    assert ran.status == 0, ran.stderr
    assert "Error:" not in ran.stdout
    assert "Total messages:" in ran.stdout
