"""What all session stores do alike."""

from __future__ import annotations

import asyncio
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import InMemorySessionStore
from claude_agent_sdk.testing import run_session_store_conformance
from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.errors import StoreError, UsageError
from steersman.ports import SessionStore, SupportsStream
from steersman.stores import DirectoryStore, MemoryStore, PostgresStore, SqliteStore
from steersman.stores._sql.database import from_plain, to_plain
from steersman.testing.stores import check
from steersman.transcripts.keys import SessionKey
from tests.stores.writing import KEY, batch_of

Make = Callable[[], Any]
MANY = 10_000 if os.environ.get("STEERSMAN_SOAK") else 100
KINDS = ["memory", "directory", "sqlite", "postgres"]


@pytest.fixture(params=KINDS)
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """Makes stores of one place."""
    if request.param == "postgres":
        url = request.getfixturevalue("postgres_url")
        return lambda: PostgresStore(url)
    kinds: dict[str, Make] = {
        "memory": MemoryStore,
        "directory": lambda: DirectoryStore(tmp_path / "sessions"),
        "sqlite": lambda: SqliteStore(tmp_path / "sessions.db"),
    }
    return kinds[request.param]


@pytest.mark.soak
async def test_a_store_keeps_every_rule_of_the_checker(make: Make) -> None:
    report = await check(make, sessions=MANY)

    assert report.is_good, report
    assert report.skipped == ()


