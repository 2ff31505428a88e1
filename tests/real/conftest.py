"""Tests that cost money: they run only for a developer who asks for them, and never in CI."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from steersman import Agent

HERE = Path(__file__).parent
SWITCH = "STEERSMAN_REAL"
BUDGET_USD = 0.25


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--real", action="store_true", help="use your own login and the real API")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    ours = [item for item in items if HERE in item.path.parents]
    is_wanted = config.getoption("--real", default=False) or os.environ.get(SWITCH) == "1"
    if ours and is_wanted and os.environ.get("CI"):
        raise pytest.UsageError("tests/real use somebody's login and money: not where CI is set")
    for item in ours:
        item.add_marker(pytest.mark.real)
        item.add_marker(pytest.mark.real_cli)
        if not is_wanted:
            item.add_marker(pytest.mark.skip(reason=f"costs money: --real or {SWITCH}=1"))


@pytest.fixture
def real_agent() -> Iterator[Agent]:
    """An agent with the developer's own CLI and login, in an empty folder, up to a budget."""
    with TemporaryDirectory(prefix="steersman-real-") as folder:
        yield Agent(cwd=Path(folder).resolve(), max_turns=6, max_budget_usd=BUDGET_USD)
