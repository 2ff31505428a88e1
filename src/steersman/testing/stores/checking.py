"""Tries a session store, rule by rule. A rule that fails, hangs or raises stops no other."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from typing import TypeAlias, cast
from uuid import uuid4

from steersman.errors import UsageError
from steersman.testing.stores.further_rules import FURTHER
from steersman.testing.stores.official_rules import OFFICIAL
from steersman.testing.stores.report import Finding, Outcome, Report
from steersman.testing.stores.rules import Bench, Broken, Rule, Store

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
