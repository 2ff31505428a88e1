"""What is read off the journal of a session with the stock CLI is what happened."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from steersman import Session
from steersman.control import StopTask
from steersman.journal import Entry, Kind, TurnResult
from steersman.journal.blocks import BlockUpdate
from steersman.journal.files import read_tracks
from steersman.journal.replaying import Replayed, replay
from steersman.messages import Result, TaskStarted, ToolUseBlock
from steersman.stores import JournalFile, read_journal
from steersman.testing.script import Script, call, calls, say, stall, when
from tests.live.staging import LIMIT, MakeScripted, entries_of, entry_where, first_words

pytestmark = pytest.mark.live

LOOK = {
    "description": "look",
    "prompt": "look around",
    "subagent_type": "general-purpose",
    "run_in_background": False,
}
DIG = {**LOOK, "description": "deeper", "prompt": "dig deep"}


def read_back(entries: list[Entry], path: Path) -> Replayed:
    sink = JournalFile(path)
    sink.write(entries)
    sink.close()
    return replay(read_journal(path))


async def whole_journal(session: Session) -> list[Entry]:
    """All entries of a session that is closed."""
    return [entry async for entry in session.journal() if isinstance(entry, Entry)]


def last_total(entries: list[Entry]) -> float:
    messages = [each.message for each in entries if each.kind is Kind.MESSAGE]
    totals = [each.total_cost_usd for each in messages if isinstance(each, Result)]
    return totals[-1] or 0.0


async def test_five_turns_and_a_resume_cost_together_what_the_cli_says_in_the_end(
    scripted: MakeScripted, tmp_path: Path
) -> None:
    agent, _ = scripted(*(say(f"answer {n}") for n in range(8)))
    results: list[TurnResult] = []

    async with asyncio.timeout(LIMIT):
        async with agent.session() as first:
            results += [await (await first.send(f"question {n}")) for n in range(5)]
        async with agent.session(resume=first.id) as second:
            results += [await (await second.send(f"question {n}")) for n in range(5, 8)]
    entries = [await whole_journal(first), await whole_journal(second)]

    told = read_back([*entries[0], *entries[1]], tmp_path / "journal.jsonl")
    assert sum(each.cost_usd for each in results) == pytest.approx(last_total(entries[1]))
    assert [each.cost_usd for each in told.turns.values()] == pytest.approx(
        [each.cost_usd for each in results]
    )
    assert told.snapshot.stats.cost_usd == pytest.approx(last_total(entries[1]))


async def test_a_session_with_tools_and_subagents_reads_back_as_it_was(
    scripted: MakeScripted, tmp_path: Path
) -> None:
    script = Script(
        when("go", calls(call("Bash", command="echo a"), call("Bash", command="echo b"))),
        when("go", call("Agent", LOOK), say("all seen")),
        when("again", say("nothing new", chunks=3)),
        strict=True,
    ).branch("look around", call("Bash", command="echo c"), say("found it"))
    agent, _ = scripted(script, allowed_tools=["Bash"])

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turns = [await session.send("go"), await session.send("again")]
        live = {turn.uuid: await turn for turn in turns}
    told = read_back(await whole_journal(session), tmp_path / "journal.jsonl")

    assert {
        uuid: (each.outcome, each.text, each.cost_usd) for uuid, each in told.turns.items()
    } == {uuid: (each.outcome, each.text, each.cost_usd) for uuid, each in live.items()}
    assert told.history[-1] == session.state == "completed"
    first, second = told.turns.values()
    assert [call.name for call in first.tool_calls] == ["Bash", "Bash", "Agent", "Bash"]
    assert all(call.duration is not None and not call.is_error for call in first.tool_calls)
    (helper,) = first.agents
    assert (helper.description, helper.state) == ("look", "completed")
    assert [call.agent_id for call in helper.tool_calls] == [helper.agent_id]
    assert second.tool_calls == ()
    assert told.snapshot.stats.tool_calls == 4


async def test_the_input_of_a_tool_can_be_seen_before_it_is_whole(scripted: MakeScripted) -> None:
    content = "line of text\n" * 200
    agent, _ = scripted(call("Write", file_path="a.txt", content=content), say("written"))
    seen: list[BlockUpdate] = []

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turn = await session.send("write")
        async for update in turn.blocks():
            # Looked at now: later there is more of it.
            assert update.block is not None
            seen.append(update)

    inputs = [each.block.input for each in seen if isinstance(each.block, ToolUseBlock)]
    assert inputs[-1]["content"] == content
    partial = [each for each in inputs if each.get("content", content) != content]
    assert partial, "the CLI streams the input in pieces"
    assert all(content.startswith(each["content"]) for each in partial)
    assert [each.state for each in seen if each.state != "growing"] == ["complete", "complete"]


async def test_subagents_of_subagents_stand_in_the_tree(scripted: MakeScripted) -> None:
    script = (
        Script(when("go", call("Agent", LOOK), say("sent")), strict=True)
        .branch("look around", call("Agent", DIG), say("found"))
        .branch("dig deep", call("Bash", command="echo x"), say("dug"))
    )
    agent, _ = scripted(script, allowed_tools=["Bash", "Agent"])

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await (await session.send("go"))
        told = replay(await entries_of(session))

    assert [(each.description, each.state) for each in told.agents.walk()][1:] == [
        ("look", "completed"),
        ("deeper", "completed"),
    ]
    (first,) = told.agents.children
    assert [each.description for each in first.children] == ["deeper"]


async def test_a_shell_that_is_stopped_has_ended(scripted: MakeScripted) -> None:
    agent, _ = scripted(
        call("Bash", command="until false; do sleep 0.05; done", run_in_background=True),
        say("it runs"),
        allowed_tools=["Bash"],
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await (await session.send("go"))
        begun = await entry_where(
            session, lambda e: e.kind is Kind.MESSAGE and isinstance(e.message, TaskStarted)
        )
        assert isinstance(begun.message, TaskStarted)
        running = replay(await entries_of(session)).snapshot
        await session.call(StopTask(task_id=begun.message.task_id))
        await entry_where(session, lambda e: b'"task_notification"' in e.line)
        stopped = replay(await entries_of(session)).snapshot

    assert [each.is_background for each in running.tasks] == [True]
    assert stopped.tasks == ()


async def test_a_revived_session_reads_back_as_one(scripted: MakeScripted, tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    script = Script(say("half a ") + stall(), say("whole answer"), say("and more"))
    agent, _ = scripted(script, journal=path)

    async with asyncio.timeout(LIMIT), agent.session() as session:
        first = await session.send("go")
        await first_words(first, "half a")
        assert session.pid is not None
        os.kill(session.pid, signal.SIGKILL)
        live = {first.uuid: await first}
        second = await session.send("more")
        live[second.uuid] = await second

    told = replay(read_journal(path))
    assert session.restarts == 1
    assert len(read_tracks(path.read_bytes())) == 2
    assert list(told.turns.items()) == [
        (
            uuid,
            replace(told.turns[uuid], text=each.text, outcome=each.outcome, cost_usd=each.cost_usd),
        )
        for uuid, each in live.items()
    ]
    assert told.snapshot.stats == session.snapshot().stats
    assert told.history.count("starting") == 2
