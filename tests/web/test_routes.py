from __future__ import annotations

import asyncio
import base64
import json
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from steersman import Agent
from steersman.errors import UsageError
from steersman.testing.script import call, say
from steersman.web import Bridge, Viewer, WebLimits
from steersman.web.failures import Refusal
from tests.web.staging import LIMIT, inside, scripted_agent

NO_SESSION = "00000000-0000-4000-8000-000000000000"


@asynccontextmanager
async def calling(bridge: Bridge, **headers: str) -> AsyncGenerator[httpx.AsyncClient, None]:
    """A client of a bridge in this process, with the token unless other headers are given."""
    sent = headers or {"Authorization": f"Bearer {bridge.token}"}
    transport = httpx.ASGITransport(bridge, raise_app_exceptions=False)
    async with (
        bridge,
        asyncio.timeout(LIMIT),
        httpx.AsyncClient(
            transport=transport, base_url="http://127.0.0.1:8000", headers=sent
        ) as client,
    ):
        yield client


async def entries_when_idle(
    bridge: Bridge, client: httpx.AsyncClient, session: str
) -> list[dict[str, Any]]:
    found = bridge.session(session)
    assert found is not None
    assert await found.wait_idle(LIMIT)
    answer = (await client.get(f"/sessions/{session}/entries?limit=1000")).json()
    entries: list[dict[str, Any]] = answer["entries"]
    return entries


async def test_a_session_is_begun_listed_and_read(tmp_path: Path) -> None:
    bridge = Bridge(scripted_agent(say("hello")), journals=tmp_path)
    async with calling(bridge) as client:
        begun = await client.post("/sessions", json={"text": "  say\nhello "})
        session = begun.json()["session"]["id"]
        entries = await entries_when_idle(bridge, client, session)
        listed = (await client.get("/sessions")).json()
        one = (await client.get(f"/sessions/{session}")).json()

    assert begun.status_code == 201
    assert begun.json()["session"]["title"] == "say hello"
    assert listed["agents"] == ["default"]
    assert [(each["id"], each["state"], each["turns"]) for each in listed["sessions"]] == [
        (session, "idle", 1)
    ]
    assert one["snapshot"]["session_id"] == session
    assert {entry["kind"] for entry in entries} >= {"sent", "message", "settled", "phase"}
    assert "partial" not in {entry["kind"] for entry in entries}


async def test_one_key_is_one_session_and_one_turn(tmp_path: Path) -> None:
    bridge = Bridge(scripted_agent(say("hello")), journals=tmp_path)
    async with calling(bridge) as client:
        answers = await asyncio.gather(
            *(client.post("/sessions", json={"text": "hi", "key": "k"}) for _ in range(3))
        )
        session = answers[0].json()["session"]["id"]
        sent = [
            (await client.post(f"/sessions/{session}/send", json={"text": "on", "key": "l"})).json()
            for _ in range(3)
        ]
        other = await client.post(f"/sessions/{session}/send", json={"text": "x", "key": "l"})
        entries = await entries_when_idle(bridge, client, session)

    assert sorted(each.status_code for each in answers) == [200, 200, 201]
    assert len({each.json()["turn"] for each in answers}) == 1
    assert len({each["turn"] for each in sent}) == 1
    assert [each["is_new"] for each in sent] == [True, False, False]
    assert other.status_code == 409
    assert other.json()["error"]["code"] == "key_taken"
    assert sum(entry["kind"] == "settled" for entry in entries) == 2


async def test_pages_go_back_to_the_first_entry_without_gap(tmp_path: Path) -> None:
    bridge = Bridge(scripted_agent(say("hello"), say("more")), journals=tmp_path)
    async with calling(bridge) as client:
        session = (await client.post("/sessions", json={"text": "hi"})).json()["session"]["id"]
        whole = await entries_when_idle(bridge, client, session)
        pages: list[list[Any]] = []
        before, more = "", True
        while more:
            page = (await client.get(f"/sessions/{session}/entries?limit=4{before}")).json()
            pages.insert(0, page["entries"])
            before, more = f"&before={page['entries'][0]['seq']}", page["more"]

    assert [entry for page in pages for entry in page] == whole


