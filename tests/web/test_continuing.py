"""Answers to asks of sessions that are closed: their turns are continued, once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from websockets.asyncio.client import ClientConnection

from steersman import Agent, Allow
from steersman.options import Park
from steersman.stores import SqliteStore
from steersman.testing.script import Script, call, say
from steersman.testing.scripted.cli import ScriptedCLI
from steersman.web import Bridge, WebLimits
from tests.inbox.places import Session, an_ask
from tests.web.staging import Frame, Served, done, frame_where, serving
from tests.web.staging import say as send

PUSH = call("Bash", command="git push", id_="toolu_1")
ALLOW = {"behavior": "allow"}


def parking_agent(place: ScriptedCLI) -> Agent:
    return Agent(transport=place, park=Park(grace=0.0))


@asynccontextmanager
async def served_with_store(
    folder: Path, agent: Agent, **limits: Any
) -> AsyncGenerator[tuple[Served, SqliteStore]]:
    """A bridge whose asks are in a store."""
    async with SqliteStore(folder / "asks.db") as store:
        bridge = Bridge(agent, inbox=store.inbox(), journals=folder, limits=WebLimits(**limits))
        async with serving(bridge) as served:
            yield served, store


def is_parked(frame: Frame) -> bool:
    """Whether a frame says that the session is closed while an ask waits."""
    if frame.get("type") != "session":
        return False
    session: Frame = frame["session"]
    return session["asks"] == 1 and not session["is_open"]


async def test_a_session_that_waits_too_long_is_parked_and_an_answer_continues_it_once(
    tmp_path: Path,
) -> None:
    place = ScriptedCLI(Script(PUSH, PUSH, say("Pushed.")))
    async with (
        served_with_store(tmp_path, parking_agent(place), idle=0.2) as (served, _),
        served.live() as ann,
        served.live() as bob,
        served.http() as http,
    ):
        body = {"text": "push", "key": "k"}
        begun = (await http.post("/sessions", json=body)).json()
        session = begun["session"]["id"]
        parked = await frame_where(ann, is_parked)
        asks = (await http.get("/asks")).json()["asks"]
        await send(bob, type="follow", session=session, after=parked["session"]["last"])
        # Two viewers answer, and the prompt is sent again, all at the same time.
        answer = {"ask": asks[0]["id"], "session": session, "answer": ALLOW}
        first, second, again = await asyncio.gather(
            done(ann, "a", "answer", **answer),
            http.post(f"/asks/{asks[0]['id']}", json={"answer": ALLOW, "session": session}),
            http.post("/sessions", json=body),
        )
        settled = await frame_where(bob, lambda frame: frame.get("kind") == "settled")
        entries = (await http.get(f"/sessions/{session}/entries?limit=1000")).json()["entries"]
        left = (await http.get("/asks")).json()["asks"]

    assert [each["session"] for each in asks] == [session]
    assert sorted(["answer" in first, second.status_code == 200]) == [False, True]
    assert again.json()["turn"] == begun["turn"] == settled["turns"][0]
    assert settled["details"]["outcome"] == "completed"
    outcomes = [each["details"]["outcome"] for each in entries if each["kind"] == "settled"]
    assert outcomes == ["parked", "completed"]
    assert left == []


async def test_what_was_answered_while_no_server_ran_is_continued_by_the_next(
    tmp_path: Path,
) -> None:
    place = ScriptedCLI(Script(PUSH, PUSH, say("Pushed.")))
    agent = parking_agent(place)
    async with served_with_store(tmp_path, agent) as (served, store), served.live() as ws:
        begun = await done(ws, "b", "begin", text="push")
        session = begun["answer"]["session"]["id"]
        await frame_where(ws, lambda frame: frame.get("what") == "opened")
    async with SqliteStore(tmp_path / "asks.db") as store:
        (ask,) = await store.inbox().list()
        await store.inbox().answer(ask, Allow(), by="ann")
    async with served_with_store(tmp_path, agent) as (served, _), served.live() as ws:
        await send(ws, type="follow", session=session, after=0)
        outcomes = [await next_outcome(ws), await next_outcome(ws)]

    assert outcomes == ["parked", "completed"]


async def test_an_answer_continues_its_turn_also_if_another_prompt_has_opened_the_session(
    tmp_path: Path,
) -> None:
    place = ScriptedCLI(Script(PUSH, say("Hello."), PUSH, say("Pushed.")))
    async with (
        served_with_store(tmp_path, parking_agent(place), idle=0.2) as (served, store),
        served.live() as ws,
    ):
        begun = (await done(ws, "b", "begin", text="push"))["answer"]
        session, turn = begun["session"]["id"], begun["turn"]
        await frame_where(ws, is_parked)
        await send(ws, type="follow", session=session)
        await done(ws, "s", "send", session=session, text="hello")
        assert await next_outcome(ws) == "completed"
        (ask,) = await store.inbox().list()
        await done(ws, "a", "answer", ask=ask.id, answer=ALLOW)
        settled = await frame_where(ws, lambda frame: frame.get("kind") == "settled")

    assert (settled["turns"], settled["details"]["outcome"]) == ([turn], "completed")


async def next_outcome(ws: ClientConnection) -> str:
    """How the next turn of a session that is followed ends."""
    settled = await frame_where(ws, lambda frame: frame.get("kind") == "settled")
    outcome: str = settled["details"]["outcome"]
    return outcome


async def test_health_says_that_background_work_fails_and_the_work_is_started_again(
    tmp_path: Path,
) -> None:
    """The file of the asks is no database at first."""
    path = tmp_path / "asks.db"
    path.write_bytes(b"no database" * 1000)
    path.chmod(0o600)
    store = SqliteStore(path)
    bridge = Bridge(parking_agent(ScriptedCLI()), inbox=store.inbox())
    async with serving(bridge) as served, served.http() as http:
        token = http.headers.pop("Authorization")
        statuses = [await http.get("/health")]
        while statuses[-1].status_code == 200:
            statuses.append(await http.get("/health"))

        assert statuses[-1].json() == {"status": "failing"}
        assert "not a database" in bridge.faults["the asks of the store"]

        path.unlink()
        while (await http.get("/health")).status_code == 503:
            pass
        async with served.live(Authorization=token) as ann:
            session = Session(store.inbox())
            session.open(an_ask(id_="q"))
            shown = await frame_where(ann, lambda frame: frame.get("type") == "ask")
    await store.aclose()

    assert shown["ask"]["id"] == "q"
    assert {each.status_code for each in statuses} <= {200, 503}
