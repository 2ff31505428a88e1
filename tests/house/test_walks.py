"""The everyday ways through the library enter few files, and none of what they do not use."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache

import pytest

from tests.house.walks import WALKS

MOST_FILES = {"query": 76, "compat": 84, "ask": 60, "job": 120, "page": 68, "row": 5, "lease": 6}
"""Today's figures; those of several threads have a little room. They only go down."""
MOST_CHANGES = {"query": 724, "compat": 782}
"""Of walks in one thread, which are the same each time."""

NEEDS_A_STORE = re.compile(r"(durable|mirror|fleet|inbox|web|stores/_sql)/|_session/(lease|mirror)")

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]


@cache
def walked() -> dict[str, tuple[int, list[str]]]:
    """The changes of file and the files of each walk, taken in a process of its own."""
    program = [sys.executable, "-m", "tests.house.walks", *WALKS]
    found = subprocess.run(program, capture_output=True, text=True, timeout=240, check=False)
    assert found.returncode == 0, found.stderr
    return {
        name: (int(changes), re.findall(r"^ +(\S+)$", files, re.MULTILINE))
        for name, changes, files in re.findall(
            r"^(\w+): \d+ files, (\d+) changes\n((?: .*\n)*)", found.stdout, re.MULTILINE
        )
    }


@pytest.mark.parametrize("walk", WALKS)
def test_a_walk_enters_few_files(walk: str) -> None:
    changes, files = walked()[walk]

    assert 0 < len(files) <= MOST_FILES[walk]
    assert 0 < changes <= MOST_CHANGES.get(walk, 4000)


@pytest.mark.parametrize("walk", ["query", "compat"])
def test_a_session_without_a_store_enters_no_file_of_what_needs_one(walk: str) -> None:
    _, files = walked()[walk]

    assert [each for each in files if NEEDS_A_STORE.match(each)] == []
    assert [each for each in walked()["job"][1] if NEEDS_A_STORE.match(each)] != []
