"""What a journal says when it is read back is what the session said live."""

from __future__ import annotations

from dataclasses import fields

import pytest

from steersman.journal import Entry, TurnResult
from steersman.journal.files import Header, Record, line_of, read_tracks
from steersman.journal.replaying import replay
from tests.journal.recordings import hold
from tests.samples import dialogue, traces

HELD = [trace for trace in traces() if any(f.get("type") == "user" for _, f in dialogue(trace))]

UNWIRED = ("reason", "model_usage", "duration", "blocks", "tool_calls", "agents")


def known(result: TurnResult) -> dict[str, object]:
    """All that two results have in common; errors are told in words."""
    told = {each.name: getattr(result, each.name) for each in fields(result)}
    told = {**told, "cause": None, "reason": result.reason.split("\n")[0]}
    return {name: value for name, value in told.items() if name not in UNWIRED}


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


def test_what_is_tested_is_most_of_what_was_recorded() -> None:
    assert len(HELD) > 60
