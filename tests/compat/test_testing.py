"""The conformance suite of the official package, ours and theirs, on the same stores."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import trio

from steersman.compat import sessions, testing

official = pytest.importorskip("claude_agent_sdk", reason="not a part of the extra `quick`")


class Small:
    """A store with the two methods that are required."""

    def __init__(self) -> None:
        self.kept: dict[str, list[Any]] = {}

    async def append(self, key: Any, entries: list[Any]) -> None:
        self.kept.setdefault(repr(sorted(key.items())), []).extend(entries)

    async def load(self, key: Any) -> list[Any] | None:
        return self.kept.get(repr(sorted(key.items())))


class Forgetful(Small):
    async def load(self, key: Any) -> list[Any] | None:
        return await super().load(key) or []


class Unreachable(Small):
    async def load(self, key: Any) -> list[Any] | None:
        raise RuntimeError("unreachable")


class KeepsParts(sessions.InMemorySessionStore):
    async def delete(self, key: Any) -> None:
        if "subpath" in key:
            await super().delete(key)


async def made_later() -> Any:
    return sessions.InMemorySessionStore()


def verdict(run: Any, make: Callable[[], Any], skip: frozenset[str]) -> str:
    try:
        asyncio.run(run(make, skip_optional=skip))
    except (AssertionError, RuntimeError) as error:
        return type(error).__name__
    return "kept"


@pytest.mark.parametrize("skip", [frozenset[str](), frozenset({"delete"}), frozenset({"nope"})])
@pytest.mark.parametrize(
    "make",
    [Small, Forgetful, Unreachable, KeepsParts, made_later, sessions.InMemorySessionStore],
    ids=lambda each: each.__name__,
)
def test_both_suites_judge_a_store_the_same(make: Callable[[], Any], skip: frozenset[str]) -> None:
    from claude_agent_sdk.testing import run_session_store_conformance  # noqa: PLC0415 - as above

    theirs = verdict(run_session_store_conformance, make, skip)

    assert verdict(testing.run_session_store_conformance, make, skip) == theirs


def test_a_broken_rule_is_named() -> None:
    make: Any = Forgetful
    with pytest.raises(AssertionError, match=r"load as None\. before any append, load\("):
        asyncio.run(testing.run_session_store_conformance(make))


def test_the_suite_runs_under_trio() -> None:
    async def main() -> None:
        await testing.run_session_store_conformance(sessions.InMemorySessionStore)

    trio.run(main)
