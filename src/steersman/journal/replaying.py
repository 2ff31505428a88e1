"""Replays a journal: what the session that wrote it reported, computed from the entries.

Entries in, from a file or from a running session; states, turns, messages, text and the last
snapshot out. Uses the same classes as a live session, and nothing but the entries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import msgspec

from steersman import _json
from steersman._json import JsonDict, JsonObject
from steersman._struct import DECODE_ERRORS
from steersman.errors import SteersmanError, TurnStopped
from steersman.journal.costs import Unreported, totals_in
from steersman.journal.journal import Entry, Kind
from steersman.journal.results import Outcome, TurnResult
from steersman.journal.snapshot import SessionSnapshot, State
from steersman.journal.state import StateChange, StateFollower, snapshot_of
from steersman.journal.tasks import AgentNode
from steersman.journal.text import TextStream
from steersman.journal.totals import SessionTotals
from steersman.messages.parsing import Message

__all__ = ["Replayed", "replay"]

INITIALIZE = b'"request":{"subtype":"initialize"'


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a journal contains about its session."""

    entries: tuple[Entry, ...]
    states: tuple[StateChange, ...]
    """Every change of state, in order."""
    turns: dict[str, TurnResult]
    """The results of all settled prompts, by uuid, in the order in which they settled."""
    snapshot: SessionSnapshot
    """The session at the end of the journal."""
    agents: AgentNode

    @property
    def state(self) -> State:
        """The state of the session at the end of the journal."""
        return self.snapshot.state

    @property
    def history(self) -> list[State]:
        """All states of the session in order, beginning with `idle`."""
        return ["idle", *(change.after for change in self.states)]

    @property
    def messages(self) -> Iterator[Message]:
        """The messages of the CLI, as `session.messages()` yields them."""
        return (entry.message for entry in self.entries if entry.kind is Kind.MESSAGE)

    @property
    def text(self) -> str:
        """The text of the main agent in all turns."""
        stream = TextStream()
        return "".join(stream.feed(entry) for entry in self.entries)


def replay(entries: Iterable[Entry]) -> Replayed:
    """Replay `entries` from first to last."""
    reader = _Reader()
    for entry in entries:
        reader.record(entry)
    return reader.done()


class _Line(msgspec.Struct):
    """The fields of a line that decide where it belongs."""

    type: str = ""
    subtype: str | None = None
    session_id: str | None = None
    user_message_uuid: str | None = None
    user_message_uuids: list[str] | None = None

    @property
    def name(self) -> str:
        return self.subtype or "" if self.type == "system" else self.type


_decode = msgspec.json.Decoder(_Line).decode


