from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path

import httpx
import pytest
from starlette.requests import HTTPConnection

from steersman.testing.script import say
from steersman.web import Bridge, Viewer
from steersman.web.routes import raw_event_of
from tests.web.staging import scripted_agent, serving


async def events(
    http: httpx.AsyncClient, path: str, **headers: str
) -> AsyncGenerator[tuple[int, str], None]:
    """The events of a stream: id and data."""
    async with http.stream("GET", path, headers=headers, timeout=20) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        number = 0
        async for line in response.aiter_lines():
            if line.startswith("id: "):
                number = int(line[4:].partition("@")[0])
            elif line.startswith("data: "):
                yield number, line[6:]


async def test_a_stream_goes_on_where_the_last_one_ended(tmp_path: Path) -> None:
    bridge = Bridge(scripted_agent(say("hello there", chunks=10)), journals=tmp_path)
    async with serving(bridge) as served, served.http() as http:
        begun = await http.post("/sessions", json={"text": "hi"})
        session = begun.json()["session"]["id"]
        path = f"/sessions/{session}/events"
        seen: list[dict[str, object]] = []
        while not seen or seen[-1]["kind"] != "settled":
            last = {"Last-Event-ID": str(seen[-1]["seq"])} if seen else {}
            stream = events(http, path, **last)
            for _ in range(3):
                number, data = await anext(stream)
                seen.append(json.loads(data))
                assert number == seen[-1]["seq"]
                if seen[-1]["kind"] == "settled":
                    break
            await stream.aclose()

    assert [each["seq"] for each in seen] == [*range(1, len(seen) + 1)]


async def test_raw_events_are_the_lines_of_the_cli_byte_for_byte(tmp_path: Path) -> None:
    bridge = Bridge(scripted_agent(say("caf\u00e9")), journals=tmp_path)
    async with serving(bridge) as served, served.http() as http:
        begun = await http.post("/sessions", json={"text": "hi"})
        session = begun.json()["session"]["id"]
        found = bridge.session(session)
        assert found is not None
        assert await found.wait_idle(5)
        lines: list[str] = []
        expected: list[str] = []
        async with asyncio.timeout(10):
            async for line in found.raw():
                expected.append(line.decode())
                if '"type":"result"' in expected[-1]:
                    break
            async for _, data in events(http, f"/sessions/{session}/events?form=raw"):
                lines.append(data)
                if len(lines) == len(expected):
                    break

    assert lines == expected


@pytest.mark.parametrize("query", ["after=x", "after=-1", "form=xml"])
async def test_a_stream_with_a_bad_query_is_refused(tmp_path: Path, query: str) -> None:
    bridge = Bridge(scripted_agent(), journals=tmp_path)
    async with serving(bridge) as served, served.http() as http:
        session = (await http.post("/sessions", json={})).json()["session"]["id"]
        answer = await http.get(f"/sessions/{session}/events?{query}")

    assert answer.status_code == 400


async def test_a_stream_ends_with_the_server(tmp_path: Path) -> None:
    bridge = Bridge(scripted_agent(), journals=tmp_path)
    async with serving(bridge) as served, served.http() as http:
        session = (await http.post("/sessions", json={"text": "hi"})).json()["session"]["id"]
        seen: list[str] = []
        async for _, data in events(http, f"/sessions/{session}/events"):
            seen.append(data)
            if '"settled"' in data:
                await bridge.aclose()

    assert seen


def test_what_the_cli_did_not_say_is_no_raw_event() -> None:
    assert raw_event_of(b'{"session":"s","seq":1,"kind":"sent","frame":{"a":1}}') is None
    assert raw_event_of(b'{"session":"s","seq":1,"kind":"phase"}') is None
    encoded = b'{"session":"s","seq":1,"kind":"message","base64":"/w=="}'
    assert raw_event_of(encoded) is None
    text = b'{"session":"s","seq":1,"kind":"message","text":"two\\nlines"}'
    assert raw_event_of(text) == b"data: two\ndata: lines"
    lone = b'{"session":"s","seq":1,"kind":"message","text":"\\ud83d"}'
    assert raw_event_of(lone) == b"data: \xed\xa0\xbd"


async def test_a_stream_is_not_buffered_and_ends_with_the_login_of_its_viewer(
    tmp_path: Path,
) -> None:
    async def who(connection: HTTPConnection) -> Viewer:
        return Viewer(connection.headers["x-user"])

    bridge = Bridge(scripted_agent(), journals=tmp_path, authenticate=who)
    async with serving(bridge, token="") as served, served.http() as http:
        http.headers.update({"Origin": served.url, "x-user": "ann"})
        session = (await http.post("/sessions", json={})).json()["session"]["id"]
        path = f"/sessions/{session}/events"
        async with (
            http.stream("GET", path) as hers,
            http.stream("GET", path, headers={"x-user": "bob"}) as his,
        ):
            theirs, lines = his.aiter_lines(), hers.aiter_lines()
            begun = [await anext(lines), await anext(theirs)]
            bridge.disconnect("carl")
            bridge.disconnect("bob")
            assert [line async for line in theirs] == [""]
            await http.post(f"/sessions/{session}/send", json={"text": "hi"})
            while not (await anext(lines)).startswith("id: 1@"):
                pass

    assert begun == [": follows"] * 2
    assert hers.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert hers.headers["x-accel-buffering"] == "no"
    assert hers.headers["cache-control"] == "no-store"


async def test_a_stream_begins_behind_the_number_and_the_time_that_it_is_given(
    tmp_path: Path,
) -> None:
    bridge = Bridge(scripted_agent(say("hello")), journals=tmp_path)
    async with serving(bridge) as served, served.http() as http:
        session = (await http.post("/sessions", json={"text": "hi"})).json()["session"]["id"]
        path = f"/sessions/{session}/events"
        whole = events(http, path)
        seen = [await anext(whole) for _ in range(4)]
        await whole.aclose()
        at = json.loads(seen[1][1])["at"]
        found: list[tuple[int, str]] = []
        for query, headers in (
            ("?after=2", {}),
            (f"?after=2@{at}", {}),
            ("?after=9", {"Last-Event-ID": f"2@{at}"}),
        ):
            stream = events(http, path + query, **headers)
            found.append(await anext(stream))
            await stream.aclose()
        other = await http.get(f"{path}?after=2@1.5")

    assert found == [seen[2]] * 3
    assert other.json()["error"]["code"] == "after_replaced"
    assert other.json()["error"]["last"] >= 4
