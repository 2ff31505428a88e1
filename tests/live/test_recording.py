"""What a session leaves on the disk: its journal as it happens, and a bundle behind each error."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from steersman import Session, Turn, TurnResult
from steersman.journal import Entry, Lagged
from steersman.journal.replaying import Replayed, replay
from steersman.stores import follow_journal, read_journal
from steersman.testing.model import ScriptedModel
from steersman.testing.sandbox import SCRIPTED_API_KEY, CliSandbox
from steersman.testing.script import Script, call, calls, fail, say, stall, when
from tests.live.staging import LIMIT, MakeScripted, first_words, until, vanished

pytestmark = pytest.mark.live

SECRET = "a-password-nobody-may-read-9431"


def read_back(path: Path) -> Replayed:
    return replay(read_journal(path))


def plainly(result: TurnResult) -> dict[str, Any]:
    """A result as far as a file can hold it: of an error only the words."""
    return {
        "outcome": result.outcome,
        "text": result.text,
        "answer": result.answer,
        "cost": result.cost_usd,
        "usage": result.usage,
        "calls": [(each.name, each.input, each.is_error) for each in result.tool_calls],
        "agents": [each.description for each in result.agents],
        "cause": str(result.cause or ""),
    }


def shown_number(found: Entry | Lagged) -> int:
    assert isinstance(found, Entry)
    return found.seq


async def live_text(session: Session) -> str:
    """All that the main agent wrote, as the session in memory has it."""
    entries = [each async for each in session.journal() if isinstance(each, Entry)]
    return replay(entries).text


async def test_the_file_says_what_the_session_said(scripted: MakeScripted, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    look = {"description": "look", "prompt": "look around", "subagent_type": "general-purpose"}
    script = Script(
        when("go", calls(call("Bash", command="echo a"), call("Bash", command="exit 3"))),
        when("go", call("Agent", {**look, "run_in_background": False}), say("all seen")),
        when("stop", say("half") + stall()),
        when("fail", fail(400)),
        strict=True,
    ).branch("look around", say("found it"))
    agent, _model = scripted(script, allowed_tools=["Bash"], journal=path)

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turns = [await session.send(prompt) for prompt in ("go", "stop", "fail")]
        await first_words(turns[1], "half")
        await session.pause()
        await turns[1].interrupt()
        await session.resume()
        live = {turn.uuid: plainly(await turn) for turn in turns}
        await session.wait_idle(LIMIT)
    told = read_back(path)

    assert {uuid: plainly(each) for uuid, each in told.turns.items()} == live
    assert told.snapshot == session.snapshot()
    assert told.text == await live_text(session)
    assert told.history[0] == "idle"
    assert told.history[-1] == "completed"
    assert "paused" in told.history
    assert len(told.entries) == session.last_seq
    assert path.stat().st_mode & 0o777 == 0o600


async def test_a_cursor_survives_the_session_and_old_entries_come_from_the_file(
    scripted: MakeScripted, tmp_path: Path
) -> None:
    path = tmp_path / "run.jsonl"
    agent, _model = scripted(say("One."), say("Two."), journal=path, journal_memory=1)

    async with asyncio.timeout(LIMIT):
        async with agent.session() as first:
            await (await first.send("go"))
        cursor = first.last_seq - 5
        async with agent.session(resume=first.id) as second:
            await (await second.send("go on"))
            follower = follow_journal(path, after=cursor)
            entries = second.journal(after=cursor)
            seen = [shown_number(await anext(entries)) for _ in range(second.last_seq - cursor)]
            followed = [(await anext(follower)).seq for _ in seen]
            await follower.aclose()

    assert seen == followed == list(range(cursor + 1, seen[-1] + 1))
    assert [each.seq for each in read_journal(path)] == list(range(1, second.last_seq + 1))
    assert [each.text for each in read_back(path).turns.values()] == ["One.", "Two."]


async def test_the_file_is_written_as_it_happens(scripted: MakeScripted, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    agent, model = scripted(say("half") + stall() + say(" and whole"), journal=path)

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turn = await session.send("talk")
        await first_words(turn, "half")
        during = read_back(path)
        model.release()
        await turn
        settled = read_back(path)

    assert (during.state, during.text, during.turns) == ("running", "half", {})
    assert [each.text for each in settled.turns.values()] == ["half and whole"]


async def test_a_session_that_is_resumed_goes_on_in_the_same_file(
    scripted: MakeScripted, tmp_path: Path
) -> None:
    path = tmp_path / "run.jsonl"
    agent, _model = scripted(say("one"), say("two"), journal=path)

    async with asyncio.timeout(LIMIT):
        async with agent.session() as first:
            results = [await (await first.send("first"))]
        async with agent.session(resume=first.id) as second:
            results.append(await (await second.send("second")))
    told = read_back(path)

    assert [each.text for each in told.turns.values()] == ["one", "two"]
    assert told.snapshot.stats.cost_usd == pytest.approx(sum(each.cost_usd for each in results))
    assert told.state == "completed"


HOST = """
import asyncio, json, sys
from steersman import Agent

