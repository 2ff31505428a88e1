"""A job for CI: the same task in many folders, a few at a time, with a report and an exit status.

Run it with `python examples/ci_bot.py folder ...`; it uses your own login.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import NamedTuple

from steersman import Agent, Policy
from steersman.errors import SteersmanError
from steersman.options import Caps, Limits
from steersman.permissions import allow

TASK = "Run `make check` and explain the first failure in one sentence. Change nothing."

POLICY = Policy(
    allow("Bash(make check)"),
    auto_approve=["Read", "Glob", "Grep"],
    available=["Bash", "Read", "Glob", "Grep"],
    otherwise="deny",
)


class Report(NamedTuple):
    """What happened in one folder."""

    folder: Path
    outcome: str
    text: str
    cost_usd: float = 0.0


async def check(agent: Agent, folder: Path, places: asyncio.Semaphore) -> Report:
    """Check one folder. An error of one folder does not stop the others."""
    async with places:
        try:
            async with agent.session(cwd=folder) as session:
                result = await (await session.send(TASK))
        except SteersmanError as error:
            return Report(folder, "failed", error.what)
    return Report(folder, result.outcome, result.answer or result.reason, result.cost_usd)


async def check_all(agent: Agent, folders: list[Path]) -> int:
    """Check the folders, print a report, and return the exit status."""
    places = asyncio.Semaphore(3)
    reports = await asyncio.gather(*(check(agent, folder, places) for folder in folders))
    for report in reports:
        print(f"{report.outcome:10} {report.folder.name}: {report.text}")
    print(f"{sum(report.cost_usd for report in reports):.4f} USD")
    return 0 if all(report.outcome == "completed" for report in reports) else 1


if __name__ == "__main__":
    agent = Agent(policy=POLICY, limits=Limits(turn=Caps(usd=0.5, seconds=600)))
    sys.exit(asyncio.run(check_all(agent, [Path(each) for each in sys.argv[1:]])))
