"""Fills the tables of defaults in the pages about moving from an official SDK."""

from __future__ import annotations

import re
from pathlib import Path

from scripts.parity_report.defaults import DEFAULTS

__all__ = ["PAGES", "filled"]

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = (DOCS / "moving-from-python.md", DOCS / "moving-from-typescript.md")
TABLE = re.compile(r"(<!-- defaults of (\w+):[^\n]*-->\n).*?(<!-- end -->)", re.DOTALL)


def filled(text: str) -> str:
    """Return a page with its table of defaults as it must be."""
    return TABLE.sub(lambda found: f"{found[1]}{_table(found[2])}{found[3]}", text)


def _table(language: str) -> str:
    lines = ["", "| what | there | here | why |", "|---|---|---|---|"]
    for each in DEFAULTS:
        there = each.typescript if language == "TypeScript" and each.typescript else each.official
        cells = (each.what, there, each.ours, each.why)
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join([*lines, "", ""])
