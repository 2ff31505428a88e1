"""Plots of the cost by number of sessions, number of messages and message size, as PNG files."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.figures import Measured
from benchmarks.rows import EVERYONE

PLOTS = {
    "sessions": ("sessions at once", "CPU of the host, µs per message"),
    "messages": ("messages in one turn", "CPU of the host, µs per message"),
    "sizes": ("bytes of text in a message", "CPU of the host, µs per message"),
}
COLOURS: dict[str, str] = dict(
    zip(EVERYONE, ("#b45309", "#2563eb", "#6b7280", "#059669"), strict=True)
)

Points = Sequence[tuple[int, float]]


def draw(rows: Sequence[Measured], folder: Path) -> list[Path]:
    """Draw a plot for each measured family of rows. Without matplotlib, draw none."""
    if importlib.util.find_spec("matplotlib") is None:
        return []
    found = [(name, lines) for name in PLOTS if (lines := series(rows, name))]
    return [_plot(name, lines, folder / f"{name}.png") for name, lines in found]


def series(rows: Iterable[Measured], family: str) -> dict[str, Points]:
    """Return, by contestant, the number in each row's key and the cost in microseconds."""
    lines: dict[str, list[tuple[int, float]]] = {}
    for measured in rows:
        head, _, number = measured.key.rpartition("-")
        for name in EVERYONE if head == family and number.isdigit() else ():
            value = measured.median(name)
            if value is not None:
                lines.setdefault(name, []).append((int(number), value * 1e6))
    return {name: sorted(points) for name, points in lines.items()}


def _plot(name: str, lines: dict[str, Points], path: Path) -> Path:
    # Imported here because it is large and optional.
    importlib.import_module("matplotlib").use("Agg")
    pyplot = importlib.import_module("matplotlib.pyplot")
    figure, axes = pyplot.subplots(figsize=(7, 4.2), dpi=110)
    for contestant, points in lines.items():
        across, up = zip(*points, strict=True)
        axes.plot(across, up, marker="o", label=contestant, color=COLOURS[contestant])
    measured = sorted({across for points in lines.values() for across, _ in points})
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(measured, [f"{each:,}" for each in measured], minor=False)
    axes.set_xticks([], minor=True)
    ticker = importlib.import_module("matplotlib.ticker")
    axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(ticker.StrMethodFormatter("{x:,g}"))
    axes.yaxis.set_minor_formatter(ticker.NullFormatter())
    axes.set_xlabel(PLOTS[name][0])
    axes.set_ylabel(PLOTS[name][1])
    axes.grid(visible=True, which="major", alpha=0.3)
    # Above the plot, where it covers no line.
    axes.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(lines))
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    pyplot.close(figure)
    return path
