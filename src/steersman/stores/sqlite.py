"""A store in a SQLite file: the standard library's, in threads of the store's own."""

from __future__ import annotations

import os
from pathlib import Path

from steersman.errors import UsageError
from steersman.stores._sql.sqlite_database import SqliteDatabase
from steersman.stores._sql.store import REST, SqlStore
from steersman.stores.entry_json import check_timeout


class SqliteStore(SqlStore):
    """A `SessionStore` in one file, which several processes of a machine may use at once.

    The file is opened, or created with mode 0600, at the first use. `timeout` is how long to wait
    for another process that writes. Errors are `StoreError`, and then nothing was stored.
    """

    def __init__(self, path: str | os.PathLike[str], *, timeout: float = 30.0) -> None:
        check_timeout(timeout)
        if str(path) in {"", ":memory:"}:
            raise UsageError("path", path, "the path of a file", hint="use MemoryStore() instead")
        # A relative path means the current folder, also if the program changes it later.
        self.path = Path(path).absolute()
        super().__init__(
            SqliteDatabase(self.path, timeout),
            SqliteDatabase(self.path, timeout, name="steersman-sqlite-store", rest=REST),
            self.path,
        )

    def __repr__(self) -> str:
        return f"SqliteStore({str(self.path)!r})"
