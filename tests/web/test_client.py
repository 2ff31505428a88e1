from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket

from steersman import Allow, Deny
from steersman.errors import UsageError
from steersman.journal.files import Record
from steersman.permissions.json_form import ask_from_json
from steersman.testing.script import call
from steersman.testing.script import say as speak
from steersman.web import Begun, Bridge, Client, Outcome, Page, Summary, WebError
from tests.web.staging import inside, scripted_agent, serving


async def test_a_client_begins_follows_answers_and_reads(tmp_path: Path) -> None:
    agent = scripted_agent(call("Bash", command="git push"), speak("done"))
    bridge = Bridge(agent, journals=tmp_path)
    async with serving(bridge) as served, served.client() as client:
        begun = await client.begin("go", key="k")
        again = await client.begin("go", key="k")
        session = begun.session.id
        followed = client.follow(session)
        records: list[Record] = []
        outcomes: list[Outcome] = []
        refusals: list[WebError] = []
        async for record in followed:
            records.append(record)
            if record.kind == "asked":
                ask = (await client.asks())[0]
                outcomes.append(await client.answer(ask, Allow()))
                with pytest.raises(WebError) as late:
                    await client.answer(ask, Deny("too late"))
                refusals.append(late.value)
            if record.kind == "settled":
                break
        await followed.aclose()
        page = await client.entries(session, limit=5)
        whole = await client.entry(session, page.entries[0].seq)
        listed = await client.sessions()
        turn = await client.send(session, "more", when="later", key="l")
        assert not await client.withdraw(session, begun.turn or "")
        assert await client.do(session, "interrupt") == {"queued": []}
        with pytest.raises(WebError) as missing:
            await client.session("00000000-0000-4000-8000-000000000000")

    assert again == begun or again.turn == begun.turn
    assert [record.seq for record in records] == [*range(1, len(records) + 1)]
    assert [(each.how, each.by) for each in outcomes] == [("answered", "you")]
    refused = [(each.status, each.error_code, each.by) for each in refusals]
    assert refused == [(409, "already_answered", "you")]
    assert page.more
    assert whole == page.entries[0]
    assert [each.id for each in listed] == [session]
    assert turn
    assert missing.value.status == 404


async def test_a_client_that_is_refused_says_why(tmp_path: Path) -> None:
    bridge = Bridge(scripted_agent(), journals=tmp_path)
    async with serving(bridge) as served, Client(served.url, token="guess") as client:
        with pytest.raises(WebError, match="401 not_logged_in"):
            await client.sessions()
        with pytest.raises(WebError, match="not_logged_in"):
            await anext(client.follow("00000000-0000-4000-8000-000000000000"))


SUMMARY = {"id": "s", "title": "t", "asks": 2, "is_stored": False, "queued": [{"turn": "u"}]}
RECORD = {"seq": 7, "at": 1.5, "kind": "phase", "details": {"after": "idle"}}
ASK = {
    "id": "r/1",
    "session": "s",
    "kind": "permission",
    "created": 1.0,
    "digest": "d",
    "payload": {"subtype": "can_use_tool", "tool_name": "Bash", "input": {}, "tool_use_id": "t"},
}
OUTCOME = {"id": "r/1", "session": "s", "how": "answered", "by": "ann"}

CALLS: dict[str, tuple[Callable[[Client], Awaitable[object]], object, tuple[str, object], object]]
CALLS = {
    "sessions": (
        lambda client: client.sessions(),
        {"sessions": [SUMMARY], "agents": []},
        ("GET /sessions", None),
        [Summary(**SUMMARY)],  # type: ignore[arg-type]  # of an example
    ),
    "session": (
        lambda client: client.session("s s"),
        {"session": SUMMARY, "snapshot": None},
        ("GET /sessions/s s", None),
        Summary(**SUMMARY),  # type: ignore[arg-type]  # of an example
    ),
    "begin": (
        lambda client: client.begin(),
        {"session": SUMMARY, "turn": None},
        ("POST /sessions", {}),
        Begun(Summary(**SUMMARY)),  # type: ignore[arg-type]  # of an example
    ),
    "begin with all": (
        lambda client: client.begin("hi", agent="a", key="k", title="t"),
        {"session": SUMMARY, "turn": "u"},
        ("POST /sessions", {"text": "hi", "agent": "a", "key": "k", "title": "t"}),
        Begun(Summary(**SUMMARY), "u"),  # type: ignore[arg-type]  # of an example
    ),
    "send": (
        lambda client: client.send("s", "hi"),
        {"turn": "u", "is_new": True},
        ("POST /sessions/s/send", {"text": "hi", "when": "later"}),
        "u",
    ),
    "send with all": (
        lambda client: client.send("s s", "hi", when="now", key="k"),
        {"turn": "u", "is_new": True},
        ("POST /sessions/s s/send", {"text": "hi", "when": "now", "key": "k"}),
        "u",
    ),
    "withdraw": (
        lambda client: client.withdraw("s s", "u"),
        {"withdrawn": True},
        ("POST /sessions/s s/withdraw", {"turn": "u"}),
        True,
    ),
    "do": (
        lambda client: client.do("s s", "interrupt", also_queued=True),
        {"queued": ["u"]},
        ("POST /sessions/s s/interrupt", {"also_queued": True}),
        {"queued": ["u"]},
    ),
    "entries": (
        lambda client: client.entries("s s"),
        {"entries": [RECORD], "more": True, "last": 9},
        ("GET /sessions/s s/entries?limit=200", None),
        Page([Record(7, 1.5, "phase", details={"after": "idle"})], more=True, last=9),
    ),
    "entries before": (
        lambda client: client.entries("s", before=5, limit=3),
        {"entries": [], "more": False, "last": 9},
        ("GET /sessions/s/entries?before=5&limit=3", None),
        Page([], more=False, last=9),
    ),
    "entry": (
        lambda client: client.entry("s s", 7),
        RECORD,
        ("GET /sessions/s s/entries/7", None),
        Record(7, 1.5, "phase", details={"after": "idle"}),
    ),
    "asks": (
        lambda client: client.asks(),
        {"asks": [ASK]},
        ("GET /asks", None),
        [ask_from_json(json.dumps(ASK))],
    ),
    "answer": (
        lambda client: client.answer(ask_from_json(json.dumps(ASK)), Deny("no")),
        OUTCOME,
        (
            "POST /asks/r/1",
            {"session": "s", "seen": "d", "answer": {"behavior": "deny", "message": "no"}},
        ),
        Outcome(id="r/1", session="s", how="answered", by="ann"),
    ),
}


