from __future__ import annotations

import dataclasses

from steersman.options import Options
from tests.options.page import PAGE, page, sections


def test_the_page_lists_every_option_as_it_is() -> None:
    """If not: `python -m tests.options.page`."""
    assert PAGE.read_text(encoding="utf-8") == page()


def test_every_option_has_a_docstring() -> None:
    rows = [row for _, rows in sections() for row in rows]

    assert [name for name, _ in rows] == [each.name for each in dataclasses.fields(Options)]
    assert [name for name, text in rows if len(text) < 10] == []


def test_no_row_breaks_the_table() -> None:
    rows = [
        line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")
    ]

    assert [line for line in rows if line.replace("\\|", "").count("|") != 5] == []