async def test_a_long_value_is_cut_in_pages_and_whole_by_its_number(tmp_path: Path) -> None:
    text = "long " * 10_000
    bridge = Bridge(scripted_agent(say("short")), journals=tmp_path)
    async with calling(bridge) as client:
        session = (await client.post("/sessions", json={"text": text})).json()["session"]["id"]
        entries = await entries_when_idle(bridge, client, session)
        sent = next(entry for entry in entries if entry.get("cut") and entry["kind"] == "sent")
        whole = (await client.get(f"/sessions/{session}/entries/{sent['seq']}")).json()
        none = await client.get(f"/sessions/{session}/entries/999999")

    assert sent["cut"] == [{"path": ["frame", "message", "content"], "size": len(text)}]
    assert whole["frame"]["message"]["content"] == text
    assert none.json()["error"]["code"] == "entry_not_found"


async def test_prompts_wait_are_listed_and_withdrawn(tmp_path: Path) -> None:
    agent = scripted_agent(call("Bash", command="git push"), say("done"))
    bridge = Bridge(agent, journals=tmp_path)
    async with calling(bridge) as client:
        session = (await client.post("/sessions", json={"text": "go"})).json()["session"]["id"]
        ask = await opened_ask(bridge)
        turn = (await client.post(f"/sessions/{session}/send", json={"text": "then"})).json()[
            "turn"
        ]
        shown = (await client.get(f"/sessions/{session}")).json()
        first = await client.post(f"/sessions/{session}/withdraw", json={"turn": turn})
        after = (await client.get(f"/sessions/{session}")).json()["session"]["queued"]
        nobody = await client.post(f"/sessions/{session}/withdraw", json={"turn": "none"})
        await client.post(f"/asks/{ask}", json={"answer": {"behavior": "allow"}})
        await entries_when_idle(bridge, client, session)

    queued = {"turn": turn, "text": "then", "when": "later", "by": "you"}
    assert {**queued, "state": "behind_ask"} in shown["session"]["queued"]
    assert shown["snapshot"]["behind_ask"] == [turn]
    assert first.json() == {"withdrawn": True}
    assert turn not in [each["turn"] for each in after]
    assert nobody.json()["error"]["code"] == "turn_not_found"


async def opened_ask(bridge: Bridge) -> str:
    """The id of the first ask."""
    async for change in bridge.inbox.watch():
        if change.what == "opened":
            return change.ask.id
    raise AssertionError("not reached")


async def test_the_first_answer_counts_and_the_second_learns_who_was_first(tmp_path: Path) -> None:
    names = iter(["ann", "ann", "ann", "bob", "bob", "bob"])

    async def who(_connection: object) -> Viewer:
        return Viewer(next(names))

    agent = scripted_agent(call("Bash", command="git push"), say("done"))
    bridge = Bridge(agent, journals=tmp_path, authenticate=who)
    here = {"Origin": "http://127.0.0.1:8000"}
    async with calling(bridge, **here) as client:
        session = (await client.post("/sessions", json={"text": "go"})).json()["session"]["id"]
        ask = await opened_ask(bridge)
        shown = (await client.get("/asks")).json()["asks"][0]
        answer = {"answer": {"behavior": "allow"}, "session": session, "seen": shown["digest"]}
        first = await client.post(f"/asks/{ask}", json=answer)
        second = await client.post(f"/asks/{ask}", json=answer)
        many = await client.post("/asks", json={"answers": [{"id": ask, **answer}]})
        none = await client.post("/asks/nothing", json=answer)

    assert (shown["id"], shown["session"], shown["kind"]) == (ask, session, "permission")
    assert first.json() == {"id": ask, "session": session, "how": "answered", "by": "ann"}
    assert second.status_code == 409
    assert second.json()["error"]["code"] == "already_answered"
    assert second.json()["error"]["by"] == "ann"
    assert many.json()["outcomes"][0]["error"]["by"] == "ann"
    assert none.status_code == 404


