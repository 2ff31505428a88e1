"""Collects what the flight recorder saves when a turn or the session fails."""

from __future__ import annotations

from collections.abc import Callable

from steersman._session.cli import CliSlot
from steersman._session.journal_writer import JournalWriter
from steersman._session.listeners import EventListeners
from steersman._session.setup import FlightData
from steersman.errors import SteersmanError
from steersman.journal import Entry, Kind

KEPT = 500
"""The number of newest journal entries to save; phase changes are always saved."""


class FlightReporter:
    """Reports errors to listeners, and saves a record of each if the options require it."""

    def __init__(
        self,
        keep: Callable[[FlightData], None] | None,
        log: JournalWriter,
        slot: CliSlot,
        listeners: EventListeners,
    ) -> None:
        self._keep = keep
        self._log = log
        self._slot = slot
        self._listeners = listeners

    def failed(self, error: SteersmanError) -> None:
        """Report and save `error`, with which a turn or the session has failed."""
        self._listeners.emit("error", error)
        self.keep(error)

    def keep(self, error: BaseException) -> None:
        """Save the end of the journal and of stderr, without secrets."""
        if self._keep is None:
            return
        slot, journal = self._slot, self._log.journal
        link = None if slot.running is None else slot.running.link
        stderr = "" if link is None else link.evidence("flight").stderr_tail
        redact = str if link is None else link.redactor.text
        recent = max(0, journal.last_seq - KEPT)
        entries = [
            Entry(each.seq, each.at, each.kind, slot.redact(each.line), each.turns, each.details)
            for each in journal.after(0, most=journal.last_seq)
            if each.seq > recent or each.kind is Kind.PHASE
        ]
        self._keep(FlightData(error, slot.session_id, entries, stderr, slot.version, redact))
