"""A store in PostgreSQL, for machines that share it. Needs the extra `postgres` (psycopg 3)."""

from __future__ import annotations

from steersman.errors import UsageError
from steersman.stores._sql.store import REST, SqlStore
from steersman.stores.entry_json import check_timeout

FEWEST_CONNECTIONS = 2


class PostgresStore(SqlStore):
    """A `SessionStore` in a PostgreSQL database, for any number of machines.

    `url` is `postgresql://user:password@host:port/database`; it is never shown. The tables are
    created at the first use. `timeout` is how long each operation may take. Errors are
    `StoreError`, and then nothing was stored.

    It has up to `connections` to the server for asks, leases, turns and journals, one of which
    receives notifications, and one less for the entries of sessions.
    """

    def __init__(self, url: str, *, timeout: float = 30.0, connections: int = 4) -> None:
        check_timeout(timeout)
        _check_connections(connections)
        try:
            from steersman.stores._sql.postgres_database import PostgresDatabase  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise UsageError(
                "PostgresStore",
                f"no psycopg ({error})",
                "with the extra `postgres`",
                hint="pip install steersman[postgres]",
            ) from None
        database = PostgresDatabase(url, timeout, connections - 1)
        self._server = database.server
        super().__init__(
            database,
            PostgresDatabase(
                url, timeout, connections - 1, name="steersman-postgres-store", rest=REST
            ),
        )

    def __repr__(self) -> str:
        return f"<PostgresStore: {self._server}>"


def _check_connections(given: object) -> None:
    if isinstance(given, bool) or not isinstance(given, int) or given < FEWEST_CONNECTIONS:
        allowed = f"a number, {FEWEST_CONNECTIONS} or more: one of them receives notifications"
        raise UsageError("connections", given, allowed)
