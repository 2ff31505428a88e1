from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from steersman._session.journal_writer import JournalWriter
from steersman._session.readers import FlatReader, JournalReader
from steersman.agent import Agent
from steersman.errors import ChannelClosed, ReaderLagged, UsageError
from steersman.journal import Entry, Kind, Lagged
from steersman.messages import Assistant
from steersman.permissions import Allow, PermissionContext
from steersman.testing.script import Script, call, say, stall
from steersman.testing.scripted.cli import ScriptedCLI
from tests._session.peers import Frame, FramePeer, lifecycle, opened, result, state, text

MANY = 20_000
FEWER = 2_000
SMALL = 100_000
"""Bytes of journal memory, which hold only a small part of the messages."""
PATIENCE = 30.0
"""Seconds for `MANY` messages on a busy machine; they take half a second of CPU."""


def flood(count: int) -> Callable[[FramePeer, Frame], None]:
    """Send `count` messages and a permission request; end the turn after the answer."""
    lines = [json.dumps(text(f"message {n}", f"msg_{n}")).encode() for n in range(count)]

    def play(peer: FramePeer, frame: Frame) -> None:
        if frame["type"] == "user":
            peer.say(state("running"), lifecycle(frame["uuid"], "started"))
            peer.wire.write(b"\n".join([*lines, b""]))
            request = {"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "ls"}}
            peer.say({"type": "control_request", "request_id": "ask-1", "request": request})
        elif frame["type"] == "control_response":
            uuid = peer.sent("user")[0]["uuid"]
            peer.say(result([uuid], "done"), lifecycle(uuid, "completed"), state("idle"))

    return play


def allow(_name: str, _input: dict[str, Any], _context: PermissionContext) -> Allow:
    return Allow()


async def test_a_request_after_20000_unread_messages_is_answered_and_memory_is_bounded() -> None:
    peer = FramePeer(flood(MANY))
    options: dict[str, Any] = {
        "can_use_tool": allow,
        "journal_memory": SMALL,
        "limit": PATIENCE,
    }

    async with opened(peer.transport, **options) as session:
        settled = await (await session.send("go"))
        gap, *kept = [entry async for entry in _without_waiting(session)]

    (answer,) = peer.sent("control_response")
    assert answer["response"]["response"]["behavior"] == "allow"
    assert (settled.outcome, settled.answer) == ("completed", "done")
    assert isinstance(gap, Lagged)
    assert [entry.seq for entry in kept] == [gap.lost + n + 1 for n in range(len(kept))]
    assert gap.lost > MANY * 0.9
    assert sum(len(entry.line) for entry in kept) <= SMALL


async def test_a_turn_whose_first_entries_are_lost_cannot_be_read_as_if_it_were_whole() -> None:
    peer = FramePeer(flood(FEWER))

    async with opened(peer.transport, can_use_tool=allow, journal_memory=SMALL) as session:
        turn = await session.send("go")
        settled = await turn
        with pytest.raises(ReaderLagged) as of_turn:
            await anext(turn.messages())
        with pytest.raises(ReaderLagged):
            await anext(turn.text())
        with pytest.raises(ReaderLagged):
            await anext(session.messages())

    assert of_turn.value.lost > 0
    # The settled result is complete nevertheless.
    assert settled.text.startswith("message 0\n\nmessage 1\n\n")
    assert settled.text.endswith(f"message {FEWER - 1}")


async def test_two_readers_see_the_same_and_a_late_one_too() -> None:
    cli = ScriptedCLI(Script(say("one two three", 5), say("four")))

    async def read() -> list[bytes]:
        return [line async for line in session.raw()]

    async with opened(cli) as session:
        early = asyncio.ensure_future(read())
        await (await session.send("first"))
        second = await session.send("second")
        between = asyncio.ensure_future(read())
        await second
    late = await read()

    assert await early == await between == late
    assert len(late) > 20


async def test_a_slow_reader_does_not_delay_the_session() -> None:
    async with opened(ScriptedCLI(Script(say("one", 3), say("two", 3)))) as session:
        slow = session.messages()
        await (await session.send("first"))
        first = await anext(slow)
        await (await session.send("second"))
        rest = [message async for message in _until(slow, "two")]

    assert first.raw["type"] == "system"
    assert [each.text for each in rest if isinstance(each, Assistant)] == ["one", "two"]


async def test_a_reader_begins_after_the_given_entry() -> None:
    async with opened(ScriptedCLI(Script(say("one"), say("two")))) as session:
        await (await session.send("first"))
        seen = session.last_seq
        await (await session.send("second"))
    texts = [m.text async for m in session.messages(after=seen) if isinstance(m, Assistant)]
    numbers = [e.seq async for e in session.journal(after=seen) if not isinstance(e, Lagged)]

    assert texts == ["two"]
    assert numbers == list(range(seen + 1, session.last_seq + 1))


async def test_partial_messages_are_iterated_only_when_wanted() -> None:
    async def kinds(**options: Any) -> set[str]:
        async with opened(ScriptedCLI(Script(say("a b c", 3))), **options) as session:
            turn = await session.send("go")
            return {message.raw["type"] async for message in turn}

    assert "stream_event" not in await kinds()
    assert "stream_event" in await kinds(include_partial_messages=True)


async def test_without_partial_messages_the_text_comes_by_the_message() -> None:
    cli = ScriptedCLI(Script(say("a b c", 3) + call("Bash", command="true"), say("d e", 2)))
    async with opened(cli, include_partial_messages=False, allowed_tools=["Bash"]) as session:
        turn = await session.send("go")
        pieces = [piece async for piece in turn.text()]
    kinds = {entry.kind async for entry in session.journal() if not isinstance(entry, Lagged)}

    assert pieces == ["a b c", "\n\nd e"]
    assert "".join(pieces) == (await turn).text
    assert Kind.PARTIAL not in kinds


async def test_cancelling_one_reader_leaves_the_others_waiting() -> None:
    cli = ScriptedCLI(Script(stall() + say("late")))

    async def first_text() -> str:
        return await anext(turn.text())

    async with opened(cli) as session:
        turn = await session.send("go")
        one, other = asyncio.ensure_future(first_text()), asyncio.ensure_future(first_text())
        await cli.wait_for_stall()
        one.cancel()
        await asyncio.wait([one])
        await cli.release()
        first = await other

    assert first == "late"


async def test_the_journal_has_both_directions_and_entries_of_the_session() -> None:
    async with opened(ScriptedCLI()) as session:
        await (await session.send("go"))
    kinds = [entry.kind async for entry in session.journal() if not isinstance(entry, Lagged)]

    assert set(kinds) >= {
        Kind.SENT,
        Kind.CONTROL,
        Kind.MESSAGE,
        Kind.PARTIAL,
        Kind.BOOKKEEPING,
        Kind.PHASE,
        Kind.SETTLED,
    }


async def test_a_session_that_has_not_started_has_nothing_to_read() -> None:
    session = Agent(transport=ScriptedCLI()).session()

    with pytest.raises(ChannelClosed, match="not started"):
        session.messages()


@pytest.mark.parametrize("after", [-1, 1.5, True, "1"])
async def test_a_reader_begins_at_a_number(after: Any) -> None:
    async with opened(ScriptedCLI()) as session:
        with pytest.raises(UsageError, match="after"):
            session.journal(after=after)


async def _without_waiting(session: Any) -> Any:
    """Yield the entries that are in the journal now."""
    last = session.last_seq
    async for entry in session.journal():
        yield entry
        if not isinstance(entry, Lagged) and entry.seq >= last:
            return


async def _until(messages: Any, last: str) -> Any:
    async for message in messages:
        yield message
        if isinstance(message, Assistant) and message.text == last:
            return


class Unreadable(Exception):
    """Raised for one entry."""


def reader_of(count: int, unreadable: int) -> JournalReader[int]:
    """Return a reader of the numbers of entries that are there; one of them cannot be read."""
    writer = JournalWriter(SMALL)
    for _ in range(count):
        writer.note(Kind.PHASE)

    def pick(entry: Entry) -> int | None:
        if entry.seq == unreadable:
            raise Unreadable
        return None if entry.seq == 2 else entry.seq

    return JournalReader(writer.journal, writer.signal, pick)


async def test_what_is_there_is_read_at_once_and_an_error_comes_in_its_turn() -> None:
    reader = reader_of(7, unreadable=5)

    found = [await anext(reader), *reader.ready()]
    assert (found, reader.ready()) == ([1, 3, 4], [])
    with pytest.raises(Unreadable):
        await anext(reader)

    assert [await anext(reader), *reader.ready()] == [6, 7]


async def test_lists_are_read_as_their_items() -> None:
    async def lists() -> AsyncIterator[list[int]]:
        yield [1, 2]
        yield []
        yield [3]

    reader = FlatReader(lists())

    assert [await anext(reader), *reader.ready()] == [1, 2]
    assert [each async for each in reader] == [3]
