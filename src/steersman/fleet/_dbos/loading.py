"""Imports DBOS, and makes it safe: JSON only, and errors in our words.

Nothing else imports it, so a program that has no fleet over processes does not load it.
"""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from steersman.errors import StoreError, UsageError

__all__ = [
    "APPLICATION",
    "JOB",
    "JOBS",
    "SEGMENT",
    "SEGMENTS",
    "VERSION",
    "errors_translated",
    "load",
]

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
    # DBOS reads every row in the format that the row names, pickle included, whatever serializer it
    # was given. Who can write the database must not run code here.
    if not isinstance(_serialization.DBOSDefaultSerializer, _NoPickle):
        _serialization.DBOSDefaultSerializer = _NoPickle()  # type: ignore[assignment]  # same methods
        logging.getLogger("dbos").addFilter(_is_news)
    return dbos


def _is_news(record: logging.LogRecord) -> bool:
    """Whether a line of DBOS's log is more than that a job was cancelled."""
    kind = record.exc_info[0] if record.exc_info else None
    return kind is None or "Cancelled" not in kind.__name__


class _NoPickle:
    """Replaces the serializer that uses pickle."""

    def serialize(self, data: Any) -> str:
        del data
        raise TypeError("this engine writes no pickles")

    def deserialize(self, serialized_data: str) -> Any:
        del serialized_data
        raise TypeError("the row holds a pickle, which is not read")

    def name(self) -> str:
        return "py_pickle"


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
