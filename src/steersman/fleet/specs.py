"""What a job row has as JSON, and back: limits and results."""

from __future__ import annotations

import dataclasses
from typing import Any

from steersman import _json
from steersman._json import JsonDict, JsonObject
from steersman.agent import Agent
from steersman.errors import UsageError
from steersman.fleet.ports import SegmentEnd
from steersman.journal.results import TurnResult
from steersman.journal.value_json import result_to_json
from steersman.options.limits import Caps, Limits


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
    """Return what a turn may cost at most, if that is limited."""
    turn = (fields or {}).get("turn")
    found = turn.get("usd") if _json.is_object(turn) else None
    return float(found) if isinstance(found, int | float) else None


def cost_of(end: SegmentEnd | None) -> float:
    """Return what a segment has cost, in US dollars."""
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
