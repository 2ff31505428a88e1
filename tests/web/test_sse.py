from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path

import httpx
import pytest

from steersman.testing.script import say
from steersman.web import Bridge
from steersman.web.sse import raw_event_of
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
        assert await found.idle(5)
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
    text = b'{"session":"s","seq":1,"kind":"message","text":"two\\nlines"}'
    assert raw_event_of(text) == b"data: two\ndata: lines"
    lone = b'{"session":"s","seq":1,"kind":"message","text":"\\ud83d"}'
    assert raw_event_of(lone) == b"data: \xed\xa0\xbd"
