"""The one log of a session, and the phases it goes through. Pure: no I/O, no clock, no await."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steersman._lazy import by_name

if TYPE_CHECKING:
    from steersman.journal.entries import Entry, Kind, Lagged
    from steersman.journal.log import Journal
    from steersman.journal.phases import Move, Phase, step
    from steersman.journal.results import Outcome, TurnResult
else:
    __getattr__, __dir__ = by_name(
        __name__,
        {
            "entries": ("Entry", "Kind", "Lagged"),
            "log": ("Journal",),
            "phases": ("Move", "Phase", "step"),
            "results": ("Outcome", "TurnResult"),
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
    "step",
]
