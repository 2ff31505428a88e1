"""A fleet leaves the DBOS of a program that has one of its own as it is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

OWN = "own work is done"
DONE = "the fleet's job is completed"


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    return f"sqlite://{tmp_path / 'fleet.db'}"


def said_by(what: str, folder: Path, url: str) -> list[str]:
    """What the program of this name prints."""
    program = [sys.executable, "-m", "tests.fleet.own_dbos_program", what, str(folder), url]
    found = subprocess.run(program, capture_output=True, text=True, timeout=90, check=False)
    assert found.returncode == 0, found.stderr
    return found.stdout.splitlines()


def test_a_program_that_sends_jobs_goes_on_with_workflows_of_its_own(
    tmp_path: Path, url: str
) -> None:
    assert said_by("beside_a_client", tmp_path, url) == [OWN] * 3


def test_a_worker_is_refused_in_a_program_that_has_workflows_of_its_own_and_harms_none(
    tmp_path: Path, url: str
) -> None:
    before, launched, own = said_by("beside_a_worker", tmp_path, url)

    assert "the workflow count" in before
    assert "its instance of DBOS" in launched
    assert own == OWN


def test_a_program_that_was_a_worker_can_have_workflows_of_its_own(
    tmp_path: Path, url: str
) -> None:
    assert said_by("after_a_worker", tmp_path, url) == [DONE, DONE, OWN]


def test_a_row_that_holds_a_pickle_runs_no_code_and_holds_up_no_other(
    tmp_path: Path, url: str
) -> None:
    assert said_by("with_an_evil_row", tmp_path, url) == [
        "1 jobs are listed",
        DONE,
        "the evil one is settled",
        "the folder is not made",
    ]