async def test_a_bad_answer_among_many_stops_no_other_and_hides_no_outcome(tmp_path: Path) -> None:
    agent = scripted_agent(call("Bash", command="git push"), say("done"))
    bridge = Bridge(agent, journals=tmp_path)
    async with calling(bridge) as client:
        session = (await client.post("/sessions", json={"text": "go"})).json()["session"]["id"]
        ask = await opened_ask(bridge)
        yes = {"id": ask, "session": session, "answer": {"behavior": "allow"}}
        bad: list[dict[str, Any]] = [
            {"id": 7},
            {},
            {"id": ask, "answer": 7},
            {"id": "none", "answer": {}},
        ]
        found = await client.post("/asks", json={"answers": [*bad, yes, {"id": 8}]})

    outcomes = found.json()["outcomes"]
    assert found.status_code == 200
    assert outcomes[4] == {"id": ask, "session": session, "how": "answered", "by": "you"}
    refused = [(each.get("id"), each["error"]["code"]) for each in (*outcomes[:4], outcomes[5])]
    assert refused == [
        (None, "bad_request"),
        (None, "bad_request"),
        (ask, "bad_request"),
        ("none", "ask_not_found"),
        (None, "bad_request"),
    ]


async def test_an_answer_to_another_ask_than_was_shown_is_refused(tmp_path: Path) -> None:
    bridge = Bridge(
        scripted_agent(call("Bash", command="git push"), say("done")), journals=tmp_path
    )
    async with calling(bridge) as client:
        await client.post("/sessions", json={"text": "go"})
        ask = await opened_ask(bridge)
        changed = await client.post(
            f"/asks/{ask}", json={"answer": {"behavior": "allow"}, "seen": "0" * 64}
        )
        wrong = await client.post(f"/asks/{ask}", json={"answer": {"action": "accept"}})
        denied = await client.post(
            f"/asks/{ask}", json={"answer": {"behavior": "deny", "message": "not today"}}
        )

    assert (changed.status_code, changed.json()["error"]["code"]) == (409, "ask_changed")
    assert wrong.status_code == 400
    assert denied.json()["how"] == "answered"


async def test_verbs_of_a_session_that_is_closed_do_no_harm(tmp_path: Path) -> None:
    bridge = Bridge(scripted_agent(), journals=tmp_path)
    async with calling(bridge) as client:
        session = (await client.post("/sessions", json={})).json()["session"]["id"]
        answers = {
            verb: (await client.post(f"/sessions/{session}/{verb}")).json()
            for verb in ("interrupt", "pause", "resume", "cancel")
        }

    assert answers == {"interrupt": {"queued": []}, "pause": {}, "resume": {}, "cancel": {}}


async def test_a_cancelled_session_is_opened_again_by_the_next_prompt(tmp_path: Path) -> None:
    bridge = Bridge(scripted_agent(), journals=tmp_path)
    async with calling(bridge) as client:
        session = (await client.post("/sessions", json={"text": "one"})).json()["session"]["id"]
        await client.post(f"/sessions/{session}/cancel")
        ended = (await client.get(f"/sessions/{session}")).json()["session"]
        await client.post(f"/sessions/{session}/send", json={"text": "two"})
        entries = await entries_when_idle(bridge, client, session)

    assert (ended["state"], ended["is_open"]) == ("cancelled", False)
    assert [entry["seq"] for entry in entries] == sorted({entry["seq"] for entry in entries})
    assert "two" in json.dumps(entries)


async def test_an_idle_session_is_closed_and_the_next_prompt_opens_it(tmp_path: Path) -> None:
    bridge = Bridge(scripted_agent(), journals=tmp_path, limits=WebLimits(idle=0.05))
    async with calling(bridge) as client:
        session = (await client.post("/sessions", json={"text": "one"})).json()["session"]["id"]
        found = bridge.session(session)
        assert found is not None
        async for _ in found.journal():
            pass
        closed = (await client.get(f"/sessions/{session}")).json()["session"]
        sent = await client.post(f"/sessions/{session}/send", json={"text": "two"})

    assert found.state == "completed"
    assert closed["state"] in ("closed", "completed")
    assert sent.status_code == 200


