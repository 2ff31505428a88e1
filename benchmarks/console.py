"""How fast the console is in Chromium: `python -m benchmarks.console`.

Opens a session of 10,000 entries from its journal, and takes the server away from an open page.
The bars: 1 s until the newest entry is drawn, 0.5 s until the page says "Reconnecting".
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path

from playwright.async_api import Browser, expect

from steersman import Agent
from steersman.testing.script import Script
from steersman.testing.scripted.cli import ScriptedCLI
from tests.console.browser import chromium
from tests.console.staging import journal_of, opened, serving
from tests.console.test_views import LONG, exchange

ENTRIES = 10_000
RUNS = 5
OPEN_BAR, LOST_BAR = 1.0, 0.5

# From the beginning of the navigation until the newest entry is drawn; both by the page's clock.
DRAWN = """last => new Promise(done => {
    const look = () => {
        const all = document.querySelectorAll(".conversation .text");
        const isThere = all.length && all[all.length - 1].textContent.includes(last);
        if (isThere) requestAnimationFrame(() => done(performance.now()));
        else requestAnimationFrame(look);
    };
    look();
})"""
LOST = """() => new Promise(done => {
    const isShown = () => document.querySelector(".connection p") !== null;
    const look = () => isShown() ? done(Date.now()) : setTimeout(look, 2);
    look();
})"""


async def main() -> int:
    """Measure, print, and return 1 if a bar is not met."""
    with tempfile.TemporaryDirectory() as folder:
        journal_of(Path(folder), LONG, [exchange(number) for number in range(ENTRIES)])
        async with chromium() as browser:
            times = await open_times(browser, Path(folder))
            lost = [await lost_time(browser) for _ in range(RUNS)]
    opening, losing = statistics.median(times), statistics.median(lost)
    report(f"{ENTRIES:,} entries open", opening, OPEN_BAR)
    report("a lost server is shown", losing, LOST_BAR)
    return int(opening > OPEN_BAR or losing > LOST_BAR)


async def open_times(browser: Browser, folder: Path) -> list[float]:
    """Return how long a new page of the session takes, in seconds, several times."""
    times: list[float] = []
    async with serving(browser, quiet_agent(), journals=folder) as served:
        page = await served.page()
        for _ in range(RUNS):
            other = await page.context.new_page()
            await other.goto(f"{served.url}/{opened(LONG)}", wait_until="commit")
            times.append(await other.evaluate(DRAWN, f"Text {ENTRIES - 1} of it.") / 1000)
            await other.close()
    return times


async def lost_time(browser: Browser) -> float:
    """Return how long a page takes to show that its server is gone, in seconds."""
    context = await browser.new_context()
    page = await context.new_page()
    async with serving(browser, quiet_agent()) as served:
        await page.goto(served.bridge.link(served.url))
        await expect(page.get_by_text("No session yet.")).to_be_visible()
        shown = asyncio.ensure_future(page.evaluate(LOST))
        await asyncio.sleep(0)
        gone = time.time()
    found = float(await shown) / 1000
    await context.close()
    return max(0.0, found - gone)


def quiet_agent() -> Agent:
    """An agent that is asked nothing."""
    return Agent(transport=ScriptedCLI(Script()))


def report(what: str, seconds: float, bar: float) -> None:
    """Print one line."""
    verdict = "ok" if seconds <= bar else "TOO SLOW"
    sys.stdout.write(f"{what}: {seconds * 1000:.0f} ms, bar {bar * 1000:.0f} ms: {verdict}\n")


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
