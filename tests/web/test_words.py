"""A request that is wrong is answered with what is wrong with it, and what is allowed."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any, get_args

import pytest

from steersman.options import PermissionMode
from steersman.testing.script import call, say
from steersman.web import Bridge, Viewer, WebLimits
from steersman.web.verbs import SESSION_VERBS
from tests.web.staging import scripted_agent
from tests.web.test_routes import calling, entries_when_idle, opened_ask

A = base64.b64encode(b"a").decode()
LARGE = 20_000_000

WRONG: list[tuple[str, Any, str]] = [
    ("/sessions", [], "the body must be a JSON object"),
    ("/sessions", {"text": 7}, f"text must be a text of 1 to {LARGE} characters"),
    (
        "/sessions",
        {"text": "x" * 1_000_001},
        "a text may have 1000000 bytes; attach what is larger",
    ),
    ("/sessions", {"title": "x" * 201}, "title must be a text of 1 to 200 characters"),
    ("/sessions", {"agent": ""}, "agent must be a text of 1 to 200 characters"),
    ("/sessions", {"agent": "none"}, "there is no such agent; there are default"),
    ("/sessions", {"key": "k" * 501}, "key must be a text of 1 to 500 characters"),
    ("/sessions", {"when": "soon"}, "when must be one of later, next, now"),
    ("/sessions", {"attachments": {}}, "attachments must be a list of objects"),
    ("/sessions", {"attachments": [7]}, "attachments must be a list of objects"),
    ("/sessions", {"attachments": [{}] * 101}, "attachments must have at most 100 items"),
    ("/sessions", {"attachments": [{"data": A}]}, "media_type is missing"),
    ("/sessions", {"attachments": [{"media_type": "text/plain"}]}, "data is missing"),
    (
        "/sessions",
        {"attachments": [{"media_type": "image/png", "data": "no!"}]},
        "data of an attachment must be base64",
    ),
    (
        "/sessions",
        {"attachments": [{"media_type": "application/x-sh", "data": A}]},
        "attachments may be PNG, JPEG, GIF, WebP, PDF, or text/plain",
    ),
    (
        "/sessions",
        {"attachments": [{"media_type": "text/plain", "data": "/w=="}]},
        "an attachment of text/plain must be UTF-8",
    ),
    ("/sessions/ID/send", {}, "text is missing"),
    ("/sessions/ID/send", {"text": "a", "key": 7}, "key must be a text of 1 to 500 characters"),
    ("/sessions/ID/withdraw", {}, "turn is missing"),
    ("/sessions/ID/withdraw", {"turn": "none"}, "there is no such turn in this session"),
    ("/sessions/ID/interrupt", {"also_queued": 1}, "also_queued must be true or false"),
    ("/sessions/ID/pause", {"hard": "yes"}, "hard must be true or false"),
    ("/sessions/ID/set_model", {}, "model is missing; null is the default model"),
    ("/sessions/ID/set_model", {"model": 7}, "model must be a text of 1 to 200 characters"),
    ("/sessions/ID/set_permission_mode", {}, "mode is missing"),
    (
        "/sessions/ID/set_permission_mode",
        {"mode": "free"},
        f"mode must be one of {', '.join(get_args(PermissionMode))}",
    ),
    (
        "/sessions/ID/dance",
        {},
        f"verbs are {', '.join(SESSION_VERBS)}",
    ),
    ("/asks", {"answers": [{}] * 101}, "answers must have at most 100 items"),
    ("/asks/r", {}, "answer must be an object"),
    ("/asks/r", {"answer": {}, "seen": 7}, "seen must be a text of 1 to 200 characters"),
    ("/asks/r", {"answer": {}}, "there is no such ask"),
    ("/sessions/ID/entries?before=0", None, "before must be 1 or more"),
    ("/sessions/ID/entries?before=x", None, "before must be the number of an entry"),
    ("/sessions/ID/entries?limit=1001", None, "limit must be 1 or more, up to 1000"),
    ("/sessions/ID/entries/7", None, "there is no entry with this number"),
    ("/sessions/ID/events?after=x", None, "after must be the number of an entry"),
    ("/sessions/ID/events?form=x", None, "form must be raw, or left out"),
    ("/sessions/ID/events?after=0@x", None, "what follows @ must be the time of an entry"),
    (
        "/sessions/ID/events?after=9",
        None,
        "the journal has 0 entries: begin again, with after at most 0",
    ),
    ("/nothing", None, "there is no such route"),
    ("/asks/r", b"{", "the body must be JSON, and not nested deeply"),
    ("/asks/r", b"x" * 1_000_001, "a body may have 1000000 bytes here"),
    ("/sessions", b"x" * (LARGE + 1), f"a body may have {LARGE} bytes here"),
    ("/sessions/ID/send", b"x" * (LARGE + 1), f"a body may have {LARGE} bytes here"),
    ("/sessions/ID/cancel", b"x" * 1_000_001, "a body may have 1000000 bytes here"),
]


@pytest.mark.parametrize(
    ("path", "body", "words"), WRONG, ids=[f"{row[0]}: {row[2][:40]}" for row in WRONG]
)
async def test_a_wrong_request_learns_what_is_wrong(
    tmp_path: Path, path: str, body: Any, words: str
) -> None:
    bridge = Bridge(scripted_agent(), journals=tmp_path)
    async with calling(bridge) as client:
        session = (await client.post("/sessions", json={})).json()["session"]["id"]
        at = path.replace("ID", session)
        if body is None:
            answer = await client.get(at)
        elif isinstance(body, bytes):
            kind = {"Content-Type": "application/json; charset=utf-8"}
            answer = await client.post(at, content=body, headers=kind)
        else:
            answer = await client.post(at, json=body)

    assert 400 <= answer.status_code < 500
    assert answer.json()["error"]["message"] == words


async def test_the_longest_texts_are_taken(tmp_path: Path) -> None:
    bridge = Bridge(scripted_agent(), journals=tmp_path, limits=WebLimits(body=1000))
    async with calling(bridge) as client:
        taken = await client.post("/sessions", json={"title": "t" * 200, "key": "k" * 500})
        text = await client.post("/sessions", json={"text": "ä" * 500})
        longer = await client.post("/sessions", json={"text": "ä" * 501})
        body = b'{"answer":{}' + b" " * 987 + b"}"
        whole = await client.post(
            "/asks/r", content=body, headers={"Content-Type": "application/json"}
        )
        more = await client.post(
            "/asks/r", content=body + b" ", headers={"Content-Type": "application/json"}
        )

    assert (len(body), taken.status_code, text.status_code) == (1000, 201, 201)
    assert taken.json()["session"]["title"] == "t" * 200
    assert (longer.status_code, longer.json()["error"]["most"]) == (413, 1000)
    assert (whole.status_code, more.status_code, more.json()["error"]["most"]) == (404, 413, 1000)


async def test_attachments_are_blocks_with_their_names_before_the_text(tmp_path: Path) -> None:
    pdf = base64.b64encode(b"%PDF-1.4 data").decode()
    attached = [
        {"media_type": "application/pdf", "data": pdf, "name": "a.pdf"},
        {"media_type": "text/plain", "data": A, "name": "a.txt"},
        {"media_type": "text/plain", "data": A},
    ]
    bridge = Bridge(scripted_agent(), journals=tmp_path)
    async with calling(bridge) as client:
        begun = await client.post("/sessions", json={"text": "look", "attachments": attached})
        entries = await entries_when_idle(bridge, client, begun.json()["session"]["id"])

    sent = next(entry for entry in entries if entry["kind"] == "sent" and "turns" in entry)
    pdf_source = {"type": "base64", "media_type": "application/pdf", "data": pdf}
    source = {"type": "text", "media_type": "text/plain", "data": "a"}
    assert sent["frame"]["message"]["content"] == [
        {"type": "document", "source": pdf_source, "title": "a.pdf"},
        {"type": "document", "source": source, "title": "a.txt"},
        {"type": "document", "source": source, "title": "text"},
        {"type": "text", "text": "look"},
    ]


async def test_a_model_and_a_mode_are_set_and_shown(tmp_path: Path) -> None:
    bridge = Bridge(scripted_agent(), journals=tmp_path)
    async with calling(bridge) as client:
        session = (await client.post("/sessions", json={})).json()["session"]["id"]
        model = await client.post(f"/sessions/{session}/set_model", json={"model": "model-b"})
        mode = await client.post(f"/sessions/{session}/set_permission_mode", json={"mode": "plan"})
        shown = (await client.get(f"/sessions/{session}")).json()["session"]
        entries = await entries_when_idle(bridge, client, session)

    assert (model.json(), mode.json()) == ({}, {})
    assert (shown["model"], shown["permission_mode"], shown["is_open"]) == ("model-b", "plan", True)
    asked = [entry["frame"].get("request", {}) for entry in entries if "frame" in entry]
    assert [each["model"] for each in asked if each.get("subtype") == "set_model"] == ["model-b"]
    modes = [each["mode"] for each in asked if each.get("subtype") == "set_permission_mode"]
    assert modes == ["plan"]


async def test_a_turn_is_interrupted_by_its_id_and_with_it_what_waits(tmp_path: Path) -> None:
    push = call("Bash", command="git push")
    bridge = Bridge(scripted_agent(push, push, push, say("done")), journals=tmp_path)
    async with calling(bridge) as client:
        begun = (await client.post("/sessions", json={"text": "one"})).json()
        at = f"/sessions/{begun['session']['id']}"
        await opened_ask(bridge)
        queued = [
            (await client.post(f"{at}/send", json={"text": text})).json()["turn"]
            for text in ("two", "three")
        ]
        other = await client.post(f"{at}/interrupt", json={"turn": "none"})
        first = await client.post(f"{at}/interrupt", json={"turn": begun["turn"]})
        last = await client.post(f"{at}/interrupt", json={"also_queued": True})
        await entries_when_idle(bridge, client, begun["session"]["id"])
        session = bridge.session(begun["session"]["id"])
        assert session is not None
        outcomes = [(await turn.result()).outcome for turn in session.turns]

    assert other.json()["error"]["code"] == "turn_not_found"
    assert set(first.json()["queued"]) <= set(queued)
    assert last.json() == {"queued": []}
    assert outcomes[0] == "interrupted"
    assert "completed" not in outcomes


async def test_a_session_is_paused_and_resumed(tmp_path: Path) -> None:
    bridge = Bridge(scripted_agent(), journals=tmp_path)
    async with calling(bridge) as client:
        begun = (await client.post("/sessions", json={"text": "one"})).json()["session"]["id"]
        await entries_when_idle(bridge, client, begun)
        states: list[tuple[str, int]] = []
        for verb, fields in (("pause", {}), ("resume", {}), ("pause", {"hard": True})):
            await client.post(f"/sessions/{begun}/{verb}", json=fields)
            session = bridge.session(begun)
            assert session is not None
            # A CLI whose processes are stopped takes no request.
            asked = await client.post(f"/sessions/{begun}/set_model", json={"model": None})
            states.append((session.state, asked.status_code))

    assert states == [("paused", 200), ("idle", 200), ("paused", 502)]


async def test_the_page_and_the_health_need_no_login_and_all_else_does(tmp_path: Path) -> None:
    bridge = Bridge(scripted_agent(), journals=tmp_path)
    paths = ("/", "/static/none.js", "/health", "/me", "/sessions", "/asks", "/openapi.json", "/x")
    async with calling(bridge, host="127.0.0.1") as client:
        found = {path: (await client.get(path)).status_code for path in paths}

    assert found == dict(zip(paths, (200, 404, 200, 401, 401, 401, 401, 401), strict=True))


async def test_a_viewer_begins_sessions_with_the_agents_that_are_allowed(tmp_path: Path) -> None:
    agents = {"a": scripted_agent(), "b": scripted_agent()}
    allowed: list[Any] = [["b"]]

    async def who(_connection: object) -> Viewer:
        return Viewer("ann", agents=allowed[0])

    bridge = Bridge(agents, journals=tmp_path, authenticate=who)
    async with calling(bridge, Origin="http://127.0.0.1:8000") as client:
        listed = (await client.get("/sessions")).json()["agents"]
        chosen = (await client.post("/sessions", json={})).json()["session"]["agent"]
        other = await client.post("/sessions", json={"agent": "a"})
        allowed[0] = []
        none = await client.post("/sessions", json={})

    assert (listed, chosen) == (["b"], "b")
    assert other.json()["error"] == {
        "code": "agent_not_found",
        "message": "there is no such agent; there are b",
    }
    assert (none.status_code, none.json()["error"]["message"]) == (
        404,
        "there is no such agent; there are none",
    )


async def test_an_unknown_agent_of_a_kept_session_is_named(tmp_path: Path) -> None:
    async with calling(Bridge({"old": scripted_agent()}, journals=tmp_path)) as client:
        session = (await client.post("/sessions", json={})).json()["session"]["id"]
    async with calling(Bridge({"new": scripted_agent()}, journals=tmp_path)) as client:
        shown = (await client.get(f"/sessions/{session}")).json()["session"]
        sent = await client.post(f"/sessions/{session}/send", json={"text": "hi"})

    assert (shown["agent"], shown["is_open"], shown["state"]) == ("old", False, "closed")
    assert (sent.status_code, sent.json()["error"]) == (
        409,
        {
            "code": "session_closed",
            "message": "the agent 'old' of this session is no longer there",
        },
    )