async def main(options):
    async with Agent(allowed_tools=["Bash"], **options).session() as session:
        turn = await session.send("work")
        async for entry in session.journal():
            print(entry.seq, flush=True)

asyncio.run(main(json.loads(sys.argv[1])))
"""


async def test_a_host_that_is_killed_leaves_everything_that_it_knew(
    sandbox: CliSandbox, cli: Path, tmp_path: Path
) -> None:
    path, started = tmp_path / "run.jsonl", sandbox.project / "started"
    script = Script(
        say("I start.") + call("Bash", command=f"touch {started}; sleep 30; true"), say("never")
    )
    with ScriptedModel(script) as model:
        options = {
            "cwd": str(sandbox.project),
            "cli_path": str(cli),
            "inherit_env": False,
            "env": sandbox.env(model.url),
            "journal": str(path),
        }
        host = start_host(options)
        try:
            async with asyncio.timeout(LIMIT):
                await until(started.exists)
        finally:
            os.kill(host.pid, signal.SIGKILL)
            known = host.communicate(timeout=LIMIT)[0].split()
        left = await vanished(sandbox.root, within=3)
    told = read_back(path)

    assert left == {}
    assert host.returncode == -signal.SIGKILL
    # The last number may be cut off in the middle; what it had printed was on the disk before.
    assert len(told.entries) >= int(known[-2])
    assert [each.seq for each in told.entries] == list(range(1, len(told.entries) + 1))
    assert told.state == "running"
    assert told.text == "I start."
    assert [each.name for each in told.snapshot.pending_tool_calls] == ["Bash"]
    assert told.turns == {}


def start_host(options: Mapping[str, Any]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", HOST, json.dumps(options)],
        env={"PYTHONPATH": os.pathsep.join(sys.path), "PATH": "/usr/bin:/bin"},
        stdout=subprocess.PIPE,
        text=True,
    )


async def test_no_secret_reaches_the_disk(
    scripted: MakeScripted, sandbox: CliSandbox, tmp_path: Path
) -> None:
    """Though the model is told it, prints it, and fails over it."""
    path, flights = tmp_path / "run.jsonl", tmp_path / "flights"
    agent, _model = scripted(
        call("Bash", command="echo $DB_PASSWORD; echo $ANTHROPIC_API_KEY"),
        say(f"It is {SECRET}."),
        fail(400, f"bad key {SCRIPTED_API_KEY}"),
        env={"DB_PASSWORD": SECRET},
        allowed_tools=["Bash"],
        journal=path,
        flight_recorder=flights,
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        told = await (await session.send("tell me"))
        failed = await (await session.send(f"is it {SECRET}?"))

    assert SECRET in told.text
    assert failed.outcome == "failed"
    (flight,) = flights.iterdir()
    for file in (path, flight):
        content = file.read_bytes()
        assert len(content) > 1000
        assert SECRET.encode() not in content
        assert SCRIPTED_API_KEY.encode() not in content


def bundles(directory: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_bytes()) for path in sorted(directory.iterdir())]


async def test_each_error_leaves_a_bundle_that_tells_what_went_before(
    scripted: MakeScripted, tmp_path: Path
) -> None:
    agent, _model = scripted(
        when("refused", fail(400, "no such thing")),
        when("killed", say("half") + stall()),
        flight_recorder=tmp_path / "flights",
        revive=False,
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        refused: Turn = await session.send("refused")
        await refused
        killed = await session.send("killed")
        await first_words(killed, "half")
        assert session.pid is not None
        os.kill(session.pid, signal.SIGKILL)
        await killed
        await session.finish(LIMIT)

    of_turn, of_session = bundles(tmp_path / "flights")
    assert of_turn["error"]["type"] == "ApiFailed"
    assert "no such thing" in of_turn["error"]["text"]
    assert of_session["error"]["code"] == "cli_exited"
    assert [each["after"] for each in of_session["states"]][-2:] == ["running", "failed"]
    assert of_session["states"][0]["after"] == "starting"
    assert of_session["session_id"] == session.id
    assert of_session["versions"]["cli"] == session.initialized.claude_code_version
    assert {each["frame"]["type"] for each in of_session["sent"]} == {"control_request", "user"}
    assert of_session["received"]
    assert "flight_recorder" in of_session["options"]
    assert session.options.env["HOME"] not in json.dumps(of_session["options"])


async def test_a_start_that_fails_leaves_a_bundle_too(
    scripted: MakeScripted, tmp_path: Path
) -> None:
    agent, _model = scripted(flight_recorder=tmp_path / "flights", journal=tmp_path / "run.jsonl")

    with pytest.raises(Exception, match="No conversation found"):
        async with (
            asyncio.timeout(LIMIT),
            agent.session(resume="00000000-0000-4000-8000-000000000000"),
        ):
            pass

    (bundle,) = bundles(tmp_path / "flights")
    assert "No conversation found" in bundle["error"]["text"]
    assert [each["after"] for each in bundle["states"]] == ["starting", "failed"]
    assert read_back(tmp_path / "run.jsonl").history == ["idle", "starting", "failed"]