class Answering:
    """Answers every request alike, and keeps what was asked."""

    def __init__(self, answer: object, status: int = 200) -> None:
        self.answer = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.status = status
        self.asked: list[Request] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        await request.body()
        self.asked.append(request)
        await Response(self.answer, self.status)(scope, receive, send)


@pytest.mark.parametrize("name", CALLS)
async def test_a_client_asks_for_what_it_is_called_for_and_returns_the_answer(
    tmp_path: Path, name: str
) -> None:
    call_it, answer, (line, body), expected = CALLS[name]
    bridge, other = Bridge(scripted_agent(), journals=tmp_path), Answering(answer)
    async with (
        serving(other, bridge) as served,
        Client(f"{served.url}/", token="abc", headers={"x-more": "1"}) as client,
    ):
        found = await call_it(client)

    assert found == expected
    (request,) = other.asked
    url = request.url
    assert f"{request.method} {url.path}{'?' if url.query else ''}{url.query}" == line
    assert request.headers["authorization"] == "Bearer abc"
    assert request.headers["x-more"] == "1"
    assert (json.loads(await request.body()) if body is not None else None) == body
    assert (request.headers.get("content-type") == "application/json") == (body is not None)


@pytest.mark.parametrize(
    ("answer", "status", "code"),
    [
        (b"<html>", 200, "bad_answer"),
        (b"[]", 200, "bad_answer"),
        ({"sessions": [{"id": 7}]}, 200, "bad_answer"),
        ({"error": {"code": "internal", "message": "it failed", "more": 1}}, 500, "internal"),
    ],
)
async def test_an_answer_that_cannot_be_used_is_an_error_with_what_it_said(
    tmp_path: Path, answer: object, status: int, code: str
) -> None:
    bridge, other = Bridge(scripted_agent(), journals=tmp_path), Answering(answer, status)
    async with serving(other, bridge) as served, served.client() as client:
        with pytest.raises(WebError) as raised:
            await client.sessions()

    assert raised.value.error_code == code
    assert raised.value.status == (502 if b"7" in other.answer else status)
    if code == "internal":
        assert "it failed" in str(raised.value)
        assert raised.value.body == {"code": "internal", "message": "it failed", "more": 1}


async def test_a_client_that_follows_reconnects_where_it_was_after_any_failure(
    tmp_path: Path,
) -> None:
    bridge = Bridge(scripted_agent(speak("one"), speak("two")), journals=tmp_path)
    failures = iter([500, 503, 599])

    async def failing(scope: Scope, receive: Receive, send: Send) -> None:
        status = next(failures, None) if scope["type"] == "websocket" else None
        if status is None:
            await bridge(scope, receive, send)
            return
        await receive()
        socket = WebSocket(scope, receive, send)
        await socket.send_denial_response(Response(b"away", status))

    async with serving(failing, bridge) as served, served.client() as client:
        session = (await client.begin("first")).session.id
        followed = client.follow(session)
        first = await anext(followed)
        while (await anext(followed)).kind != "settled":
            pass
        for connection in [*inside(bridge)._live]:
            connection.close()
        seen = followed.after
        await client.send(session, "second")
        while followed.connections < 2:
            following = await anext(followed)
            assert following.seq == seen + 1
            seen = following.seq
        await followed.aclose()

    assert first.seq == 1
    assert (followed.after, followed.at) == (following.seq, following.at)
    assert followed.connections == 2


@pytest.mark.parametrize("url", ["127.0.0.1:8080", "ws://127.0.0.1:8080", "", "http://", 7])
def test_the_address_of_a_bridge_is_one_of_http(url: Any) -> None:
    with pytest.raises(UsageError, match="url"):
        Client(url)


async def test_a_client_does_not_follow_from_the_future(tmp_path: Path) -> None:
    bridge = Bridge(scripted_agent(), journals=tmp_path)
    async with serving(bridge) as served, served.client() as client:
        session = (await client.begin()).session.id
        with pytest.raises(WebError, match="after_in_future"):
            await anext(client.follow(session, after=7))
