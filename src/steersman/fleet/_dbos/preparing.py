"""Prepares the engine's tables in a database; only workers do."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from steersman.errors import StoreError
from steersman.fleet._dbos.loading import errors_translated, load
from steersman.fleet._dbos.places import Place

PATIENCE = 60.0
"""Seconds to wait for another worker that prepares the same file."""
POLL = 0.05


def prepare(place: Place) -> None:
    """Create the tables, or bring them to the version of the engine. Raises `StoreError`."""
    dbos = load()
    with errors_translated(place.name):
        if place.path is None:
            # The engine has a lock of its own in PostgreSQL.
            dbos.DBOS.migrate(place.database, schema=place.schema)
            return
        with _alone(place.path):
            dbos.DBOS.migrate(place.database)


@contextmanager
def _alone(path: Path) -> Generator[None]:
    """Wait for the workers that prepare the file, and keep others away.

    The lock is on the folder: to open and close the file would drop SQLite's own locks on it.
    """
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        until = time.monotonic() + PATIENCE
        while True:
            try:
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    raise StoreError(f"{path}: another worker prepares it") from None
                time.sleep(POLL)
        yield
    finally:
        os.close(folder)
