"""The replay of a journal gives what the live session reported."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from steersman._json import JsonDict
from steersman.errors import TurnStopped
from steersman.journal import Entry, Kind, TurnResult
from steersman.journal.files import Header, Record, line_of, read_tracks
from steersman.journal.replaying import replay
from steersman.journal.snapshot import SessionSnapshot
from tests.journal.recordings import hold
from tests.samples import dialogue, traces

HELD = [trace for trace in traces() if any(f.get("type") == "user" for _, f in dialogue(trace))]


def known(result: TurnResult) -> dict[str, object]:
    """All that two results have in common: errors as text, durations nearly equal."""
    told = {each.name: getattr(result, each.name) for each in fields(result)}
    cause = None if result.cause is None else result.cause.what
    return {**told, "cause": cause, "duration": pytest.approx(result.duration, abs=0.25)}


def lasting(snapshot: SessionSnapshot) -> SessionSnapshot:
    """A snapshot without money, which is added up in another order."""
    return replace(snapshot, stats=replace(snapshot.stats, cost_usd=0.0))


def through_a_file(entries: list[Entry]) -> list[Entry]:
    lines = [line_of(Header()), *(line_of(Record.of(entry)) for entry in entries)]
    (track,) = read_tracks(b"".join(lines))
    found = [record.entry for record in track.records]
    assert None not in found
    return [entry for entry in found if entry is not None]


@pytest.mark.parametrize("trace", HELD)
async def test_a_journal_reads_back_as_the_session_was(trace: str) -> None:
    held = await hold(trace)

    found = replay(through_a_file(held.entries))

    assert {uuid: known(result) for uuid, result in found.turns.items()} == {
        uuid: known(result) for uuid, result in held.results.items()
    }
    assert {uuid: result.text for uuid, result in found.turns.items()} == held.texts
    assert found.state == held.session.state
    assert found.snapshot.phase is held.session.phase
    assert found.snapshot.session_id == held.session.id
    assert found.snapshot.stats.cost_usd == pytest.approx(held.session.cost_usd)
    assert list(found.messages) == held.messages


@pytest.mark.parametrize("trace", HELD)
async def test_the_snapshot_and_the_agents_read_back_too(trace: str) -> None:
    held = await hold(trace)

    found = replay(through_a_file(held.entries))

    assert lasting(found.snapshot) == lasting(held.session.snapshot())
    assert [(each.agent_id, each.tool_calls) for each in found.agents.walk()] == [
        (each.agent_id, each.tool_calls) for each in held.session.agents.walk()
    ]


@pytest.mark.parametrize("trace", ["multi_turn_tools", "perm_allow", "subagent_background"])
async def test_a_journal_can_be_read_at_any_point(trace: str) -> None:
    held = await hold(trace)
    whole = replay(held.entries)

    for length in range(len(held.entries)):
        part = replay(held.entries[:length])

        assert part.states == whole.states[: len(part.states)]
        assert list(part.turns.values()) == list(whole.turns.values())[: len(part.turns)]
        assert whole.text.startswith(part.text)


async def test_what_runs_is_in_the_snapshot_of_that_moment() -> None:
    held = await hold("subagent_background")
    at = next(n for n, entry in enumerate(held.entries) if b'"task_started"' in entry.line)

    snapshot = replay(held.entries[: at + 1]).snapshot

    assert [task.description for task in snapshot.tasks] == ["sub job"]
    assert [call.name for call in snapshot.pending_tool_calls] == ["Agent"]
    assert snapshot.stats.completed is None


async def test_a_line_that_cannot_be_read_is_passed_over() -> None:
    held = await hold("multi_turn_tools")
    torn = Entry(9999, 0.0, Kind.NOISE, b'{"seq": 12, "ki', details={"torn": True})
    odd = Entry(9999, 0.0, Kind.MESSAGE, b'{"type": 5, "session_id": "\\ud800"}')

    found = replay([*held.entries[:10], torn, odd, *held.entries[10:]])

    assert found.turns == replay(held.entries).turns


def test_a_parked_turn_reads_back_with_what_it_waits_for() -> None:
    details: JsonDict = {"outcome": "parked", "has_result": False, "waits_for": ["ask 1", "ask 2"]}
    entries = [
        Entry(1, 1.0, Kind.SENT, b"{}", turns=("u",)),
        Entry(2, 3.0, Kind.SETTLED, turns=("u",), details=details),
    ]

    found = replay(through_a_file(entries)).turns["u"]

    assert (found.outcome, found.waits_for) == ("parked", ("ask 1", "ask 2"))
    assert isinstance(found.cause, TurnStopped)
    assert (found.cause.why, found.duration) == ("parked", 2.0)


def test_an_empty_journal_is_a_session_that_never_began() -> None:
    found = replay([])

    assert (found.history, found.turns, found.text) == (["idle"], {}, "")


def test_what_is_tested_is_most_of_what_was_recorded() -> None:
    assert len(HELD) > 60
