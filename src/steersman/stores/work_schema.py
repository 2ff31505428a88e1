"""The tables of conversations, turns and journals, for every database that knows SQL."""

from __future__ import annotations

__all__ = ["work_tables"]

_TABLES = (
    """CREATE TABLE steersman_conversations (
        number {serial},
        session TEXT NOT NULL UNIQUE,
        name TEXT NOT NULL,
        version INTEGER NOT NULL,
        created {real} NOT NULL,
        created_by TEXT NOT NULL,
        machine TEXT NOT NULL DEFAULT '',
        begun BIGINT NOT NULL DEFAULT 0,
        lease_owner TEXT NOT NULL DEFAULT '',
        lease_token TEXT NOT NULL DEFAULT '',
        lease_machine TEXT NOT NULL DEFAULT '',
        lease_until {real} NOT NULL DEFAULT 0,
        lease_change BIGINT NOT NULL DEFAULT 0
    )""",
    """CREATE TABLE steersman_turns (
        number {serial},
        session TEXT NOT NULL,
        uuid TEXT NOT NULL,
        name TEXT,
        prompt TEXT NOT NULL,
        send_when TEXT NOT NULL,
        version INTEGER NOT NULL,
        state TEXT NOT NULL,
        outcome TEXT NOT NULL DEFAULT '',
        created {real} NOT NULL,
        ended_at {real},
        ended_by TEXT NOT NULL DEFAULT '',
        begun_change BIGINT NOT NULL,
        last_change BIGINT NOT NULL,
        UNIQUE (session, uuid)
    )""",
    """CREATE INDEX steersman_turns_unsettled ON steersman_turns (session, number)
        WHERE state <> 'settled'""",
    """CREATE TABLE steersman_journals (
        conversation TEXT NOT NULL,
        seq BIGINT NOT NULL,
        entry TEXT NOT NULL,
        PRIMARY KEY (conversation, seq)
    )""",
)


def work_tables(*, serial: str, real: str) -> tuple[str, ...]:
    """Return the statements that create the tables, with types of one database."""
    return tuple(each.format(serial=serial, real=real) for each in _TABLES)
