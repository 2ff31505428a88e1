"""The pages about moving from an official SDK name what is there, and their tables are fresh."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts.parity_report.command import catalogue
from scripts.parity_report.defaults import DEFAULTS
from scripts.parity_report.moving import PAGES, filled

PYTHON, TYPESCRIPT = PAGES
ROW = re.compile(r"^\| (`[^|]*) \| ([^|]*) \| [^|]*\|$", re.MULTILINE)


def declared(language: str) -> set[str]:
    """Return the names that an official SDK has: exports, methods and options."""
    found = catalogue()
    exports = found["python_all"] if language == "py" else [e["name"] for e in found["ts_exports"]]
    rows = [*found["methods"], *found["options"]]
    return {*exports, *(each[language] for each in rows if each[language])}


def names_in(page: Path) -> list[tuple[str, str]]:
    """Return the rows of the table of names: the official ones, and ours."""
    text = page.read_text(encoding="utf-8").partition("## Name by name")[2]
    return ROW.findall(text.partition("\n## ")[0])


@pytest.mark.parametrize(("page", "language"), [(PYTHON, "py"), (TYPESCRIPT, "ts")])
def test_every_official_name_is_declared(page: Path, language: str) -> None:
    rows = names_in(page)
    names = [name for there, _ in rows for name in re.findall(r"`(?:client\.)?(\w+)`", there)]

    assert len(names) >= 20
    assert set(names) - declared(language) == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_row_has_a_name_of_ours(page: Path) -> None:
    """Whether these exist is tested for all pages."""
    assert [there for there, here in names_in(page) if "`" not in here] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_table_of_defaults_is_fresh(page: Path) -> None:
    text = page.read_text(encoding="utf-8")

    assert filled(text) == text, "run `make parity`"
    assert [each.what for each in DEFAULTS if f"| {each.what} |" not in text] == []