async def test_sessions_and_entries_are_found_again_by_the_next_server(tmp_path: Path) -> None:
    first = Bridge(scripted_agent(), journals=tmp_path)
    async with calling(first) as client:
        session = (await client.post("/sessions", json={"text": "one"})).json()["session"]["id"]
        entries = await entries_when_idle(first, client, session)
    second = Bridge(scripted_agent(), journals=tmp_path)
    async with calling(second) as client:
        listed = (await client.get("/sessions")).json()["sessions"]
        again = (await client.get(f"/sessions/{session}/entries?limit=1000")).json()["entries"]
        await client.post(f"/sessions/{session}/send", json={"text": "two"})
        later = await entries_when_idle(second, client, session)

    assert [(each["id"], each["title"], each["state"]) for each in listed] == [
        (session, "one", "closed")
    ]
    assert listed[0]["cost_usd"] > 0
    assert again[: len(entries)] == entries
    assert [each["seq"] for each in later] == sorted({each["seq"] for each in later})
    assert later[: len(again)] == again


async def test_without_a_directory_sessions_end_with_the_bridge() -> None:
    bridge = Bridge(scripted_agent())
    async with calling(bridge) as client:
        session = (await client.post("/sessions", json={"text": "one"})).json()["session"]["id"]
        path = inside(bridge)._conversations.find(session).feed.path
        assert path.exists()

    assert not path.exists()


async def test_attachments_become_blocks_of_the_prompt(tmp_path: Path) -> None:
    png = base64.b64encode(b"\x89PNG\r\n\x1a\n data").decode()
    note = base64.b64encode(b"a note").decode()
    attached = [
        {"media_type": "image/png", "data": png},
        {"media_type": "text/plain", "data": note, "name": "note.txt"},
    ]
    bridge = Bridge(scripted_agent(), journals=tmp_path)
    async with calling(bridge) as client:
        begun = await client.post("/sessions", json={"text": "look", "attachments": attached})
        session = begun.json()["session"]["id"]
        entries = await entries_when_idle(bridge, client, session)
        bad = [
            await client.post("/sessions", json={"attachments": [each]})
            for each in (
                {"media_type": "image/png", "data": "no base64!"},
                {"media_type": "application/x-sh", "data": note},
                {"media_type": "image/png", "data": note, "name": 7},
                {"media_type": "text/plain", "data": base64.b64encode(b"\xff").decode()},
            )
        ]

    sent = next(entry for entry in entries if entry["kind"] == "sent" and "turns" in entry)
    kinds = [block["type"] for block in sent["frame"]["message"]["content"]]
    assert kinds == ["image", "document", "text"]
    assert [each.status_code for each in bad] == [400] * 4


async def test_viewers_see_steer_and_answer_what_they_may(tmp_path: Path) -> None:
    people = {
        "ann": Viewer("ann"),
        "reader": Viewer("reader", lambda act, _: act == "see"),
        "stranger": Viewer("stranger", lambda _, session: not session),
    }

    async def who(connection: Any) -> Viewer | None:
        return people.get(connection.headers.get("x-user", ""))

    bridge = Bridge(
        scripted_agent(call("Bash", command="git push"), say("done")),
        journals=tmp_path,
        authenticate=who,
    )
    here = {"Origin": "http://127.0.0.1:8000"}
    ann, reader, stranger = ({"x-user": name} for name in people)
    async with calling(bridge, **here) as client:
        begun = await client.post("/sessions", json={"text": "go"}, headers=ann)
        session = begun.json()["session"]["id"]
        ask = await opened_ask(bridge)
        yes = {"answer": {"behavior": "allow"}}
        statuses = {
            "nobody": (await client.get("/sessions")).status_code,
            "reader sees": (await client.get(f"/sessions/{session}", headers=reader)).status_code,
            "reader steers": (
                await client.post(f"/sessions/{session}/pause", json={}, headers=reader)
            ).status_code,
            "reader begins": (await client.post("/sessions", json={}, headers=reader)).status_code,
            "reader answers": (
                await client.post(f"/asks/{ask}", json=yes, headers=reader)
            ).status_code,
            "stranger sees": (
                await client.get(f"/sessions/{session}", headers=stranger)
            ).status_code,
            "stranger answers": (
                await client.post(f"/asks/{ask}", json=yes, headers=stranger)
            ).status_code,
        }
        listed = (await client.get("/sessions", headers=stranger)).json()["sessions"]
        asked = (await client.get("/asks", headers=stranger)).json()["asks"]
        login = await client.post("/login", json={"token": "x"}, headers=ann)

    assert statuses == {
        "nobody": 401,
        "reader sees": 200,
        "reader steers": 403,
        "reader begins": 403,
        "reader answers": 403,
        "stranger sees": 404,
        "stranger answers": 404,
    }
    assert (listed, asked) == ([], [])
    assert login.status_code == 404
    assert bridge.began(session) == "ann"


