"""The synchronous and the asynchronous front have the same names and give the same."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from steersman.errors import SessionInUse, SessionNotFound, UsageError
from steersman.sessions import Sessions, aio
from steersman.sessions.backends import Pages
from steersman.sessions.driving import drive
from steersman.stores.conversation_lock import LockDirectory, claim
from steersman.stores.memory import MemoryStore
from steersman.transcripts.keys import project_key
from tests.sessions.made import ID, OTHER, conversation, number, write, write_agent
from tests.sessions.test_copying import PlainStore, plain_store

WORK = "/srv/project"


def public(cls: type[Any]) -> dict[str, inspect.Signature]:
    return {
        name: inspect.signature(member)
        for name, member in vars(cls).items()
        if not name.startswith("_") or name == "__init__"
    }


def test_both_fronts_have_the_same_names_and_parameters() -> None:
    ours, twins = public(Sessions), public(aio.Sessions)

    assert list(ours) == list(twins)
    assert {name: list(each.parameters.values()) for name, each in ours.items()} == {
        name: list(each.parameters.values()) for name, each in twins.items()
    }


class BoundStore(PlainStore):
    """A store that works in one event loop only, as those with connections do."""

    def __init__(self) -> None:
        super().__init__()
        self.loops: set[asyncio.AbstractEventLoop] = set()

    async def append(self, key: Any, entries: list[Any]) -> None:
        self.loops.add(asyncio.get_running_loop())
        await super().append(key, entries)

    async def load(self, key: Any) -> list[Any] | None:
        self.loops.add(asyncio.get_running_loop())
        await asyncio.sleep(0)
        return await super().load(key)


async def everything(sessions: aio.Sessions) -> list[object]:
    """Use every method of the asynchronous front."""
    seen: list[object] = [await sessions.list(), await sessions.info(ID)]
    seen += [[each.uuid async for each in sessions.messages(ID, last=2)]]
    seen += [[each.type async for each in sessions.entries(ID)], await sessions.agents(ID)]
    await sessions.rename(ID, "Renamed")
    await sessions.tag(ID, "tagged")
    fork = await sessions.fork(ID, up_to=number(1))
    seen += [len([each async for each in sessions.messages(fork)])]
    seen += [await sessions.search("another"), (await sessions.info(ID)).tag]
    await sessions.delete(fork)
    with pytest.raises(SessionNotFound):
        await sessions.info(fork)
    return seen


def everything_at_once(sessions: Sessions) -> list[object]:
    """Use every method of the synchronous front."""
    seen: list[object] = [sessions.list(), sessions.info(ID)]
    seen += [[each.uuid for each in sessions.messages(ID, last=2)]]
    seen += [[each.type for each in sessions.entries(ID)], sessions.agents(ID)]
    sessions.rename(ID, "Renamed")
    sessions.tag(ID, "tagged")
    fork = sessions.fork(ID, up_to=number(1))
    seen += [len(list(sessions.messages(fork)))]
    seen += [sessions.search("another"), sessions.info(ID).tag]
    sessions.delete(fork)
    with pytest.raises(SessionNotFound):
        sessions.info(fork)
    return seen


def test_both_fronts_give_the_same_of_files(config: Path, tmp_path: Path) -> None:
    def made(name: str) -> Path:
        place = tmp_path / name
        write(place, conversation("hi", "answer", "more", "another answer"))
        return place

    ours = everything_at_once(Sessions(config=made("a")))
    theirs = asyncio.run(everything(aio.Sessions(config=made("b"))))

    assert ours == theirs
    assert ours[5] == 2


async def filled() -> MemoryStore:
    store = MemoryStore()
    entries: Any = conversation("hi", "answer", "more", "another answer")
    await store.append({"project_key": "-srv-project", "session_id": ID}, entries)
    return store


def test_both_fronts_give_the_same_of_a_store() -> None:
    ours = everything_at_once(Sessions(asyncio.run(filled()), project=WORK))
    theirs = asyncio.run(everything(aio.Sessions(asyncio.run(filled()), project=WORK)))

    assert ours[2:] == theirs[2:]


async def test_a_store_is_refused_where_an_event_loop_runs(config: Path) -> None:
    sessions = Sessions(await filled(), project=WORK)

    for call in (sessions.list, lambda: sessions.info(ID), lambda: sessions.search("x")):
        with pytest.raises(UsageError, match=r"steersman\.sessions\.aio"):
            call()
    # In another thread it works, and so do files here.
    assert (await asyncio.to_thread(sessions.info, ID)).summary == "hi"
    assert Sessions().list() == []


def test_synchronous_calls_use_a_store_in_one_event_loop() -> None:
    store: Any = BoundStore()
    sessions = Sessions(store, project=WORK)
    asked = {"project_key": "-srv-project", "session_id": ID}
    asyncio.run(PlainStore.append(store, asked, [*conversation("hi", "answer")]))
    found: list[str] = []

    def read() -> None:
        found.extend(each.uuid for each in sessions.messages(ID))

    threads = [threading.Thread(target=read) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(20)
    sessions.rename(ID, "x")

    async def follow() -> str:
        async with asyncio.timeout(20):
            return (await anext(sessions.follow(ID))).uuid

    assert len(found) == 8
    assert asyncio.run(follow()) == number(0)
    assert len(store.loops) == 1


async def test_an_asynchronous_front_uses_a_store_in_the_callers_loop() -> None:
    store: Any = BoundStore()
    await store.append({"project_key": "-srv-project", "session_id": ID}, conversation("hi"))

    await aio.Sessions(store, project=WORK).info(ID)

    assert store.loops == {asyncio.get_running_loop()}


def test_a_store_without_lists_says_what_it_lacks() -> None:
    sessions = Sessions(plain_store(), project=WORK)

    with pytest.raises(UsageError, match="list_sessions"):
        sessions.list()
    with pytest.raises(SessionNotFound, match="-srv-project"):
        sessions.info(ID)
    with pytest.raises(SessionNotFound):
        sessions.delete(ID)


class ListingStore(PlainStore):
    """A store that lists its sessions and keeps no summaries of them."""

    async def list_sessions(self, project_key: str) -> list[Any]:
        mine = [each for (key, each, part) in self.kept if key == project_key and not part]
        return [{"session_id": each, "mtime": 10 + at} for at, each in enumerate(mine)]


def test_a_store_without_summaries_is_listed_by_its_entries() -> None:
    store: Any = ListingStore()
    key = {"project_key": "-srv-project"}
    for index in range(20):
        entries = conversation(f"hi {index}") if index != 5 else [{"type": "mode"}]
        asyncio.run(store.append({**key, "session_id": number(index)}, entries))
    sessions = Sessions(store, project=WORK)

    found = sessions.list()

    newest_first = [index for index in reversed(range(20)) if index != 5]
    assert [each.summary for each in found] == [f"hi {index}" for index in newest_first]
    assert [each.last_modified for each in found] == [10 + index for index in newest_first]
    assert sessions.list(limit=3, offset=13) == found[13:16]
    assert sessions.info(number(3)) == found[-4]
    with pytest.raises(SessionNotFound, match="neither a prompt nor a title"):
        sessions.info(number(5))
    assert [each.session_id for each in sessions.search("hi 7")] == [number(7)]
    with pytest.raises(UsageError, match=r"^store: got 'ListingStore', allowed: a store with del"):
        sessions.delete(number(3))


class SummaryStore(PlainStore):
    """A store that keeps summaries and does not list its sessions."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []

    async def load(self, key: Any) -> list[Any] | None:
        self.loaded.append(key["session_id"])
        return await super().load(key)

    async def list_session_summaries(self, project_key: str) -> list[Any]:
        assert project_key == "-srv-project"
        return [
            {"session_id": each, "mtime": mtime, "data": {"custom_title": f"Kept {mtime}"}}
            for each, mtime in ((ID, 5), (OTHER, 9))
        ]


