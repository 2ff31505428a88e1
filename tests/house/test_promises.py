"""Each page of promises names the tests that hold them, and these tests exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = (
    "cassettes",
    "errors",
    "hooks",
    "journal",
    "options",
    "permissions",
    "safety",
    "stores",
    "sync",
)
ROW = re.compile(r"^\| (?P<promise>[^|]+) \| `(?P<file>[\w/]+\.py)::(?P<name>test_\w+)` \|$")
NAMED = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")


@cache
def names_in(path: Path) -> frozenset[str]:
    """Return the names of the functions that pytest would call as tests."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = (
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    return frozenset(node.name for node in functions if node.name.startswith("test_"))


def promises(page: str) -> list[tuple[str, str, str]]:
    """Return the rows of the page's last section, `Tests`: promise, file, test."""
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    lines = [
        line for line in text.partition("\n## Tests\n")[2].splitlines() if line.startswith("| ")
    ]
    matches = [(line, ROW.match(line)) for line in lines[1:]]
    assert not (unreadable := [line for line, match in matches if match is None]), unreadable
    return [(match["promise"], match["file"], match["name"]) for _, match in matches if match]


@pytest.mark.parametrize("page", PAGES)
def test_each_promise_of_a_page_names_a_test_that_exists(page: str) -> None:
    rows = promises(page)

    assert len(rows) >= 10
    assert [
        (file, name) for _, file, name in rows if name not in names_in(ROOT / "tests" / file)
    ] == []


@pytest.mark.parametrize("page", PAGES)
def test_no_promise_is_listed_twice(page: str) -> None:
    rows = promises(page)

    assert len({promise for promise, _, _ in rows if not promise.startswith("The same ")}) == len(
        [promise for promise, _, _ in rows if not promise.startswith("The same ")]
    )


def test_every_test_that_a_page_mentions_exists() -> None:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    mentioned = {
        (path.name, *found)
        for path in pages
        for found in NAMED.findall(path.read_text(encoding="utf-8"))
    }

    missing = {
        (page, file, name)
        for page, file, name in mentioned
        if not (ROOT / file).is_file() or (name and name not in names_in(ROOT / file))
    }

    assert mentioned
    assert missing == set()
