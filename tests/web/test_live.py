from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from steersman import Agent
from steersman.inbox.changes import MOST_WAITING
from steersman.testing.script import Script, call
from steersman.testing.script import say as speak
from steersman.testing.scripted.cli import ScriptedCLI
from steersman.web import Bridge, WebLimits
from tests.inbox.places import Session, an_ask
from tests.web.staging import (
    Frame,
    done,
    frame_where,
    frames,
    inside,
    records_until_settled,
    say,
    scripted_agent,
    serving,
)


def numbers_of(records: list[Frame]) -> list[int]:
    return [record["seq"] for record in records]


async def test_a_prompt_over_the_socket_comes_back_as_the_records_of_its_file(
    tmp_path: Path,
) -> None:
    bridge = Bridge(scripted_agent(speak("hello there")), journals=tmp_path)
    async with serving(bridge) as served, served.live() as ws:
        hello = await frame_where(ws, lambda frame: frame["type"] == "hello")
        begun = await done(ws, "1", "begin", title="mine")
        session = begun["answer"]["session"]["id"]
        await say(ws, type="follow", session=session, after=0)
        await say(ws, type="do", id="2", verb="send", session=session, text="hi")
        records = await records_until_settled(ws, session)

    assert (hello["type"], hello["viewer"]) == ("hello", {"name": "you"})
    assert numbers_of(records) == [*range(1, len(records) + 1)]
    lines = (tmp_path / f"{session}.jsonl").read_bytes().splitlines()
    stored = [json.loads(line) for line in lines if line.startswith(b'{"seq"')]
    assert [{"session": session, **each} for each in stored[: len(records)]] == records
    assert any("hello there" in json.dumps(record) for record in records)


async def test_the_list_and_the_asks_are_told_without_following(tmp_path: Path) -> None:
    agent = scripted_agent(call("Bash", command="git push"), speak("done"))
    bridge = Bridge(agent, journals=tmp_path)
    async with serving(bridge) as served, served.live() as ws, served.live() as other:
        begun = await done(ws, "1", "begin", text="go")
        session = begun["answer"]["session"]["id"]
        opened = await frame_where(other, lambda frame: frame.get("what") == "opened")
        ask = opened["ask"]["id"]
        async with served.live() as late:
            hello = json.loads(str(await late.recv()))
        yes = {"behavior": "allow"}
        first = await done(ws, "2", "answer", ask=ask, answer=yes)
        second = await done(other, "3", "answer", ask=ask, answer=yes)
        idle = await frame_where(
            ws, lambda f: f.get("type") == "session" and f["session"]["state"] == "idle"
        )

    assert [each["id"] for each in hello["asks"]] == [ask]
    assert hello["sessions"][0]["asks"] == 1
    assert first["answer"]["how"] == "answered"
    assert second["error"]["code"] == "already_answered"
    assert second["error"]["by"] == "you"
    assert idle["session"]["id"] == session
    assert idle["session"]["asks"] == 0


async def test_an_ask_of_a_session_that_this_bridge_does_not_have_is_shown_and_ends_no_connection(
    tmp_path: Path,
) -> None:
    bridge = Bridge(scripted_agent(), journals=tmp_path)
    async with serving(bridge) as served, served.live() as ws:
        await frame_where(ws, lambda frame: frame["type"] == "hello")
        session = Session(bridge.inbox)
        session.open(an_ask(id_="q1"))
        first = await frame_where(ws, lambda frame: frame.get("what") == "opened")
        session.open(an_ask(id_="q2"))
        second = await frame_where(ws, lambda frame: frame.get("what") == "opened")

    assert [first["ask"]["id"], second["ask"]["id"]] == ["q1", "q2"]