async def test_a_link_works_once_and_gives_a_token_that_survives_a_restart(tmp_path: Path) -> None:
    here = {"Origin": "http://127.0.0.1:8000"}
    first = Bridge(scripted_agent(), journals=tmp_path)
    token = first.link("http://127.0.0.1:8000").partition("#token=")[2]
    async with calling(first, **here) as client:
        before = await client.get("/me")
        entered = await client.post("/login", json={"token": token})
        page = {"Authorization": f"Bearer {entered.json()['token']}"}
        me = await client.get("/me", headers=page)
        again = await client.post("/login", json={"token": token})
        unknown = await client.post("/login", json={"token": "guess"})
    second = Bridge(scripted_agent(), journals=tmp_path)
    async with calling(second, **here) as client:
        still = await client.get("/me", headers=page)
        left = await client.post("/logout", headers=page)
        gone = await client.get("/me", headers=page)

    assert (before.status_code, entered.status_code, me.status_code) == (401, 200, 200)
    assert len(token) == 43
    assert "set-cookie" not in entered.headers
    assert token not in entered.text
    assert again.json()["error"]["code"] == "link_used"
    assert unknown.json()["error"]["code"] == "link_unknown"
    assert (still.status_code, left.status_code, gone.status_code) == (200, 204, 401)
    kept = (tmp_path / ".logins.json").read_text()
    assert entered.json()["token"] not in kept


async def test_writes_beyond_the_limit_are_refused_with_the_time_to_wait(tmp_path: Path) -> None:
    bridge = Bridge(scripted_agent(), journals=tmp_path, limits=WebLimits(writes=2))
    async with calling(bridge) as client:
        answers = [await client.post("/sessions", json={}) for _ in range(3)]
        reads = await client.get("/sessions")

    assert [each.status_code for each in answers] == [201, 201, 429]
    assert 0 < int(answers[2].headers["retry-after"]) <= 61
    assert reads.status_code == 200


async def test_sessions_beyond_the_limit_are_refused(tmp_path: Path) -> None:
    bridge = Bridge(scripted_agent(), journals=tmp_path, limits=WebLimits(sessions=1))
    async with calling(bridge) as client:
        first = await client.post("/sessions", json={"text": "one"})
        second = await client.post("/sessions", json={"text": "two"})

    assert first.status_code == 201
    assert (second.status_code, second.json()["error"]) == (
        429,
        {
            "code": "too_many_sessions",
            "message": "1 sessions are open; wait until one is idle, or stop one",
        },
    )


async def test_a_bridge_that_has_ended_lets_nobody_in(tmp_path: Path) -> None:
    bridge = Bridge(scripted_agent(), journals=tmp_path)
    async with calling(bridge) as client:
        await client.get("/me")
        await bridge.aclose()
        await bridge.aclose()
        found = await client.get("/me")

    assert (found.status_code, found.json()["error"]) == (
        503,
        {"code": "closing", "message": "the server ends"},
    )


