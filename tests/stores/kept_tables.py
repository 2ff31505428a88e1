"""A database with a row of every kind, as a release has left it, and what later ones must read.

`python -m tests.stores.kept_tables` writes what this release leaves, as files for `kept/`: run it
when the tables get another version, and keep the files of the versions before.
"""

from __future__ import annotations

import asyncio
import gzip
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from steersman.journal import Entry, Kind
from steersman.permissions import Allow
from steersman.ports import StoredTurn
from steersman.stores import PostgresStore, SqliteStore, StoredBudget, WorkerRow
from steersman.stores._sql.schema import SQLITE
from steersman.stores._sql.store import SqlStore
from steersman.transcripts.keys import SessionKey
from tests.inbox.places import LIMIT, OTHER, TOOL, Session, an_ask

KEPT = Path(__file__).with_name("kept")
SCHEMA = "kept_schema"
"""The name of the schema in a dump."""

KEY: SessionKey = {"project_key": "-home-ann", "session_id": "s1"}
PART: SessionKey = {**KEY, "subpath": "subagents/agent-1"}
ENTRIES: list[Any] = [
    {"type": "user", "uuid": "1", "message": {"role": "user", "content": "Grüße \x00 \ud800"}},
    {"type": "custom-title", "customTitle": "one", "number": 1.0, "large": 10**30},
]
TURN = StoredTurn("u1", "invoice 7", "pay", {"priority": "next"})
LINES = [b'{"type":"assistant"}', b'{"type":"result"}']


async def fill(store: SqlStore) -> None:
    """Write rows of every kind."""
    await store.append(KEY, ENTRIES)
    await store.append(PART, ENTRIES[:1])
    lease: Any = {"owner": "host 1", "token": "a", "machine": "m", "seconds": 60.0}
    await store.work.take("s1", key="customer 7", **lease)
    await store.work.begin("s1", "a", TURN)
    session = Session(store.inbox())
    session.open(an_ask(TOOL, id_="open"))
    (opened,) = await session.shown()
    row = await store.asks.open(an_ask(OTHER, id_="answered"), None, (), "a")
    assert row is not None
    await store.asks.end(row.number, "answered", "ann", '{"behavior":"allow"}', "mark")
    assert opened.id == "open"
    await store.work.release("s1", "a")
    sink = store.sink("customer 7")
    sink.write([Entry(at, 1.5, Kind.NOISE, line) for at, line in enumerate(LINES, start=1)])
    await sink.flush()
    await store.fleet.join(WorkerRow("worker 1", "m", 7, 4, ("default", "night")), 60.0)
    await store.fleet.renew("worker 1", 60.0, ["the news: lost"])
    await store.fleet.define("team", 2.0, "ever")
    await store.fleet.reserve("team", "job 1", 0.5)


async def check(store: SqlStore) -> None:
    """Read all that `fill` has written, and go on with it."""
    assert await store.load(KEY) == ENTRIES
    assert await store.list_subkeys(KEY) == [PART["subpath"]]
    await store.append(KEY, [*ENTRIES[:1], {"type": "user", "uuid": "2"}])
    assert await store.positions(KEY) == 3
    (summary,) = await store.list_session_summaries(KEY["project_key"])
    assert (summary["session_id"], summary["data"]["custom_title"]) == ("s1", "one")

    async with asyncio.timeout(LIMIT):
        ready = store.ready()
        inbox = store.inbox()
        (waiting,) = await inbox.list()
        await inbox.answer(waiting, Allow(), by="ben")
        found = await anext(ready)
        await ready.aclose()
    assert (found.key, found.session, found.turns) == ("customer 7", "s1", (TURN,))
    asks = [(ask.id, ask.decision, ask.by) for ask in await store.work.asks_of("s1", "u1")]
    assert asks == [("open", "allow", "ben"), ("answered", "allow", "ann")]
    lease: Any = {"owner": "host 2", "token": "b", "machine": "m", "seconds": 60.0}
    assert await store.work.take("s1", key="customer 7", **lease) is not None
    assert await store.work.settle("s1", "b", "u1", "settled", "completed")

    entries = [each async for each in store.entries("customer 7")]
    assert [(each.seq, each.line) for each in entries] == [*enumerate(LINES, start=1)]
    (worker,) = await store.fleet.workers()
    assert (worker.worker, worker.agents) == ("worker 1", ("default", "night"))
    assert worker.faults == ("the news: lost",)
    assert await store.fleet.budgets() == [StoredBudget("team", 2.0, "ever", 0.0, 0.5)]
    assert await store.fleet.settle("job 1", 0.25)
    assert await store.fleet.budgets() == [StoredBudget("team", 2.0, "ever", 0.25, 0.0)]


def restored_file(version: int, path: Path) -> None:
    """Write the SQLite file of a version to `path`."""
    path.write_bytes(gzip.decompress((KEPT / f"sqlite-{version}.db.gz").read_bytes()))


def restored_dump(version: int, schema: str) -> str:
    """Return the statements that restore a PostgreSQL database of a version."""
    dump = (KEPT / f"postgres-{version}.sql").read_text(encoding="utf-8")
    return dump.replace(SCHEMA, schema)


def _main(url: str) -> None:
    """Write the files of this release. `url` is that of a server with an empty schema for us."""
    version = len(SQLITE)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kept.db")
        asyncio.run(_filled(SqliteStore(path)))
        packed = gzip.compress(path.read_bytes(), mtime=0)
        (KEPT / f"sqlite-{version}.db.gz").write_bytes(packed)
    place = f"{url}{'&' if '?' in url else '?'}options=-csearch_path%3D{SCHEMA}"
    asyncio.run(_filled(PostgresStore(place)))
    wanted = ["--schema", SCHEMA, "--inserts", "--no-owner", "--no-privileges", "--no-comments"]
    dumped = subprocess.run(
        ["pg_dump", url, *wanted], check=True, capture_output=True, text=True, timeout=60
    ).stdout
    left_out = ("--", "\\", "CREATE SCHEMA", "SET ")
    kept = [line for line in dumped.splitlines() if line and not line.startswith(left_out)]
    (KEPT / f"postgres-{version}.sql").write_text("\n".join([*kept, ""]), encoding="utf-8")


async def _filled(store: SqlStore) -> None:
    async with store:
        await fill(store)


if __name__ == "__main__":
    _main(sys.argv[1])
