"""A check, what it found, and all findings together."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from steersman._json import JsonDict
from steersman.diagnosis.machine import Machine

Status = Literal["ok", "warn", "fail", "skip"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found out about one thing."""

    status: Status
    text: str
    """What is so; for a warning or a failure, the cause. Never has a secret."""
    cure: str = ""
    """What to do about it; empty if nothing has to be done."""
    name: str = ""
    """What it is about, such as `mcp:github`; empty stands for the name of the check."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing to look at: `run` looks, and `fix` is the cure if a finding names none."""

    name: str
    run: Callable[[Machine], Awaitable[Iterable[Finding]]]
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The findings of all checks, in the order of the checks."""

    findings: tuple[Finding, ...]
    seconds: float = 0.0
    """How long the checks took."""

    @property
    def failures(self) -> tuple[Finding, ...]:
        """The findings that keep a session from working."""
        return tuple(each for each in self.findings if each.status == "fail")

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The findings that may surprise, although sessions work."""
        return tuple(each for each in self.findings if each.status == "warn")

    @property
    def is_healthy(self) -> bool:
        """Whether nothing keeps a session from working."""
        return not self.failures

    @property
    def summary(self) -> str:
        """The counts, such as `5 ok, 1 warning, 1 failure`."""
        good = sum(each.status == "ok" for each in self.findings)
        warned, failed = len(self.warnings), len(self.failures)
        words = [f"{good} ok"]
        if warned:
            words.append(f"{warned} warning{'s' * (warned > 1)}")
        if failed:
            words.append(f"{failed} failure{'s' * (failed > 1)}")
        return ", ".join(words)

    def __str__(self) -> str:
        lines: list[str] = []
        for each in self.findings:
            word = each.status.upper() if each.status == "fail" else each.status
            lines.append(f"{word:4}  {each.name}  {each.text}")
            if each.cure:
                lines.append(f"      -> {each.cure}")
        return "\n".join([*lines, self.summary])

    def to_json(self) -> JsonDict:
        """Return the diagnosis as plain values."""
        return {
            "healthy": self.is_healthy,
            "seconds": round(self.seconds, 3),
            "findings": [
                {"name": each.name, "status": each.status, "text": each.text, "cure": each.cure}
                for each in self.findings
            ],
        }


def ok(text: str) -> tuple[Finding]:
    """Return one finding that all is well."""
    return (Finding("ok", text),)


def warned(text: str, cure: str = "") -> tuple[Finding]:
    """Return one warning."""
    return (Finding("warn", text, cure),)


def failed(text: str, cure: str = "") -> tuple[Finding]:
    """Return one failure."""
    return (Finding("fail", text, cure),)


def skipped(text: str) -> tuple[Finding]:
    """Return one finding that there was nothing to check."""
    return (Finding("skip", text),)
