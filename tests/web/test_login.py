"""Logging in and out, and what other pages and other ports get of it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest
from starlette.requests import HTTPConnection
from websockets.asyncio.client import ClientConnection, connect

from steersman.web import Bridge, Viewer, WebLimits
from tests.web.staging import Served, done, frame_where, frames, say, scripted_agent, serving


async def logged_in(served: Served) -> dict[str, str]:
    """The headers of a page that a link has logged in."""
    link = served.bridge.link(served.url).partition("#token=")[2]
    async with httpx.AsyncClient(base_url=served.url, headers={"Origin": served.url}) as http:
        token = (await http.post("/login", json={"token": link})).json()["token"]
    return {"Authorization": f"Bearer {token}"}


async def ended(ws: ClientConnection) -> int:
    """The code with which a connection is closed."""
    async for _ in frames(ws):
        pass
    assert ws.close_code is not None
    return ws.close_code


async def test_a_page_gives_its_token_to_the_socket_as_a_subprotocol(tmp_path: Path) -> None:
    bridge = Bridge(scripted_agent(), journals=tmp_path)
    async with serving(bridge) as served:
        token = (await logged_in(served))["Authorization"].removeprefix("Bearer ")
        url = f"ws://127.0.0.1:{served.port}/live"
        protocols = ["steersman", f"steersman-token.{token}"]
        async with connect(url, subprotocols=protocols, origin=served.url, proxy=None) as ws:  # type: ignore[arg-type]
            hello = await frame_where(ws, lambda frame: frame["type"] == "hello")

    assert ws.subprotocol == "steersman"
    assert hello["viewer"] == {"name": "you"}


async def test_logging_out_ends_what_is_open_and_other_pages_stay(tmp_path: Path) -> None:
    bridge = Bridge(scripted_agent(), journals=tmp_path)
    async with serving(bridge) as served:
        leaving, staying = await logged_in(served), await logged_in(served)
        async with (
            served.live(**leaving) as ws,
            served.live(**staying) as other,
            httpx.AsyncClient(base_url=served.url, headers=leaving) as http,
        ):
            session = (await done(ws, "1", "begin"))["answer"]["session"]["id"]
            async with http.stream("GET", f"/sessions/{session}/events") as stream:
                lines = stream.aiter_lines()
                await anext(lines)
                left = await http.post("/logout")
                rest = [line async for line in lines]
            code = await ended(ws)
            await say(other, type="ping", id="p")
            pong = await frame_where(other, lambda frame: frame["type"] == "pong")
            again = await http.get("/me")

    assert left.status_code == 204
    assert code == 4401
    assert "data" not in "".join(rest)
    assert pong["id"] == "p"
    assert again.status_code == 401


async def test_a_viewer_who_is_logged_out_elsewhere_can_do_nothing_and_is_disconnected(
    tmp_path: Path,
) -> None:
    known = {"ann", "bob"}

    async def who(connection: HTTPConnection) -> Viewer | None:
        name = connection.headers.get("x-user", "")
        return Viewer(name) if name in known else None

    bridge = Bridge(
        scripted_agent(), journals=tmp_path, authenticate=who, limits=WebLimits(patience=0.2)
    )
    async with serving(bridge, token="") as served:
        origin = {"Origin": served.url}
        async with (
            served.live(**origin, **{"x-user": "ann"}) as ann,
            served.live(**origin, **{"x-user": "bob"}) as bob,
        ):
            await frame_where(ann, lambda frame: frame["type"] == "hello")
            known.remove("ann")
            await say(ann, type="do", id="1", verb="begin")
            codes = [await ended(ann)]
            # Nothing is sent on this one: it is found by looking.
            known.remove("bob")
            codes.append(await ended(bob))
        known.add("ann")
        async with served.live(**origin, **{"x-user": "ann"}) as ann:
            hello = await frame_where(ann, lambda frame: frame["type"] == "hello")
            bridge.disconnect("bob")
            bridge.disconnect("ann")
            codes.append(await ended(ann))

    assert codes == [4401] * 3
    assert hello["sessions"] == []


async def test_verbs_keep_their_order_whatever_time_the_login_takes(tmp_path: Path) -> None:
    waits = iter([0, 0, 50, 0, 0, 0])

    async def who(_connection: HTTPConnection) -> Viewer | None:
        for _ in range(next(waits)):
            await asyncio.sleep(0)
        return Viewer("ann")

    bridge = Bridge(scripted_agent(), journals=tmp_path, authenticate=who)
    async with serving(bridge, token="") as served, served.live(Origin=served.url) as ws:
        session = (await done(ws, "1", "begin"))["answer"]["session"]["id"]
        for number in ("2", "3", "4"):
            await say(ws, type="do", id=number, verb="pause", session=session)
        answered = [
            (await frame_where(ws, lambda frame: frame["type"] == "done"))["id"] for _ in range(3)
        ]

    assert answered == ["2", "3", "4"]


async def test_one_viewer_does_not_take_all_connections(tmp_path: Path) -> None:
    async def who(connection: HTTPConnection) -> Viewer | None:
        return Viewer(connection.headers["x-user"])

    limits = WebLimits(connections=3, viewer_connections=2)
    bridge = Bridge(scripted_agent(), journals=tmp_path, authenticate=who, limits=limits)
    async with serving(bridge, token="") as served:
        ann, bob = ({"Origin": served.url, "x-user": name} for name in ("ann", "bob"))
        async with served.live(**ann), served.live(**ann) as second:
            with pytest.raises(Exception, match="429"):
                await served.live(**ann)
            async with served.live(**bob) as other:
                await frame_where(other, lambda frame: frame["type"] == "hello")
            await frame_where(second, lambda frame: frame["type"] == "hello")


@pytest.mark.parametrize("path", ["/sessions", "/logout", "/sessions/x/pause"])
async def test_a_write_needs_a_header_that_no_page_of_another_site_can_set(
    tmp_path: Path, path: str
) -> None:
    async def who(_connection: HTTPConnection) -> Viewer | None:
        # As with a cookie, which a browser adds by itself.
        return Viewer("ann")

    bridge = Bridge(scripted_agent(), journals=tmp_path, authenticate=who)
    async with serving(bridge, token="") as served, asyncio.timeout(10):
        async with httpx.AsyncClient(base_url=served.url, headers={"Origin": served.url}) as http:
            simple = [
                await http.post(path, content=b""),
                await http.post(path, content=b"{}", headers={"Content-Type": "text/plain"}),
                await http.post(path, data={"a": "b"}),
            ]
        listed = await bridge._routes.listing(Viewer("ann"))

    assert [each.status_code for each in simple] == [415] * 3
    assert listed["sessions"] == []
