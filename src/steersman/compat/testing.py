"""The test kit of the official package: the rules that a session store must keep."""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import cast
from uuid import uuid4

from steersman.compat._shapes.stored_sessions import SessionStore
from steersman.testing.stores.rules import OFFICIAL, Bench, Broken, Rule, Store

TIMEOUT = 60.0
"""Seconds that one rule may take."""
OPTIONAL = frozenset(name for rule in OFFICIAL for name in rule.needs)


async def run_session_store_conformance(
    make_store: Callable[[], SessionStore | Awaitable[SessionStore]],
    *,
    skip_optional: frozenset[str] = frozenset(),
) -> None:
    """Check a store against the fourteen rules of the official suite, each with a new store.

    Raises `AssertionError` with the rule that is broken. Rules for methods that the store does not
    have, or that `skip_optional` names, are skipped. `steersman.testing.stores` has further rules.
    """
    unknown = sorted(set(skip_optional) - OPTIONAL)
    if unknown:
        allowed = ", ".join(sorted(OPTIONAL))
        raise AssertionError(f"skip_optional names {unknown}, but optional are {allowed}")
    for rule in OFFICIAL:
        if not set(rule.needs) & set(skip_optional):
            await _try(rule, make_store)


async def _try(
    rule: Rule, make_store: Callable[[], SessionStore | Awaitable[SessionStore]]
) -> None:
    async def make() -> Store:
        found = make_store()
        return cast(Store, await found if inspect.isawaitable(found) else found)

    async with _limit():
        store = await make()
        if not all(callable(getattr(store, name, None)) for name in rule.needs):
            return
        try:
            await rule.call(Bench(store, make, f"-check-{rule.name}-{uuid4().hex}", sessions=0))
        except NotImplementedError:
            if not rule.needs:
                raise
        except Broken as error:
            raise AssertionError(f"{rule.requires} {error}") from None


@asynccontextmanager
async def _limit() -> AsyncGenerator[None]:
    """Limit the time of one rule, in asyncio or in trio."""
    trio = sys.modules.get("trio")
    if trio is not None and trio.lowlevel.in_trio_run():
        with trio.fail_after(TIMEOUT):
            yield
    else:
        async with asyncio.timeout(TIMEOUT):
            yield
