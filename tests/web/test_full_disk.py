"""A number is never given twice: viewers of a journal whose disk was full meanwhile."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from steersman.journal import Entry, Kind
from steersman.journal.files import Record
from steersman.stores import read_journal
from steersman.testing.script import say
from steersman.web import Bridge, WebError
from steersman.web.feed import Feed
from tests.full_disk import FullDisk
from tests.web.staging import begun, inside, numbers, scripted_agent, serving, until_settled
from tests.web.test_sse import events

pytestmark = pytest.mark.process


async def test_viewers_go_on_with_new_numbers_when_there_is_room_again(
    disk: tuple[Path, FullDisk],
) -> None:
    folder, full = disk
    bridge = Bridge(
        scripted_agent(say("one"), say("two"), say("two again"), say("three")), journals=folder
    )
    async with serving(bridge) as served, served.client() as client:
        session, followed, seen = await begun(client)
        stored = [each.seq for each in read_journal(folder / f"{session}.jsonl")]
        with full():
            await client.send(session, "second")
            seen += await until_settled(followed)
            during = await client.session(session)
            await inside(bridge)._conversations.find(session).close()
            await client.send(session, "second again")
            seen += await until_settled(followed)
            again = await client.session(session)
        await inside(bridge)._conversations.find(session).close()
        await client.send(session, "third")
        rest = await until_settled(followed)
        while rest[-1].seq <= seen[-1].seq or "three" not in str(rest):
            rest += await until_settled(followed)
        after = await client.session(session)
        await followed.aclose()
        late = client.follow(session, after=stored[-1], at=seen[stored[-1] - 1].at)
        first = await anext(late)
        await late.aclose()

    assert numbers(seen + rest) == [*range(1, len(seen + rest) + 1)]
    assert (during.is_stored, again.is_stored, after.is_stored) == (False, False, True)
    assert first.seq > stored[-1]


async def test_a_cursor_of_what_could_not_be_stored_is_refused_by_the_next_server(
    tmp_path: Path,
    disk: tuple[Path, FullDisk],
) -> None:
    folder, full = disk
    bridge = Bridge(scripted_agent(say("one"), say("lost")), journals=folder)
    async with serving(bridge) as served, served.client() as client:
        session, followed, before = await begun(client)
        with full():
            await client.send(session, "second")
            shown = before + await until_settled(followed)
            await followed.aclose()
            await bridge.aclose()
    # Another file, of which this process knows as little as a new one knows of the first.
    folder = shutil.copytree(folder, tmp_path / "next")
    bridge = Bridge(scripted_agent(*(say(f"new {number}") for number in range(4))), journals=folder)
    async with serving(bridge) as served, served.client() as client, served.http() as http:
        followed = client.follow(session, after=before[-1].seq, at=before[-1].at)
        again = list[Record]()
        while not again or again[-1].seq <= shown[-1].seq:
            await client.send(session, "again")
            again += await until_settled(followed)
        await followed.aclose()
        with pytest.raises(WebError, match="after_replaced"):
            await anext(client.follow(session, after=shown[-1].seq, at=shown[-1].at))
        cursor = f"{shown[-1].seq}@{shown[-1].at}"
        refused = await http.get(f"/sessions/{session}/events?after={cursor}")
        stored = f"{again[-2].seq}@{again[-2].at}"
        async for number, _ in events(http, f"/sessions/{session}/events?after={stored}"):
            assert number == again[-1].seq
            break

    assert numbers(again) == [*range(before[-1].seq + 1, again[-1].seq + 1)]
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "after_replaced")


async def test_a_page_ends_where_the_stored_entries_end(
    disk: tuple[Path, FullDisk],
) -> None:
    folder, full = disk
    bridge = Bridge(scripted_agent(say("one"), say("two")), journals=folder)
    async with serving(bridge) as served, served.client() as client:
        session, followed, seen = await begun(client)
        with full():
            await client.send(session, "second")
            seen += await until_settled(followed)
            await followed.aclose()
            page = await client.entries(session)
            followed = client.follow(session, after=page.last)
            rest = [await anext(followed) for _ in range(len(seen) - page.last)]
            await followed.aclose()

    assert page.last < seen[-1].seq
    assert numbers(rest) == [*range(page.last + 1, len(seen) + 1)]


async def test_what_is_gone_is_a_record_of_its_own_for_a_client(tmp_path: Path) -> None:
    bridge = Bridge(scripted_agent(say("one")), journals=tmp_path)
    async with serving(bridge) as served, served.client() as client:
        session, followed, seen = await begun(client)
        await followed.aclose()
        await bridge.aclose()
    path = tmp_path / f"{session}.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith((b'{"seq":2,', b'{"seq":3,'))]
    path.write_bytes(b"".join(kept))
    bridge = Bridge(scripted_agent(), journals=tmp_path)
    async with serving(bridge) as served, served.client() as client:
        followed = client.follow(session, after=1, at=seen[0].at)
        lagged, following = await anext(followed), await anext(followed)
        await followed.aclose()

    assert (lagged.kind, lagged.seq, lagged.details) == ("lagged", 3, {"lost": 2})
    assert following.seq == 4


def test_a_feed_refuses_to_go_back(tmp_path: Path) -> None:
    feed = Feed("s", tmp_path / "s.jsonl", lambda _: None)
    feed.write([Entry(1, 1.0, Kind.NOISE), Entry(2, 1.0, Kind.NOISE)])

    with pytest.raises(ValueError, match="entry 2 comes after entry 2"):
        feed.write([Entry(2, 2.0, Kind.NOISE)])

    assert feed.last_seq == 2