async def test_an_ask_whose_end_was_lost_among_many_changes_is_told_as_closed(
    tmp_path: Path,
) -> None:
    bridge = Bridge(scripted_agent(), journals=tmp_path)
    async with serving(bridge) as served, served.live() as ws:
        session = Session(bridge.inbox)
        session.open(an_ask(id_="first"))
        await frame_where(ws, lambda frame: frame.get("what") == "opened")
        for number in range(MOST_WAITING):
            session.open(an_ask(id_=f"q{number}"))
        inside(bridge.inbox).close("first", "its session has ended")
        closed = await frame_where(ws, lambda frame: frame.get("ask", {}).get("id") == "first")

    assert closed["what"] == "closed"


async def test_a_session_is_followed_from_any_number_and_no_more(tmp_path: Path) -> None:
    bridge = Bridge(scripted_agent(), journals=tmp_path)
    async with serving(bridge) as served, served.live() as ws:
        session = (await done(ws, "1", "begin"))["answer"]["session"]["id"]
        await say(ws, type="follow", session=session)
        await say(ws, type="do", id="2", verb="send", session=session, text="one")
        records = await records_until_settled(ws, session)
        await say(ws, type="unfollow", session=session)
        await frame_where(ws, lambda frame: frame.get("type") == "unfollowed")
        await say(ws, type="follow", session=session, after=3)
        again = await records_until_settled(ws, session)
        await say(ws, type="unfollow", session=session)
        await frame_where(ws, lambda frame: frame.get("type") == "unfollowed")
        await say(ws, type="do", id="3", verb="send", session=session, text="two")
        rest: list[Frame] = []
        async for frame in frames(ws):
            rest.append(frame)
            if frame.get("type") == "session" and frame["session"]["turns"] == 2:
                break

    assert again == [record for record in records if record["seq"] > 3]
    assert not [frame for frame in rest if "seq" in frame]


@pytest.mark.parametrize(
    "bad",
    [
        "{",
        "[]",
        "7",
        "{}",
        '{"type":"dance"}',
        '{"type":"follow"}',
        '{"type":"follow","session":7}',
        '{"type":"follow","session":"../../etc/passwd","after":0}',
        '{"type":"do","verb":"send"}',
        '{"type":"do","id":7,"verb":"send"}',
        '{"type":"do","id":"' + "x" * 101 + '"}',
        '{"type":"ping","id":[]}',
        "[" * 200_000,
        '{"a":' * 200_000,
        "x" * 1_000_001,
        b"\xff\xfe",
        '{"type":"\\ud83d"}',
    ],
)
async def test_a_bad_frame_is_answered_and_the_connection_stays(
    tmp_path: Path, bad: str | bytes
) -> None:
    bridge = Bridge(scripted_agent(), journals=tmp_path)
    async with serving(bridge) as served, served.live() as ws:
        await ws.send(bad)
        answer = await frame_where(ws, lambda frame: frame["type"] == "error")
        await say(ws, type="ping", id="p")
        pong = await frame_where(ws, lambda frame: frame["type"] == "pong")

    assert set(answer["error"]) >= {"code", "message"}
    assert pong["id"] == "p"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"verb": "dance"}, "bad_request"),
        ({"verb": "send", "session": "none", "text": "hi"}, "session_not_found"),
        ({"verb": "send"}, "session_not_found"),
        ({"verb": "begin", "agent": "none"}, "agent_not_found"),
        ({"verb": "begin", "text": 7}, "bad_request"),
        ({"verb": "answer", "ask": "none", "answer": {"behavior": "allow"}}, "ask_not_found"),
        ({"verb": "answer", "ask": "none"}, "bad_request"),
        ({}, "bad_request"),
    ],
)
async def test_a_verb_that_is_refused_is_done_with_an_error(
    tmp_path: Path, fields: dict[str, Any], code: str
) -> None:
    bridge = Bridge(scripted_agent(), journals=tmp_path)
    async with serving(bridge) as served, served.live() as ws:
        await say(ws, type="do", id="1", **fields)
        answer = await frame_where(ws, lambda frame: frame.get("id") == "1")

    assert answer["error"]["code"] == code


