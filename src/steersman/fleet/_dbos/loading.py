"""Imports DBOS and makes it safe: a fleet reads JSON only, and gets errors in our words.

Workers also prepare the engine's tables here.

Nothing else imports it, so a program that has no fleet over processes does not load it. What is
changed in the module `dbos` is seen by calls of the fleet only: the program may use DBOS, too.
"""

from __future__ import annotations

import fcntl
import logging
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import ModuleType
from typing import Any

from steersman.errors import StoreError, UsageError
from steersman.fleet._dbos.places import Place

APPLICATION = "steersman-fleet"
VERSION = "1"
"""Of the workflows and their rows. A worker runs jobs of its own version only."""
JOB, SEGMENT = "job", "segment"
JOBS, SEGMENTS = "jobs", "segments"
"""The workflows, and their queues."""


def load() -> ModuleType:
    """Return the module `dbos`. Raises `UsageError` if it is not installed."""
    try:
        import dbos  # noqa: PLC0415 - heavy, and an extra
        from dbos import _serialization  # noqa: PLC0415 - as above  # pyright: ignore[reportPrivateUsage]
    except ImportError as error:
        raise UsageError(
            "store",
            "a fleet over processes",
            "one in this process",
            hint="pip install 'steersman[fleet]' for fleets over processes",
        ) from error
    if not isinstance(_serialization.DBOSDefaultSerializer, _GuardedPickle):
        guarded = _GuardedPickle(_serialization.DBOSDefaultSerializer)
        _serialization.DBOSDefaultSerializer = guarded  # type: ignore[assignment]  # same methods
    return dbos


class _GuardedPickle:
    """The serializer of DBOS that uses pickle, which a fleet does not use.

    DBOS reads every row in the format that the row names, whatever serializer it was given, and a
    process has one serializer that uses pickle. Who can write the database of a fleet must not run
    code here, so calls of the fleet are refused. All others get what they would get without it.
    """

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def serialize(self, data: Any) -> str:
        return self._inner.serialize(data)  # type: ignore[no-any-return]

    def deserialize(self, serialized_data: str) -> Any:
        if _refusing.get() or _workers:
            raise TypeError("the row holds a pickle, which is not read")
        return self._inner.deserialize(serialized_data)

    def name(self) -> str:
        return self._inner.name()  # type: ignore[no-any-return]


_refusing: ContextVar[bool] = ContextVar("refusing", default=False)
"""Whether this context is a call of the fleet."""
_workers: set[object] = set()
"""The workers of this process. While there is one, all of DBOS here is its own."""


@contextmanager
def pickles_refused() -> Generator[None]:
    """Have DBOS read no pickle in what is called inside."""
    before = _refusing.set(True)
    try:
        yield
    finally:
        _refusing.reset(before)


def claim(worker: object) -> None:
    """Have DBOS read no pickle in this process, in any thread, until `release` is called."""
    _workers.add(worker)
    logging.getLogger("dbos").addFilter(_is_news)


def release(worker: object) -> None:
    """Let the DBOS of this process be the program's own again. May be called again."""
    _workers.discard(worker)
    if not _workers:
        logging.getLogger("dbos").removeFilter(_is_news)


def _is_news(record: logging.LogRecord) -> bool:
    """Whether a line of DBOS's log is more than that a job was cancelled."""
    kind = record.exc_info[0] if record.exc_info else None
    return kind is None or "Cancelled" not in kind.__name__


@contextmanager
def errors_translated(where: str) -> Generator[None]:
    """Raise `StoreError` for errors of the database and of DBOS."""
    from dbos._error import DBOSException  # noqa: PLC0415 - loaded by `load`
    from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415 - as above

    try:
        yield
    except SQLAlchemyError as error:
        reason = str(getattr(error, "orig", None) or error).partition("\n")[0]
        missing = "no such table" in reason or "does not exist" in reason
        hint = "no worker has prepared it: start `steersman fleet worker` first" if missing else ""
        raise StoreError(f"{where}: {reason}", hint=hint) from error
    except DBOSException as error:
        raise StoreError(f"{where}: {error}") from error


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
