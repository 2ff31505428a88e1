"""A real Chromium for the tests of the console, and the console's built files."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NoReturn

import pytest
from playwright.async_api import Browser, async_playwright

ROOT = Path(__file__).parents[2]
STATIC = ROOT / "src/steersman/web/static"
REDUCE = ROOT / "console/build/reduce.js"
AXE = ROOT / "console/node_modules/axe-core/axe.min.js"

QUIET = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def built() -> None:
    """Skip the test if the console was not built; fail it where CI runs."""
    if not (STATIC / "console.js").is_file() or not REDUCE.is_file():
        _without("the console is not built: make console-build")


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """Run the Chromium of this machine; without one, skip, or fail where CI runs."""
    program = shutil.which("chromium")
    if program is None:
        _without("there is no chromium")
    # Its sandbox does not work for root.
    root = ["--no-sandbox"] if os.geteuid() == 0 else []
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=[*root, *QUIET])
        try:
            yield browser
        finally:
            await browser.close()


def _without(what: str) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(what)
    pytest.skip(what)