async def test_a_number_from_the_future_is_answered_in_words(tmp_path: Path) -> None:
    bridge = Bridge(scripted_agent(), journals=tmp_path)
    async with serving(bridge) as served, served.live() as ws, served.http() as http:
        session = (await done(ws, "1", "begin"))["answer"]["session"]["id"]
        await say(ws, type="follow", session=session, after=10**9)
        answer = await frame_where(ws, lambda frame: frame["type"] == "error")
        events = await http.get(f"/sessions/{session}/events?after=1000000000")

    assert answer["session"] == session
    assert answer["error"]["code"] == "after_in_future"
    assert answer["error"]["last"] == 0
    assert events.status_code == 400
    assert events.json()["error"]["code"] == "after_in_future"


async def refused(url: str, **headers: str) -> tuple[int, str]:
    with pytest.raises(InvalidStatus) as found:
        async with connect(url, additional_headers=headers, proxy=None):
            pass
    response = found.value.response
    return response.status_code, json.loads(bytes(response.body))["error"]["code"]


async def test_a_socket_of_another_site_without_a_login_or_elsewhere_is_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bridge = Bridge(scripted_agent(), journals=tmp_path)
    async with serving(bridge) as served:
        url, token = f"ws://127.0.0.1:{served.port}", f"Bearer {bridge.token}"
        own = f"http://127.0.0.1:{served.port}"
        found = {
            "none": await refused(f"{url}/live", Origin=own),
            "wrong": await refused(f"{url}/live", Authorization="Bearer guess"),
            "foreign": await refused(
                f"{url}/live", Authorization=token, Origin="http://evil.example"
            ),
            "no origin": await refused(f"{url}/live"),
            "elsewhere": await refused(f"{url}/else", Authorization=token),
            "cross-site": await refused(
                f"{url}/live", Authorization=token, Origin=own, **{"Sec-Fetch-Site": "cross-site"}
            ),
        }
        rebound = await raw_handshake(served.port, "evil.example", "http://evil.example")
        async with served.live() as ws:
            alive = json.loads(str(await ws.recv()))["type"]

    assert found == {
        "none": (401, "not_logged_in"),
        "wrong": (401, "not_logged_in"),
        "foreign": (403, "origin_refused"),
        "no origin": (403, "origin_refused"),
        "elsewhere": (404, "not_found"),
        "cross-site": (403, "cross_site"),
    }
    assert b" 403 " in rebound
    assert alive == "hello"
    # A refusal is no error of the server.
    assert [each.message for each in caplog.records if each.levelname == "ERROR"] == []


def handshake(port: int, token: str = "", *, host: str = "", origin: str = "") -> bytes:
    """The request for a WebSocket."""
    lines = ["GET /live HTTP/1.1", f"Host: {host or f'127.0.0.1:{port}'}"]
    lines += [f"Authorization: Bearer {token}"] if token else []
    lines += [f"Origin: {origin}"] if origin else []
    lines += ["Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13"]
    lines += ["Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", "", ""]
    return "\r\n".join(lines).encode()