class BothStore(SummaryStore):
    """A store that lists its sessions too; one of them has grown since its summary."""

    async def list_sessions(self, project_key: str) -> list[Any]:
        assert project_key == "-srv-project"
        return [{"session_id": ID, "mtime": 6}, {"session_id": OTHER, "mtime": 9}]


@pytest.mark.parametrize(
    ("make", "loaded", "found"),
    [
        (SummaryStore, [], [(OTHER, "Kept 9", 9), (ID, "Kept 5", 5)]),
        (BothStore, [ID], [(OTHER, "Kept 9", 9), (ID, "hi", 6)]),
    ],
)
def test_a_list_of_a_store_reads_only_what_has_no_current_summary(
    make: type[SummaryStore], loaded: list[str], found: list[tuple[str, str, int]]
) -> None:
    store: Any = make()
    asyncio.run(store.append({"project_key": "-srv-project", "session_id": ID}, conversation("hi")))
    sessions = Sessions(store, project=WORK)

    infos = sessions.list()

    assert [(each.session_id, each.summary, each.last_modified) for each in infos] == found
    assert store.loaded == loaded
    assert sessions.info(OTHER) == infos[0]
    assert store.loaded == loaded


def test_a_store_whose_optional_methods_only_raise_is_as_one_without_them() -> None:
    class Refusing(PlainStore):
        async def list_sessions(self, project_key: str) -> list[Any]:
            raise NotImplementedError

        async def list_session_summaries(self, project_key: str) -> list[Any]:
            raise NotImplementedError

        async def delete(self, key: Any) -> None:
            raise NotImplementedError

    store: Any = Refusing()
    asyncio.run(store.append({"project_key": "-srv-project", "session_id": ID}, conversation("hi")))
    sessions = Sessions(store, project=WORK)

    assert sessions.info(ID).summary == "hi"
    with pytest.raises(UsageError, match=r"^store: got 'Refusing', allowed: a store with list_s"):
        sessions.list()
    with pytest.raises(UsageError, match=r"^store: got 'Refusing', allowed: a store with delete"):
        sessions.delete(ID)


