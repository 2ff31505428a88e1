"""Where the jobs of a store are: from the URL of a store to the database of its engine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from steersman.errors import StoreError, UsageError

if TYPE_CHECKING:
    from steersman.stores import PostgresStore, SqliteStore

SQLITE = "sqlite://"
POSTGRES = ("postgresql://", "postgres://")
CONNECTIONS = 6
OF_STORE = 3
"""Connections of the store: for notifications, for asks and leases, and for conversations."""
NOTIFIED = 1
"""Connections of the engine that are not in its pool: one is for notifications."""
FEWEST = OF_STORE + NOTIFIED + 2
"""The engine needs two more: one keeps a transaction open."""
FORMS = "sqlite:///absolute/path, or postgresql://user@host/database"


@dataclass(frozen=True, slots=True)
class Place:
    """The database of a fleet. The text of it has no password."""

    name: str
    """For errors and logs."""
    path: Path | None
    """Of a SQLite file."""
    url: str
    schema: str | None
    """The schema of the engine's own tables in PostgreSQL."""
    connections: int = CONNECTIONS
    """How many connections to PostgreSQL a process has at most."""

    def __repr__(self) -> str:
        return f"Place({self.name!r})"

    @property
    def database(self) -> str:
        """The URL for the engine."""
        return self.url if self.path is None else f"sqlite:///{self.path}"

    def store(self) -> SqliteStore | PostgresStore:
        """Return the store of the asks, leases and journals in the same database."""
        from steersman.stores import PostgresStore, SqliteStore  # noqa: PLC0415 - slow to import
        from steersman.stores.postgres import FEWEST_CONNECTIONS  # noqa: PLC0415 - as above

        if self.path is not None:
            return SqliteStore(self.path)
        return PostgresStore(self.url, connections=FEWEST_CONNECTIONS)

    @property
    def engine_connections(self) -> int:
        """How many connections the engine has in its pool."""
        return self.connections - OF_STORE - NOTIFIED


def place_at(url: str, *, create: bool = False, connections: int = CONNECTIONS) -> Place:
    """Return the place of a URL. Raises `UsageError` if there can be none.

    A SQLite file must exist, unless `create` is set: a misspelled path would be an empty queue.
    `connections` is how many a process has to PostgreSQL at most.
    """
    if isinstance(connections, bool) or not isinstance(connections, int) or connections < FEWEST:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError("connections", connections, f"a number, {FEWEST} or more")
    if not isinstance(url, str) or not url.strip():  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError("store", url, FORMS)
    if url.startswith(POSTGRES):
        return replace(_postgres(url), connections=connections)
    if not url.startswith(SQLITE):
        raise UsageError("store", "another form", FORMS)
    path = Path(url.removeprefix(SQLITE))
    if not path.is_absolute() or path.name == "" or path.is_dir():
        raise UsageError("store", url, FORMS)
    if not path.is_file():
        if not create:
            raise UsageError(
                "store",
                url,
                "the path of a file that exists",
                hint="correct the path; a worker makes a new file with --create",
            )
        if not path.parent.is_dir():
            raise UsageError("store", url, "a file in a folder that exists")
    return Place(str(path), path, url, None)


def _postgres(url: str) -> Place:
    try:
        import psycopg  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise UsageError(
            "store", "a PostgreSQL", FORMS, hint="pip install 'steersman[fleet,postgres]'"
        ) from error
    try:
        with psycopg.connect(url, connect_timeout=10) as connection:
            found = connection.execute("SELECT current_schema()").fetchone()
            about = connection.info
            name = f"postgresql://{about.host}:{about.port}/{about.dbname}"
    except psycopg.ProgrammingError as error:
        raise UsageError("store", "a URL that cannot be read", FORMS) from error
    except psycopg.Error as error:
        reason = str(error).strip().partition("\n")[0]
        raise StoreError(f"the database of the fleet cannot be reached: {reason}") from error
    schema = (found or ("public",))[0] or "public"
    plain = url.replace("postgres://", "postgresql://", 1) if url.startswith("postgres:") else url
    # Two stores of one database that are apart by their schemas have engines apart, too.
    return Place(name, None, plain, f"{schema}_fleet")
