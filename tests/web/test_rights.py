"""What each viewer may do: every verb by its rights, and nothing about asks of others."""

from __future__ import annotations

import asyncio
import json
from itertools import combinations
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.requests import HTTPConnection

from steersman import Allow
from steersman.permissions import Ask
from steersman.permissions.questions import CanUseTool
from steersman.stores import SqliteStore
from steersman.testing.script import call, say
from steersman.web import Bridge, Viewer
from steersman.web.verbs import RIGHTS, SESSION_VERBS
from tests.web.staging import LIMIT, done, frame_where, scripted_agent, serving

ACTS = ("see", "steer", "answer")
BODIES: dict[str, dict[str, Any]] = {
    "send": {"text": "more"},
    "withdraw": {"turn": "none"},
    "set_model": {"model": None},
    "set_permission_mode": {"mode": "bypassPermissions"},
    "answer": {"ask": "none", "answer": {"behavior": "allow"}},
    "answer_many": {"answers": [{"id": "none", "answer": {"behavior": "allow"}}]},
}
FOREIGN = "00000000-0000-4000-8000-00000000000f"


async def by_header(connection: HTTPConnection) -> Viewer | None:
    """Log in who says so, with the rights after the name: `ann:see,steer`."""
    name, _, rights = connection.headers.get("x-user", "").partition(":")
    allowed = rights.split(",")
    return Viewer(name, lambda act, _: act in allowed) if name else None


def asked(session: str, ask_id: str = "r1") -> Ask:
    question = CanUseTool(tool_name="Bash", input={"command": "ls"}, tool_use_id="t")
    return Ask(id=ask_id, session=session, created=1.0, payload=question)


def test_every_verb_names_the_rights_that_it_needs() -> None:
    assert set(RIGHTS) == {"begin", "answer", "answer_many", *SESSION_VERBS}
    assert all(set(needed) <= set(ACTS[1:]) and needed for needed in RIGHTS.values())
    assert set(RIGHTS["set_permission_mode"]) == {"steer", "answer"}


@pytest.mark.parametrize("verb", RIGHTS)
async def test_a_verb_is_refused_to_whoever_has_not_all_of_its_rights(
    tmp_path: Path, verb: str
) -> None:
    bridge = Bridge(
        scripted_agent(call("Bash", command="git push"), say("done")),
        journals=tmp_path,
        authenticate=by_header,
    )
    refused: dict[tuple[str, ...], bool] = {}
    async with serving(bridge, token="") as served:
        headers = {"Origin": served.url, "x-user": "ann:see,steer,answer"}
        async with served.live(**headers) as ann:
            begun = await done(ann, "1", "begin", text="go")
            opened = await frame_where(ann, lambda frame: frame.get("what") == "opened")
            session, ask = begun["answer"]["session"]["id"], opened["ask"]["id"]
            for number in range(3):
                for acts in combinations(ACTS[1:], number):
                    missing = set(RIGHTS[verb]) - set(acts)
                    # What is allowed is not done here: others of these would have no ask left.
                    if not missing:
                        continue
                    user = f"bob:see,{','.join(acts)}"
                    body = {**BODIES.get(verb, {}), "session": session}
                    if verb == "answer":
                        body["ask"] = ask
                    if verb == "answer_many":
                        body["answers"] = [{**body["answers"][0], "id": ask}]
                    async with served.live(Origin=served.url, **{"x-user": user}) as bob:
                        answer = await done(bob, "1", verb, **body)
                    error = answer.get("error") or answer["answer"]["outcomes"][0]["error"]
                    refused[acts] = error["code"] == "not_allowed"
        still = await bridge.inbox.list()

    assert refused
    assert all(refused.values())
    assert [each.id for each in still] == [ask]


async def test_who_may_not_see_an_ask_does_not_learn_who_has_answered_it(tmp_path: Path) -> None:
    async with SqliteStore(tmp_path / "asks.db") as store:
        inbox = store.inbox()
        for session in (FOREIGN, FOREIGN[:-1] + "e"):
            inbox.open(asked(session, "both"), lambda *_: None)
        inbox.open(asked(FOREIGN), lambda *_: None)
        async with asyncio.timeout(LIMIT):
            async for change in inbox.watch():
                if change.ask.id == "r1":
                    break
        await inbox.answer(asked(FOREIGN), Allow(), by="ann")
        bridge = Bridge(scripted_agent(), inbox=inbox, authenticate=by_header)
        body = {"answer": {"behavior": "allow"}}
        async with serving(bridge, token="") as served:
            origin = {"Origin": served.url}
            async with httpx.AsyncClient(base_url=served.url, headers=origin) as http:
                nobody, reader = ({"x-user": f"bob:{acts}"} for acts in ("answer", "see,answer"))
                hidden = await http.post("/asks/r1", json=body, headers=nobody)
                shown = await http.post("/asks/r1", json=body, headers=reader)
                both = await http.post("/asks/both", json=body, headers=nobody)
                chosen = await http.post(
                    "/asks/both", json={**body, "session": FOREIGN}, headers=reader
                )

    assert (hidden.status_code, hidden.json()["error"]["code"]) == (404, "ask_not_found")
    assert "ann" not in hidden.text
    assert (shown.status_code, shown.json()["error"]["by"]) == (409, "ann")
    assert both.status_code == 400
    assert FOREIGN not in both.text
    assert chosen.json() == {"id": "both", "session": FOREIGN, "how": "answered", "by": "bob"}


async def test_an_ask_of_a_session_that_the_bridge_does_not_have_ends_no_connection(
    tmp_path: Path,
) -> None:
    async with SqliteStore(tmp_path / "asks.db") as store:
        bridge = Bridge(scripted_agent(), inbox=store.inbox(), journals=tmp_path / "journals")
        async with serving(bridge) as served, served.live() as ws:
            hello = json.loads(str(await ws.recv()))
            store.inbox().open(asked(FOREIGN), lambda *_: None)
            opened = await frame_where(ws, lambda frame: frame.get("what") == "opened")
            begun = await done(ws, "1", "begin")

    assert hello["type"] == "hello"
    assert opened["ask"]["session"] == FOREIGN
    assert begun["answer"]["session"]["agent"] == "default"


async def test_a_key_gives_no_session_back_to_whoever_has_lost_it(tmp_path: Path) -> None:
    lost: set[str] = set()

    async def who(_connection: HTTPConnection) -> Viewer:
        return Viewer("bob", lambda act, session: act not in lost or not session)

    bridge = Bridge(scripted_agent(), journals=tmp_path, authenticate=who)
    async with serving(bridge, token="") as served:
        origin = {"Origin": served.url}
        async with httpx.AsyncClient(base_url=served.url, headers=origin) as http:
            await http.post("/sessions", json={"key": "k"})
            lost.add("steer")
            steering = await http.post("/sessions", json={"key": "k", "text": "more"})
            looking = await http.post("/sessions", json={"key": "k"})
            lost.add("see")
            hidden = await http.post("/sessions", json={"key": "k"})

    assert (steering.status_code, steering.json()["error"]["code"]) == (403, "not_allowed")
    assert looking.status_code == 200
    assert (hidden.status_code, hidden.json()["error"]["code"]) == (404, "session_not_found")
