from __future__ import annotations

import json
from pathlib import Path

from steersman.testing.script import say as speak
from steersman.web import Bridge
from tests.web.staging import (
    done,
    records_until_settled,
    say,
    scripted_agent,
    serving,
)


async def test_a_prompt_over_the_socket_comes_back_as_records(tmp_path: Path) -> None:
    bridge = Bridge(scripted_agent(speak("hello there")), journals=tmp_path)
    async with serving(bridge) as served, served.live() as ws:
        hello = json.loads(str(await ws.recv()))
        begun = await done(ws, "1", "begin", title="mine")
        session = begun["answer"]["session"]["id"]
        await say(ws, type="follow", session=session, after=0)
        await say(ws, type="do", id="2", verb="send", session=session, text="hi")
        records = await records_until_settled(ws, session)

    assert hello["type"] == "hello"
    assert hello["viewer"] == {"name": "you"}
    assert [record["seq"] for record in records] == [*range(1, len(records) + 1)]
    lines = (tmp_path / f"{session}.jsonl").read_bytes().splitlines()
    stored = [json.loads(line) for line in lines if line.startswith(b'{"seq"')]
    assert [{"session": session, **each} for each in stored[: len(records)]] == records
    assert any("hello there" in json.dumps(record) for record in records)