def test_a_store_archives_nothing_and_says_so() -> None:
    with pytest.raises(UsageError, match="tag"):
        Sessions(asyncio.run(filled()), project=WORK).archive(ID)


def test_an_error_of_a_store_reaches_the_caller() -> None:
    class Broken(PlainStore):
        async def load(self, key: Any) -> list[Any] | None:
            raise ConnectionError("gone")

    broken: Any = Broken()
    with pytest.raises(ConnectionError, match="gone"):
        Sessions(broken, project=WORK).messages(ID)


async def test_a_reader_that_stops_early_closes_the_file(config: Path) -> None:
    path = write(config, conversation(*(str(index) for index in range(300))))

    stream: Any = aio.Sessions().messages(ID)
    await anext(stream)
    await stream.aclose()

    assert path not in open_files()


async def test_a_reader_that_is_cancelled_while_a_thread_reads_closes_the_file() -> None:
    reads, may_end, closed = threading.Event(), threading.Event(), threading.Event()

    def items() -> Iterator[str]:
        try:
            reads.set()
            may_end.wait(20)
            yield "x"
        finally:
            closed.set()

    pages: Pages[str] = Pages(items(), len)
    reading = asyncio.ensure_future(asyncio.to_thread(drive, pages.next()))
    await asyncio.to_thread(reads.wait, 20)

    await asyncio.to_thread(drive, pages.close())
    was_closed = closed.is_set()
    may_end.set()

    assert await reading == ["x"]
    assert (was_closed, closed.is_set()) == (False, True)


