"""`python scripts/parity.py`: reads the checkout, writes the page, reports faults."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from scripts.parity_report.evidence import Evidence
from scripts.parity_report.moving import PAGES as MOVING
from scripts.parity_report.moving import filled
from scripts.parity_report.page import faults, page
from scripts.parity_report.rows import Catalogue, Section, sections

__all__ = ["CATALOGUE", "PAGE", "ROOT", "catalogue", "main", "report", "sources"]

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "parity.md"
CATALOGUE = ROOT / "tests" / "samples" / "parity.json"


def main(arguments: Sequence[str], made: Sequence[Section] | None = None) -> int:
    """Write the pages, or check them. Return the exit status: 0 if there is no fault.

    The page describes this checkout, unless `made` has other sections.
    """
    parser = argparse.ArgumentParser(description="Write docs/parity.md, or check it.")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail if the page is stale"
    )
    parser.add_argument("--page", type=Path, default=PAGE, help="path of the page")
    given = parser.parse_args(arguments)
    found = report() if made is None else made
    wrong = faults(found)
    pages = {given.page: page(found)}
    if given.page == PAGE:
        pages |= {path: filled(path.read_text(encoding="utf-8")) for path in MOVING}
    for place, text in pages.items():
        if given.check:
            wrong += _staleness(place, text)
        else:
            place.write_text(text, encoding="utf-8")
    sys.stdout.write("".join(f"{line}\n" for line in wrong))
    return 1 if wrong else 0


def report() -> list[Section]:
    """Return all sections for this checkout."""
    return sections(catalogue(), Evidence(sources()))


def sources() -> dict[str, str]:
    """Return the sources of the tests, by path."""
    paths = sorted((ROOT / "tests").rglob("*.py"))
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def catalogue() -> Catalogue:
    """Return the declarations of both official SDKs."""
    found: Catalogue = json.loads(CATALOGUE.read_text(encoding="utf-8"))
    return found


def _staleness(place: Path, wanted: str) -> list[str]:
    is_fresh = place.exists() and place.read_text(encoding="utf-8") == wanted
    return [] if is_fresh else [f"{place.name} is stale: run `make parity`"]
