"""A session file is compared with a store, and what the store lacks is appended in order."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from steersman.mirror.comparing import FileComparer, catch_up, held
from steersman.stores import MemoryStore
from steersman.stores.optional_methods import chunks
from steersman.transcripts.identity import identity, identity_of_line, unannounced
from steersman.transcripts.keys import SessionKey, SessionStoreEntry

KEY: SessionKey = {"project_key": "-p", "session_id": "70394432-1c03-4518-94bc-f71433d629d1"}


def file_of(folder: Path, *lines: Any) -> Path:
    path = folder / "file.jsonl"
    path.write_text(
        "".join(each if isinstance(each, str) else json.dumps(each) + "\n" for each in lines)
    )
    return path


def entry(number: int, **fields: Any) -> Any:
    return {"type": "user", "uuid": f"uuid-{number}", **fields}


async def test_only_what_is_missing_is_appended_and_in_order(tmp_path: Path) -> None:
    latch: Any = {"type": "atis-latch", "atis": True}
    store = MemoryStore()
    await store.append(KEY, [entry(1), latch, entry(2)])
    path = file_of(
        tmp_path,
        entry(1),
        {"type": "api-request-blob", "uuid": "x"},
        latch,
        entry(2),
        latch,
        entry(3),
        latch,
    )

    await catch_up(store, KEY, path, load_timeout=5)

    assert await store.load(KEY) == [entry(1), latch, entry(2), latch, entry(3), latch]
    await catch_up(store, KEY, path, load_timeout=5)
    assert len(await store.load(KEY) or ()) == 6


async def test_lines_that_are_no_entries_and_a_torn_one_are_left_out(tmp_path: Path) -> None:
    store = MemoryStore()
    path = file_of(
        tmp_path, entry(1), "no json\n", "[]\n", '{"a": 1}\n', '{"type": 5}\n', "\n", '{"type": "us'
    )

    await catch_up(store, KEY, path, load_timeout=5)

    assert await store.load(KEY) == [entry(1)]


async def test_the_order_of_keys_and_needless_fractions_make_no_difference() -> None:
    one = {"type": "cost-state", "cost": 1.0, "by": {"b": [2.0], "a": 1}}
    other = {"by": {"a": 1, "b": [2]}, "type": "cost-state", "cost": 1}

    assert identity(one) == identity(other)
    assert identity(one) != identity({**one, "cost": 1.5})
    assert identity_of_line(json.dumps(one).encode()) == ("cost-state", identity(one))


async def test_what_a_subagent_is_is_appended_if_it_changed(tmp_path: Path) -> None:
    store = MemoryStore()
    part: SessionKey = {**KEY, "subpath": "subagents/agent-1"}
    path = file_of(tmp_path, entry(1))
    meta = path.with_name("file.meta.json")
    meta.write_text(json.dumps({"agentType": "x", "toolUseId": "t"}))
    await catch_up(store, part, path, load_timeout=5)
    first = await store.load(part)
    await catch_up(store, part, path, load_timeout=5)
    assert await store.load(part) == first

    meta.write_text(json.dumps({"toolUseId": "t", "agentType": "x", "finished": True}))
    await catch_up(store, part, path, load_timeout=5)

    assert [each.get("finished") for each in await store.load(part) or ()] == [None, None, True]


async def test_a_file_that_is_gone_has_nothing(tmp_path: Path) -> None:
    store = MemoryStore()
    gone = tmp_path / "gone.jsonl"

    assert await catch_up(store, KEY, gone, load_timeout=5) == []
    assert await FileComparer(store, 5).parts(str(gone)) == []
    assert FileComparer(store, 5).size(str(gone)) == 0


async def test_the_subagents_of_a_conversation_are_found(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "subagents" / "workflows" / "w"
    folder.mkdir(parents=True)
    (folder / "agent-2.jsonl").touch()
    (folder.parent.parent / "agent-1.jsonl").touch()
    (folder.parent.parent / "agent-1.meta.json").touch()

    found = await FileComparer(MemoryStore(), 5).parts(str(tmp_path / "a.jsonl"))

    assert [Path(each).name for each in found] == ["agent-1.jsonl", "agent-2.jsonl"]


class Streams(MemoryStore):
    """A store whose whole conversations are too large to load."""

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        raise MemoryError

    async def stream(self, key: SessionKey) -> AsyncIterator[list[SessionStoreEntry]]:
        for each in await super().load(key) or ():
            yield [each]

    async def positions(self, key: SessionKey) -> int:
        return len(await super().load(key) or ())


async def test_a_store_that_streams_is_never_asked_for_everything_at_once(tmp_path: Path) -> None:
    store = Streams()
    await store.append(KEY, [entry(1), entry(2)])

    await catch_up(store, KEY, file_of(tmp_path, entry(2), entry(3)), load_timeout=5)

    assert [each async for each in chunks(store, KEY)] == [[entry(1)], [entry(2)], [entry(3)]]
    assert (await held(store, KEY)).uuids == {"uuid-1", "uuid-2", "uuid-3"}


@pytest.mark.parametrize(
    ("last", "after", "expected"),
    [
        ("cd", 0, "efg"),
        ("g", 0, ""),
        ("x", 0, ""),
        ("", 0, ""),
        ("", 4, "efg"),
        ("cd", 5, "fg"),
        ("abcdefg", 0, ""),
    ],
)
def test_what_is_not_reported_yet_comes_after_what_was(
    last: str, after: int, expected: str
) -> None:
    tail = [(each, number) for number, each in enumerate("abcdefg", 1)]

    assert list(unannounced(tail, last, after).elements()) == list(expected)
