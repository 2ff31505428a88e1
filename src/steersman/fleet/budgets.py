"""Money that jobs may spend: reserved before a turn, settled after it.

No I/O. Of doubled calls for one job the first counts.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, get_args

from steersman.errors import LimitReached, UsageError
from steersman.options import checks
from steersman.ports import Clock

BudgetPeriod = Literal["day", "month", "ever"]
"""How long a budget lasts. Days and months are those of UTC."""

Room = Literal["reserved", "wait", "out"]
"""`wait`: what others have reserved may come back. `out`: nothing is left for this turn."""


def check_budget(name: object, usd: object, per: object) -> None:
    """Check the arguments of `Fleet.budget`. Raises `UsageError`."""
    checks.non_empty("name", name)
    checks.positive("usd", usd)
    checks.one_of(*get_args(BudgetPeriod))("per", per)


def period_of(per: BudgetPeriod, now: float) -> str:
    """Return the name of the period that a time is in, such as `2026-11-16`."""
    if per == "ever":
        return ""
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d" if per == "day" else "%Y-%m")


@dataclass(frozen=True, slots=True)
class BudgetStatus:
    """What a budget has left in this period."""

    usd: float
    spent: float
    reserved: float
    per: BudgetPeriod


@dataclass(slots=True)
class _Budget:
    usd: float
    per: BudgetPeriod
    period: str = ""
    spent: float = 0.0
    reserved: dict[str, float] = field(default_factory=dict[str, float])
    turns: int = 0
    cost: float = 0.0
    """What all settled turns have cost, in any period."""

    @property
    def mean(self) -> float:
        return self.cost / self.turns if self.turns else 0.0

    @property
    def taken(self) -> float:
        return self.spent + sum(self.reserved.values())


class Budgets:
    """The budgets of one process, by name."""

    def __init__(self, clock: Clock = time.time) -> None:
        self._clock = clock
        self._all: dict[str, _Budget] = {}

    def define(self, name: str, usd: float, per: BudgetPeriod) -> None:
        """Add a budget, or change one; what it has spent stays."""
        check_budget(name, usd, per)
        known = self._all.get(name)
        if known is None:
            self._all[name] = _Budget(usd, per)
        else:
            known.usd, known.per = usd, per

    def check(self, name: str | None) -> None:
        """Raise `UsageError` if there is no such budget."""
        if name is not None and name not in self._all:
            allowed = "a budget of this fleet" + (f": {', '.join(self._all)}" if self._all else "")
            hint = f"first call fleet.budget({name!r}, usd=..., per=...)"
            raise UsageError("budget", name, allowed, hint=hint)

    def reserve(self, name: str, job: str, amount: float | None) -> Room:
        """Reserve for a turn; without `amount`, the mean of past turns. A job reserves once."""
        budget = self._at(name)
        if job in budget.reserved:
            return "reserved"
        wanted = budget.mean if amount is None else amount
        if budget.taken + wanted <= budget.usd and budget.taken < budget.usd:
            budget.reserved[job] = wanted
            return "reserved"
        return "wait" if budget.reserved and budget.spent + wanted <= budget.usd else "out"

    def settle(self, name: str, job: str, cost: float) -> bool:
        """Replace what a job has reserved by what it has cost. Returns False the second time."""
        budget = self._at(name)
        if job not in budget.reserved:
            return False
        del budget.reserved[job]
        budget.spent += cost
        if cost:
            budget.turns += 1
            budget.cost += cost
        return True

    def left(self, name: str, amount: float | None) -> LimitReached | None:
        """Return why a turn can never be paid from this budget in this period, if that is so."""
        budget = self._at(name)
        wanted = budget.mean if amount is None else amount
        if budget.spent < budget.usd and budget.spent + wanted <= budget.usd:
            return None
        hint = f"raise it with fleet.budget({name!r}, usd=..., per={budget.per!r})"
        return LimitReached(f"budget {name!r}", "usd", budget.spent, budget.usd, hint=hint)

    def status(self) -> dict[str, BudgetStatus]:
        """Return what each budget has left."""
        found: dict[str, BudgetStatus] = {}
        for name in self._all:
            each = self._at(name)
            reserved = sum(each.reserved.values())
            found[name] = BudgetStatus(each.usd, each.spent, reserved, each.per)
        return found

    def _at(self, name: str) -> _Budget:
        budget = self._all[name]
        period = period_of(budget.per, self._clock())
        if period != budget.period:
            budget.period, budget.spent = period, 0.0
        return budget