async def raw_handshake(port: int, host: str, origin: str) -> bytes:
    """The first line of the answer to a WebSocket handshake under another name."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(handshake(port, host=host, origin=origin))
    answer = await reader.readline()
    writer.close()
    return answer


async def test_connections_beyond_the_limit_are_refused_and_the_others_go_on(
    tmp_path: Path,
) -> None:
    bridge = Bridge(scripted_agent(), journals=tmp_path, limits=WebLimits(connections=3))
    async with serving(bridge) as served, served.live() as ws:
        session = (await done(ws, "1", "begin"))["answer"]["session"]["id"]
        async with served.live(), served.live():
            headers = {"Authorization": f"Bearer {bridge.token}"}
            more = await refused(f"ws://127.0.0.1:{served.port}/live", **headers)
            async with served.http() as http:
                stream = await http.get(f"/sessions/{session}/events")
        await done(ws, "2", "send", session=session, text="still here")

    assert more == (429, "too_many_connections")
    assert stream.status_code == 429


async def test_a_viewer_that_never_reads_holds_nothing_back(tmp_path: Path) -> None:
    text = "long " * 100_000
    bridge = Bridge(scripted_agent(*[speak(text, chunks=100)] * 8), journals=tmp_path)
    async with serving(bridge) as served, served.live() as ws:
        session = (await done(ws, "1", "begin"))["answer"]["session"]["id"]
        deaf = await deaf_viewer(served.port, bridge.token, session)
        await say(ws, type="follow", session=session, after=0)
        seen: list[int] = []
        for number in range(8):
            await say(ws, type="do", id=f"s{number}", verb="send", session=session, text="go")
            seen += numbers_of(await records_until_settled(ws, session))
        behind = min(inside(bridge)._live, key=lambda each: each._cursors[session])
        held = [len(behind._answers), len(behind._asks), len(behind._cursors)]
        cursor = behind._cursors[session]
        deaf.close()

    assert seen == [*range(1, len(seen) + 1)]
    assert cursor < seen[-1]
    # One cursor, and no frame: what it did not read is only in the journal.
    assert held == [0, 0, 1]


@pytest.mark.parametrize("way", ["live", "events"])
async def test_a_viewer_that_stops_reading_is_disconnected_in_the_end(
    tmp_path: Path, way: str
) -> None:
    text = "long " * 200_000
    limits = WebLimits(patience=0.2)
    bridge = Bridge(scripted_agent(*[speak(text)] * 8), journals=tmp_path, limits=limits)
    async with serving(bridge) as served, served.http() as http:
        session = (await http.post("/sessions", json={})).json()["session"]["id"]
        begin = deaf_viewer if way == "live" else deaf_stream
        deaf = await begin(served.port, bridge.token, session)
        for _ in range(8):
            await http.post(f"/sessions/{session}/send", json={"text": "go"})
        while inside(bridge)._connections.count:
            await http.get("/me")
        deaf.close()

    assert not inside(bridge)._live
    assert not inside(bridge)._routes.streams


async def deaf_stream(port: int, token: str, session: str) -> socket.socket:
    """A viewer that asks for the events of a session and never reads."""
    found = socket.socket()
    found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    found.settimeout(0)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(found, ("127.0.0.1", port))
    head = f"GET /sessions/{session}/events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
    await loop.sock_sendall(found, f"{head}Authorization: Bearer {token}\r\n\r\n".encode())
    await loop.sock_recv(found, 1)
    return found


async def deaf_viewer(port: int, token: str, session: str) -> socket.socket:
    """A viewer that follows a session and never reads."""
    found = socket.socket()
    found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    found.settimeout(0)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(found, ("127.0.0.1", port))
    follow = json.dumps({"type": "follow", "session": session, "after": 0}).encode()
    masked = bytes([0x81, 0x80 | len(follow), 0, 0, 0, 0]) + follow
    await loop.sock_sendall(found, handshake(port, token))
    # What comes before the handshake is answered would be dropped.
    await loop.sock_recv(found, 1)
    await loop.sock_sendall(found, masked)
    return found


async def test_entries_whose_file_is_gone_are_told_as_lost(tmp_path: Path) -> None:
    bridge = Bridge(scripted_agent(), journals=tmp_path)
    async with serving(bridge) as served, served.live() as ws:
        session = (await done(ws, "1", "begin"))["answer"]["session"]["id"]
        await say(ws, type="follow", session=session, after=0)
        await say(ws, type="do", id="2", verb="send", session=session, text="one")
        records = await records_until_settled(ws, session)
    (tmp_path / f"{session}.jsonl").write_bytes(b"")
    feed = inside(bridge)._conversations.find(session).feed
    feed._forget()
    feed._first = feed.last_seq + 1

    batch = await feed.next(0)

    assert (batch.text, batch.lost, batch.upto) == ("", feed.last_seq, feed.last_seq)
    assert feed.last_seq >= records[-1]["seq"]


async def test_viewers_are_told_that_the_server_ends(tmp_path: Path) -> None:
    bridge = Bridge(scripted_agent(), journals=tmp_path)
    async with serving(bridge) as served, served.live() as ws:
        await ws.recv()
        await bridge.aclose()
        last = [frame async for frame in frames(ws)]
        async with served.http() as http:
            later = await http.get("/me")

    assert [frame["type"] for frame in last] == ["closing"]
    assert ws.close_code == 1001
    assert later.status_code == 503


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.soak_only)])
async def test_thousands_of_connections_are_refused_and_the_server_lives(
    tmp_path: Path, count: int
) -> None:
    bridge = Bridge(scripted_agent(), journals=tmp_path, limits=WebLimits(connections=20))
    async with serving(bridge, limit=count / 10) as served, served.live() as ws:
        open_ones: list[asyncio.StreamWriter] = []
        statuses: list[bytes] = []
        most = 0
        for _ in range(count):
            reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
            writer.write(handshake(served.port, bridge.token))
            statuses.append((await reader.readline())[9:12])
            most = max(most, inside(bridge)._connections.count)
            if statuses[-1] == b"101":
                open_ones.append(writer)
            else:
                writer.close()
        answer = await done(ws, "1", "begin", text="still here")
        for writer in open_ones:
            writer.close()

    # The ten thousand take so long that some are disconnected meanwhile: they answer no ping.
    assert most == 20
    assert set(statuses[:300]) == {b"101", b"429"}
    assert statuses.count(b"101") < max(20, count / 20)
    assert "session" in answer["answer"]


async def test_a_body_that_stops_to_come_is_refused(tmp_path: Path) -> None:
    bridge = Bridge(scripted_agent(), journals=tmp_path, limits=WebLimits(patience=0.2))
    async with serving(bridge) as served:
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        head = f"POST /login HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\nOrigin: {served.url}\r\n"
        kind = "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
        writer.write(f"{head}{kind}".encode())
        answer = (await reader.readuntil(b"}}")).decode()
        writer.close()

    assert answer.startswith("HTTP/1.1 400")
    assert json.loads(answer.partition("\r\n\r\n")[2])["error"]["code"] == "cut_off"


async def test_a_session_is_followed_no_more_however_its_id_is_written(tmp_path: Path) -> None:
    async with (
        serving(Bridge(scripted_agent(), journals=tmp_path)) as served,
        served.live() as ws,
    ):
        session = (await done(ws, "1", "begin"))["answer"]["session"]["id"]
        await say(ws, type="follow", session=session.upper(), after=0)
        await frame_where(ws, lambda frame: frame.get("type") == "following")
        await say(ws, type="unfollow", session=session.upper())
        await frame_where(ws, lambda frame: frame.get("type") == "unfollowed")

        assert not inside(next(iter(inside(served.bridge)._live)))._feeds


async def test_a_large_body_of_no_length_is_refused_as_it_comes(tmp_path: Path) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield b"x" * 100_000

    bridge = Bridge(scripted_agent(), journals=tmp_path)
    async with serving(bridge) as served, served.http() as http:
        answer = await http.post(
            "/asks", content=endless(), headers={"Content-Type": "application/json"}
        )
        alive = await http.get("/me")

    assert answer.status_code == 413
    assert alive.status_code == 200


async def test_an_ask_that_ends_with_its_session_shows_no_secret(tmp_path: Path) -> None:
    secret = "verysecretvalue123"
    place = ScriptedCLI(Script(call("Bash", command=f"push --with {secret}")))
    agent = Agent(transport=place, revive=False, env={"MY_API_TOKEN": secret})
    async with serving(Bridge(agent, journals=tmp_path)) as served, served.live() as ws:
        await done(ws, "b", "begin", text="push")
        opened = await frame_where(ws, lambda frame: frame.get("what") == "opened")
        place.exit()
        closed = await frame_where(ws, lambda frame: frame.get("what") == "closed")

    assert "push --with" in json.dumps(opened)
    assert closed["ask"]["id"] == opened["ask"]["id"]
    assert secret not in json.dumps([opened, closed])
