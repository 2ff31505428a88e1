"""What `.ci/run` reports about its steps."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]

MAKEFILE = """\
test-newer:
\t@{newer}
test:
\t@{suite}
test-again:
\t@{suite}
%:
\t@true
"""


def last_lines(folder: Path, *, newer: str = "true", suite: str = "true") -> tuple[int, list[str]]:
    """How a run ends whose steps are these commands, without the programs that it installs."""
    lines = (ROOT / ".ci/run").read_text().splitlines()
    script = folder / ".ci" / "run"
    script.parent.mkdir()
    script.write_text("\n".join(each for each in lines if not each.startswith("needs ")))
    (folder / "Makefile").write_text(MAKEFILE.format(newer=newer, suite=suite))
    done = subprocess.run(
        ["bash", str(script)], capture_output=True, text=True, timeout=60, check=False
    )
    return done.returncode, done.stdout.splitlines()


def test_a_step_that_ran_nothing_is_named_in_the_last_line(tmp_path: Path) -> None:
    status, lines = last_lines(tmp_path, newer="echo not run: 3.12 > $$STEERSMAN_NOT_RUN")

    assert status == 0
    assert lines[-1].endswith("NOT RUN: [tests: the fast ones, on a newer Python]")
    assert any("a newer Python: not run: 3.12, " in each for each in lines)


def test_a_run_in_which_every_step_ran_says_only_that_all_is_green(tmp_path: Path) -> None:
    status, lines = last_lines(tmp_path)

    assert status == 0
    assert lines[-1].startswith("All green after ")
    assert lines[-1].endswith(" s.")


def test_a_run_with_a_step_that_failed_twice_names_it_and_fails(tmp_path: Path) -> None:
    status, lines = last_lines(tmp_path, suite="false")

    assert status == 1
    assert lines[-1].endswith(" s: [tests: the whole suite]")


def test_the_tests_that_make_test_leaves_out_run_in_ci(tmp_path: Path) -> None:
    status, _ = last_lines(tmp_path, suite='test "$$STEERSMAN_WHOLE" = 1')

    assert status == 0