def test_pages_that_are_closed_read_no_further() -> None:
    seen: list[str] = []

    def items() -> Iterator[str]:
        try:
            yield from ["a" * 2_000_000, "b"]
        finally:
            seen.append("closed")

    pages: Pages[str] = Pages(items(), len)
    first = drive(pages.next())
    drive(pages.close())

    assert (len(first), seen) == (1, ["closed"])
    assert drive(pages.next()) == []


def test_a_reader_of_a_store_can_be_dropped_where_an_event_loop_runs() -> None:
    sessions = Sessions(asyncio.run(filled()), project=WORK)
    entries = [sessions.entries(ID)]
    next(entries[0])

    async def drop() -> None:
        entries.clear()

    # A warning of the garbage collector would be an error here.
    asyncio.run(drop())
    assert len(list(sessions.entries(ID))) == 4


def open_files() -> set[Path]:
    return {each.readlink() for each in Path("/proc/self/fd").iterdir() if each.is_symlink()}


@pytest.mark.process
def test_neither_sqlite_nor_the_private_loop_is_loaded_before_it_is_needed() -> None:
    code = (
        "import sys, steersman.sessions, steersman.sessions.aio;"
        "print([name for name in ('sqlite3', 'psycopg', 'html') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=True)

    assert done.stdout == b"[]\n"


def test_subagents_of_a_store_are_read(config: Path) -> None:
    write(config, conversation("hi"))
    write_agent(config, "abc", conversation("sub", "done"), {"toolUseId": "toolu_1"})
    write_agent(config, "def", conversation("deep"), inside="workflows/run")
    stored = Sessions(MemoryStore(), project=WORK)
    Sessions().copy_to(stored, ID)

    assert stored.agents(ID) == Sessions().agents(ID)
    messages = list(stored.messages(ID, agent="abc"))

    assert [each.parent_tool_use_id for each in messages] == ["toolu_1", "toolu_1"]
    said = [each.uuid for each in stored.entries(ID, agent="abc") if each.uuid]
    assert said == [each.uuid for each in messages]
    for method in (stored.messages, stored.entries):
        with pytest.raises(UsageError, match=r"agent: got 'nobody', .*: abc, def"):
            method(ID, agent="nobody")


# --- Every argument, through both fronts -------------------------------------------------

FRONTS = pytest.mark.parametrize("front", [Sessions, aio.Sessions], ids=["sync", "async"])
Front = type[Sessions | aio.Sessions]


async def call(sessions: Sessions | aio.Sessions, method: str, *given: Any, **named: Any) -> Any:
    """Call a method of either front, and return what it gives; what it yields as a list."""
    found = getattr(sessions, method)(*given, **named)
    if inspect.isawaitable(found):
        found = await found
    if isinstance(found, AsyncIterator):
        return [each async for each in found]
    return list(found) if isinstance(found, Iterator) else found


@FRONTS
async def test_a_list_is_cut_and_shows_what_is_asked_for(
    config: Path, tmp_path: Path, front: Front
) -> None:
    main, linked = tmp_path / "main", tmp_path / "linked"
    about = main / ".git" / "worktrees" / "linked"
    about.mkdir(parents=True)
    linked.mkdir()
    (about / "gitdir").write_text(str(linked / ".git"))
    (linked / ".git").write_text("gitdir: ../main/.git/worktrees/linked\n")
    (about / "commondir").write_text("../..")
    for index in range(4):
        write(config, conversation("hi"), number(index), project=project_key(str(main)), age=index)
    write(config, conversation("hi"), OTHER, project=project_key(str(linked)), age=9)
    sessions = front(project=main)

    async def ids(**named: Any) -> list[str]:
        return [each.session_id for each in await call(sessions, "list", **named)]

    await call(sessions, "archive", number(3))
    assert await ids(limit=2, offset=1) == [number(1), number(2)]
    assert await ids() == [number(0), number(1), number(2), OTHER]
    assert await ids(worktrees=False) == [number(0), number(1), number(2)]
    assert await ids(worktrees=False, archived=True) == [number(index) for index in range(4)]
    await call(sessions, "unarchive", number(3))
    assert number(3) in await ids()


@FRONTS
async def test_messages_before_a_compaction_are_read_if_asked_for(
    config: Path, front: Front
) -> None:
    before, after = conversation("old", "older"), conversation("summary", "new", first=2)
    boundary = {"type": "system", "subtype": "compact_boundary", "uuid": number(9)}
    compacted = {**boundary, "parentUuid": None, "logicalParentUuid": number(1)}
    write(config, [*before, compacted, {**after[0], "parentUuid": number(9)}, after[1]])
    sessions = front()

    whole = await call(sessions, "messages", ID, through_compaction=True)
    newest = await call(sessions, "messages", ID)

    assert [each.uuid for each in whole] == [number(index) for index in range(4)]
    assert [each.uuid for each in newest] == [number(2), number(3)]
    assert [each.uuid for each in await call(sessions, "messages", ID, last=1)] == [number(3)]


@FRONTS
async def test_what_a_subagent_said_is_read_by_its_id(config: Path, front: Front) -> None:
    write(config, conversation("hi"))
    write_agent(config, "abc", conversation("sub", "done", "more"))
    sessions = front()

    assert len(await call(sessions, "messages", ID, agent="abc", last=2)) == 2
    assert len(await call(sessions, "entries", ID, agent="abc")) == 3
    assert [each.agent_id for each in await call(sessions, "agents", ID)] == ["abc"]


@FRONTS
async def test_what_is_in_use_is_changed_only_by_force(config: Path, front: Front) -> None:
    path = write(config, conversation("hi"))
    lock = claim(LockDirectory(str(config)), ID)
    sessions = front()

    for method, given in (("rename", ["T"]), ("tag", ["t"]), ("delete", [])):
        with pytest.raises(SessionInUse, match="force=True") as caught:
            await call(sessions, method, ID, *given)
        assert caught.value.pid
        await call(sessions, method, ID, *given, force=True)
        if method != "delete":
            found = await call(sessions, "info", ID)
            assert (found.custom_title, found.tag) == ("T", "t" if method == "tag" else None)
    lock.release()

    assert not path.exists()


@FRONTS
async def test_a_fork_has_its_own_title_and_a_search_its_limit(config: Path, front: Front) -> None:
    write(config, conversation("alpha", "alpha beta", "alpha"))
    sessions = front()

    fork = await call(sessions, "fork", ID, up_to=number(1), title="Forked")

    assert (await call(sessions, "info", fork)).custom_title == "Forked"
    assert len(await call(sessions, "messages", fork)) == 2
    assert len(await call(sessions, "search", "alpha", limit=4)) == 4


BAD: list[tuple[str, list[Any], dict[str, Any], str]] = [
    *[("list", [], {"limit": bad}, "limit") for bad in (-1, True, "5", 1.0)],
    *[("list", [], {"offset": bad}, "offset") for bad in (-1, None)],
    *[("messages", [ID], {"last": bad}, "last") for bad in (-1, False)],
    *[("follow", [ID], {"after": bad}, "after") for bad in (-1, None, "x")],
    *[("search", ["x"], {"limit": bad}, "limit") for bad in (-1, None)],
    ("search", [["x"]], {}, "text"),
    *[("fork", [ID], {"up_to": bad}, "up_to") for bad in ("", 5)],
    *[("fork", [ID], {"title": bad}, "title") for bad in ("", 5)],
    ("rename", [ID, " "], {}, "title"),
    ("tag", [ID, 5], {}, "tag"),
    ("copy_to", [object(), ID], {}, "other"),
]


@FRONTS
@pytest.mark.parametrize(("method", "given", "named", "argument"), BAD)
async def test_an_error_names_the_argument_and_what_was_given(
    config: Path, front: Front, method: str, given: list[Any], named: dict[str, Any], argument: str
) -> None:
    path = write(config, conversation("hi"))
    before = path.read_bytes()

    with pytest.raises(UsageError, match=f"^{argument}: got ") as caught:
        await call(front(), method, *given, **named)

    assert caught.value.argument == argument
    assert caught.value.given == [*given, *named.values()][-1 if method != "copy_to" else 0]
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == [path.name]


async def test_a_tag_and_a_title_of_a_store_are_the_clis_own_entries() -> None:
    store = await filled()
    sessions = aio.Sessions(store, project=WORK)

    await sessions.rename(ID, "Renamed")
    await sessions.tag(ID, "work")
    tagged = await sessions.info(ID)
    await sessions.tag(ID, None)
    entries = [each.data async for each in sessions.entries(ID)]

    assert (tagged.custom_title, tagged.tag) == ("Renamed", "work")
    assert (await sessions.info(ID)).tag is None
    renamed, tag, untagged = entries[-3:]
    assert (renamed["type"], renamed["customTitle"]) == ("custom-title", "Renamed")
    assert [tag["type"], tag["tag"], untagged["tag"]] == ["tag", "work", ""]
    assert {each["sessionId"] for each in entries[-3:]} == {ID}
    assert len({each["uuid"] for each in entries[-3:]}) == 3


async def test_a_session_is_copied_from_a_store_by_the_asynchronous_front(tmp_path: Path) -> None:
    sessions, home = aio.Sessions(await filled(), project=WORK), aio.Sessions(config=tmp_path)

    assert await sessions.copy_to(home, ID) == 4
    assert await sessions.copy_to(home, ID) == 0
    assert len([each async for each in home.messages(ID)]) == 4


@pytest.mark.parametrize("make", [MemoryStore, plain_store])
async def test_what_a_store_does_not_have_is_not_found_by_any_method(make: Any) -> None:
    sessions = aio.Sessions(make(), project=WORK)
    calls: list[tuple[str, list[Any]]] = [
        *((name, []) for name in ("info", "messages", "entries", "agents", "delete", "fork")),
        *(("rename", ["x"]), ("tag", ["x"]), ("follow", [])),
    ]

    for method, given in calls:
        with pytest.raises(SessionNotFound, match="in the store, for the project -srv-p") as caught:
            await call(sessions, method, ID, *given)
        assert caught.value.session_id == ID
    with pytest.raises(SessionNotFound, match="in the store, for the project -srv-project"):
        await sessions.copy_to(aio.Sessions(MemoryStore()), ID)


class StreamingStore(PlainStore):
    """A store that gives entries one by one, and knows when it is left."""

    def __init__(self) -> None:
        super().__init__()
        self.was_left = False

    async def stream(self, key: Any) -> AsyncIterator[list[Any]]:
        try:
            for each in await self.load(key) or []:
                yield []
                yield [each]
        finally:
            self.was_left = True

    async def positions(self, key: Any) -> int:
        return len(await self.load(key) or [])


async def test_a_reader_that_stops_early_closes_the_stream_of_a_store() -> None:
    store: Any = StreamingStore()
    await store.append({"project_key": "-srv-project", "session_id": ID}, conversation("a", "b"))

    stream: Any = aio.Sessions(store, project=WORK).entries(ID)
    first = await anext(stream)
    was_left = store.was_left
    await stream.aclose()

    assert (first.uuid, was_left, store.was_left) == (number(0), False, True)
    read = [each.uuid async for each in aio.Sessions(store, project=WORK).entries(ID)]
    assert read == [number(0), number(1)]


def test_a_store_has_no_directory_of_a_configuration(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^config: .*None with a store") as caught:
        Sessions(MemoryStore(), config=tmp_path)

    assert caught.value.hint == "leave config= out, or leave the store out"