BAD = [
    ("POST", "/sessions", b"{", "application/json", 400, "bad_request"),
    ("POST", "/sessions", b"[]", "application/json", 400, "bad_request"),
    ("POST", "/sessions", b"[" * 100_000, "application/json", 400, "bad_request"),
    ("POST", "/sessions", b'{"text":7}', "application/json", 400, "bad_request"),
    ("POST", "/sessions", b'{"text":""}', "application/json", 400, "bad_request"),
    ("POST", "/sessions", b'{"text":"a","when":"soon"}', "application/json", 400, "bad_request"),
    ("POST", "/sessions", b'{"agent":"none"}', "application/json", 404, "agent_not_found"),
    ("POST", "/sessions", b'{"key":"%b"}' % (b"k" * 501), "application/json", 400, "bad_request"),
    ("POST", "/sessions", b'{"attachments":{}}', "application/json", 400, "bad_request"),
    ("POST", "/sessions", b"text=hi", "application/x-www-form-urlencoded", 415, "not_json"),
    ("POST", "/sessions", b'{"text":"hi"}', "text/plain", 415, "not_json"),
    ("POST", "/sessions", b"x" * 20_000_001, "application/json", 413, "too_large"),
    (
        "POST",
        "/sessions",
        b'{"text":"%b"}' % (b"x" * 1_000_001),
        "application/json",
        413,
        "too_large",
    ),
    ("POST", "/asks", b"x" * 1_000_001, "application/json", 413, "too_large"),
    ("POST", "/asks", b'{"answers":[7]}', "application/json", 400, "bad_request"),
    ("POST", "/asks/a", b"{}", "application/json", 400, "bad_request"),
    (
        "POST",
        f"/sessions/{NO_SESSION}/send",
        b'{"text":"hi"}',
        "application/json",
        404,
        "session_not_found",
    ),
    ("POST", f"/sessions/{NO_SESSION}/dance", b"{}", "application/json", 404, "not_found"),
    ("GET", f"/sessions/{NO_SESSION}", b"", "", 404, "session_not_found"),
    ("GET", "/sessions/..%2f..%2fetc%2fpasswd", b"", "", 404, "not_found"),
    ("GET", "/sessions/not-a-uuid/entries", b"", "", 404, "session_not_found"),
    ("GET", "/static/..%2fbridge.py", b"", "", 404, "not_found"),
    ("GET", "/static/../bridge.py", b"", "", 404, "not_found"),
    ("GET", "/static/.viewers.json", b"", "", 404, "not_found"),
    ("GET", "/static/nothing.js", b"", "", 404, "not_found"),
    ("GET", "/nothing", b"", "", 404, "not_found"),
    ("DELETE", "/sessions", b"", "", 405, "method_not_allowed"),
]


@pytest.mark.parametrize(
    ("method", "path", "body", "kind", "status", "code"),
    BAD,
    ids=[f"{row[1][:30]}-{row[5]}" for row in BAD],
)
async def test_a_bad_request_is_refused_in_words(
    tmp_path: Path, method: str, path: str, body: bytes, kind: str, status: int, code: str
) -> None:
    bridge = Bridge(scripted_agent(), journals=tmp_path)
    async with calling(bridge) as client:
        headers = {"Content-Type": kind} if kind else {}
        answer = await client.request(method, path, content=body, headers=headers)
        alive = await client.get("/me")

    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (status, code)
    assert len(error["message"].split()) > 2
    assert ("most" in error) == (status == 413)
    assert str(tmp_path) not in answer.text
    assert "Traceback" not in answer.text
    assert alive.status_code == 200


@pytest.mark.parametrize(
    "query", ["before=0", "before=x", "limit=0", "limit=1001", "limit=-1", "before=" + "9" * 30]
)
async def test_numbers_of_pages_are_checked(tmp_path: Path, query: str) -> None:
    bridge = Bridge(scripted_agent(), journals=tmp_path)
    async with calling(bridge) as client:
        session = (await client.post("/sessions", json={})).json()["session"]["id"]
        answer = await client.get(f"/sessions/{session}/entries?{query}")

    assert answer.status_code == 400


async def test_a_cli_that_does_not_start_is_told_without_paths(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bridge = Bridge(Agent(cli_path=tmp_path / "no-cli"), journals=tmp_path / "j")
    with caplog.at_level(logging.WARNING, "steersman.web"):
        async with calling(bridge) as client:
            answer = await client.post("/sessions", json={"text": "hi"})

    assert answer.status_code == 502
    assert answer.json()["error"]["code"] == "cli_not_found"
    assert str(tmp_path) not in answer.text
    assert "no-cli" in caplog.text


async def test_a_failure_of_the_program_is_not_shown(tmp_path: Path) -> None:
    async def who(_connection: object) -> Viewer:
        raise RuntimeError("the password is sesame")

    bridge = Bridge(scripted_agent(), journals=tmp_path, authenticate=who)
    async with calling(bridge, host="127.0.0.1") as client:
        answer = await client.get("/sessions")

    assert answer.status_code == 500
    assert "sesame" not in answer.text


POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types dompurify steersman"
)
KEEP_OUT = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


