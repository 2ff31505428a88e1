"""All tables, and the statements that lead from each version of them to the next.

Only the tables of sessions differ between the databases by more than the names of types.
"""

from __future__ import annotations

_SQLITE_SESSIONS = (
    """CREATE TABLE steersman_sessions (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        project_key TEXT NOT NULL,
        session_id TEXT NOT NULL,
        subpath TEXT NOT NULL,
        mtime INTEGER NOT NULL,
        entries INTEGER NOT NULL,
        summary TEXT,
        UNIQUE (project_key, session_id, subpath)
    )""",
    """CREATE TABLE steersman_session_entries (
        session INTEGER NOT NULL REFERENCES steersman_sessions (id) ON DELETE CASCADE,
        position INTEGER NOT NULL,
        uuid TEXT,
        entry TEXT NOT NULL,
        UNIQUE (session, position)
    )""",
    """CREATE UNIQUE INDEX steersman_session_uuids
        ON steersman_session_entries (session, uuid) WHERE uuid IS NOT NULL""",
)
_POSTGRES_SESSIONS = (
    """CREATE TABLE steersman_sessions (
        id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        project_key TEXT NOT NULL,
        session_id TEXT NOT NULL,
        subpath TEXT NOT NULL,
        mtime BIGINT NOT NULL,
        entries BIGINT NOT NULL,
        summary JSON,
        UNIQUE (project_key, session_id, subpath)
    )""",
    # Not jsonb, which changes numbers and the order of keys, and has no \u0000.
    """CREATE TABLE steersman_session_entries (
        session BIGINT NOT NULL REFERENCES steersman_sessions (id) ON DELETE CASCADE,
        position BIGINT NOT NULL,
        uuid TEXT,
        size INTEGER NOT NULL,
        entry JSON NOT NULL,
        PRIMARY KEY (session, position)
    )""",
    """CREATE UNIQUE INDEX steersman_session_uuids
        ON steersman_session_entries (session, uuid) WHERE uuid IS NOT NULL""",
)
_ASKS = (
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
_WORK = (
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
_FLEET = (
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

_FAULTS = ("ALTER TABLE steersman_workers ADD COLUMN faults TEXT NOT NULL DEFAULT ''",)
"""What fails in a worker now."""
_SQLITE_BOOTS = (
    # When each boot began, by the clock on the wall when the file was first used in it.
    "CREATE TABLE steersman_boots (boot TEXT NOT NULL PRIMARY KEY, since REAL NOT NULL)",
)
_POSTGRES_BATCHES = (
    # On the first entry of each batch: what is looked for after a commit without an answer.
    "ALTER TABLE steersman_session_entries ADD COLUMN batch TEXT",
)


def _migrations(
    sessions: tuple[str, ...], last: tuple[str, ...], *, serial: str, real: str
) -> tuple[tuple[str, ...], ...]:
    shared = [
        tuple(each.format(serial=serial, real=real) for each in step)
        for step in (_ASKS, _WORK, _FLEET)
    ]
    return sessions, *shared, (*last, *_FAULTS)


# Add to the end; change nothing.
SQLITE = _migrations(
    _SQLITE_SESSIONS,
    _SQLITE_BOOTS,
    serial="INTEGER PRIMARY KEY AUTOINCREMENT",
    real="REAL",
)
POSTGRES = _migrations(
    _POSTGRES_SESSIONS,
    _POSTGRES_BATCHES,
    serial="BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    real="DOUBLE PRECISION",
)
