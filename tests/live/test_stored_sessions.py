"""Stored conversations: what we change the stock CLI sees, and what it writes we see."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from steersman import Agent, Session
from steersman.control import GenerateSessionTitle, RenameSession
from steersman.errors import ResumeNotFound, SessionInUse
from steersman.journal import Entry
from steersman.messages import SessionTitleChanged
from steersman.options import AgentDefinition
from steersman.sessions import Sessions, aio
from steersman.stores.memory import MemoryStore
from steersman.stores.sqlite import SqliteStore
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import Script, call, say
from steersman.transcripts import fold_session_summary, project_key
from tests.live.staging import LIMIT, MakeScripted
from tests.live.test_sessions import heard

pytestmark = pytest.mark.live


@pytest.fixture
def sessions(sandbox: CliSandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> aio.Sessions:
    """What the CLI of the sandbox has stored, with an index that is this test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return aio.Sessions(config=sandbox.config, project=sandbox.project)


async def two_turns(agent: Agent) -> str:
    async with agent.session() as session:
        for number in (1, 2):
            await session.run(f"prompt-{number}")
        assert session.id
        return session.id


async def titles_of(session: Session) -> list[str]:
    """The titles that the CLI has told since it was started."""
    await session.run("prompt-3")
    last = session.last_seq
    found: list[str] = []
    async for entry in session.journal():
        if isinstance(entry, Entry) and b"session_title_changed" in entry.line:
            assert isinstance(entry.message, SessionTitleChanged)
            found.append(entry.message.title)
        if isinstance(entry, Entry) and entry.seq >= last:
            break
    return found


async def test_a_fork_that_we_made_renamed_and_tagged_is_resumed_and_the_deleted_one_is_gone(
    scripted: MakeScripted, sessions: aio.Sessions
) -> None:
    agent, model = scripted(say("answer-1"), say("answer-2"), say("answer-3"))

    async with asyncio.timeout(LIMIT):
        original = await two_turns(agent)
        messages = [each async for each in sessions.messages(original)]
        fork = await sessions.fork(original, up_to=messages[1].uuid)
        await sessions.rename(fork, "Our title")
        await sessions.tag(fork, "ours")
        await sessions.archive(fork)
        await sessions.unarchive(fork)
        async with agent.session(resume=fork) as session:
            titles = await titles_of(session)
            with pytest.raises(SessionInUse) as caught:
                await sessions.delete(fork)
        await sessions.delete(original)
        with pytest.raises(ResumeNotFound):
            await agent.start(resume=original)
        listed = await sessions.list()

    assert [each.type for each in messages] == ["user", "assistant"] * 2
    assert heard(model.asked[-1]) == {"prompt-1", "answer-1", "prompt-3"}
    assert titles == ["Our title"]
    assert caught.value.pid == os.getpid()
    assert [(each.session_id, each.summary, each.tag) for each in listed] == [
        (fork, "Our title", "ours")
    ]