async def test_every_answer_has_the_headers_that_keep_other_sites_out(tmp_path: Path) -> None:
    bridge = Bridge(scripted_agent(), journals=tmp_path)
    async with calling(bridge) as client:
        page = await client.get("/")
        others = [await client.get("/sessions"), await client.get("/nothing")]
        refused = await client.get("/me", headers={"Authorization": "Bearer guess"})

    of_page = {"content-security-policy": POLICY, "cache-control": "no-cache"}
    of_data = {"content-security-policy": "default-src 'none'; frame-ancestors 'none'"}
    of_data["cache-control"] = "no-store"
    assert {**KEEP_OUT, **of_page}.items() <= page.headers.items()
    for answer in (*others, refused):
        assert {**KEEP_OUT, **of_data}.items() <= answer.headers.items()
        assert answer.headers["content-type"] == "application/json"
    assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
    assert "www-authenticate" not in others[1].headers


@pytest.mark.parametrize("name", ["x%00.js", "%00", "..%2f..%2fx.js", "x" * 5000 + ".js"])
async def test_a_file_that_cannot_be_is_not_found(tmp_path: Path, name: str) -> None:
    async with calling(Bridge(scripted_agent(), journals=tmp_path)) as client:
        answer = await client.get(f"/static/{name}")

    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")


async def test_the_description_names_every_route(tmp_path: Path) -> None:
    bridge = Bridge(scripted_agent(), journals=tmp_path)
    async with calling(bridge) as client:
        found = (await client.get("/openapi.json")).json()

    described = {
        (method.upper(), path) for path, methods in found["paths"].items() for method in methods
    }
    verbs = {path for _, path in described if path.startswith("/sessions/{id}/") and "e" in path}
    real: set[tuple[str, str]] = {
        (next(iter(route.methods - {"HEAD"})), route.path_format)
        for route in inside(bridge)._routes.all()
    }
    hidden = {"/", "/static/{name}", "/login", "/logout", "/openapi.json", "/sessions/{id}/{verb}"}
    assert {each for each in real if each[1] not in hidden} <= described
    assert {"/sessions/{id}/send", "/sessions/{id}/set_model"} <= verbs


@pytest.mark.parametrize(
    ("argument", "bad", "allowed"),
    [
        ("agents", {"agents": {}}, "agents by name"),
        ("agents", {"agents": {"": Agent()}}, "agents by name"),
        ("agents", {"agents": {7: Agent()}}, "agents by name"),
        ("agents", {"agents": {"default": "agent"}}, "agents by name"),
        ("agents", {"agents": {"a": Agent(), "b": "agent"}}, "agents by name"),
        ("agents", {"agents": "agent"}, "agents by name"),
        ("inbox", {"inbox": "inbox"}, "an Inbox, or the inbox"),
        ("journals", {"journals": 7}, "the path of a directory"),
        ("journals", {"journals": ""}, "the path of a directory"),
        ("journals", {"journals": __file__}, "a directory that can be written"),
        ("hosts", {"hosts": ["http://a"]}, "names such as example.org"),
        ("hosts", {"hosts": []}, "at least one name"),
        ("origins", {"origins": ["example.org"]}, "origins such as https://example.org"),
        ("limits", {"limits": 7}, "a WebLimits"),
    ],
)
def test_a_bridge_says_what_is_wrong_with_its_arguments(
    tmp_path: Path, argument: str, bad: dict[str, Any], allowed: str
) -> None:
    given: dict[str, Any] = {"agents": Agent(cwd=tmp_path), **bad}

    with pytest.raises(UsageError) as raised:
        Bridge(given.pop("agents"), **given)

    assert raised.value.argument == argument
    assert allowed in str(raised.value)
    assert "7" in str(raised.value) or 7 not in bad.values()


async def test_what_only_the_own_login_has_is_refused_with_another_one(tmp_path: Path) -> None:
    async def who(_connection: object) -> Viewer | None:
        return None

    bridge = Bridge(scripted_agent(), journals=tmp_path, authenticate=who)

    with pytest.raises(UsageError, match=r"token: .*a bridge without authenticate="):
        _ = bridge.token
    with pytest.raises(UsageError, match=r"link: .*http://a.*a bridge without authenticate="):
        bridge.link("http://a")