@pytest.mark.parametrize("kind", KINDS)
async def test_a_store_passes_the_official_conformance_suite(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    stores: list[Any] = []

    def make_empty() -> Any:
        place = str(tmp_path / str(len(stores)))
        if kind == "memory":
            stores.append(MemoryStore())
        elif kind == "postgres":
            stores.append(PostgresStore(request.getfixturevalue("postgres_server").url()))
        else:
            stores.append(SqliteStore(place) if kind == "sqlite" else DirectoryStore(place))
        return stores[-1]

    await run_session_store_conformance(make_empty)

    assert len(stores) >= 14
    for store in stores:
        await _close(store)


async def test_the_official_store_in_memory_passes_the_official_rules_and_keeps_doubles() -> None:
    report = await check(InMemorySessionStore, sessions=100)

    assert {each.rule for each in report.failed} == {
        "the_same_batch_twice",
        "the_same_batch_at_once",
        "entries_are_copied",
    }, report


def test_stores_fit_the_ports() -> None:
    store = MemoryStore()
    port: SessionStore = store

    assert isinstance(port, SupportsStream)


async def test_the_order_of_keys_and_the_spelling_of_numbers_are_kept(make: Make) -> None:
    text = '{"type":"x","z":1,"a":1.0,"m":{"2":1e22,"1":-0.0},"n":123456789012345678901234567890}'
    store = make()

    await store.append(KEY, [json.loads(text), {"type": "far", "value": math.inf}])
    loaded = await store.load(KEY)
    await _close(store)

    assert json.dumps(loaded[0], separators=(",", ":")) == text.replace("1e22", "1e+22")
    assert loaded[1]["value"] == math.inf


@pytest.mark.parametrize(
    ("entries", "named"),
    [
        ([{"type": "x"}, "text"], r"entries\[1\]"),
        ([{"type": "x"}, {"type": "x", "value": object()}], r"entries\[1\]"),
        ([{"type": "x"}, {"type": "x", "value": math.nan}], r"entries\[1\]"),
        ([{"type": "x"}, {"type": "x", "value": {1, 2}}], r"entries\[1\]"),
        ("text", "entries"),
        (None, "entries"),
    ],
)
async def test_a_batch_with_an_entry_that_is_no_json_is_refused_whole(
    make: Make, entries: Any, named: str
) -> None:
    store = make()

    with pytest.raises(UsageError, match=named):
        await store.append(KEY, entries)

    assert await store.load(KEY) is None
    await _close(store)


async def test_an_entry_that_could_not_be_read_again_is_refused(make: Make) -> None:
    deep: Any = {}
    for _ in range(450):
        deep = {"a": deep}
    deeper: Any = []
    for _ in range(100_000):
        deeper = [deeper]
    store = make()

    for value in (deep, deeper):
        with pytest.raises(UsageError, match="nested 400 times at most"):
            await store.append(KEY, [{"type": "x", "value": value}])
    await store.append(KEY, [{"type": "x", "many": [[{}]] * 1000}])

    assert await store.positions(KEY) == 1
    await _close(store)


BAD_KEYS: list[Any] = [
    None,
    {},
    {"project_key": "p"},
    {"project_key": "p", "session_id": ""},
    {"project_key": "", "session_id": "s"},
    {"project_key": "p", "session_id": 7},
    {"project_key": "p", "session_id": "s", "subpath": ""},
    {"project_key": "p", "session_id": "s", "subpath": 7},
]


@pytest.mark.parametrize("key", BAD_KEYS, ids=repr)
async def test_a_key_that_names_nothing_is_refused(make: Make, key: Any) -> None:
    store = make()

    for method in (store.load, store.delete, store.positions):
        with pytest.raises(UsageError, match="key"):
            await method(key)
    with pytest.raises(UsageError, match="key"):
        await store.append(key, [{"type": "x"}])
    await _close(store)


@pytest.mark.parametrize("timeout", [0, -1, math.inf, math.nan, True, "1", None])
def test_a_timeout_that_is_no_number_of_seconds_is_refused(timeout: Any, tmp_path: Path) -> None:
    for kind in (DirectoryStore, SqliteStore, PostgresStore):
        with pytest.raises(UsageError, match="timeout"):
            kind(str(tmp_path / "x"), timeout=timeout)


async def test_a_summary_is_of_what_was_stored_and_not_of_doubles(make: Make) -> None:
    title: Any = {"type": "custom-title", "customTitle": "first", "uuid": "1"}
    again: Any = {"type": "custom-title", "customTitle": "second", "uuid": "1"}
    store = make()

    await store.append(KEY, [title])
    await store.append(KEY, [again])
    rows = await store.list_session_summaries("-p")
    listed = await store.list_sessions("-p")
    await _close(store)

    assert "first" in repr(rows)
    assert "second" not in repr(rows)
    assert [row["mtime"] for row in rows] == [row["mtime"] for row in listed]


async def test_a_stream_that_is_left_early_leaves_nothing_open(make: Make) -> None:
    store = make()
    entries: list[Any] = [{"type": "x", "text": "x" * 600_000} for _ in range(4)]
    await store.append(KEY, entries)

    stream = store.stream(KEY)
    first = await anext(stream)
    await stream.aclose()

    assert len(first) == 2
    assert await store.positions(KEY) == 4
    await _close(store)


async def test_entries_that_come_while_a_stream_is_read_are_left_for_the_next(make: Make) -> None:
    store = make()
    entries: list[Any] = [{"type": "x", "uuid": str(n), "text": "x" * 600_000} for n in range(4)]
    await store.append(KEY, entries)

    found: list[Any] = []
    async for chunk in store.stream(KEY):
        found += chunk
        await store.append(KEY, batch_of("later", len(found)))

    assert found == entries
    await _close(store)


async def test_a_session_that_is_deleted_while_it_is_read_is_told_or_read_to_its_end(
    make: Make,
) -> None:
    store = make()
    entries: list[Any] = [{"type": "x", "uuid": str(n), "text": "x" * 600_000} for n in range(6)]
    await store.append(KEY, entries)
    found: list[Any] = []

    try:
        async for chunk in store.stream(KEY):
            found += chunk
            await store.delete(KEY)
            await store.append(KEY, [{"type": "new"}])
    except StoreError as error:
        assert "was deleted while it was read" in str(error)  # noqa: PT017 - one of two ends
    else:
        assert found == entries
    await _close(store)


async def test_two_event_loops_use_one_store(make: Make) -> None:
    store = make()

    async def write(name: str) -> None:
        for number in range(3):
            await store.append(KEY, batch_of(name, number))

    await asyncio.gather(
        write("here"), *(asyncio.to_thread(asyncio.run, write(name)) for name in "ab")
    )

    assert await store.positions(KEY) == 3 * 3 * 5
    await _close(store)


NAMES = st.text(st.characters(exclude_categories=()), min_size=1, max_size=8)


@given(name=NAMES)
def test_any_name_is_kept_as_plain_text_and_comes_back(name: str) -> None:
    plain = to_plain(name)

    plain.encode()
    assert "\0" not in plain
    assert from_plain(plain) == name


@given(one=NAMES, other=NAMES)
def test_two_names_are_never_one_plain_text(one: str, other: str) -> None:
    assert (to_plain(one) == to_plain(other)) == (one == other)


UUIDS = st.sampled_from([None, "a", "b", "c"])
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["append", "append", "append", "delete"]),
        st.sampled_from(["s", "s1"]),
        st.sampled_from(["", "x", "x/y"]),
        st.lists(UUIDS, max_size=4),
    ),
    max_size=12,
)


