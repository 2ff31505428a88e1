"""Following a session while somebody writes to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from steersman.errors import SessionNotFound, UsageError
from steersman.sessions import Sessions, TranscriptEntry, aio
from steersman.stores.memory import MemoryStore
from tests.sessions.made import ID, conversation, lines, number, write

LIMIT = 20.0


async def take(stream: AsyncIterator[TranscriptEntry], count: int) -> list[str]:
    return [(await anext(stream)).uuid for _ in range(count)]


@pytest.mark.parametrize("front", [Sessions, aio.Sessions])
async def test_entries_come_as_they_are_written(
    config: Path, front: type[Sessions | aio.Sessions]
) -> None:
    path = write(config, conversation("a", "b", "c"))
    stream = front(index=False).follow(ID, after=1)

    async with asyncio.timeout(LIMIT):
        first = await take(stream, 2)
        coming = asyncio.ensure_future(take(stream, 2))
        more = lines(conversation("d", "e", first=3))
        for part in (more[:10], more[10:-10], more[-10:]):
            with path.open("ab") as file:
                file.write(part)
        second = await coming

    assert first + second == [number(index) for index in (1, 2, 3, 4)]


async def test_what_differs_is_read_again_after_a_replacement(config: Path) -> None:
    path = write(config, conversation("a", "b", "c"))
    stream = aio.Sessions().follow(ID)

    async with asyncio.timeout(LIMIT):
        first = await take(stream, 3)
        made = path.with_name("new")
        made.write_bytes(lines([*conversation("a", "b"), *conversation("x", "y", first=7)]))
        made.replace(path)
        second = await take(stream, 2)
        path.write_bytes(lines(conversation("a")))
        coming = asyncio.ensure_future(take(stream, 1))
        path.write_bytes(lines([*conversation("a"), *conversation("z", first=9)]))
        third = await coming

    assert first == [number(0), number(1), number(2)]
    assert second == [number(7), number(8)]
    assert third == [number(9)]


async def test_following_ends_when_the_session_is_deleted(config: Path) -> None:
    path = write(config, conversation("a"))

    async with asyncio.timeout(LIMIT):
        stream = aio.Sessions().follow(ID)
        await anext(stream)
        path.unlink()
        rest = [each async for each in stream]

    assert rest == []


async def test_an_unknown_session_cannot_be_followed(config: Path) -> None:
    with pytest.raises(SessionNotFound):
        await anext(aio.Sessions().follow(ID))
    with pytest.raises(SessionNotFound):
        await anext(aio.Sessions(MemoryStore(), project="/w").follow(ID))
    with pytest.raises(UsageError, match="after"):
        aio.Sessions().follow(ID, after=-1)


async def test_a_session_in_a_store_is_followed(config: Path) -> None:
    store = MemoryStore()
    key: Any = {"project_key": "-srv-project", "session_id": ID}
    begun: Any = conversation("a", "b")
    more: Any = conversation("c", first=2)
    await store.append(key, begun)
    sessions = aio.Sessions(store, project="/srv/project")

    async with asyncio.timeout(LIMIT):
        stream = sessions.follow(ID, after=1)
        first = await take(stream, 1)
        await store.append(key, more)
        second = await take(stream, 1)
        await store.delete(key)
        rest = [each async for each in stream]

    assert (first, second, rest) == ([number(1)], [number(2)], [])
