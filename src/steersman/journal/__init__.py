"""The journal of a session and the phases of a session. Pure: no I/O, no clock, no await."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steersman._lazy import by_name
from steersman.journal.entries import Entry, Kind, Lagged
from steersman.journal.journal import Journal
from steersman.journal.phases import Move, Phase, step
from steersman.journal.results import Outcome, TurnResult

if TYPE_CHECKING:
    from steersman.journal.json_form import from_json as from_json
    from steersman.journal.json_form import to_json as to_json
    from steersman.journal.value_json import result_from_json as result_from_json
    from steersman.journal.value_json import result_to_json as result_to_json
    from steersman.journal.value_json import snapshot_from_json as snapshot_from_json
    from steersman.journal.value_json import snapshot_to_json as snapshot_to_json
else:
    # Few programs read or write JSON themselves.
    __getattr__, __dir__ = by_name(
        __name__,
        {
            "json_form": ("from_json", "to_json"),
            "value_json": (
                "result_from_json",
                "result_to_json",
                "snapshot_from_json",
                "snapshot_to_json",
            ),
        },
    )

__all__ = [
    "Entry",
    "Journal",
    "Kind",
    "Lagged",
    "Move",
    "Outcome",
    "Phase",
    "TurnResult",
    "from_json",
    "result_from_json",
    "result_to_json",
    "snapshot_from_json",
    "snapshot_to_json",
    "step",
    "to_json",
]