class Model:
    """What a store must hold, in the plainest way."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], list[Any]] = {}

    def append(self, session: str, subpath: str, entries: list[Any]) -> None:
        for entry in entries:
            kept = self.kept.setdefault((session, subpath), [])
            if "uuid" not in entry or all(entry["uuid"] != each.get("uuid") for each in kept):
                kept.append(entry)

    def delete(self, session: str, subpath: str) -> None:
        gone = [key for key in self.kept if key[0] == session and subpath in ("", key[1])]
        for key in gone:
            del self.kept[key]


@settings(max_examples=settings().max_examples // 3)
@given(steps=STEPS)
def test_any_order_of_appends_and_deletes_leaves_what_a_plain_dict_has(steps: Any) -> None:
    async def play() -> None:
        model = Model()
        async with AsyncExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            stores: list[Any] = [
                MemoryStore(),
                await stack.enter_async_context(DirectoryStore(Path(folder, "d"))),
                await stack.enter_async_context(SqliteStore(Path(folder, "s.db"))),
            ]
            for number, (what, session, subpath, uuids) in enumerate(steps):
                key: SessionKey = {"project_key": "-p", "session_id": session}
                key = {**key, "subpath": subpath} if subpath else key
                entries = [
                    {"type": "x", "n": number, **({"uuid": uuid} if uuid else {})} for uuid in uuids
                ]
                if what == "append":
                    model.append(session, subpath, entries)
                else:
                    model.delete(session, subpath)
                for store in stores:
                    await (store.append(key, entries) if what == "append" else store.delete(key))
            for store in stores:
                await compare(store, model)

    asyncio.run(play())


async def compare(store: Any, model: Model) -> None:
    for session in ("s", "s1"):
        key: SessionKey = {"project_key": "-p", "session_id": session}
        for subpath in ("", "x", "x/y"):
            part: SessionKey = {**key, "subpath": subpath} if subpath else key
            assert await store.load(part) == model.kept.get((session, subpath))
            assert await store.positions(part) == len(model.kept.get((session, subpath), []))
        parts = [subpath for name, subpath in model.kept if name == session and subpath]
        assert sorted(await store.list_subkeys(key)) == sorted(parts)
    names = sorted(name for name, subpath in model.kept if not subpath)
    assert sorted(each["session_id"] for each in await store.list_sessions("-p")) == names
    rows = await store.list_session_summaries("-p")
    assert sorted(each["session_id"] for each in rows) == names


@pytest.mark.process
def test_the_room_loads_no_database_and_a_store_loads_only_its_own() -> None:
    program = """
import sys
import steersman.stores
seen = [{"sqlite3", "psycopg"} & set(sys.modules)]
steersman.stores.MemoryStore, steersman.stores.DirectoryStore, steersman.stores.PostgresStore
seen.append({"sqlite3", "psycopg"} & set(sys.modules))
steersman.stores.SqliteStore
seen.append({"sqlite3", "psycopg"} & set(sys.modules))
print(seen)
"""
    shown = subprocess.run(
        [sys.executable, "-c", program],
        check=True,
        capture_output=True,
        text=True,
        timeout=30,
        env={"PYTHONPATH": ":".join(sys.path)},
    )

    assert shown.stdout.strip() == "[set(), set(), {'sqlite3'}]"


async def _close(store: Any) -> None:
    if hasattr(store, "aclose"):
        await store.aclose()
