"""A recorded conversation, replayed without I/O.

Takes lines from the host and returns the recorded output of the CLI. Each output waits until the
host has written all lines that precede it on the tape. Lines are matched by key, because the host
uses new ids in every run: ids of the tape are replaced in the output, and back in the input.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from steersman._json import Json
from steersman.journal import Kind
from steersman.journal.files import EXITED, INPUT_ENDED, STDERR, Record, Track
from steersman.transports.replay_drift import Drift
from steersman.transports.replay_matching import (
    END,
    Frame,
    IdMap,
    LineKey,
    comparable_part,
    describe_request,
    inside,
    line_key,
    object_of,
)

STDOUT = frozenset(
    kind.value
    for kind in (
        Kind.MESSAGE,
        Kind.PARTIAL,
        Kind.BOOKKEEPING,
        Kind.CONTROL,
        Kind.NOISE,
        Kind.OVERSIZE,
    )
)


@dataclass(frozen=True, slots=True)
class TapeOutput:
    """The next output of the CLI: a chunk of stdout or stderr, or its exit."""

    at: float
    stdout: bytes = b""
    stderr: bytes = b""
    status: int | None = None
    is_cancel: bool = False
    """Whether the chunk cancels a request. The host should have handled the request by then."""


@dataclass(slots=True)
class _ExpectedLine:
    """A line that the host wrote during the recording and must write again."""

    record: Record
    frame: Frame
    key: LineKey
    what: str
    is_optional: bool = False
    """True for the answer to a cancelled request, which a host need not write."""
    is_met: bool = False


class Tape:
    """The replay of one track, from its first line to the exit."""

    def __init__(
        self,
        track: Track,
        session_id: str | None = None,
        *,
        compares_all: bool = False,
        clean: Callable[[bytes], bytes] = lambda line: line,
    ) -> None:
        """Prepare `track`. `session_id` replaces the recorded one.

        `compares_all` compares answers and requests as well as prompts. `clean` removes from lines
        of the host what was removed from the recorded ones.
        """
        self._track = track
        self._compares_all = compares_all
        self._clean = clean
        self._steps = list(_steps_of(track))
        self._at = 0
        self._expected: dict[LineKey, list[_ExpectedLine]] = {}
        for step in self._steps:
            if isinstance(step, _ExpectedLine):
                self._expected.setdefault(step.key, []).append(step)
        self._ids = IdMap()
        recorded = next(filter(None, map(_session_id, track.records)), None)
        if session_id and recorded:
            self._ids.pair_sessions(recorded, session_id)

    @property
    def has_ended(self) -> bool:
        """Whether all output was written."""
        return self._at >= len(self._steps)

    # Input from the host

    def receive(self, line: bytes) -> Drift | None:
        """Handle a line from the host. Return a drift if it differs from the tape."""
        frame = object_of(self._ids.to_tape(self._clean(line)))
        key = self._ids.recorded(line_key(frame))
        expected = self._find_expected(key, frame)
        if expected is None:
            return self._unexpected(key, frame)
        expected.is_met = True
        self._expected[key].remove(expected)
        self._ids.learn(expected.frame, frame)
        return self._compare(expected, frame)

    def end_input(self) -> None:
        """Handle the end of the host's input."""
        for expected in self._expected.pop(END, []):
            expected.is_met = True

    def _find_expected(self, key: LineKey, frame: Frame) -> _ExpectedLine | None:
        waiting = self._expected.get(key, [])
        if key[0] == "request" and len(waiting) > 1:
            # Several requests of one kind may be open: prefer the one with the same content.
            wanted = comparable_part(frame)
            waiting = [
                expected for expected in waiting if comparable_part(expected.frame) == wanted
            ] or waiting
        return waiting[0] if waiting else None

    def _unexpected(self, key: LineKey, frame: Frame) -> Drift | None:
        if key[0] in ("answer", "cancel"):
            # A host that is faster or slower than the recorded one may answer or cancel this.
            return None
        what = f"the tape has no such line: {_describe(key)}"
        return Drift(what, came=comparable_part(frame), track=self._track.header.track)

    def _compare(self, expected: _ExpectedLine, frame: Frame) -> Drift | None:
        is_prompt = expected.key[0] == "prompt"
        if not (is_prompt or self._compares_all):
            return None
        recorded, came = comparable_part(expected.frame), comparable_part(frame)
        if not self._compares_all:
            recorded, came = _content(recorded), _content(came)
        if recorded == came:
            return None
        what = f"{expected.what} differs from the tape"
        return Drift(what, recorded, came, expected.record.seq, self._track.header.track)

    # Output of the CLI

    def peek(self) -> TapeOutput | None:
        """Return the next output; `None` at the end, or while waiting for the host."""
        while not self.has_ended:
            step = self._steps[self._at]
            if isinstance(step, Record):
                return self._output(step)
            if not (step.is_met or step.is_optional):
                return None
            self._at += 1
        return None

    def pop(self) -> None:
        """Drop the next output."""
        self._at += len(self._chunk()) or 1

    def waits_for(self) -> Drift | None:
        """Return the line from the host that the tape waits for, as a drift; else `None`.

        Every CLI waits for the end of input, so that does not count.
        """
        track = self._track.header.track
        if self.has_ended:
            last = self._steps[-1] if self._steps else None
            is_whole = isinstance(last, Record) and last.kind == EXITED
            return None if is_whole else Drift("the recording ends in the middle", track=track)
        expected = self._steps[self._at]
        if not isinstance(expected, _ExpectedLine) or expected.key == END:
            return None
        what = f"the tape waits for {expected.what}"
        return Drift(what, comparable_part(expected.frame), seq=expected.record.seq, track=track)

    def _output(self, step: Record) -> TapeOutput:
        if step.kind == EXITED:
            return TapeOutput(step.at, status=int(step.details.get("status", 0)))
        if step.kind == STDERR:
            return TapeOutput(step.at, stderr=step.line)
        chunk = self._chunk()
        lines = [self._ids.to_live(_whole(record)) + b"\n" for record in chunk]
        return TapeOutput(step.at, b"".join(lines), is_cancel=any(map(_is_cancel, chunk)))

    def _chunk(self) -> list[Record]:
        """Return lines that were received at once, so that this host receives them at once too."""
        chunk: list[Record] = []
        for at in range(self._at, len(self._steps)):
            step = self._steps[at]
            if not isinstance(step, Record) or step.kind not in STDOUT:
                break
            if chunk and step.at != chunk[0].at:
                break
            chunk.append(step)
        return chunk