@dataclass(slots=True)
class _Reader:
    totals: SessionTotals = field(default_factory=SessionTotals)
    state: StateFollower = field(default_factory=StateFollower)
    entries: list[Entry] = field(default_factory=list[Entry])
    states: list[StateChange] = field(default_factory=list[StateChange])
    turns: dict[str, TurnResult] = field(default_factory=dict[str, TurnResult])
    session_id: str | None = None
    _begun: dict[str, int] = field(default_factory=dict[str, int])
    """The index of the first entry of each open turn."""
    _broken: set[str] = field(default_factory=set[str])
    _has_begun: bool = False
    """Whether a CLI has begun that has not used the model yet."""
    _ended_by: tuple[str, ...] = ()
    """The uuids of the prompts that the last result ends."""

    def record(self, entry: Entry) -> None:
        self.entries.append(entry)
        change = self.state.follow(entry)
        if change is not None:
            self.states.append(change)
        match entry.kind:
            case Kind.MESSAGE:
                self._on_message(entry)
            case Kind.PARTIAL if _abandons_text(entry):
                self._broken.update(entry.turns)
            case Kind.CONTROL:
                self._begin_costs(entry.line)
            case Kind.SENT | Kind.TAKEN_UP:
                self._begin(entry)
            case Kind.SETTLED:
                for uuid in entry.turns:
                    self._settle(uuid, entry)
            case Kind.RESTARTED:
                # Text that the lost CLI streamed was given out, so it is part of the turn's text.
                self._broken.update(self._begun)
                self.totals.cli_lost(entry.at)
            case Kind.PHASE if self.state.phase.is_over:
                self.totals.cli_lost(entry.at)
            case _:
                pass

    def done(self) -> Replayed:
        state, totals = self.state, self.totals
        return Replayed(
            tuple(self.entries),
            tuple(self.states),
            self.turns,
            snapshot_of(state, totals, session_id=self.session_id),
            totals.agents(state.state, state.started),
        )

    def _begin(self, entry: Entry) -> None:
        self._has_begun |= INITIALIZE in entry.line
        for uuid in entry.turns:
            self.totals.open(uuid, entry.at)
            self._begun.setdefault(uuid, len(self.entries))
        if entry.kind is Kind.TAKEN_UP:
            self.totals.resume(entry)

    def _begin_costs(self, line: bytes) -> None:
        totals = totals_in(line) if self._has_begun else None
        if totals is not None:
            self.totals.costs.begin(*totals)
            self._has_begun = False

    def _on_message(self, entry: Entry) -> None:
        line = _read(entry.line)
        self._has_begun &= line.name not in ("assistant", "result")
        self.session_id = line.session_id or self.session_id
        if line.name == "result":
            named = line.user_message_uuids or [each for each in (line.user_message_uuid,) if each]
            self._ended_by = tuple(named) or entry.turns
        self.totals.record(entry, line.name)

    def _settle(self, uuid: str, entry: Entry) -> None:
        details = entry.details
        has_result = bool(details.get("has_result", uuid in self._ended_by))
        outcome: Outcome = details.get("outcome", "completed")
        cause = self._cause(details, outcome, has_result=has_result)
        begins = self._begun.pop(uuid, len(self.entries))
        is_whole = has_result and uuid not in self._broken
        self._broken.discard(uuid)
        unreported = details.get("unreported")
        if _json.is_object(unreported):
            self.totals.add_unreported(uuid, Unreported.from_details(unreported))
        self.turns[uuid] = self.totals.settle(
            uuid,
            entry.at,
            outcome,
            has_result=has_result,
            cause=cause,
            text=None if is_whole else self._streamed(uuid, begins),
            waits_for=tuple(map(str, details.get("waits_for") or ())),
        )

    def _cause(
        self, details: JsonObject, outcome: Outcome, *, has_result: bool
    ) -> SteersmanError | None:
        """Return why the turn was not completed, unless its result or outcome gives the cause."""
        code = str(details.get("cause") or "")
        reason = str(details.get("reason") or code)
        known = self.totals.cause_for(outcome, has_result=has_result)
        if not code or (known is not None and reason in (code, known.what)):
            return None
        if isinstance(known, TurnStopped) and code == known.code:
            # The text has the `stop_reason` of a hook, which the result does not have.
            hint = "" if known.hint == known.advice else known.hint
            return TurnStopped(known.why, reason, hint=hint)
        return SteersmanError(reason)

    def _streamed(self, uuid: str, begins: int) -> str:
        """Return the text that `turn.text()` yielded, including streams that broke off."""
        stream = TextStream()
        ours = (entry for entry in self.entries[begins:] if uuid in entry.turns)
        return "".join(stream.feed(entry) for entry in ours)


def _read(line: bytes) -> _Line:
    try:
        return _decode(line)
    except DECODE_ERRORS:
        return _read_loosely(line)


def _read_loosely(line: bytes) -> _Line:
    """Decode a line that msgspec refuses: keep each field of the right type."""
    try:
        found = _json.loads(line)
    except ValueError:
        return _Line()
    fields = found if _json.is_object(found) else {}
    texts: JsonDict = {
        name: value
        for name in ("type", "subtype", "session_id")
        if isinstance(value := fields.get(name), str)
    }
    return _Line(**texts)


def _abandons_text(entry: Entry) -> bool:
    """Whether a partial message abandons what was streamed; most need no decoding."""
    is_likely = b'"abandoned_blocks"' in entry.line
    return is_likely and entry.message.raw.get("abandoned_blocks") is not None
