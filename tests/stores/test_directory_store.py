"""Sessions as files: what is private, what a crash leaves, and who may write at once."""

# ruff: noqa: ASYNC240 - the files of a test are small

from __future__ import annotations

import asyncio
import json
import os
import stat
import threading
from pathlib import Path

import pytest

from steersman.errors import StoreError, UsageError
from steersman.stores import DirectoryStore
from steersman.transcripts.keys import SessionKey
from tests.stores.writing import BATCH, KEY, batch_of

ENTRIES = Path("-p/shared.jsonl")


def modes_below(root: Path) -> tuple[set[int], set[int]]:
    """Return the modes of files and of folders."""
    paths = [root, *root.rglob("*")]
    files = {stat.S_IMODE(each.stat().st_mode) for each in paths if each.is_file()}
    return files, {stat.S_IMODE(each.stat().st_mode) for each in paths if each.is_dir()}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "sessions"


async def test_files_are_in_the_layout_of_the_cli(root: Path) -> None:
    async with DirectoryStore(root) as store:
        await store.append(KEY, [{"type": "user", "uuid": "1"}])
        await store.append({**KEY, "subpath": "subagents/agent-1"}, [{"type": "x"}])

    assert (root / ENTRIES).read_bytes() == b'{"type":"user","uuid":"1"}\n'
    assert (root / "-p/shared/subagents/agent-1.jsonl").read_bytes() == b'{"type":"x"}\n'


async def test_only_the_owner_can_read_what_is_stored(root: Path) -> None:
    async with DirectoryStore(root) as store:
        await store.append(KEY, [{"type": "x"}])
        await store.append({**KEY, "subpath": "a/b"}, [{"type": "x"}])

    assert modes_below(root) == ({0o600}, {0o700})


@pytest.mark.parametrize(
    "subpath", ["../x", "/x", "a/../../x", "a\\b", "a//b", "a/", ".", "a\x00b", "a\nb"], ids=repr
)
async def test_a_hostile_subpath_is_refused_by_every_method(root: Path, subpath: str) -> None:
    key: SessionKey = {**KEY, "subpath": subpath}
    async with DirectoryStore(root) as store:
        for call in (store.append(key, [{"type": "x"}]), store.load(key), store.delete(key)):
            with pytest.raises(UsageError, match="subpath"):
                await call

    assert not os.path.lexists(root)


async def test_names_that_are_no_file_names_are_escaped_and_come_back(root: Path) -> None:
    names = ["..", "a/b", "a.jsonl", "é \ud800\x00%", "CON", "~", "a.summary"]
    async with DirectoryStore(root) as store:
        for name in names:
            await store.append({"project_key": "../p", "session_id": name}, [{"type": name}])
        listed = await store.list_sessions("../p")
        with pytest.raises(UsageError, match="at most 200 bytes"):
            await store.append({"project_key": "-p", "session_id": "x" * 201}, [{"type": "x"}])

        assert sorted(each["session_id"] for each in listed) == sorted(names)
        for name in names:
            key: SessionKey = {"project_key": "../p", "session_id": name}
            assert await store.load(key) == [{"type": name}]
    assert list(root.parent.iterdir()) == [root]


@pytest.mark.parametrize(
    "torn", [b'{"type":"user","uuid":"torn', b"{", b'{"a":1}{"b"', b"\xff\xfe", b"[]"]
)
async def test_a_torn_last_line_is_no_entry_and_the_next_one_is_not_lost(
    root: Path, torn: bytes
) -> None:
    first, second = batch_of("a", 1), batch_of("a", 2)
    async with DirectoryStore(root) as store:
        await store.append(KEY, first)
        with (root / ENTRIES).open("ab") as file:
            file.write(torn)

        assert await store.load(KEY) == first
        assert await store.positions(KEY) == len(first)
        await store.append(KEY, second)
        assert await store.load(KEY) == [*first, *second]
        assert await store.positions(KEY) == 2 * BATCH
    assert torn + b"\n" in (root / ENTRIES).read_bytes()


async def test_a_last_line_that_only_lacks_its_newline_is_an_entry(root: Path) -> None:
    async with DirectoryStore(root) as store:
        await store.append(KEY, [{"type": "x", "uuid": "1"}])
        path = root / ENTRIES
        path.write_bytes(path.read_bytes().rstrip(b"\n"))

        await store.append(KEY, [{"type": "x", "uuid": "1"}, {"type": "x", "uuid": "2"}])

        assert await store.load(KEY) == [{"type": "x", "uuid": "1"}, {"type": "x", "uuid": "2"}]


