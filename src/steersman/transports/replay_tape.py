"""A recorded conversation that is played again, as a machine without I/O.

The host's lines go in, and what the CLI said comes out, each line once the host has written what
stands before it on the tape. Lines of the host are matched by key. Its ids are new on every
run: the tape's are exchanged for them on the way out, and back on the way in.
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

__all__ = ["Tape", "TapeOutput"]

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
    """What the CLI says next: a chunk of stdout or stderr, or its exit."""

    at: float
    stdout: bytes = b""
    stderr: bytes = b""
    status: int | None = None
    is_cancel: bool = False
    """Whether it takes a question back, which the host should have heard by then."""


@dataclass(slots=True)
class _ExpectedLine:
    """A line that the host wrote then, and has to write again."""

    record: Record
    frame: Frame
    key: LineKey
    what: str
    is_optional: bool = False
    """An answer that nobody waited for any more: a host may leave it out."""
    is_met: bool = False


class Tape:
    """One track, from its first line to its exit."""

    def __init__(
        self,
        track: Track,
        session_id: str | None = None,
        *,
        compares_all: bool = False,
        clean: Callable[[bytes], bytes] = lambda line: line,
    ) -> None:
        """`compares_all` is for answers and requests too, not only for prompts.

        `clean` takes out of a line of the host's what was taken out of the recorded ones.
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
        """Whether everything was said."""
        return self._at >= len(self._steps)

    # What the host does

    def receive(self, line: bytes) -> Drift | None:
        """Take a line of the host's; tells if it is another one than the tape has."""
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
        """The host writes nothing any more."""
        for expected in self._expected.pop(END, []):
            expected.is_met = True

    def _find_expected(self, key: LineKey, frame: Frame) -> _ExpectedLine | None:
        waiting = self._expected.get(key, [])
        if key[0] == "request" and len(waiting) > 1:
            # Several of one kind may be under way: each finds its own, if there is one.
            wanted = comparable_part(frame)
            waiting = [
                expected for expected in waiting if comparable_part(expected.frame) == wanted
            ] or waiting
        return waiting[0] if waiting else None

    def _unexpected(self, key: LineKey, frame: Frame) -> Drift | None:
        if key[0] in ("answer", "cancel"):
            # Nobody waited for it then; a host that is quicker or slower may say it.
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

    # What the CLI says

    def peek(self) -> TapeOutput | None:
        """What comes next; `None` when it is over, or waits for the host."""
        while not self.has_ended:
            step = self._steps[self._at]
            if isinstance(step, Record):
                return self._output(step)
            if not (step.is_met or step.is_optional):
                return None
            self._at += 1
        return None

    def pop(self) -> None:
        """Go on behind what comes next."""
        self._at += len(self._chunk()) or 1

    def waits_for(self) -> Drift | None:
        """The line of the host's without which it does not go on; `None` if it is not waiting.

        To wait for the end of input is what every CLI does, so that is no answer.
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
        """Lines that came at once: their host saw them together, and so should this one."""
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
    """What the CLI asked so far, and what of it it took back."""

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


def _whole(record: Record) -> bytes:
    """The line, or one as long as that which was too long to be kept."""
    missing = int(record.details.get("size", 0)) - len(record.line)
    return record.line + b" " * max(0, missing)


def _content(subject: Frame) -> Frame:
    """Of a prompt only what was asked."""
    return {"content": subject.get("content")}


def _describe(key: LineKey, number: int = 0) -> str:
    kind, detail = key
    if kind == "prompt":
        return f"prompt {number}" if number else "a prompt"
    return "the cancelling of a request" if kind == "cancel" else f"the {kind} {detail}"
