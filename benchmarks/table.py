"""The table: costs of all contestants, ratios, and targets. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.figures import Measured, ratio, verdict
from benchmarks.rows import BARE, EVERYONE, GROUPS, OFFICIAL, OURS, TYPESCRIPT

HEAD = (
    "work",
    "official Python",
    "TypeScript",
    "bare loop",
    "steersman",
    "ratio",
    "TypeScript's",
    "bare loop's",
    "target",
    "",
)

GROWING = ("messages-", "sessions-", "long-")
"""Prefixes of rows that also show memory, which must not grow with the number of messages."""
PEAKS = ("peak memory of the host", *HEAD[1:5])


def table(rows: Sequence[Measured]) -> str:
    """Return Markdown with a heading for each group. Columns are aligned, for terminals."""
    parts: list[str] = []
    for title, group in GROUPS.items():
        keys = {row.key for row in group}
        shown = [each for each in rows if each.key in keys]
        plain = [_cells(each) for each in shown if not each.row.ways]
        if plain:
            parts.append(f"### {title}\n\n{_in_line([HEAD, *plain])}")
        parts += [_ways(each) for each in shown if each.row.ways and each.values]
        grown = [each for each in shown if each.key.startswith(GROWING) and each.peaks]
        if grown:
            parts.append(_in_line([PEAKS, *map(_peaks, grown)]))
    return "\n\n".join(parts) + "\n"


def _cells(measured: Measured) -> tuple[str, ...]:
    target = measured.row.target
    return (
        measured.row.title,
        *(_cost(measured, name) for name in EVERYONE),
        *(_ratio(measured, name) for name in (OURS, TYPESCRIPT, BARE)),
        "" if target is None else f"≤ {target:g}",
        verdict(measured),
    )


def _cost(measured: Measured, name: str) -> str:
    value = measured.median(name)
    if value is None:
        return measured.notes.get(name, "").partition(":")[0]
    factor, unit = measured.row.scale
    return f"{_digits(value * factor)} {unit}"


def _digits(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"  # noqa: PLR2004 - no exponents


def _ratio(measured: Measured, name: str) -> str:
    found = ratio(measured, name, OFFICIAL)
    return "" if found is None else str(found)


def _peaks(measured: Measured) -> tuple[str, ...]:
    peaks = [measured.peaks.get(name) for name in EVERYONE]
    return measured.row.title, *(
        "" if each is None else f"{each / 2**20:.0f} MiB" for each in peaks
    )


def _ways(measured: Measured) -> str:
    """Return a table of our variants, each compared with the first."""
    first, *others = measured.values
    costs = [_cost(measured, name) for name in measured.values]
    ratios = [str(ratio(measured, name, first)) for name in others]
    return _in_line(
        [
            ("our variants", first, *others),
            (measured.row.title, *costs),
            ("relative to the first", "1", *ratios),
        ]
    )


def _in_line(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in rows
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])
