"""Which prompts the next CLI is told, as a table."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from steersman._session.recovery import plan_handover
from steersman._session.turn import SentPrompt
from steersman.testing.scripted.cli import ScriptedCLI
from tests._session.peers import opened

BEGUN = "begun"
WAITING = "waiting"
FOLDED = "folded, as only the file tells"
WRITTEN = "taken up, as only the file tells"


def lines_of(turn: SentPrompt, how: str) -> list[bytes]:
    """What the lost CLI has written down about a prompt."""
    if how == FOLDED:
        attachment = {"type": "queued_command", "source_uuid": turn.uuid}
        entry = {"type": "attachment", "uuid": "a", "attachment": attachment}
        return [json.dumps(entry).encode()]
    if how in (BEGUN, WRITTEN):
        return [json.dumps({"type": "user", "uuid": turn.uuid, "message": {}}).encode()]
    return []


@pytest.mark.parametrize(
    ("hows", "is_new", "is_modern", "expected"),
    [
        ([BEGUN], False, True, ["resent"]),
        ([WAITING], False, True, ["resent"]),
        ([WRITTEN], False, True, ["resent"]),
        ([BEGUN, BEGUN], False, True, ["resent", "joined"]),
        ([BEGUN, FOLDED], False, True, ["resent", "joined"]),
        ([BEGUN, WAITING], False, True, ["resent", "resent"]),
        ([BEGUN, BEGUN], True, True, ["resent", "resent"]),
        ([BEGUN], False, False, ["lost"]),
        ([WRITTEN], False, False, ["lost"]),
        ([WAITING], False, False, ["resent"]),
        ([BEGUN, WAITING], False, False, ["lost", "resent"]),
        ([BEGUN], True, False, ["resent"]),
    ],
)
async def test_each_prompt_is_resent_joined_or_lost(
    hows: Sequence[str], expected: list[str], *, is_new: bool, is_modern: bool
) -> None:
    async with opened(ScriptedCLI()) as session:
        turns = [SentPrompt(session._readers, f"uuid-{n}", how, {}) for n, how in enumerate(hows)]
    lines = [line for turn, how in zip(turns, hows, strict=True) for line in lines_of(turn, how)]
    for turn, how in zip(turns, hows, strict=True):
        if how == BEGUN:
            turn.started()

    told = plan_handover(turns, lines, is_new=is_new, is_modern=is_modern)

    found = {
        turn.uuid: name for name in ("resent", "joined", "lost") for turn in getattr(told, name)
    }
    assert [found[turn.uuid] for turn in turns] == expected
