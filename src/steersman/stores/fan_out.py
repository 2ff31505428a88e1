"""One journal, several sinks: each gets every entry, and none can disturb the others.

A `Sink`. It closes the file that the session opened; a sink that the caller passed is the caller's
to close, because other sessions may write to it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from steersman import _json
from steersman.errors import UsageError
from steersman.journal import Entry
from steersman.journal.redaction import MARK
from steersman.ports import Sink, SupportsLastSeq, SupportsOpen, SupportsRead

Redact = Callable[[bytes], bytes]


class FanOutSink:
    """Passes every entry of one session to `file` and to `sinks`, in order.

    The caller's `sinks` get entries without known secrets, as the file does. One that raises gets
    no more entries: `report` is called once with the reason.
    """

    def __init__(
        self,
        sinks: Iterable[Sink],
        *,
        file: Sink | None = None,
        redact: Redact,
        report: Callable[[str], None],
    ) -> None:
        self._sinks = list(sinks)
        self._file = file
        self._redact = redact
        self._report = report
        given: list[object] = [file, *self._sinks]
        self._stored = next((each for each in given if isinstance(each, SupportsRead)), None)
        self._waiting: list[Entry] = []
        self._is_writing = False

    async def open(self) -> None:
        """Open every sink that has to be opened, one after the other."""
        for sink in self._sinks:
            if isinstance(sink, SupportsOpen):
                await sink.open()

    @property
    def last_seq(self) -> int:
        """The greatest number that a sink holds. A sink that does not know counts as 0."""
        return max(map(_last_number, (self._file, *self._sinks)))

    def read(self, after: int) -> AsyncIterator[Sequence[Entry]]:
        """Return the entries after number `after` from the first sink that can be read."""
        return _NOTHING if self._stored is None else self._stored.read(after)

    def write(self, entries: Sequence[Entry]) -> None:
        """Pass the next entries to every sink; never raises.

        A report becomes an entry too, while the entries before it are still being passed on. So
        what is written meanwhile waits: every sink gets the entries in the same order.
        """
        self._waiting += entries
        if self._is_writing:
            return
        self._is_writing = True
        try:
            while self._waiting:
                batch, self._waiting = tuple(self._waiting), []
                self._pass_on(batch)
        finally:
            self._is_writing = False

    def close(self) -> None:
        """Close the file, and write to no sink any more."""
        self._sinks.clear()
        if self._file is not None:
            self._file.close()

    def _pass_on(self, batch: tuple[Entry, ...]) -> None:
        if self._file is not None:
            self._file.write(batch)
        if not self._sinks:
            return
        clean = tuple(_redacted(entry, self._redact) for entry in batch)
        for sink in tuple(self._sinks):
            try:
                sink.write(clean)
            except Exception as error:  # noqa: BLE001 - the caller's own code must not hurt us
                self._drop(sink, error)

    def _drop(self, sink: Sink, error: Exception) -> None:
        self._sinks = [each for each in self._sinks if each is not sink]
        name = type(sink).__name__
        with suppress(Exception):
            # The caller's own code, too.
            self._report(f"{name}.write() raised {type(error).__name__}: it gets no more entries")


class _Nothing(AsyncIterator[Sequence[Entry]]):
    async def __anext__(self) -> Sequence[Entry]:
        raise StopAsyncIteration


_NOTHING = _Nothing()


def _last_number(sink: object) -> int:
    number: Any = sink.last_seq if isinstance(sink, SupportsLastSeq) else 0
    if isinstance(number, int) and not isinstance(number, bool) and number >= 0:
        return number
    name = type(sink).__name__
    raise UsageError(f"{name}.last_seq", number, "the number of the last entry, 0 or more")


def _redacted(entry: Entry, redact: Redact) -> Entry:
    """Return `entry` if it holds no known secret, and otherwise a copy without the secrets."""
    try:
        line, details = redact(entry.line), _redacted_details(entry.details, redact)
    except Exception as error:  # noqa: BLE001 - details that are no JSON, from the caller's code
        line = MARK.encode() if entry.line else b""
        details = {"unwritable": type(error).__name__}
    if line is entry.line and details is entry.details:
        return entry
    return Entry(entry.seq, entry.at, entry.kind, line, entry.turns, details)


def _redacted_details(details: Mapping[str, object], redact: Redact) -> Mapping[str, object]:
    if not details:
        return details
    written = _json.dumps(details)
    clean = redact(written)
    if clean is written:
        return details
    found: Mapping[str, object] = _json.loads(clean)
    return found