# Reading a track


def _steps_of(track: Track) -> Iterator[_ExpectedLine | Record]:
    count: Counter[str] = Counter()
    requests = _CliRequests()
    for record in track.records:
        if record.kind == Kind.SENT.value:
            frame = object_of(record.line)
            kind, detail = line_key(frame)
            count[kind] += 1
            what = requests.describe_answer(detail) if kind == "answer" else ""
            what = what or _describe((kind, detail), count[kind])
            is_optional = kind == "answer" and detail in requests.withdrawn
            yield _ExpectedLine(record, frame, (kind, detail), what, is_optional)
        elif record.kind == INPUT_ENDED:
            yield _ExpectedLine(record, {}, END, "the end of input")
        elif record.kind in STDOUT or record.kind in (STDERR, EXITED):
            requests.read(record)
            yield record


class _CliRequests:
    """The requests of the CLI so far, and which of them it cancelled."""

    def __init__(self) -> None:
        self.withdrawn: set[str] = set()
        self._requests: dict[str, Frame] = {}
        self._calls: dict[tuple[Json, Json], str] = {}

    def read(self, record: Record) -> None:
        if record.kind != Kind.CONTROL.value:
            return
        frame = object_of(record.line)
        request_id, request = str(frame.get("request_id")), inside(frame, "request")
        if frame.get("type") == "control_cancel_request":
            self.withdrawn.add(request_id)
        elif frame.get("type") == "control_request":
            self._requests[request_id] = request
            self._note_call(request_id, request)

    def _note_call(self, request_id: str, request: Frame) -> None:
        server, called = request.get("server_name"), inside(request, "message")
        if called.get("method") == "notifications/cancelled":
            cancelled = (server, inside(called, "params").get("requestId"))
            self.withdrawn |= {self._calls[cancelled]} if cancelled in self._calls else set()
        elif "id" in called:
            self._calls[server, called["id"]] = request_id

    def describe_answer(self, request_id: str) -> str:
        return f"the answer to {describe_request(self._requests.get(request_id, {}))}"


def _is_cancel(record: Record) -> bool:
    line = record.line
    return b'"control_cancel_request"' in line or b'"notifications/cancelled"' in line


def _session_id(record: Record) -> str | None:
    if record.kind not in STDOUT or b'"session_id"' not in record.line:
        return None
    found = object_of(record.line).get("session_id")
    return found if isinstance(found, str) else None


LONGEST_PADDED = 16 * 1024 * 1024
"""Bytes of a padded line: its size is only a number in the file, and may be any."""


def _whole(record: Record) -> bytes:
    """Return the line. One that was too long to record is padded to its size, up to a limit."""
    size = record.details.get("size") if record.kind == Kind.OVERSIZE.value else None
    if not isinstance(size, int):
        return record.line
    return record.line.ljust(min(size, LONGEST_PADDED))


def _content(subject: Frame) -> Frame:
    """Return only the content of a prompt."""
    return {"content": subject.get("content")}


def _describe(key: LineKey, number: int = 0) -> str:
    kind, detail = key
    if kind == "prompt":
        return f"prompt {number}" if number else "a prompt"
    return "the cancellation of a request" if kind == "cancel" else f"the {kind} {detail}"
