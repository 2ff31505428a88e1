"""The tables of asks, for every database that knows SQL."""

from __future__ import annotations

__all__ = ["ask_tables"]

_TABLES = (
    """CREATE TABLE steersman_asks (
        number {serial},
        session TEXT NOT NULL,
        ask_id TEXT NOT NULL,
        tool_use_id TEXT,
        turn TEXT,
        tool TEXT NOT NULL,
        digest TEXT NOT NULL,
        ask TEXT NOT NULL,
        version INTEGER NOT NULL,
        state TEXT NOT NULL,
        created {real} NOT NULL,
        expires {real},
        assignee TEXT,
        answered_by TEXT NOT NULL DEFAULT '',
        answer TEXT NOT NULL DEFAULT '',
        mark TEXT NOT NULL DEFAULT '',
        ended_at {real},
        used_mark TEXT,
        used_at {real},
        opened_change BIGINT NOT NULL,
        delegated_change BIGINT NOT NULL DEFAULT 0,
        ended_change BIGINT NOT NULL DEFAULT 0,
        last_change BIGINT NOT NULL,
        UNIQUE (session, ask_id)
    )""",
    "CREATE INDEX steersman_asks_changed ON steersman_asks (last_change)",
    "CREATE INDEX steersman_asks_open ON steersman_asks (expires) WHERE state = 'open'",
    "CREATE INDEX steersman_asks_known ON steersman_asks (session, digest)",
    "CREATE INDEX steersman_asks_named ON steersman_asks (ask_id)",
    "CREATE TABLE steersman_ask_changes (last BIGINT NOT NULL)",
    "INSERT INTO steersman_ask_changes VALUES (0)",
)


def ask_tables(*, serial: str, real: str) -> tuple[str, ...]:
    """Return the statements that create the tables, with types of one database."""
    return tuple(each.format(serial=serial, real=real) for each in _TABLES)
