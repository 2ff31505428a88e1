"""Messages, entries and subagents of a stored conversation."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from steersman.errors import SessionNotFound, UsageError
from steersman.sessions import AgentInfo, Sessions
from tests.sessions.made import ID, conversation, lines, number, write, write_agent


def test_messages_are_read_oldest_first_or_only_the_last(config: Path) -> None:
    write(config, conversation(*(f"text {index}" for index in range(300))))
    sessions = Sessions()

    found = [each.uuid for each in sessions.messages(ID)]

    assert found == [number(index) for index in range(300)]
    assert [each.uuid for each in sessions.messages(ID, last=3)] == found[-3:]
    assert list(sessions.messages(ID, last=0)) == []
    with pytest.raises(UsageError, match="last"):
        sessions.messages(ID, last=-1)


def test_entries_are_all_lines_and_a_torn_one_is_told(config: Path) -> None:
    write(config, lines(conversation("hi")) + b"no JSON\n\n" + b'{"type":"unknown-kind"}\n{"to')

    found = list(Sessions().entries(ID))

    assert [(each.type, each.is_torn) for each in found] == [
        ("user", False),
        ("", False),
        ("unknown-kind", False),
        ("", True),
    ]
    assert found[1].raw == b"no JSON"


def test_subagents_are_listed_and_read(config: Path) -> None:
    write(config, conversation("hi"))
    meta = {"agentType": "reader", "toolUseId": "toolu_1", "description": "look"}
    write_agent(config, "abc", conversation("sub go", "sub done"), meta)
    nested = {"parentAgentId": "abc", "description": ""}
    write_agent(config, "def", conversation("deep"), nested, inside="workflows/run")
    sessions = Sessions()

    assert sessions.agents(ID) == [
        AgentInfo(
            agent_id="abc",
            agent_type="reader",
            description="look",
            parent_tool_use_id="toolu_1",
            subpath="subagents/agent-abc",
        ),
        AgentInfo(
            agent_id="def",
            description=None,
            parent_agent_id="abc",
            subpath="subagents/workflows/run/agent-def",
        ),
    ]
    first, second = sessions.messages(ID, agent="abc")
    assert (first.message["content"], first.parent_tool_use_id) == ("sub go", "toolu_1")
    assert second.type == "assistant"
    assert len(list(sessions.entries(ID, agent="def"))) == 1
    with pytest.raises(UsageError, match=r"agent: got 'nobody', .* abc, def"):
        sessions.messages(ID, agent="nobody")


def test_a_reader_that_stops_early_closes_the_file(config: Path) -> None:
    path = write(config, conversation(*(f"text {index}" for index in range(300))))
    open_files = Path("/proc/self/fd")

    found = Sessions().messages(ID)
    next(found)
    names = {each.readlink() for each in open_files.iterdir() if each.is_symlink()}
    del found
    later = {each.readlink() for each in open_files.iterdir() if each.is_symlink()}

    assert path in names
    assert path not in later


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_a_part_that_cannot_be_opened_says_why(config: Path, kind: str) -> None:
    write(config, conversation("hi"))
    path = write_agent(config, "abc", conversation("sub"))
    path.unlink()
    if kind == "link":
        path.symlink_to("nowhere")
    else:
        os.mkfifo(path)
    why = {"link": "No such file or directory", "pipe": "is not a plain file"}[kind]
    sessions, other = Sessions(), Sessions(config=config / "other")

    for read in (sessions.messages, sessions.entries):
        with pytest.raises(SessionNotFound, match=why) as caught:
            read(ID, agent="abc")
        assert caught.value.session_id == ID
    with pytest.raises(SessionNotFound, match=why):
        sessions.copy_to(other, ID)
