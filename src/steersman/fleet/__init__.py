"""Many conversations on a few CLIs: `async with Fleet(agent, slots=4) as fleet`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steersman._lazy import by_name

if TYPE_CHECKING:
    from steersman.errors import KeyTaken, PoisonedJob
    from steersman.fleet.budgets import BudgetPeriod, BudgetStatus
    from steersman.fleet.client import FleetClient, StoreStatus
    from steersman.fleet.fleet import Drained, Fleet, FleetStatus
    from steersman.fleet.governor import Governor
    from steersman.fleet.job import Job, JobSource
    from steersman.fleet.ports import Engine, JobState
    from steersman.fleet.segments import segment
else:
    __getattr__, __dir__ = by_name(
        __name__,
        {
            "errors": ("KeyTaken", "PoisonedJob"),
            "fleet.budgets": ("BudgetStatus", "BudgetPeriod"),
            "fleet.client": ("FleetClient", "StoreStatus"),
            "fleet.fleet": ("Drained", "Fleet", "FleetStatus"),
            "fleet.governor": ("Governor",),
            "fleet.job": ("Job", "JobSource"),
            "fleet.ports": ("Engine", "JobState"),
            "fleet.segments": ("segment",),
        },
        below="steersman",
    )

__all__ = [
    "BudgetPeriod",
    "BudgetStatus",
    "Drained",
    "Engine",
    "Fleet",
    "FleetClient",
    "FleetStatus",
    "Governor",
    "Job",
    "JobSource",
    "JobState",
    "KeyTaken",
    "PoisonedJob",
    "StoreStatus",
    "segment",
]
