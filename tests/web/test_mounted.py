from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from websockets.asyncio.client import connect

from steersman import Agent
from steersman.testing.script import say
from steersman.web import Bridge
from tests.web.staging import Frame, frame_where, scripted_agent, serving


async def test_a_bridge_works_below_any_path_of_another_application(tmp_path: Path) -> None:
    bridge = Bridge(scripted_agent(say("hello")), journals=tmp_path)
    app = Starlette(routes=[Mount("/a/b", bridge)])
    async with serving(app, bridge) as served, served.http() as http:
        page = await http.get("/a/b/")
        me = await http.get("/a/b/me")
        begun = await http.post("/a/b/sessions", json={"text": "hi"})
        missing = await http.get("/a/b/nothing")
        link = bridge.link(f"{served.url}/a/b")
        token = link.partition("#token=")[2]
        entered = await http.post("/a/b/login", json={"token": token})
        url = f"ws://127.0.0.1:{served.port}/a/b/live"
        async with connect(url, additional_headers=served.headers, proxy=None) as ws:
            hello = await frame_where(ws, lambda frame: frame["type"] == "hello")

    assert link.startswith(f"{served.url}/a/b/#token=")
    assert (page.status_code, me.status_code, begun.status_code) == (200, 200, 201)
    assert missing.json()["error"]["code"] == "not_found"
    assert entered.status_code == 200
    assert [each["id"] for each in hello["sessions"]] == [begun.json()["session"]["id"]]


async def test_the_example_serves_each_user_their_own_sessions(tmp_path: Path) -> None:
    fastapi_app: Any = pytest.importorskip("examples.fastapi_app", exc_type=ImportError)
    folders: list[Path] = []

    def make_agent(folder: Path) -> Agent:
        folders.append(folder)
        return scripted_agent(say("hello"), cwd=folder)

    app = fastapi_app.make_app(str(tmp_path / "kept"), str(tmp_path / "work"), make_agent)
    bridge: Any = next(route.app for route in app.routes if isinstance(route, Mount))
    sessions: dict[str, str] = {}
    seen: dict[str, list[str]] = {}
    refused: list[int] = []
    cookies = ""
    async with serving(app, bridge, token="") as served:
        origin = {"Origin": served.url}
        async with served.http() as http:
            stranger = await http.get("/agents/sessions")
            wrong = await http.post("/login", json={"name": "ann", "password": "guess"})
            refused += [stranger.status_code, wrong.status_code]
        for name, password in fastapi_app.PASSWORDS.items():
            async with served.http() as http:
                await http.post("/login", json={"name": name, "password": password})
                for other in {*fastapi_app.PASSWORDS} - {name}:
                    body = {"agent": other, "text": "hi"}
                    theirs = await http.post("/agents/sessions", json=body, headers=origin)
                    refused.append(theirs.status_code)
                begun = await http.post("/agents/sessions", json={"text": "hi"}, headers=origin)
                sessions[name] = begun.json()["session"]["id"]
                listed = (await http.get("/agents/sessions")).json()["sessions"]
                seen[name] = [each["id"] for each in listed]
                foreign = await http.post(
                    "/agents/sessions", json={}, headers={"Origin": "http://e"}
                )
                refused.append(foreign.status_code)
                cookies = "; ".join(f"{key}={value}" for key, value in http.cookies.items())
        url = f"ws://127.0.0.1:{served.port}/agents/live"
        async with connect(url, additional_headers={"Cookie": cookies, **origin}, proxy=None) as ws:
            hello: Frame = json.loads(str(await asyncio.wait_for(ws.recv(), 5)))

    assert refused == [401, 401, 404, 403, 404, 403]
    assert folders == [tmp_path / "work" / name for name in fastapi_app.PASSWORDS]
    assert seen == {name: [session] for name, session in sessions.items()}
    assert hello["viewer"] == {"name": "bob"}
    assert [each["id"] for each in hello["sessions"]] == [sessions["bob"]]
