"""The session functions of the official package and ours, on the same files and the same stores."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

import pytest
import trio

from steersman.compat import sessions as ours
from tests.sessions.made import (
    ID,
    OTHER,
    PROJECT,
    Entry,
    conversation,
    lines,
    number,
    title,
    write,
    write_agent,
)
from tests.sessions.real import PROJECT as REAL
from tests.sessions.real import unpack

official = pytest.importorskip("claude_agent_sdk", reason="not a part of the extra `quick`")

DIRECTORY = "/srv/project"
UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT[0-9:.]+Z")


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.delenv("CLAUDE_CODE_PROJECT_DIR_NAME", raising=False)
    return tmp_path / "config"


def plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {"of": type(value).__name__, **asdict(value)}
    found: Any = value
    return [plain(each) for each in found] if isinstance(value, list) else found


def outcome(call: Callable[..., Any], *args: Any, **kw: Any) -> Any:
    """Return the value, or the error by its official class and the beginning of its text."""
    try:
        found = call(*args, **kw)
        return plain(asyncio.run(found) if asyncio.iscoroutine(found) else found)
    except FileNotFoundError as error:
        return "FileNotFoundError", str(error)[:36]
    except ValueError as error:
        return "ValueError", str(error)[:36]
    except (TypeError, NotImplementedError) as error:
        return type(error).__name__


def without(entry: Entry, *names: str) -> Entry:
    return {name: value for name, value in entry.items() if name not in names}


CYCLES: list[list[int | None]] = [
    [0],
    [1, 0],
    [3, 0, 1, 2],
    [None, 2, 1, 2],
    [2, 0, 1, 2],
    [None, 1, 1, 2],
    [None, 0, 3, 2],
    [1, 2, 0, 2, 5, 4],
]
"""The parent of each message, by its number."""


def with_parents(parents: list[int | None]) -> list[Entry]:
    """Return a conversation in which messages have these parents."""
    talk = conversation(*map(str, range(len(parents))))
    return [
        {**each, "parentUuid": None if parent is None else number(parent)}
        for each, parent in zip(talk, parents, strict=True)
    ]


def odd_files(config: Path) -> None:
    """Write what a directory of sessions may hold."""
    talk = conversation("hi", "there", "again", "well")
    write(config, talk, number(1))
    write(config, b"", number(2))
    write(config, b"noise\n{\n[1]\nnull\n\n", number(3), age=1)
    write(config, lines(talk) + b'{"type":"user","uuid":"' + number(9).encode(), number(4), age=2)
    write(config, [title("only a title")], number(5), age=3)
    write(config, [{**each, "isSidechain": True} for each in talk], number(6), age=4)
    write(config, [*talk, title("T"), {"type": "tag", "tag": "x"}], number(7), age=5)
    write(config, [*talk, {"type": "tag", "tag": "x"}, {"type": "tag", "tag": ""}], ID, age=6)
    write(config, lines(talk).replace(b"\n", b"\r\n"), number(8), age=7)
    for index, parents in enumerate(CYCLES, 10):
        write(config, with_parents(parents), number(index), age=index)
    aside = [{**each, "isSidechain": True} for each in talk]
    write(config, [without(each, "uuid") for each in aside], number(9), age=8)
    # An agent's note may have a type of its own.
    about = {"toolUseId": "T", "agentType": "g", "type": "note"}
    write_agent(config, "a1", conversation("do", "done"), about)
    write_agent(config, "b2", conversation("do"), {"parentAgentId": "a1"}, inside="deep")
    folder = config / "projects" / PROJECT
    (folder / "notes.jsonl").write_text("{}\n")
    (folder / f"{number(20)}.jsonl").mkdir()


READS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("list_sessions", (), {}),
    ("list_sessions", (DIRECTORY,), {"include_worktrees": False}),
    ("list_sessions", ("",), {}),
    ("list_sessions", ("/nowhere",), {}),
    ("list_sessions", (Path(DIRECTORY),), {"limit": 2, "offset": 1}),
    ("list_sessions", (), {"limit": 0, "offset": 3}),
    ("list_sessions", (), {"limit": -1, "offset": -4}),
    ("list_sessions", (), {"limit": 1.5}),
    ("list_sessions", (3,), {}),
    *(
        (name, (each, *where), {})
        for name in ("get_session_info", "get_session_messages", "list_subagents")
        for each in (ID, *map(number, range(1, 18)), OTHER, "nope", "", ID.upper())
        for where in ((), (DIRECTORY,), ("/nowhere",))
    ),
    ("get_session_info", (3,), {}),
    ("get_session_messages", (ID,), {"limit": 2}),
    ("get_session_messages", (ID,), {"limit": 2, "offset": 3}),
    ("get_session_messages", (ID,), {"limit": 0, "offset": 1}),
    ("get_session_messages", (ID,), {"offset": 9}),
    *(
        ("get_subagent_messages", (session_id, agent), {})
        for session_id in (ID, OTHER, "nope")
        for agent in ("a1", "b2", "", "nope", "../a1")
    ),
    ("get_subagent_messages", (ID, "a1", DIRECTORY), {"limit": 1, "offset": 1}),
    ("project_key_for_directory", ("/a b/é",), {}),
    ("project_key_for_directory", (Path("x"),), {}),
    ("project_key_for_directory", ("/" + "long" * 80,), {}),
]


def test_what_is_read_of_files_is_the_same(config: Path) -> None:
    odd_files(config)
    differ: list[Any] = []
    for name, args, kw in READS:
        theirs, mine = (
            outcome(getattr(package, name), *args, **kw) for package in (official, ours)
        )
        if mine != theirs:
            differ.append((name, args, kw, theirs, mine))

    assert differ == []


CHANGES: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    *(
        (name, (session_id, *value, *where), {})
        for name, value in (
            ("rename_session", ("New",)),
            ("tag_session", ("new",)),
            ("delete_session", ()),
            ("fork_session", ()),
        )
        for session_id, where in (
            (ID, ()),
            (ID, (DIRECTORY,)),
            (ID, ("/nowhere",)),
            (number(2), ()),
            (number(3), ()),
            (number(5), ()),
            (OTHER, ()),
            ("nope", ()),
        )
    ),
    *(("rename_session", (ID, each), {}) for each in ("", " ", " a \n b\u200b ", "\u200b", "é")),
    *(
        ("tag_session", (ID, each), {})
        for each in (None, "", " ", "\u200b", " a\u200bb\nc ", "ﬁ", "a\ue000\x1bb", "e\u0301")
    ),
    ("rename_session", (number(4), "after a torn line"), {}),
    ("fork_session", (ID,), {"up_to_message_id": number(1)}),
    ("fork_session", (ID,), {"up_to_message_id": number(90)}),
    ("fork_session", (ID,), {"up_to_message_id": "nope"}),
    ("fork_session", (ID,), {"title": " "}),
    ("fork_session", (ID,), {"title": "Mine"}),
    ("fork_session", (number(7),), {}),
]


def test_a_fork_has_what_the_official_one_has_and_no_name_of_a_team(config: Path) -> None:
    of_team = {"teamName": "t", "agentName": "a", "slug": "s"}
    talk = [{**each, **of_team} for each in conversation("hi", "there")]
    replaced = {"type": "content-replacement", "sessionId": ID, "replacements": [{"of": "x"}]}
    known: list[dict[str, set[str]]] = []
    for package in (official, ours):
        shutil.rmtree(config, ignore_errors=True)
        write(config, [*talk, replaced])
        store: Any = SmallStore()
        project = official.project_key_for_directory(DIRECTORY)
        asyncio.run(store.append({"project_key": project, "session_id": ID}, [*talk, replaced]))

        made = package.fork_session(ID)
        asyncio.run(package.fork_session_via_store(store, ID, DIRECTORY))

        (path,) = config.rglob(f"{made.session_id}.jsonl")
        in_file = [json.loads(each) for each in path.read_bytes().splitlines()]
        # That it has no logical parent is said in every entry there.
        known += [
            {each["type"]: {*each} - {"logicalParentUuid"} for each in entries}
            for entries in (in_file, list(store.kept.values())[1])
        ]

    assert known[2:] == known[:2]
    assert {"uuid", "timestamp"} < known[2]["content-replacement"]


def all_shown() -> dict[str, Any]:
    """Return all that the official functions say of a directory; new ids have no number."""
    found: dict[str, Any] = {}
    known = {ID, OTHER, *(number(index) for index in range(100))}
    for each in official.list_sessions():
        info = asdict(each)
        for name in ("last_modified", "file_size"):
            info.pop(name)
        talk = [(m.type, m.message) for m in official.get_session_messages(each.session_id)]
        name = info.pop("session_id")
        found[name if name in known else "new"] = (info, talk)
    return found


def test_what_is_changed_in_files_is_the_same(config: Path) -> None:
    differ: list[Any] = []
    for name, args, kw in CHANGES:
        results: list[Any] = []
        for package in (official, ours):
            shutil.rmtree(config, ignore_errors=True)
            odd_files(config)
            result = outcome(getattr(package, name), *args, **kw)
            results.append(("new" if isinstance(result, dict) else result, all_shown()))
        if results[0] != results[1]:
            differ.append((name, args, kw, *results))

    assert differ == []


def test_sessions_of_the_stock_cli_are_read_the_same(config: Path) -> None:
    ids = unpack(config)
    for each in ids:
        path = config / "projects" / REAL / f"{each}.jsonl"
        # Without these a file is small, and the official functions read the whole of it.
        kept = [
            e
            for e in path.read_bytes().splitlines(keepends=True)
            if b'"type":"api-request' not in e
        ]
        path.write_bytes(b"".join(kept))
        assert outcome(ours.get_session_info, each) == outcome(official.get_session_info, each)
        assert outcome(ours.get_session_messages, each) == outcome(
            official.get_session_messages, each
        )
        agents = official.list_subagents(each)
        assert sorted(ours.list_subagents(each)) == sorted(agents)
        for agent in agents:
            assert plain(ours.get_subagent_messages(each, agent)) == plain(
                official.get_subagent_messages(each, agent)
            )


def test_worktrees_are_listed_the_same(config: Path, tmp_path: Path) -> None:
    main, linked = tmp_path / "main", tmp_path / "linked"
    (main / "inside").mkdir(parents=True)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run([*git, *words], cwd=main, check=True, timeout=20)
    subprocess.run([*git, "worktree", "add", "-q", linked], cwd=main, check=True, timeout=20)
    for index, place in enumerate((main, linked, main / "inside")):
        key = ours.project_key_for_directory(place)
        write(config, conversation("hi"), number(2 * index), project=key, age=index)
        write(config, [title("no cwd")], number(2 * index + 1), project=key, age=9 + index)

    for place in (main, linked, main / "inside", tmp_path):
        for worktrees in (True, False):
            theirs = official.list_sessions(str(place), include_worktrees=worktrees)
            assert plain(ours.list_sessions(str(place), include_worktrees=worktrees)) == plain(
                theirs
            )
        for index in range(6):
            args = number(index), str(place)
            assert plain(ours.get_session_info(*args)) == plain(official.get_session_info(*args))


class SmallStore:
    """A store with the two methods that are required, which counts what is asked of it."""

    def __init__(self) -> None:
        self.kept: dict[str, list[Entry]] = {}
        self.calls: list[str] = []

    async def append(self, key: Any, entries: list[Any]) -> None:
        self.calls.append(f"append {len(entries)} {sorted(key.items())}")
        self.kept.setdefault(repr(sorted(key.items())), []).extend(entries)

    async def load(self, key: Any) -> list[Any] | None:
        return self.kept.get(repr(sorted(key.items())))


class WithoutSummaries(SmallStore):
    async def list_sessions(self, project_key: str) -> list[Any]:
        mine = [each for each in self.kept if "subpath" not in each and project_key in each]
        named = [re.findall(r"'session_id', '([^']*)'", each) for each in mine]
        return [{"session_id": each[0], "mtime": 5 + at} for at, each in enumerate(named)]


class WithErrors(WithoutSummaries):
    async def load(self, key: Any) -> list[Any] | None:
        if key["session_id"] == number(7):
            raise RuntimeError("unreachable")
        return await super().load(key)


Protocol: Any = official.SessionStore


class NotImplementing(Protocol):  # type: ignore[misc] # untyped where the package is missing
    """Has of the protocol only what is required."""

    def __init__(self) -> None:
        self._small = SmallStore()

    async def append(self, key: Any, entries: list[Any]) -> None:
        await self._small.append(key, entries)

    async def load(self, key: Any) -> list[Any] | None:
        return await self._small.load(key)


class WithoutSummariesYet(WithoutSummaries):
    async def list_session_summaries(self, project_key: str) -> list[Any]:
        raise NotImplementedError


class WithoutAnyList(SmallStore):
    async def list_session_summaries(self, project_key: str) -> list[Any]:
        raise NotImplementedError


STORES: dict[str, Callable[[], Any]] = {
    "small": SmallStore,
    "without summaries": WithoutSummaries,
    "with errors": WithErrors,
    "without summaries yet": WithoutSummariesYet,
    "without any list": WithoutAnyList,
    "of the official protocol": NotImplementing,
    "official": official.InMemorySessionStore,
    "ours": ours.InMemorySessionStore,
}


async def filled(store: Any) -> None:
    talk: list[Any] = conversation("hi", "there", "again", "well")
    project = official.project_key_for_directory(DIRECTORY)

    async def add(session_id: str, entries: list[Any], subpath: str = "") -> None:
        key = {"project_key": project, "session_id": session_id}
        await store.append({**key, "subpath": subpath} if subpath else key, entries)

    await add(ID, talk)
    await add(number(5), [title("only a title")])
    await add(number(6), [{**each, "isSidechain": True} for each in talk])
    await add(number(7), [*talk, title("T"), {"type": "tag", "tag": "x"}])
    side = [{**each, "isSidechain": True, "agentId": "a1"} for each in conversation("do", "done")]
    await add(ID, side, "subagents/agent-a1")
    note = {"type": "agent_metadata", "toolUseId": "T", "parentAgentId": "P"}
    await add(ID, [note], "subagents/agent-a1")
    await add(ID, side, "subagents/deep/agent-b2")
    await add(ID, side, "other/agent-c3")


IN_STORES: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("list_sessions_from_store", (DIRECTORY,), {}),
    ("list_sessions_from_store", (DIRECTORY,), {"limit": 2, "offset": 1}),
    ("list_sessions_from_store", (DIRECTORY,), {"limit": 0, "offset": 1}),
    ("list_sessions_from_store", (), {}),
    *(
        (name, (each, DIRECTORY), {})
        for name in (
            "get_session_info_from_store",
            "get_session_messages_from_store",
            "list_subagents_from_store",
            "delete_session_via_store",
            "fork_session_via_store",
        )
        for each in (ID, number(5), number(6), OTHER, "nope", "")
    ),
    ("get_session_messages_from_store", (ID, DIRECTORY), {"limit": 2, "offset": 1}),
    *(
        ("get_subagent_messages_from_store", (ID, agent, DIRECTORY), {})
        for agent in ("a1", "b2", "c3", "", "nope")
    ),
    ("get_subagent_messages_from_store", ("nope", "a1", DIRECTORY), {}),
    *(
        ("rename_session_via_store", (session_id, name, DIRECTORY), {})
        for session_id, name in ((ID, "New"), (ID, " "), (OTHER, "made by it"), ("nope", "x"))
    ),
    *(
        ("tag_session_via_store", (session_id, tag, DIRECTORY), {})
        for session_id, tag in ((ID, "new"), (ID, None), (ID, ""), ("nope", "x"))
    ),
    ("fork_session_via_store", (ID, DIRECTORY), {"up_to_message_id": number(1), "title": "Mine"}),
    ("fork_session_via_store", (ID, DIRECTORY), {"up_to_message_id": number(90)}),
    ("fork_session_via_store", (ID, DIRECTORY), {"up_to_message_id": "nope"}),
]


def normal(value: Any) -> Any:
    """Return a result without new uuids and times."""
    text = json.dumps(value, default=repr)
    for name in sorted(set(UUID.findall(text)) - {ID, OTHER, *map(number, range(100))}):
        text = text.replace(name, "new")
    return re.sub(r"17\d{11}", "now", TIME.sub("then", text))


async def kept_in(store: Any) -> list[Any]:
    """Return the sessions of a store, as the official functions read them."""
    if not hasattr(store, "list_sessions") or isinstance(store, NotImplementing | WithErrors):
        return []
    infos = [asdict(e) for e in await official.list_sessions_from_store(store, DIRECTORY)]
    return [{**each, "last_modified": 0, "file_size": 0} for each in infos]


@pytest.mark.parametrize("make", STORES.values(), ids=STORES)
def test_functions_over_a_store_are_the_same(make: Callable[[], Any], config: Path) -> None:
    differ: list[Any] = []
    for name, args, kw in IN_STORES:
        results: list[Any] = []
        for package in (official, ours):
            store = make()
            asyncio.run(filled(store))
            result = outcome(getattr(package, name), store, *args, **kw)
            results.append(normal([result, asyncio.run(kept_in(store))]))
        if results[0] != results[1]:
            differ.append((name, args, kw, *results))

    assert differ == []


def test_a_method_that_a_store_got_afterwards_counts(config: Path) -> None:
    """The official functions look at its class only."""
    store: Any = NotImplementing()
    asyncio.run(filled(store))

    async def list_sessions(project_key: str) -> list[Any]:
        return [{"session_id": ID, "mtime": 7}]

    store.list_sessions = list_sessions
    found = asyncio.run(ours.list_sessions_from_store(store, DIRECTORY))

    assert [(each.session_id, each.summary, each.last_modified) for each in found] == [
        (ID, "hi", 7)
    ]
    with pytest.raises(ValueError, match="cannot be listed"):
        asyncio.run(ours.list_sessions_from_store(NotImplementing(), DIRECTORY))


def test_a_list_of_a_store_loads_no_more_than_it_shows() -> None:
    class Counting(WithoutSummaries):
        loads = 0

        async def load(self, key: Any) -> list[Any] | None:
            self.loads += 1
            return await super().load(key)

    store: Any = Counting()
    project = ours.project_key_for_directory(DIRECTORY)
    for index in range(20):
        key = {"project_key": project, "session_id": number(index)}
        asyncio.run(store.append(key, conversation(f"hi {index}")))

    def listed(**named: Any) -> tuple[list[str], int]:
        store.loads = 0
        found = asyncio.run(ours.list_sessions_from_store(store, DIRECTORY, **named))
        return [each.summary for each in found], store.loads

    assert listed(limit=2, offset=1) == (["hi 18", "hi 17"], 16)
    assert listed(limit=2, offset=16) == (["hi 3", "hi 2"], 20)
    assert listed(offset=20) == ([], 0)


def test_a_session_of_a_store_was_last_modified_when_its_newest_entry_was_written() -> None:
    store: Any = SmallStore()
    asyncio.run(filled(store))

    for package in (official, ours):
        info = asyncio.run(package.get_session_info_from_store(store, ID, DIRECTORY))
        assert (info.created_at, info.last_modified) == (1_793_527_200_000, 1_793_527_203_000)


def test_under_trio_the_store_is_awaited_in_trio(config: Path) -> None:
    class TrioStore(WithoutSummaries):
        async def load(self, key: Any) -> list[Any] | None:
            await trio.lowlevel.checkpoint()
            return await super().load(key)

        async def append(self, key: Any, entries: list[Any]) -> None:
            await trio.lowlevel.checkpoint()
            await super().append(key, entries)

    write(config, conversation("hi", "there"), OTHER)

    async def main() -> list[Any]:
        store: Any = TrioStore()
        await filled(store)
        await ours.import_session_to_store(OTHER, store)
        forked = await ours.fork_session_via_store(store, ID, DIRECTORY)
        await ours.rename_session_via_store(store, ID, "Renamed", DIRECTORY)
        await ours.tag_session_via_store(store, ID, "x", DIRECTORY)
        with trio.fail_after(5):
            listed = await ours.list_sessions_from_store(store, DIRECTORY)
            messages = await ours.get_session_messages_from_store(
                store, forked.session_id, DIRECTORY
            )
        return [{each.summary for each in listed}, len(messages)]

    assert trio.run(main) == [{"Renamed", "only a title", "T", "hi", "hi (fork)"}, 4]


def test_under_trio_sixteen_sessions_are_loaded_at_once() -> None:
    class Waiting(WithoutSummaries):
        """Answers when sixteen sessions are asked for, and for the last ones at once."""

        def __init__(self) -> None:
            super().__init__()
            self.asked = 0
            self.full = trio.Event()

        async def load(self, key: Any) -> list[Any] | None:
            self.asked += 1
            if self.asked == 16:
                self.full.set()
            await self.full.wait()
            return await super().load(key)

    async def main(package: Any) -> list[str]:
        store: Any = Waiting()
        project = ours.project_key_for_directory(DIRECTORY)
        for index in range(20):
            key = {"project_key": project, "session_id": number(index)}
            await store.append(key, conversation(f"hi {index}"))
        with trio.fail_after(5):
            return [
                each.summary for each in await package.list_sessions_from_store(store, DIRECTORY)
            ]

    expected = trio.run(main, official)
    assert trio.run(main, ours) == expected == [f"hi {index}" for index in reversed(range(20))]


IMPORTS: list[dict[str, Any]] = [
    {},
    {"include_subagents": False},
    {"batch_size": 1},
    {"batch_size": 0},
    {"directory": DIRECTORY},
    {"directory": "/nowhere"},
]


@pytest.mark.parametrize("kw", IMPORTS, ids=str)
def test_imports_into_a_store_are_the_same(kw: dict[str, Any], config: Path) -> None:
    odd_files(config)
    for session_id in (ID, number(2), number(5), OTHER, "nope"):
        results: list[Any] = []
        for package in (official, ours):
            store: Any = SmallStore()
            result = outcome(package.import_session_to_store, session_id, store, **kw)
            results.append((result, store.kept))

        assert results[1] == results[0]


def test_an_import_leaves_a_torn_line_out_where_the_official_one_raises(config: Path) -> None:
    write(config, lines(conversation("hi", "there")) + b'{"type":"us')
    store: Any = SmallStore()

    asyncio.run(ours.import_session_to_store(ID, store))

    assert [len(each) for each in store.kept.values()] == [2]
    with pytest.raises(json.JSONDecodeError):
        asyncio.run(official.import_session_to_store(ID, SmallStore()))


def test_summaries_are_folded_the_same() -> None:
    key: Any = {"project_key": "k", "session_id": ID}
    talk: list[Any] = conversation("hi", "there")
    before: Any = {"session_id": "as it was", "mtime": 7, "data": {"other": 1}}
    tags = [{"type": "tag", "tag": each} for each in ("x", "")]
    aside = [{**without(talk[0], "uuid"), "isSidechain": True}]
    several: list[Any] = [[], talk, [*talk, title("T")], tags[:1], tags, [*talk, *tags], aside]
    tagged: Any = {"session_id": ID, "mtime": 7, "data": {"tag": "y"}}
    for previous in (None, before, tagged):
        for entries in several:
            theirs = official.fold_session_summary(previous, key, entries)
            assert ours.fold_session_summary(previous, key, entries) == theirs
    assert before == {"session_id": "as it was", "mtime": 7, "data": {"other": 1}}


def steps() -> Iterator[Callable[[Any], Awaitable[Any]]]:
    """Yield the changes of a store in memory, one after the other."""
    main: Any = {"project_key": "p", "session_id": "a"}
    part = {**main, "subpath": "subagents/agent-1"}
    other = {**main, "session_id": "b"}
    entry: Any = {"type": "x", "uuid": "1"}
    yield lambda store: store.load(main)
    yield lambda store: store.delete(part)
    yield lambda store: store.append(main, [])
    yield lambda store: store.load(main)

    def append(key: Any) -> Callable[[Any], Awaitable[Any]]:
        return lambda store: store.append(key, [entry])

    for key in (main, main, part, other):
        yield append(key)
        yield lambda store: store.list_sessions("p")
        yield lambda store: store.list_session_summaries("p")
        yield lambda store: store.list_subkeys(main)
    yield lambda store: store.load(main)
    yield lambda store: store.delete(part)
    yield lambda store: store.list_subkeys(main)
    yield lambda store: store.delete(main)
    yield lambda store: store.delete(main)
    yield lambda store: store.list_sessions("p")
    yield lambda store: store.list_session_summaries("none")


async def test_the_stores_in_memory_do_the_same() -> None:
    theirs, mine = official.InMemorySessionStore(), ours.InMemorySessionStore()
    for step in steps():
        assert normal(await step(mine)) == normal(await step(theirs))
        assert mine.size == theirs.size
    assert mine.get_entries({"project_key": "p", "session_id": "b"})
    mine.clear()
    assert mine.size == 0


def test_of_two_files_of_one_session_the_newer_one_is_the_session(config: Path) -> None:
    write(config, conversation("old"), ID, project="-a", age=9)
    write(config, conversation("new"), ID, project="-b", age=1)
    write(config, conversation("oldest"), ID, project="-c", age=99)

    info = ours.get_session_info(ID)

    assert info is not None
    assert info.summary == "new" == ours.list_sessions()[0].summary


def test_a_session_that_is_open_can_be_renamed_as_with_the_official_function(config: Path) -> None:
    from steersman.stores.conversation_lock import LockDirectory, claim  # noqa: PLC0415

    write(config, conversation("hi"))
    lock = claim(LockDirectory(str(config)), ID)
    try:
        ours.rename_session(ID, "New")
    finally:
        lock.release()

    assert [each.custom_title for each in ours.list_sessions()] == ["New"]
