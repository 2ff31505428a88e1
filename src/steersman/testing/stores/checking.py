"""Tries a session store, rule by rule, and reports. A rule that fails or hangs stops no other."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast
from uuid import uuid4

from steersman._json import JsonDict
from steersman._terminal import one_line
from steersman.errors import UsageError
from steersman.testing.stores.further_rules import FURTHER
from steersman.testing.stores.rules import OFFICIAL, Bench, Broken, Rule, Store

RULES = (*OFFICIAL, *FURTHER)
MANY = 10_000
TIMEOUT = 60.0
LONGER = 10
"""How many times the limit a rule with many sessions has."""
CLOSING = 10.0

MakeStore: TypeAlias = Callable[[], object]
"""Makes a store, or an awaitable that gives one. Any object with `append` and `load` is one."""


def rule_names() -> tuple[str, ...]:
    """Return the names of all rules, in the order in which they are checked."""
    return tuple(rule.name for rule in RULES)


async def check(
    make_store: MakeStore,
    *,
    skip: Collection[str] = (),
    only: Collection[str] = (),
    sessions: int = MANY,
    timeout: float = TIMEOUT,
) -> Report:
    """Check a store against all rules, or all but `skip`, or `only` some.

    `make_store` is called for each rule. Rules use names of their own, so it may return stores
    of one place; what they write stays there. A rule for a method that the store does not have is
    skipped. `timeout` is the limit of each rule in seconds, ten times that for the rule with many
    `sessions`. A store with `aclose()` is closed.
    """
    for name in (*skip, *only):
        if name not in rule_names():
            raise UsageError("skip or only", name, f"names of rules: {', '.join(rule_names())}")
    findings: list[Finding] = []
    for rule in RULES:
        if only and rule.name not in only:
            continue
        if rule.name in skip:
            findings.append(Finding(rule.name, rule.requires, "skipped", "as asked for"))
            continue
        begun = time.monotonic()
        outcome, why = await _tried(rule, make_store, sessions, timeout)
        findings.append(Finding(rule.name, rule.requires, outcome, why, time.monotonic() - begun))
    return Report(tuple(findings))


async def _tried(
    rule: Rule, make_store: MakeStore, sessions: int, timeout: float
) -> tuple[Outcome, str]:
    """Return the outcome and the reason."""
    limit = timeout * (LONGER if rule.is_long else 1)
    try:
        async with asyncio.timeout(limit):
            missing = await _try(rule, make_store, sessions)
    except Broken as error:
        return "failed", str(error)
    except TimeoutError:
        return "failed", f"not done within {limit:g} s"
    except Exception as error:  # noqa: BLE001 - code of others
        return "failed", f"{type(error).__name__}: {error}"
    return ("skipped", f"the store has no {missing}") if missing else ("passed", "")


async def _try(rule: Rule, make_store: MakeStore, sessions: int) -> str:
    """Try a rule. Returns the name of the method that it needs and the store does not have."""
    made: list[Store] = []

    async def make() -> Store:
        found = make_store()
        store = cast(Store, await found if inspect.isawaitable(found) else found)
        made.append(store)
        return store

    try:
        store = await make()
        missing = [name for name in rule.needs if not callable(getattr(store, name, None))]
        if missing:
            return missing[0]
        project = f"-check-{rule.name.replace('_', '-')}-{uuid4().hex}"
        await rule.call(Bench(store, make, project, sessions))
    except NotImplementedError:
        if not rule.needs:
            raise
        return rule.needs[0]
    finally:
        for each in made:
            await _close(each)
    return ""


async def _close(store: object) -> None:
    aclose: Callable[[], Awaitable[None]] | None = getattr(store, "aclose", None)
    if callable(aclose):
        with suppress(Exception):
            async with asyncio.timeout(CLOSING):
                await aclose()


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
