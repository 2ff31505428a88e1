"""Renders rows as a page of Markdown. Equal rows give equal pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from scripts.parity_report.defaults import DEFAULTS
from scripts.parity_report.rows import Row, Section, Status

__all__ = ["counts", "faults", "page"]

STATUSES: tuple[Status, ...] = ("live", "sent", "offline", "not", "untested", "unaccounted")

INTRO = """\
# Parity with the official SDKs

This page lists what `claude-agent-sdk` for Python (0.2.182) and `@anthropic-ai/claude-agent-sdk`
for TypeScript (0.3.325) declare, what steersman has for each of these things, and a test that shows
it. `make parity` generates the page from the code, from `tests/samples/parity.json` and from the
sources of the tests. CI fails if the page is stale. Do not edit it.

The columns:

- **ours, or why not** is what you import or set. If steersman has nothing, this is the reason:
  needs login, Windows, hosted only, JavaScript runtime, not yet, not declared by the SDKs
  themselves, kept as data, or done differently.
- **tested** is *live* if a test on the stock CLI exercises it (with a scripted model), *sent* if a
  test only shows that the stock CLI gets it and not what it does there, *offline* if only a test
  without the CLI does. **by** names one of these tests.
  For what is kept as data or done differently, it names the test that shows this.
- **fields** counts the declared fields that have a name in our class. The others are in `raw`.

A test exercises what its code names: a class, an option passed to something that takes options, a
method. Comments, docstrings and annotations do not count, and neither do the rules in
`tests/house`. The report fails if something is here without a test, or is neither here nor
explained. Explanations, and tests that cannot be found from their code, are kept by hand in
`scripts/parity_report/reasons.py`, and in `scripts/parity_report/effects.py` those about tests that
only show what is sent. The test of a row must name the row's own field: for a field of a class, the
class and the field; for one form of an option, the option and the form's own word; for a tool, its
class or its name. A test that is named by hand must name what it is there for.
"""

DEFAULTS_INTRO = """\
Where a session does something else than with the official SDKs although nothing was set. Each row
has a reason, and a test that shows our default.
"""


def page(sections: Sequence[Section]) -> str:
    """Return the whole page."""
    parts = [INTRO, _summary(sections), _defaults(), *(_table(each) for each in sections)]
    return "\n".join(parts)


def counts(rows: Iterable[Row]) -> list[int]:
    """Return the number of rows, and the number of rows of each status."""
    found = Counter(row.status for row in rows)
    return [found.total(), *(found[status] for status in STATUSES)]


def faults(sections: Iterable[Section]) -> list[str]:
    """Return one line for each row that makes the report fail."""
    return [
        f"{section.key}: {' / '.join(filter(None, row.names))}: {_fault(row)}"
        for section in sections
        for row in section.rows
        if row.status in ("untested", "unaccounted")
    ]


def _fault(row: Row) -> str:
    if row.status == "untested":
        return f"no test exercises {row.ours}"
    return "neither here nor explained"


def _summary(sections: Sequence[Section]) -> str:
    every = [row for section in sections for row in section.rows]
    table = [
        *_head(["section", "declared", *STATUSES]),
        *(
            _line([f"[{each.title}](#{_anchor(each.title)})", *map(str, counts(each.rows))])
            for each in sections
        ),
        _line(["all", *map(str, counts(every))]),
    ]
    return "\n".join(["## Summary", "", *table, ""])


def _defaults() -> str:
    lines = [
        *_head(["what", "Python", "TypeScript", "ours", "why", "shown by"]),
        *(
            _line(
                [
                    each.what,
                    each.official,
                    each.typescript or "the same",
                    each.ours,
                    each.why,
                    f"`tests/{each.test}`",
                ]
            )
            for each in DEFAULTS
        ),
    ]
    return "\n".join(["## Defaults that differ", "", DEFAULTS_INTRO, *lines, ""])


def _table(section: Section) -> str:
    fields = ["fields"] if section.has_fields else []
    lines = _head([*section.columns, "ours, or why not", *fields, "tested", "by"])
    lines += [_line(_cells(row, has_fields=section.has_fields)) for row in section.rows]
    beside = ["", f"Only in steersman: {', '.join(section.beside)}."] if section.beside else []
    return "\n".join([f"## {section.title}", "", *lines, *beside, ""])


def _cells(row: Row, *, has_fields: bool) -> Iterator[str]:
    yield from row.names
    yield _ours(row) or row.reason or "**unaccounted for**"
    if has_fields:
        yield row.fields
    yield {"not": "", "unaccounted": "", "untested": "**untested**"}.get(row.status, row.status)
    yield "" if row.test is None else f"`{row.test}`"


def _ours(row: Row) -> str:
    not_shown = f"sent; effect not shown: {row.sent}" if row.sent else ""
    words = "; ".join(filter(None, (row.note, not_shown)))
    return f"{row.ours}: {words}" if row.ours and words else row.ours


def _head(columns: Sequence[str]) -> list[str]:
    return [_line(columns), "|" + "---|" * len(columns)]


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _anchor(title: str) -> str:
    return title.lower().replace(" ", "-")
