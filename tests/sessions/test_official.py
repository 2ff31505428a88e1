"""The official functions and ours on the same directories: equal, or `REASONS` says why not.

On thirty sessions that the stock CLI wrote, and two hundred changed copies of them.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from steersman.sessions import Sessions, aio
from steersman.stores.memory import MemoryStore
from tests.sessions.made import BEGIN, ID, conversation, number, write
from tests.sessions.real import PROJECT, changed, unpack

official = pytest.importorskip("claude_agent_sdk", reason="not a part of the extra `quick`")

CHANGED = 200
ENDS = 64 * 1024
"""Bytes that the official list reads of each end of a file."""
OURS_ONLY = ("archived", "expires")


def is_not_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return True
    return False


def linked(data: bytes) -> Iterator[dict[str, Any]]:
    for line in data.split(b"\n"):
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict) and entry.get("uuid") and "parentUuid" in entry:
            yield entry


def has_a_uuid_twice(data: bytes) -> bool:
    seen: dict[str, set[str]] = {}
    for each in linked(data):
        seen.setdefault(each["uuid"], set()).add(json.dumps(each, sort_keys=True))
    return any(len(each) > 1 for each in seen.values())


def ends_in_a_meta_message(data: bytes) -> bool:
    shown = [each for each in linked(data) if each["type"] in ("user", "assistant")]
    return bool(shown) and bool(shown[-1].get("isMeta"))


REASONS: Mapping[str, Callable[[bytes], bool]] = {
    "a byte that is no UTF-8: the official functions raise, here the line is read": is_not_utf8,
    "theirs looks for titles and tags at the ends of a file, ours in the whole": (
        lambda data: len(data) > ENDS
    ),
    "one uuid for two entries: theirs is the later one everywhere, ours by its place": (
        has_a_uuid_twice
    ),
    "the newest message is marked meta: theirs begins at another end": ends_in_a_meta_message,
}
NOT_UTF8, ENDS_ONLY, *OTHERS = REASONS
LISTED = [NOT_UTF8, ENDS_ONLY]
READ = [NOT_UTF8, *OTHERS]


def unexplained(path: Path, reasons: list[str]) -> bool:
    data = path.read_bytes()
    return not any(REASONS[each](data) for each in reasons)


@pytest.fixture
def folder(config: Path) -> Path:
    """Real files and changed ones; every other of these without the large records of requests."""
    ids = unpack(config)
    folder = config / "projects" / PROJECT
    for seed in range(CHANGED):
        lines = (folder / f"{ids[seed % len(ids)]}.jsonl").read_bytes().splitlines()
        short = [each for each in lines if not each.startswith(b'{"type":"api-request')]
        data = changed(short if seed % 2 else lines, seed)
        path = folder / f"{number(1000 + seed)}.jsonl"
        path.write_bytes(data)
        # A whole second: the official functions round other times up, near a millisecond.
        os.utime(path, (BEGIN - seed, BEGIN - seed))
    return folder


def test_lists_agree(folder: Path) -> None:
    theirs = {each.session_id: asdict(each) for each in official.list_sessions()}
    ours: dict[str, dict[str, Any]] = {}
    for each in Sessions(index=False).list(archived=True):
        ours[each.session_id] = {
            name: value for name, value in asdict(each).items() if name not in OURS_ONLY
        }

    differ = [each for each in {*theirs, *ours} if theirs.get(each) != ours.get(each)]

    assert len(ours) > CHANGED
    assert [each for each in differ if unexplained(folder / f"{each}.jsonl", LISTED)] == []
    # What can be explained is rare; and theirs knows nothing that ours does not.
    assert len(differ) < CHANGED // 10
    for each in set(differ) & set(theirs):
        for name, value in theirs[each].items():
            assert value == ours[each][name] or name in ("summary", "first_prompt") or not value


def test_single_sessions_agree(folder: Path) -> None:
    sessions = Sessions()
    for info in sessions.list(limit=20):
        found = official.get_session_info(info.session_id)
        small = (folder / f"{info.session_id}.jsonl").stat().st_size <= ENDS

        assert not small or asdict(found).items() <= asdict(info).items()


def test_messages_agree(folder: Path) -> None:
    sessions, differ, count = Sessions(index=False), list[str](), 0
    for path in sorted(folder.glob("*.jsonl")):
        try:
            found = official.get_session_messages(path.stem)
        except UnicodeDecodeError:
            assert not unexplained(path, READ)
            continue
        theirs = [(each.type, each.uuid, each.session_id, each.message) for each in found]
        ours = [
            (each.type, each.uuid, each.session_id, each.message)
            for each in sessions.messages(path.stem)
        ]
        count += len(ours)
        if ours != theirs:
            differ.append(path.stem)

    assert count > 5 * CHANGED
    assert [each for each in differ if unexplained(folder / f"{each}.jsonl", READ)] == []
    assert len(differ) < CHANGED // 20


def test_subagents_and_their_messages_agree(folder: Path) -> None:
    sessions, count = Sessions(index=False), 0
    for path in sorted(folder.glob("*.jsonl")):
        agents = [each.agent_id for each in sessions.agents(path.stem)]
        assert sorted(agents) == sorted(official.list_subagents(path.stem))
        for agent in agents:
            found = official.get_subagent_messages(path.stem, agent)
            count += len(found)
            assert [
                (m.uuid, m.message, m.parent_tool_use_id, m.parent_agent_id)
                for m in sessions.messages(path.stem, agent=agent)
            ] == [(m.uuid, m.message, m.parent_tool_use_id, m.parent_agent_id) for m in found]

    assert count > 10


def shown(messages: Any) -> list[Any]:
    return [(each.type, each.message) for each in messages]


def test_forks_agree(config: Path) -> None:
    ids = unpack(config)
    sessions = Sessions(index=False)
    for session_id in ids:
        messages = list(sessions.messages(session_id))
        middle = messages[len(messages) // 2].uuid
        for up_to in (None, middle):
            theirs = official.fork_session(session_id, up_to_message_id=up_to).session_id
            ours = sessions.fork(session_id, up_to=up_to)

            got, want = shown(sessions.messages(ours)), shown(sessions.messages(theirs))
            if up_to is not None and "tool_result" in str(want[-1]):
                # Of several results, ours has all: a model cannot go on after some of them.
                assert [each for each in want if each not in got] == []
            else:
                assert got == want
            assert shown(official.get_session_messages(ours)) == got
            assert sessions.info(ours).summary == sessions.info(theirs).summary


def test_titles_and_tags_are_the_same_bytes(config: Path) -> None:
    sessions = Sessions()
    found: list[bytes] = []
    for rename, tag in (
        (official.rename_session, official.tag_session),
        (sessions.rename, sessions.tag),
    ):
        path = write(config, conversation("hi"))
        rename(ID, "  A title ")
        tag(ID, "a tag")
        tag(ID, None)
        found.append(path.read_bytes())

    assert found[0] == found[1]


def test_what_one_deletes_is_gone_for_the_other(config: Path) -> None:
    write(config, conversation("hi"))
    write(config, conversation("hi"), number(1))

    Sessions().delete(ID)
    official.delete_session(number(1))

    assert official.list_sessions() == Sessions().list() == []
    with pytest.raises(FileNotFoundError):
        official.delete_session(ID)


async def test_functions_over_a_store_agree(config: Path, tmp_path: Path) -> None:
    """A store that official functions have filled, read and changed by ours, and the reverse."""
    ids = unpack(config)[:6]
    store, project = MemoryStore(), tmp_path
    key = official.project_key_for_directory(project)
    for session_id in ids:
        path = config / "projects" / PROJECT / f"{session_id}.jsonl"
        entries: Any = [json.loads(line) for line in path.read_bytes().splitlines()]
        await store.append({"project_key": key, "session_id": session_id}, entries)
    ours = aio.Sessions(store, project=project)
    there = str(project)
    first, second, third, *_ = ids

    await ours.rename(first, "Ours")
    await official.rename_session_via_store(store, second, "Theirs", there)
    await ours.tag(second, "ours")
    await official.tag_session_via_store(store, first, "theirs", there)
    fork = await ours.fork(third)
    other = (await official.fork_session_via_store(store, third, there)).session_id
    listed = await official.list_sessions_from_store(store, there)

    assert {each.session_id: (each.summary, each.tag) for each in listed} == {
        each.session_id: (each.summary, each.tag) for each in await ours.list()
    }
    for session_id in (*ids, fork, other):
        theirs = await official.get_session_messages_from_store(store, session_id, there)
        assert shown(theirs) == shown([each async for each in ours.messages(session_id)])
        found = await official.get_session_info_from_store(store, session_id, there)
        assert found.summary == (await ours.info(session_id)).summary
    await official.delete_session_via_store(store, fork, there)
    await ours.delete(other)
    assert {each.session_id for each in await ours.list()} == set(ids)


def test_a_session_goes_into_a_store_as_the_official_import_does_it(
    config: Path, tmp_path: Path
) -> None:
    ids = unpack(config)
    mine, theirs = official.InMemorySessionStore(), official.InMemorySessionStore()
    sessions = Sessions(index=False)
    session_id = next(each for each in ids if sessions.agents(each))
    target = Sessions(mine, project=tmp_path)
    sessions.copy_to(target, session_id)
    asyncio.run(official.import_session_to_store(session_id, theirs))
    key = official.project_key_for_directory(tmp_path)

    for part in ("", *(each.subpath for each in sessions.agents(session_id))):
        places: list[Any] = []
        for project in (key, PROJECT):
            place = {"project_key": project, "session_id": session_id}
            places.append({**place, "subpath": part} if part else place)
        ours = asyncio.run(mine.load(places[0]))
        whole = asyncio.run(theirs.load(places[1]))
        assert ours == [each for each in whole if not each["type"].startswith("api-request")]
