"""Every engine keeps the contract of the port."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

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


@pytest.mark.process
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_dbos_keeps_the_contract(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    file = f"sqlite://{tmp_path / 'fleet.db'}"
    url = file if kind == "sqlite" else request.getfixturevalue("postgres_url")

    program = [sys.executable, "-m", "tests.fleet.contract_program", url]
    found = subprocess.run(program, capture_output=True, text=True, timeout=60, check=False)

    assert found.returncode == 0, found.stderr
    assert sorted(found.stdout.split()) == sorted(rule.__name__ for rule in RULES)
