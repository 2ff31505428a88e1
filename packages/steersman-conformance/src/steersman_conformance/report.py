"""Prints findings as a table or as JSON."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from steersman._json import Json, JsonDict
from steersman_conformance.checks import Kind
from steersman_conformance.verdicts import NEVER, Finding, Verdict, is_good

__all__ = ["Report"]

ORDER = (
    Verdict.BROKEN,
    Verdict.CHANGED,
    Verdict.FIXED,
    Verdict.STANDS,
    Verdict.ABSENT,
    Verdict.HOLDS,
)

HEADINGS = {
    Verdict.BROKEN: "BROKEN: steersman depends on it",
    Verdict.CHANGED: "CHANGED: not what was recorded",
    Verdict.FIXED: "FIXED: the workaround can be removed",
    Verdict.STANDS: "worked around: faults that this version still has",
    Verdict.ABSENT: "absent, handled: features that this version lacks",
    Verdict.HOLDS: "holds",
}

GUTTER = 8
LONGEST_VALUE = 300


@dataclass(frozen=True, slots=True)
class Report:
    """The findings of one run."""

    program: str
    version: str
    baseline: str | None
    """The version of the baseline; None without a baseline."""
    seconds: float
    findings: Sequence[Finding]

    @property
    def is_good(self) -> bool:
        """True if everything that steersman depends on holds and nothing has changed."""
        return is_good(self.findings)

    def of(self, verdict: Verdict) -> list[Finding]:
        """Return the findings with this verdict."""
        return [finding for finding in self.findings if finding.verdict is verdict]

    def lines(self, width: int = 100) -> Iterator[str]:
        """Yield the lines of the table, with the most important findings last."""
        yield f"Claude Code CLI {self.version}: {self.program}"
        yield f"{len(self.findings)} checks in {self.seconds:.0f} s, {self._compared}"
        for verdict in reversed(ORDER):
            found = self.of(verdict)
            if found:
                yield ""
                yield f"{HEADINGS[verdict]} ({len(found)})"
                for finding in found:
                    yield from _finding_lines(finding, width)
        yield ""
        yield from textwrap.wrap(self._sum(), width, subsequent_indent="  ", break_on_hyphens=False)

    def json(self) -> str:
        """Return the report as JSON."""
        report = {
            "cli": self.program,
            "version": self.version,
            "baseline": self.baseline,
            "seconds": round(self.seconds, 1),
            "ok": self.is_good,
            "checks": [_entry(finding) for finding in self.findings],
        }
        return json.dumps(report, indent=1)

    @property
    def _compared(self) -> str:
        if self.baseline is None:
            return "with no baseline to compare with"
        own = "its own baseline" if self.baseline == self.version else "the nearest baseline,"
        return f"compared with {own} {self.baseline}"

    def _sum(self) -> str:
        counts = ", ".join(
            f"{len(self.of(verdict))} {verdict.value}"
            for verdict in reversed(ORDER)
            if self.of(verdict)
        )
        if self.is_good:
            return f"OK: {counts}."
        bad = [finding.check.name for verdict in ORDER[:3] for finding in self.of(verdict)]
        return f"FAILED: {counts}: {', '.join(bad)}"


def _finding_lines(finding: Finding, width: int) -> Iterator[str]:
    check = finding.check
    yield f"  {check.section.ljust(GUTTER - 2)}{check.name}"
    if finding.verdict is Verdict.HOLDS:
        return
    yield from _wrapped(check.states, width)
    if finding.verdict not in (Verdict.STANDS, Verdict.ABSENT):
        yield from _wrapped(f"expected {_short(check.expected)}", width)
        yield from _wrapped(f"saw      {_short(finding.observed)}", width)
        if finding.recorded is not NEVER and finding.recorded != check.expected:
            yield from _wrapped(f"recorded {_short(finding.recorded)}", width)
    if check.remedy:
        label = "so" if check.kind is Kind.CANARY else "without it"
        yield from _wrapped(f"{label}: {check.remedy}", width)


def _wrapped(text: str, width: int) -> Iterator[str]:
    indent = " " * GUTTER
    yield from textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=indent)


def _short(value: Json) -> str:
    text = json.dumps(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"


def _entry(finding: Finding) -> JsonDict:
    check = finding.check
    entry = {
        "name": check.name,
        "kind": check.kind.value,
        "section": check.section,
        "states": check.states,
        "verdict": finding.verdict.name.lower(),
        "expected": check.expected,
        "observed": finding.observed,
        "remedy": check.remedy,
    }
    return entry if finding.recorded is NEVER else {**entry, "recorded": finding.recorded}