async def test_a_summary_that_missed_entries_is_made_anew(root: Path) -> None:
    title = b'{"type":"custom-title","customTitle":"from elsewhere","uuid":"9"}\n'
    async with DirectoryStore(root) as store:
        await store.append(KEY, [{"type": "user", "uuid": "1"}])
        with (root / ENTRIES).open("ab") as file:
            file.write(title)

        await store.append(KEY, [{"type": "user", "uuid": "2"}])

        rows = await store.list_session_summaries("-p")
        listed = await store.list_sessions("-p")
        assert "from elsewhere" in repr(rows)
        assert rows[0]["mtime"] == listed[0]["mtime"]


async def test_a_broken_summary_hides_no_session(root: Path) -> None:
    async with DirectoryStore(root) as store:
        await store.append(KEY, [{"type": "user", "uuid": "1"}])
        for broken in (b"", b"{", b"[]", b'{"mtime":"x"}'):
            (root / "-p/shared.summary.json").write_bytes(broken)
            assert await store.list_session_summaries("-p") == []
            assert len(await store.list_sessions("-p")) == 1
        await store.append(KEY, [{"type": "user", "uuid": "2"}])
        assert len(await store.list_session_summaries("-p")) == 1


async def test_a_file_that_took_the_place_of_another_is_read_anew(root: Path) -> None:
    one, other = DirectoryStore(root), DirectoryStore(root)
    await one.append(KEY, [{"type": "x", "uuid": "1"}])

    await other.delete(KEY)
    await other.append(KEY, [{"type": "x" * 100, "uuid": "2"}])
    await one.append(KEY, [{"type": "x", "uuid": "1"}])

    uuids = [entry.get("uuid") for entry in await other.load(KEY) or []]
    assert uuids == ["2", "1"]
    await one.aclose()
    await other.aclose()


async def test_a_lock_that_is_not_released_is_told_in_time(root: Path) -> None:
    import fcntl  # noqa: PLC0415 - POSIX

    async with DirectoryStore(root, timeout=0.05) as store:
        await store.append(KEY, [{"type": "x"}])
        lock = next((root / ".locks").iterdir())
        number = os.open(lock, os.O_RDWR)
        fcntl.flock(number, fcntl.LOCK_EX)

        with pytest.raises(StoreError, match="locked by another writer") as told:
            await store.append(KEY, [{"type": "x"}])

        assert "find the process that holds the lock, or raise timeout=" in str(told.value)
        os.close(number)
        assert await store.positions(KEY) == 1


def lock_of(root: Path) -> Path:
    """The one lock file of a store with one session."""
    (lock,) = (root / ".locks").iterdir()
    return lock


def note(path: str, size: int = 0) -> bytes:
    """What a writer that was killed leaves in its lock file."""
    return json.dumps({"path": path, "size": size}, separators=(",", ":")).encode()


FOREIGN = ["../victim", "-p/../../victim", ".locks/00", "-p/other.jsonl", "-p/s/../../victim.jsonl"]


@pytest.mark.parametrize("path", [*FOREIGN, "absolute", "-p/link/victim.jsonl"])
@pytest.mark.parametrize("act", ["load", "positions", "append"])
async def test_a_lock_file_empties_no_file_but_one_of_its_sessions(
    root: Path, tmp_path: Path, path: str, act: str
) -> None:
    victims = [tmp_path / "victim", tmp_path / "victim.jsonl"]
    async with DirectoryStore(root) as store:
        await store.append(KEY, [{"type": "x"}])
        (root / "-p/link").symlink_to(tmp_path)
        (root / "-p/other.jsonl").write_bytes(b"{}\n")
        for victim in victims:
            victim.write_text("precious")
        lock_of(root).write_bytes(note(str(victims[0]) if path == "absolute" else path))

        with pytest.raises(StoreError, match="no note of a session that it locks"):
            await _do(store, act)

    assert [victim.read_text() for victim in victims] == ["precious"] * 2
    assert (root / "-p/other.jsonl").read_bytes() == b"{}\n"


