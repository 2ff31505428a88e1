"""Every engine keeps the contract of the port."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager

import pytest

from steersman.fleet.ports import Engine, Segment
from tests.fleet.engine_contract import LIMIT, RULES, SLOTS, MakeEngine
from tests.fleet.memory_engine import memory_engine

Rule = Callable[[MakeEngine], Awaitable[None]]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
async def test_the_engine_in_memory_keeps_the_contract(rule: Rule) -> None:
    def make(segment: Segment) -> AbstractAsyncContextManager[Engine]:
        return memory_engine(segment, SLOTS)

    async with asyncio.timeout(LIMIT):
        await rule(make)
