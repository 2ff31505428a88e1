"""What the checker of session stores found, as data and as text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from steersman._json import JsonDict
from steersman._terminal import one_line

Outcome = Literal["passed", "failed", "skipped"]


@dataclass(frozen=True, slots=True)
class Finding:
    """How a store kept one rule."""

    rule: str
    """The name of the rule, for `skip=`."""
    requires: str
    """What the rule asks for."""
    outcome: Outcome
    why: str = ""
    """Why it failed or was skipped."""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Report:
    """All rules, in order. As a text: what failed and what was skipped, and why."""

    findings: tuple[Finding, ...]

    @property
    def is_good(self) -> bool:
        """Whether no rule failed."""
        return not self.failed

    @property
    def failed(self) -> tuple[Finding, ...]:
        """The rules that the store breaks."""
        return tuple(each for each in self.findings if each.outcome == "failed")

    @property
    def skipped(self) -> tuple[Finding, ...]:
        """The rules that were not checked."""
        return tuple(each for each in self.findings if each.outcome == "skipped")

    def data(self) -> JsonDict:
        """Return the report as JSON values."""
        return {
            "is_good": self.is_good,
            "findings": [
                {
                    "rule": each.rule,
                    "requires": each.requires,
                    "outcome": each.outcome,
                    "why": each.why,
                    "seconds": round(each.seconds, 3),
                }
                for each in self.findings
            ],
        }

    def lines(self) -> Iterator[str]:
        """Return the report as lines of text."""
        widest = max((len(each.rule) for each in self.findings), default=0)
        for each in self.findings:
            yield f"{each.outcome:7}  {each.rule:{widest}}  {each.seconds:6.2f} s"
            if each.outcome == "failed":
                yield f"         rule: {each.requires}"
            if each.why:
                yield f"         {one_line(each.why)}"
        passed = len(self.findings) - len(self.failed) - len(self.skipped)
        yield f"{passed} passed, {len(self.failed)} failed, {len(self.skipped)} skipped"

    def __str__(self) -> str:
        return "\n".join(self.lines())