async def _do(store: DirectoryStore, act: str) -> None:
    if act == "append":
        await store.append(KEY, [{"type": "y"}])
    else:
        await (store.load(KEY) if act == "load" else store.positions(KEY))


@pytest.mark.parametrize("kind", ["link", "hard link", "pipe", "folder"])
@pytest.mark.parametrize("act", ["load", "append"])
async def test_a_lock_file_that_is_something_else_is_left_alone(
    root: Path, tmp_path: Path, kind: str, act: str
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    async with asyncio.timeout(20), DirectoryStore(root) as store:
        await store.append(KEY, [{"type": "x"}])
        lock = lock_of(root)
        if kind == "folder":
            moved = (root / ".locks").rename(tmp_path / "locks")
            (root / ".locks").symlink_to(moved)
            (moved / lock.name).write_bytes(b"precious")
            victim = moved / lock.name
        else:
            lock.unlink()
            if kind == "link":
                lock.symlink_to(victim)
            elif kind == "hard link":
                lock.hardlink_to(victim)
            else:
                os.mkfifo(lock)

        with pytest.raises(StoreError):
            await _do(store, act)

    assert victim.read_text() == "precious"


async def test_no_link_in_the_directory_of_a_store_is_followed(root: Path, tmp_path: Path) -> None:
    victim = tmp_path / "elsewhere" / f"{KEY['session_id']}.jsonl"
    victim.parent.mkdir()
    victim.write_bytes(b'{"type":"secret"}\n')
    async with DirectoryStore(root) as store:
        await store.append({**KEY, "project_key": "-q"}, [{"type": "x"}])
        (root / "-p").symlink_to(victim.parent)
        for act in ("load", "append"):
            with pytest.raises(StoreError):
                await _do(store, act)
        (root / "-p").unlink()
        (root / "-p").mkdir()
        (root / "-p" / victim.name).symlink_to(victim)
        for act in ("load", "append"):
            with pytest.raises(StoreError):
                await _do(store, act)

    assert victim.read_bytes() == b'{"type":"secret"}\n'


async def test_reading_writes_nothing_and_leaves_out_what_a_killed_writer_has_left(
    root: Path,
) -> None:
    async with DirectoryStore(root) as store:
        await store.append(KEY, [{"type": "x", "uuid": "1"}])
        (path,) = (root / "-p").glob("*.jsonl")
        size = path.stat().st_size
        with path.open("ab") as file:
            file.write(b'{"type":"y","uuid":"2"}\n{"typ')
        left = note(f"-p/{path.name}", size)
        lock_of(root).write_bytes(left)
        before = {each: each.stat() for each in (path, lock_of(root))}

        read = await store.load(KEY), await store.positions(KEY)
        streamed = [chunk async for chunk in store.stream(KEY)]

        assert {each: each.stat().st_mtime_ns for each in before} == {
            each: about.st_mtime_ns for each, about in before.items()
        }
        assert lock_of(root).read_bytes() == left
        await store.append(KEY, [{"type": "z", "uuid": "3"}])
        after = await store.load(KEY)

    assert read == ([{"type": "x", "uuid": "1"}], 1)
    assert streamed == [[{"type": "x", "uuid": "1"}]]
    assert [entry.get("uuid") for entry in after or []] == ["1", "3"]
    assert lock_of(root).read_bytes() == b""


async def test_reading_a_store_that_is_not_there_makes_nothing(tmp_path: Path) -> None:
    async with DirectoryStore(tmp_path / "none") as store:
        assert await store.load(KEY) is None
        assert await store.positions(KEY) == 0

    assert not (tmp_path / "none").exists()


async def test_a_root_that_is_a_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    async with DirectoryStore(path / "below") as store:
        with pytest.raises(StoreError, match="Not a directory"):
            await store.append(KEY, [{"type": "x"}])


async def test_a_closed_store_says_so_and_leaves_no_thread(root: Path) -> None:
    before = set(threading.enumerate())
    store = DirectoryStore(root)
    await store.append(KEY, [{"type": "x"}])
    mine = set(threading.enumerate()) - before

    await store.aclose()
    await store.aclose()
    for thread in mine:
        thread.join(5)

    with pytest.raises(StoreError, match="is closed"):
        await store.load(KEY)
    assert [thread.name for thread in mine] == ["steersman-directory-store"]
    assert not any(thread.is_alive() for thread in mine)
