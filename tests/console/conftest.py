"""One browser for each file of tests, and the stage of the live tests."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio
from playwright.async_api import Browser

from tests.console.browser import built, chromium
from tests.live.conftest import cli, sandbox, scripted

__all__ = ["browser", "cli", "sandbox", "scripted"]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    """Chromium, with the console built."""
    built()
    async with chromium() as found:
        yield found
