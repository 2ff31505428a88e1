"""The journal of a session and the phases of a session. Pure: no I/O, no clock, no await."""

from __future__ import annotations

from steersman.journal.entries import Entry, Kind, Lagged
from steersman.journal.journal import Journal
from steersman.journal.phases import Move, Phase, step
from steersman.journal.results import Outcome, TurnResult

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
