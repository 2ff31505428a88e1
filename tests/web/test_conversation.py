"""What the bridge keeps beside the journal of a session, and what lists show of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from steersman import prompts
from steersman.testing.script import call, say
from steersman.web import Bridge
from steersman.web.conversation import QUEUED_TEXT, TITLE, Notes, title_of
from tests.web.staging import scripted_agent
from tests.web.test_routes import calling, entries_when_idle, opened_ask

ID = "00000000-0000-4000-8000-000000000001"
NOTES = Notes(
    id=ID,
    agent="a",
    title="t",
    by="ann",
    created=1.0,
    state="idle",
    since=2.0,
    cost_usd=0.5,
    turns=3,
    model="m",
    permission_mode="plan",
)


def test_notes_are_read_as_they_were_written_and_only_the_owner_reads_them(tmp_path: Path) -> None:
    path = tmp_path / f"{ID}.json"
    before = os.umask(0)
    try:
        NOTES.write(path)
    finally:
        os.umask(before)

    assert Notes.read(path) == NOTES
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("state", "shown"),
    [
        *((each, each) for each in ("idle", "completed", "failed", "cancelled", "closed")),
        *((each, "broken_off") for each in ("running", "waiting_permission", "starting", "paused")),
    ],
)
def test_a_session_whose_server_was_killed_at_work_is_broken_off(
    tmp_path: Path, state: str, shown: str
) -> None:
    path = tmp_path / "notes.json"
    Notes(id=ID, state=state).write(path)

    found = Notes.read(path)

    assert found == Notes(id=ID, state=shown)


def test_notes_that_cannot_be_read_or_written_are_none(tmp_path: Path) -> None:
    for text in (b"", b"{", b"[]", b"{}", b'{"id":7}', b"\xff"):
        (tmp_path / "notes.json").write_bytes(text)
        assert Notes.read(tmp_path / "notes.json") is None
    NOTES.write(tmp_path / "gone" / "notes.json")
    assert Notes.read(tmp_path / "gone" / "notes.json") is None


@pytest.mark.parametrize(
    ("prompt", "most", "title"),
    [
        ("  two\n words ", TITLE, "two words"),
        ("x" * 80, TITLE, "x" * 80),
        ("x" * 81, TITLE, "x" * 79 + "…"),
        ("  two\n words ", QUEUED_TEXT, "  two\n words "),
        ("x" * 2001, QUEUED_TEXT, "x" * 1999 + "…"),
        ([prompts.image(b"\x89PNG\r\n\x1a\n", "image/png"), prompts.text("look")], TITLE, "look"),
        ([prompts.text("one"), prompts.text("two")], TITLE, "one"),
        ([{"type": "text", "text": 7}, prompts.text("two")], TITLE, "two"),
        ([prompts.image(b"\x89PNG\r\n\x1a\n", "image/png")], TITLE, ""),
    ],
)
def test_a_title_is_the_beginning_of_the_prompt(prompt: Any, most: int, title: str) -> None:
    assert title_of(prompt, most) == title


async def test_the_summary_follows_the_session_from_its_begin_to_its_end(tmp_path: Path) -> None:
    agent = scripted_agent(call("Bash", command="git push"), say("done"))
    bridge = Bridge(agent, journals=tmp_path)
    async with calling(bridge) as client:
        begun = (await client.post("/sessions", json={"title": "mine", "text": "go"})).json()
        session = begun["session"]["id"]
        ask = await opened_ask(bridge)
        waiting = (await client.get(f"/sessions/{session}")).json()
        killed = Notes.read(tmp_path / f"{session}.json")
        await client.post(f"/asks/{ask}", json={"answer": {"behavior": "allow"}})
        entries = await entries_when_idle(bridge, client, session)
        idle = (await client.get(f"/sessions/{session}")).json()["session"]
        kept = Notes.read(tmp_path / f"{session}.json")

    shown = waiting["session"]
    assert (shown["state"], shown["is_open"], shown["asks"]) == ("waiting_permission", True, 1)
    assert "waiting for you" in shown["line"]
    assert (shown["title"], shown["by"], shown["agent"]) == ("mine", "you", "default")
    assert waiting["snapshot"]["session_id"] == session
    assert killed is not None
    assert killed.state == "broken_off"
    assert (idle["state"], idle["turns"], idle["asks"], idle["queued"]) == ("idle", 1, 0, [])
    assert idle["model"]
    assert idle["permission_mode"] == "default"
    assert idle["is_stored"] is True
    assert idle["last"] == entries[-1]["seq"]
    assert idle["last_activity"] == entries[-1]["at"]
    phases = [each for each in entries if each["kind"] == "phase"]
    assert idle["since"] == phases[-1]["at"]
    assert kept is not None
    assert (kept.cost_usd, kept.turns, kept.title) == (idle["cost_usd"], 1, "mine")


async def test_cost_and_turns_are_those_of_all_servers_together(tmp_path: Path) -> None:
    async def summary_after(text: str, session: str = "") -> dict[str, Any]:
        bridge = Bridge(scripted_agent(), journals=tmp_path)
        async with calling(bridge) as client:
            path = f"/sessions/{session}/send" if session else "/sessions"
            answer = (await client.post(path, json={"text": text})).json()
            session = session or answer["session"]["id"]
            await entries_when_idle(bridge, client, session)
            found: dict[str, Any] = (await client.get(f"/sessions/{session}")).json()["session"]
        return found

    first = await summary_after("one")
    second = await summary_after("two", first["id"])

    assert (first["turns"], second["turns"]) == (1, 2)
    assert second["cost_usd"] == pytest.approx(2 * first["cost_usd"])
    assert second["title"] == "one"
    assert second["created"] == first["created"]


async def test_sessions_are_listed_by_their_newest_activity(tmp_path: Path) -> None:
    bridge = Bridge(scripted_agent(), journals=tmp_path)
    (tmp_path / "notes.json").write_text("not a session")
    async with calling(bridge) as client:
        one, two = [
            (await client.post("/sessions", json={"text": "hi"})).json()["session"]["id"]
            for _ in range(2)
        ]
        for each in (two, one):
            await client.post(f"/sessions/{each}/send", json={"text": "more"})
            await entries_when_idle(bridge, client, each)
        listed = (await client.get("/sessions")).json()["sessions"]
    # A journal whose notes are lost is a session all the same.
    (tmp_path / f"{one}.json").unlink()
    (tmp_path / f"{two}.json").write_text("{}")
    async with calling(Bridge(scripted_agent(), journals=tmp_path)) as client:
        again = (await client.get("/sessions")).json()["sessions"]

    assert [each["id"] for each in listed] == [one, two]
    assert {(each["id"], each["title"], each["by"]) for each in again} == {
        (one, "", ""),
        (two, "", ""),
    }
    assert {each["agent"] for each in again} == {"default"}