async def test_what_the_cli_writes_is_seen_while_it_runs(
    scripted: MakeScripted, sandbox: CliSandbox, sessions: aio.Sessions
) -> None:
    task = {"description": "look", "prompt": "sub go", "subagent_type": "reader"}
    script = Script(call("Agent", task, run_in_background=False), say("they are back"))
    agent, _model = scripted(
        script.branch("sub go", say("sub done")),
        agents={"reader": AgentDefinition(description="r", prompt="read")},
        allowed_tools=["Agent"],
        # With it, the CLI asks the model for no titles.
        env={"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": ""},
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await session.run("send someone")
        assert session.id
        asked = GenerateSessionTitle(description="Send someone to look", persist=True)
        generated = (await session.call(asked)).title
        by_the_model = await sessions.info(session.id)
        followed = sessions.follow(session.id)
        kinds = [(await anext(followed)).type]
        await session.call(RenameSession(title="Title of the CLI"))
        while kinds[-1] != "custom-title":
            kinds.append((await anext(followed)).type)
        titled = await sessions.info(session.id)
        (subagent,) = await sessions.agents(session.id)
        inside = [each async for each in sessions.messages(session.id, agent=subagent.agent_id)]
        (hit,) = await sessions.search('"they are back"')
        stored = aio.Sessions(MemoryStore(), project=sandbox.project)
        await sessions.copy_to(stored, session.id)
        again = [each async for each in stored.messages(session.id, agent=subagent.agent_id)]

    assert (by_the_model.first_prompt, by_the_model.summary) == ("send someone", generated)
    assert (titled.first_prompt, titled.summary) == ("send someone", "Title of the CLI")
    assert {"user", "assistant"} <= set(kinds)
    assert (subagent.agent_type, subagent.description) == ("reader", "look")
    assert [each.type for each in inside] == ["user", "assistant"]
    assert [each.message for each in again] == [each.message for each in inside]
    assert inside[0].parent_tool_use_id == subagent.parent_tool_use_id
    assert subagent.parent_tool_use_id
    assert hit.session_id == titled.session_id


async def test_a_session_goes_through_stores_to_another_home_and_is_resumed_there(
    scripted: MakeScripted, sandbox: CliSandbox, sessions: aio.Sessions, tmp_path: Path
) -> None:
    agent, _model = scripted(say("answer-1"), say("answer-2"))
    other = sandbox.root / "other config"
    there, model = scripted(say("answer-3"), env={"CLAUDE_CONFIG_DIR": str(other)})
    memory = aio.Sessions(MemoryStore(), project=sandbox.project)
    stored = aio.Sessions(SqliteStore(tmp_path / "store.db"), project=sandbox.project)
    home = aio.Sessions(config=other, project=sandbox.project, index=False)

    async with asyncio.timeout(LIMIT):
        original = await two_turns(agent)
        copied = await sessions.copy_to(memory, original)
        assert await memory.copy_to(stored, original) == copied
        messages = [each async for each in stored.messages(original)]
        fork = await stored.fork(original, up_to=messages[1].uuid)
        await stored.rename(fork, "From the store")
        await stored.tag(fork, "stored")
        await stored.delete(original)
        listed = await stored.list()
        entries: Any = [each.data async for each in stored.entries(fork)]
        assert await stored.copy_to(home, fork) == len(entries)
        async with there.session(resume=fork) as session:
            titles = await titles_of(session)
        info = await home.info(fork)
        hits = [each.uuid for each in await stored.search("answer-1")]
        subagents = await stored.agents(fork)

    assert copied > len(messages) == 4
    assert [(each.session_id, each.summary) for each in listed] == [(fork, "From the store")]
    assert heard(model.asked[-1]) == {"prompt-1", "answer-1", "prompt-3"}
    assert titles == ["From the store"]
    assert (info.summary, info.tag) == ("From the store", "stored")
    assert (len(hits), subagents) == (1, [])
    key = project_key(str(sandbox.project))
    folded = fold_session_summary(None, {"project_key": key, "session_id": fork}, entries)
    assert folded["data"]["custom_title"] == "From the store"
    assert [each.name for each in (other / "projects").iterdir()] == [key]


def test_the_synchronous_front_sees_the_folder_that_the_cli_was_told(
    scripted: MakeScripted, sandbox: CliSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = {"CLAUDE_CODE_PROJECT_DIR_NAME": "my-name"}
    agent, _model = scripted(say("answer"), env=name)

    session_id = asyncio.run(one_turn(agent))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(sandbox.config))
    monkeypatch.setenv("CLAUDE_CODE_PROJECT_DIR_NAME", "my-name")
    found = Sessions(project=sandbox.project, index=False).list()

    assert [each.session_id for each in found] == [session_id]
    assert (sandbox.config / "projects" / "my-name").is_dir()


async def one_turn(agent: Agent) -> str:
    async with asyncio.timeout(LIMIT), agent.session() as session:
        await session.run("hello")
        assert session.id
        return session.id
