"""What jobs may cost: the limits in their rows, and budgets.

Money is reserved before a turn and settled after it. Of doubled calls for one job the first counts.
"""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, get_args

from steersman import _json
from steersman._json import JsonDict, JsonObject
from steersman.agent import Agent
from steersman.errors import LimitReached, UsageError
from steersman.fleet.ports import SegmentEnd
from steersman.journal.json_form import result_to_json
from steersman.journal.results import TurnResult
from steersman.options import checks
from steersman.options.limits import Caps, Limits
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
        """Return the status of each budget, by name."""
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


def limits_fields(limits: Limits | None) -> JsonDict | None:
    """Return limits as JSON, without what is not limited."""
    if limits is None:
        return None
    return {
        "turn": _set(limits.turn),
        "session": _set(limits.session),
        "warn_at": limits.warn_at,
        "is_hard": limits.is_hard,
    }


def budget_of(agent: Agent, budget: str | None) -> str | None:
    """Return the budget of a job, which is that of its agent if that requires one."""
    required = agent.options.limits.fleet_budget
    if required is not None and budget not in (None, required):
        allowed = f"{required!r}, which Limits(fleet_budget=...) of the agent requires, or None"
        raise UsageError("budget", budget, allowed)
    return required or budget


def limits_for(agent: Agent, fields: JsonObject | None) -> Limits:
    """Return the limits of an agent, lowered to those of a job that `limits_fields` wrote."""
    own = agent.options.limits
    return own if fields is None else own.lowered(_limits_of(fields))


def _limits_of(fields: JsonObject) -> Limits:
    plain: dict[str, Any] = dict(fields)
    for name in ("turn", "session"):
        plain[name] = Caps(**plain.get(name, {}))
    return Limits(**plain)


def usd_of(fields: JsonObject | None) -> float | None:
    """Return the most that a turn may cost, if that is limited."""
    turn = (fields or {}).get("turn")
    found = turn.get("usd") if _json.is_object(turn) else None
    return float(found) if isinstance(found, int | float) else None


def cost_of(end: SegmentEnd | None) -> float:
    """Return the cost of a segment, in US dollars."""
    found = (None if end is None else end.result or {}) or {}
    cost = found.get("cost_usd")
    return float(cost) if isinstance(cost, int | float) else 0.0


def result_json(result: TurnResult) -> JsonDict:
    """Return a result as JSON."""
    found: JsonDict = _json.loads(result_to_json(result))
    return found


def _set(caps: Caps) -> JsonDict:
    given = dataclasses.asdict(caps)
    return {name: value for name, value in given.items() if value is not None}
