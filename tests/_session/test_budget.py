"""Sessions that share a budget use it together, and none of them goes on when it is used up."""

from __future__ import annotations

import asyncio
import gc
import weakref

import pytest

from steersman import Agent
from steersman.errors import LimitReached, UsageError
from steersman.options import Budget
from steersman.testing.script import Script, Usage, say
from steersman.testing.scripted.cli import ScriptedCLI
from tests._session.peers import opened

MUCH = Usage(input_tokens=1000, output_tokens=1000)


def test_a_budget_has_a_limit_that_is_above_zero() -> None:
    with pytest.raises(UsageError, match=r"budget: got Budget\(\), allowed: usd= or tokens="):
        Budget()
    with pytest.raises(UsageError, match=r"limits\.usd"):
        Budget(usd=0)
    with pytest.raises(UsageError, match="budget"):
        Agent(budget=5)  # type: ignore[arg-type]


async def test_what_one_session_uses_is_missing_in_the_others() -> None:
    budget = Budget(tokens=3000)
    first, second = (ScriptedCLI(Script(*[say("fine").using(MUCH)] * 2)) for _ in range(2))

    async with asyncio.timeout(10):
        async with opened(first, budget=budget) as session:
            one = await (await session.send("one"))
        async with opened(second, budget=budget) as session:
            two = await (await session.send("two"))
            with pytest.raises(LimitReached) as refused:
                await session.send("three")

    assert [one.outcome, two.outcome] == ["completed", "completed"]
    assert (refused.value.scope, refused.value.name, refused.value.limit) == (
        "budget",
        "tokens",
        3000,
    )
    assert "Budget(tokens=...)" in refused.value.hint
    assert budget.used_tokens == refused.value.used == 4000
    assert budget.used_usd > 0


async def test_a_budget_keeps_no_session_alive() -> None:
    budget = Budget(usd=5)
    async with opened(ScriptedCLI(Script(say("fine"))), budget=budget) as session:
        await (await session.send("one"))
    held = weakref.ref(session)

    del session
    await asyncio.sleep(0)
    gc.collect()

    assert held() is None
    assert budget.used_usd > 0