async def test_the_link_is_below_the_address_however_that_ends(tmp_path: Path) -> None:
    bridge = Bridge(scripted_agent(), journals=tmp_path)

    links = [bridge.link(url).partition("#")[0] for url in ("http://a:1/x", "http://a:1/x/")]

    assert links == ["http://a:1/x/"] * 2
    assert Bridge(scripted_agent(), journals=tmp_path, token="mine").token == "mine"


async def test_a_program_begins_sessions_with_a_key_an_agent_and_a_name(tmp_path: Path) -> None:
    agents = {"a": scripted_agent(), "b": scripted_agent()}
    async with asyncio.timeout(LIMIT), Bridge(agents, journals=tmp_path) as bridge:
        begun = [await bridge.begin("hi", by="job", agent="b", key="k") for _ in range(2)]
        other = await bridge.begin("hi", by="job")
        summaries = [
            inside(bridge)._conversations.find(session).summary(0) for session in (begun[0], other)
        ]

    assert begun[0] == begun[1] != other
    assert [(each["agent"], each["by"]) for each in summaries] == [("b", "job"), ("a", "job")]
    assert bridge.began(other) == "job"
    assert bridge.began(NO_SESSION) == ""
    assert bridge.session(NO_SESSION) is None


async def test_known_secrets_reach_no_viewer(tmp_path: Path) -> None:
    secret = "verysecretvalue123"
    agent = scripted_agent(
        call("Bash", command=f"push --with {secret}"), say("done"), env={"MY_API_TOKEN": secret}
    )
    bridge = Bridge(agent, journals=tmp_path)
    async with calling(bridge) as client:
        begun = await client.post("/sessions", json={"text": f"push --with {secret}"})
        session = begun.json()["session"]["id"]
        ask = await opened_ask(bridge)
        asks = await client.get("/asks")
        answered = await client.post(
            f"/asks/{ask}",
            json={"answer": {"behavior": "allow"}, "seen": asks.json()["asks"][0]["digest"]},
        )
        await entries_when_idle(bridge, client, session)
        entries = await client.get(f"/sessions/{session}/entries?limit=1000")
        feed = inside(bridge)._conversations.find(session).feed
        batch = feed.ready(feed._first - 1)

    assert batch is not None
    assert answered.status_code == 200
    notes = (tmp_path / f"{session}.json").read_text()
    for shown in (asks.text, entries.text, batch.text, begun.text, notes):
        assert "push --with" in shown
        assert secret not in shown


async def test_a_viewer_whose_rights_cannot_be_read_has_none_and_disturbs_no_other(
    tmp_path: Path,
) -> None:
    def broken(_act: str, session: str) -> bool:
        if session:
            raise LookupError("the database is away")
        return True

    async def who(connection: Any) -> Viewer:
        is_broken = connection.headers.get("x-user") == "broken"
        return Viewer("broken", broken) if is_broken else Viewer("ann")

    bridge = Bridge(scripted_agent(), journals=tmp_path, authenticate=who)
    async with calling(bridge, Origin="http://127.0.0.1:8000") as client:
        session = (await client.post("/sessions", json={"text": "hi"})).json()["session"]["id"]
        none = await client.get(f"/sessions/{session}", headers={"x-user": "broken"})
        entries = await entries_when_idle(bridge, client, session)

    assert none.status_code == 404
    assert entries[-1]["seq"]


async def test_no_session_is_opened_while_the_bridge_closes(tmp_path: Path) -> None:
    bridge = Bridge(scripted_agent(), journals=tmp_path)
    async with calling(bridge) as client:
        session = (await client.post("/sessions", json={})).json()["session"]["id"]
        sending = asyncio.create_task(
            client.post(f"/sessions/{session}/send", json={"text": "one"})
        )
        await asyncio.sleep(0)
        await bridge.aclose()
        answer = await sending
        # As a prompt does that finds its session closed while it is sent.
        with pytest.raises(Refusal, match="the server ends"):
            await inside(bridge)._conversations.find(session).open()

    assert answer.status_code in (200, 409, 503)
    assert bridge.session(session) is None
