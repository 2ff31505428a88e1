"""The flight recorder's view of a session: what is kept when something goes wrong."""

from __future__ import annotations

from collections.abc import Callable

from steersman._session.cli import CliSlot
from steersman._session.journal_writer import JournalWriter
from steersman._session.listeners import EventListeners
from steersman._session.setup import FlightData
from steersman.errors import SteersmanError
from steersman.journal import Entry, Kind

__all__ = ["FlightReporter"]

KEPT = 500
"""Journal entries that are kept after an error; phase changes are kept in any case."""


class FlightReporter:
    """Tells listeners of errors, and keeps a record of each if the options ask for it."""

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
        """A turn or the session has failed with `error`."""
        self._listeners.emit("error", error)
        self.keep(error)

    def keep(self, error: BaseException) -> None:
        """Keep the end of the journal and of stderr, with secrets left out."""
        if self._keep is None:
            return
        slot, journal = self._slot, self._log.journal
        stderr = "" if slot.running is None else slot.running.link.evidence("flight").stderr_tail
        version = "" if slot.initialized is None else slot.initialized.claude_code_version
        recent = max(0, journal.last_seq - KEPT)
        entries = [
            Entry(each.seq, each.at, each.kind, slot.redact(each.line), each.turns, each.details)
            for each in journal.after(0, most=journal.last_seq)
            if each.seq > recent or each.kind is Kind.PHASE
        ]
        self._keep(FlightData(error, slot.session_id, entries, stderr, version))
