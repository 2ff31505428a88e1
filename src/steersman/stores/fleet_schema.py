"""The tables of a fleet's workers and budgets, for every database that knows SQL."""

from __future__ import annotations

__all__ = ["WORKER_FAULTS", "fleet_tables"]

_TABLES = (
    """CREATE TABLE steersman_workers (
        worker TEXT NOT NULL PRIMARY KEY,
        machine TEXT NOT NULL,
        pid BIGINT NOT NULL,
        slots BIGINT NOT NULL,
        agents TEXT NOT NULL,
        state TEXT NOT NULL,
        started {real} NOT NULL,
        lease_until {real} NOT NULL
    )""",
    """CREATE TABLE steersman_budgets (
        name TEXT NOT NULL PRIMARY KEY,
        usd {real} NOT NULL,
        per TEXT NOT NULL,
        turns BIGINT NOT NULL DEFAULT 0,
        cost {real} NOT NULL DEFAULT 0
    )""",
    """CREATE TABLE steersman_spendings (
        budget TEXT NOT NULL,
        period TEXT NOT NULL,
        spent {real} NOT NULL DEFAULT 0,
        reserved {real} NOT NULL DEFAULT 0,
        PRIMARY KEY (budget, period)
    )""",
    """CREATE TABLE steersman_reservations (
        job TEXT NOT NULL PRIMARY KEY,
        budget TEXT NOT NULL,
        period TEXT NOT NULL,
        usd {real} NOT NULL,
        cost {real}
    )""",
)

WORKER_FAULTS = ("ALTER TABLE steersman_workers ADD COLUMN faults TEXT NOT NULL DEFAULT ''",)
"""What fails in a worker now."""


def fleet_tables(*, real: str) -> tuple[str, ...]:
    """Return the statements that create the tables, with the type of one database."""
    return tuple(each.format(real=real) for each in _TABLES)
