"""Every frame of a client is answered in words: what it was, or what is wrong with it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from starlette.requests import HTTPConnection

from steersman.testing.script import call
from steersman.web import Bridge, Viewer, WebLimits
from steersman.web.live import MOST_DOING
from steersman.web.openapi import our_version
from tests.web.staging import Frame, done, frame_where, say, scripted_agent, serving

ID = "00000000-0000-4000-8000-000000000000"
AFTER = "after must be the number of an entry, 0 or more"
AT = "at must be the time of the entry that after names, or left out"
TYPE = "type must be one of follow, unfollow, do, ping"
REPLACED = (
    "entry 1 is not the one that was shown, which could not be stored: begin again, with the"
    " entries that are stored"
)
JSON = "a frame must be JSON, and not nested deeply"

WRONG: list[tuple[str | bytes, str, str, str | None]] = [
    ("{", "bad_request", JSON, None),
    (b"\xff", "bad_request", JSON, None),
    ("[]", "bad_request", "a frame must be a JSON object", None),
    ("{}", "bad_request", TYPE, None),
    ('{"type":"dance","session":"S"}', "bad_request", TYPE, "S"),
    ('{"type":"follow"}', "bad_request", "session is missing", None),
    (
        '{"type":"unfollow","session":7}',
        "bad_request",
        "session must be a text of 1 to 200 characters",
        None,
    ),
    (
        f'{{"type":"follow","session":"{ID}"}}',
        "session_not_found",
        "there is no session with this id",
        ID,
    ),
    ('{"type":"follow","session":"S","after":-1}', "bad_request", AFTER, "S"),
    ('{"type":"follow","session":"S","after":"1"}', "bad_request", AFTER, "S"),
    ('{"type":"follow","session":"S","after":true}', "bad_request", AFTER, "S"),
    ('{"type":"follow","session":"S","after":1,"at":"1"}', "bad_request", AT, "S"),
    ('{"type":"follow","session":"S","after":1,"at":true}', "bad_request", AT, "S"),
    (
        '{"type":"follow","session":"S","after":1,"at":1}',
        "after_replaced",
        REPLACED,
        "S",
    ),
    (
        '{"type":"do"}',
        "bad_request",
        "id is missing: a text that comes back with the answer",
        None,
    ),
    ('{"type":"do","id":""}', "bad_request", "id must be a text of 1 to 100 characters", None),
    ('{"type":"ping","id":7}', "bad_request", "id must be a text of 1 to 100 characters", None),
    (
        "x" * 1001,
        "too_large",
        "a frame may have 1000 bytes; send what is larger by POST",
        None,
    ),
]


async def test_a_wrong_frame_is_answered_in_words_and_the_connection_stays(tmp_path: Path) -> None:
    bridge = Bridge(scripted_agent(), journals=tmp_path, limits=WebLimits(body=1000))
    answers: list[Frame] = []
    async with serving(bridge) as served, served.live() as ws:
        session = (await done(ws, "1", "begin", text="hi"))["answer"]["session"]["id"]
        found = bridge.session(session)
        assert found is not None
        assert await found.wait_idle(20)
        for frame, _, _, _ in WRONG:
            await ws.send(frame.replace('"S"', f'"{session}"') if isinstance(frame, str) else frame)
            answers.append(await frame_where(ws, lambda each: each.get("type") == "error"))

    told = [
        (each["error"]["code"], each["error"]["message"], each.get("session")) for each in answers
    ]
    assert told == [
        (code, words, session if named == "S" else named) for _, code, words, named in WRONG
    ]
    extra = [set(each["error"]) - {"code", "message"} for each in answers]
    assert [each for each in extra if each] == [{"last"}, {"most"}]


async def test_the_first_frame_is_the_whole_state_and_each_other_has_its_answer(
    tmp_path: Path,
) -> None:
    bridge = Bridge(scripted_agent(call("Bash", command="git push")), journals=tmp_path)
    async with serving(bridge) as served, served.live() as ws:
        begun = (await done(ws, "1", "begin", text="go", title="mine"))["answer"]
        session = begun["session"]["id"]
        await frame_where(ws, lambda frame: frame.get("what") == "opened")
        async with served.live() as other:
            hello = await frame_where(other, lambda _: True)
            await say(other, type="ping", id="p")
            pong = await frame_where(other, lambda frame: frame["type"] == "pong")
            await say(other, type="ping")
            bare = await frame_where(other, lambda frame: frame["type"] == "pong")
            await say(other, type="follow", session=session, after=2)
            following = await frame_where(other, lambda frame: frame["type"] == "following")
            await say(other, type="unfollow", session=session)
            unfollowed = await frame_where(other, lambda frame: frame.get("type") == "unfollowed")
            nothing = await done(other, "n", "dance", session=session)
            await say(other, type="do", id="x", verb="cancel", session=session)
            closed = await frame_where(other, lambda frame: frame.get("what") == "closed")

    assert set(hello) == {"type", "viewer", "sessions", "agents", "asks", "version", "limits"}
    assert (hello["type"], hello["viewer"], hello["agents"]) == (
        "hello",
        {"name": "you"},
        ["default"],
    )
    assert [(each["id"], each["title"]) for each in hello["sessions"]] == [(session, "mine")]
    assert [each["session"] for each in hello["asks"]] == [session]
    assert hello["version"] == our_version()
    assert hello["limits"] == {"body": 1_000_000, "attachments": 20_000_000}
    assert (pong, bare) == ({"type": "pong", "id": "p"}, {"type": "pong", "id": None})
    last = following.pop("last")
    assert following == {"type": "following", "session": session, "after": 2}
    assert last > 2
    assert unfollowed == {"type": "unfollowed", "session": session}
    words = "there is no such verb; there are begin, send, withdraw, interrupt, pause, resume,"
    assert nothing["type"] == "done"
    assert nothing["error"]["message"].startswith(words)
    assert closed["type"] == "ask"
    assert closed["by"]


async def test_verbs_beyond_those_that_run_at_once_are_refused(tmp_path: Path) -> None:
    go = asyncio.Event()
    asked: list[HTTPConnection] = []

    async def who(connection: HTTPConnection) -> Viewer:
        asked.append(connection)
        if len(asked) > 1:
            await go.wait()
        return Viewer("ann")

    bridge = Bridge(scripted_agent(), journals=tmp_path, authenticate=who)
    async with serving(bridge, token="") as served, served.live(Origin=served.url) as ws:
        for number in range(MOST_DOING + 1):
            await say(ws, type="do", id=str(number), verb="dance")
        refused = await frame_where(ws, lambda frame: frame["type"] == "done")
        go.set()
        rest = [
            await frame_where(ws, lambda frame: frame["type"] == "done") for _ in range(MOST_DOING)
        ]

    assert refused == {
        "type": "done",
        "id": str(MOST_DOING),
        "error": {
            "code": "too_many_writes",
            "message": f"{MOST_DOING} verbs of this connection run already",
            "retry_after": 1,
        },
    }
    assert [each["id"] for each in rest] == [str(number) for number in range(MOST_DOING)]


async def test_a_viewer_hears_only_of_what_it_may_see(tmp_path: Path) -> None:
    async def who(connection: HTTPConnection) -> Viewer:
        name = connection.headers["x-user"]
        return Viewer(name, lambda _, session: not session or bridge.began(session) == name)

    bridge = Bridge(
        scripted_agent(call("Bash", command="git push")), journals=tmp_path, authenticate=who
    )
    heard: list[dict[str, Any]] = []

    def is_refusal(frame: Frame) -> bool:
        heard.append(frame)
        return "error" in frame

    async with serving(bridge, token="") as served:
        ann, bob = ({"Origin": served.url, "x-user": name} for name in ("ann", "bob"))
        async with served.live(**ann) as hers, served.live(**bob) as his:
            begun = await done(hers, "1", "begin", text="go")
            session = begun["answer"]["session"]["id"]
            await frame_where(
                hers, lambda frame: frame["type"] == "session" and frame["session"]["asks"] == 1
            )
            await say(his, type="follow", session=session, after=0)
            refused = await frame_where(his, is_refusal)

    assert [each["type"] for each in heard] == ["hello", "error"]
    assert session not in json.dumps(heard[0])
    assert refused["error"]["code"] == "session_not_found"
