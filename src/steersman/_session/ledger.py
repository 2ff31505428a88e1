"""The prompts of a session: those that wait, those the CLI has, and how each of them ended."""

from __future__ import annotations

import contextvars
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from steersman._protocol.events import TurnSettled
from steersman._session.handover import Handover
from steersman._session.identity import new_uuid
from steersman._session.link import Link
from steersman._session.log import Log
from steersman._session.turn import Delivery, Turn
from steersman.control.session import Interrupt
from steersman.errors import CliExited, NotLoggedIn, Stalled, SteersmanError
from steersman.journal import Entry, Kind, Outcome, TurnResult
from steersman.journal.calls import ToolCallRecord
from steersman.journal.results import outcome_of
from steersman.journal.text import TextStream
from steersman.journal.totals import SessionTotals
from steersman.messages.limits import ApiRetry
from steersman.messages.parsing import parse_message
from steersman.messages.turns import Result
from steersman.transcripts import answer_to, has_prompt, is_unfinished

__all__ = ["Ledger"]

CONTINUE = "Continue from where you left off."
"""What the CLI itself says to the model when it takes up a turn again."""

AUTHENTICATION_TRIES = 2
"""A wrong key stays wrong: after so many refusals we end the CLI's retries, which take minutes."""


class Ledger:
    """Gives the CLI one prompt at a time, unless told otherwise, and each prompt its result."""

    def __init__(
        self,
        log: Log,
        request_timeout: float,
        transcript: Callable[[], Sequence[bytes]] = tuple,
    ) -> None:
        self.accounts = SessionTotals()
        """What turns said, did and cost."""
        self.is_held = False
        """Whether prompts wait although the CLI could have them."""
        self.tells_all = True
        """Whether the CLI says what becomes of each prompt; older ones do not."""
        self._log = log
        self._link: Link | None = None
        self._request_timeout = request_timeout
        self._transcript = transcript
        """What the CLI has written down: of prompts that ended where we did not see."""
        self._was_stopped = False
        """Whether the last turn was told to stop, and none has begun since."""
        self._queue: deque[Turn] = deque()
        self._turns: dict[str, Turn] = {}

    @property
    def at_work(self) -> Turn | None:
        """The first prompt that was written and has not settled."""
        return next(iter(self._turns.values()), None)

    @property
    def is_at_work(self) -> bool:
        """Whether there is one."""
        return bool(self._turns)

    @property
    def uuid_at_work(self) -> str | None:
        """Its uuid."""
        return next(iter(self._turns), None)

    @property
    def written(self) -> list[Turn]:
        """All prompts that were written and have not settled."""
        return list(self._turns.values())

    @property
    def queued(self) -> list[str]:
        """The uuids of prompts that the CLI has not seen."""
        return [turn.uuid for turn in self._queue]

    def find(self, uuid: str) -> Turn | None:
        """The turn of that uuid, while it is not settled."""
        waiting = (turn for turn in self._queue if turn.uuid == uuid)
        return self._turns.get(uuid) or next(waiting, None)

    # Prompts on their way

    def add(self, turn: Turn) -> None:
        """Write the prompt now, or when those before it have settled."""
        if turn.when == "later":
            self._queue.append(turn)
        elif self._turns and self._can_write:
            self._write(turn)
            return
        else:
            # Nothing to cut into: it is the next one.
            self._queue.appendleft(turn)
        self.send_next()

    def send_next(self) -> None:
        """Write the next prompt, if the CLI is not at work on one of ours: it would merge them."""
        while self._queue and not self._turns and self._can_write:
            turn = self._queue.popleft()
            if not self._is_known(turn):
                self._write(turn)

    def _is_known(self, turn: Turn) -> bool:
        """Settle a prompt that an older CLI knows already: it would drop it without a word."""
        if self.tells_all or not turn.may_be_known:
            return False
        lines = self._transcript()
        if not has_prompt(lines, turn.uuid):
            return False
        lost = CliExited("the CLI was lost in the middle of this turn, and cannot take it up again")
        self._end(turn, lost if is_unfinished(lines, turn.uuid) else None, cancelled=False)
        return True

    @property
    def _can_write(self) -> bool:
        return self._link is not None and self._link.is_open and not self.is_held

    def _write(self, turn: Turn) -> None:
        assert self._link is not None
        turn.steers = bool(self._turns) and turn.when != "later"
        self._turns[turn.uuid] = turn
        turn.begins_after = self._log.journal.last_seq
        self.accounts.open(turn.uuid, self._log.clock())
        self._tell(turn, self._link)

    def _tell(self, turn: Turn, link: Link) -> None:
        fields = {**turn.fields, "priority": turn.when} if turn.steers else turn.fields
        line = link.connection.prompt(turn.uuid, turn.content, **fields)
        link.write(line, (turn.uuid,))

    def withdraw(self, turn: Turn) -> bool:
        """Take back a prompt that the CLI has not seen; says whether it was one."""
        if turn not in self._queue:
            return False
        self._queue.remove(turn)
        self._end(turn, None, cancelled=True)
        return True

    def take_back(self, meant: Turn | None, *, also_queued: bool) -> list[str]:
        """Settle prompts that the CLI has not seen: all of them, or the one that is meant."""
        taken = [turn for turn in self._queue if also_queued or turn is meant]
        for turn in taken:
            self._queue.remove(turn)
            turn.was_interrupted = turn is meant
            self._end(turn, turn.cause, cancelled=True)
        return [turn.uuid for turn in taken]

    def began(self, uuid: str) -> None:
        """The CLI is at work on this prompt."""
        if uuid in self._turns:
            self._turns[uuid].begin()
            self._was_stopped = False

    def context(self) -> contextvars.Context:
        """A copy of the context of the `send()` that caused what happens now."""
        turn = self.at_work
        return contextvars.copy_context() if turn is None else turn.context.copy()

    # One CLI after the other

    def lose_cli(self) -> None:
        """The CLI is gone, and another one will go on; what was told to stop has stopped."""
        self.accounts.cli_lost(self._log.clock())
        stops = any(turn.was_interrupted for turn in self.written)
        for turn in self.written:
            if turn.was_interrupted or (stops and turn.has_begun):
                del self._turns[turn.uuid]
                turn.was_interrupted = True
                self._end(turn, None, cancelled=True)
            elif turn.cause is not None and not isinstance(turn.cause, Stalled):
                del self._turns[turn.uuid]
                self._end(turn, turn.cause, cancelled=False)
            else:
                turn.lose_place()

    @property
    def needs_rerun(self) -> bool:
        """Whether the next CLI must take up the turn in whose middle the last one was lost.

        It would also take up one that was told to stop, if that was not written down yet.
        """
        has_begun = any(turn.has_begun for turn in self.written)
        return has_begun or (bool(self._turns) and not self._was_stopped)

    def announce(self, link: Link, handover: Handover) -> None:
        """Prepare for a CLI that goes on by itself, before we have told it anything."""
        for turn in self.written:
            link.connection.turns.sent(turn.uuid)
            for other in turn.stand_ins:
                link.connection.turns.stands_for(other, turn.uuid)
        link.connection.turns.goes_on(turn.uuid for turn in handover.taken_up)

    def move_to(
        self, link: Link, handover: Handover | None = None, cause: SteersmanError | None = None
    ) -> None:
        """Go on with another CLI; what is lost has failed with `cause`."""
        self._link = link
        told = handover or Handover()
        for turn in told.lost:
            if self._turns.pop(turn.uuid, None):
                self._end(turn, cause, cancelled=False)
        for turn in told.resent:
            if turn.uuid in self._turns:
                self._tell(turn, link)
        self.send_next()

    # What becomes of them

    def hear(self, entry: Entry, name: str) -> list[ToolCallRecord]:
        """Keep what results will need of a message; gives the tool calls that begin or end."""
        if name == "abandoned":
            for turn in self._turns_of(entry):
                turn.is_broken = True
        elif name == "api_retry" and isinstance(entry.message, ApiRetry):
            self._give_up_on_login(entry, entry.message)
        return self.accounts.record(entry, name)

    def settle(self, settled: TurnSettled) -> TurnResult | None:
        """A prompt is done with; the next one may go."""
        turn = self._turns.pop(settled.uuid, None)
        if turn is None or (settled.result is None and self._continues(turn, settled)):
            return None
        result = None if settled.result is None else parse_message(settled.result)
        # Closed under a prompt that had not reached the model: the CLI calls that a success.
        is_closing = self._link is None or self._link.is_closing
        is_cut_off = is_closing and isinstance(result, Result) and not result.num_turns
        if isinstance(result, Result) and not is_cut_off:
            done = self._end_by(turn, result)
        else:
            done = self._end(turn, turn.cause, cancelled=settled.was_cancelled or is_cut_off)
        self.send_next()
        return done

    def _continues(self, turn: Turn, settled: TurnSettled) -> bool:
        """Have a turn go on that a CLI calls done, although it only knows that it was begun.

        It takes up again the turn that another one was lost in, but not one that was taken up.
        """
        asks = turn.asks and turn.may_be_known and not settled.was_cancelled
        if not asks or turn.cause is not None or not self._can_write:
            return False
        assert self._link is not None
        turn.may_be_known = False
        if not is_unfinished(self._transcript(), turn.uuid, *turn.stand_ins):
            return False
        other = new_uuid()
        turn.stand_ins.append(other)
        self._turns[turn.uuid] = turn
        self._link.connection.turns.continues(turn.uuid, other)
        line = self._link.connection.prompt(other, CONTINUE, **turn.fields)
        self._link.write(line, (turn.uuid,))
        return True

    def withdrawn(self, uuid: str) -> None:
        """The CLI has taken a prompt out of its queue."""
        assert self._link is not None
        for event in self._link.connection.turns.lifecycle(uuid, "cancelled"):
            if isinstance(event, TurnSettled):
                self.settle(event)

    def settle_all(self, cause: SteersmanError | None) -> None:
        """The CLI is gone: what is left has failed with `cause`, or is cancelled without one."""
        left = [*self._turns.values(), *self._queue]
        self._turns.clear()
        self._queue.clear()
        for turn in left:
            self._end(turn, turn.cause or cause, cancelled=cause is None)
        self.accounts.cli_lost(self._log.clock())

    def _end_by(self, turn: Turn, result: Result) -> TurnResult:
        """Settle a turn with the result that names it."""
        outcome = outcome_of(result, was_interrupted=turn.was_interrupted)
        if turn.cause is not None:
            outcome = "failed"
        return self._settle(turn, outcome, turn.cause, _delivery_of(turn, result), has_result=True)

    def _end(self, turn: Turn, cause: SteersmanError | None, *, cancelled: bool) -> TurnResult:
        """Settle a turn that no result names."""
        outcome: Outcome = "failed" if cause is not None else "completed"
        if cancelled:
            outcome = "interrupted" if turn.was_interrupted else "cancelled"
        was_seen = turn.has_begun or not cancelled
        delivery: Delivery = "completed" if was_seen else "cancelled"
        return self._settle(turn, outcome, cause, delivery, has_result=False)

    def _settle(
        self,
        turn: Turn,
        outcome: Outcome,
        cause: SteersmanError | None,
        delivery: Delivery,
        *,
        has_result: bool,
    ) -> TurnResult:
        text = self._streamed(turn) if turn.is_broken or not has_result else None
        found = ""
        if text == "" and outcome == "completed" and turn.asks:
            text = found = answer_to(self._transcript(), turn.uuid, *turn.stand_ins)
        self._was_stopped = outcome == "interrupted"
        at = self._log.clock()
        result = self.accounts.settle(
            turn.uuid, at, outcome, has_result=has_result, cause=cause, text=text
        )
        told = result.cause
        details: dict[str, Any] = {
            "outcome": outcome,
            "has_result": has_result,
            "cause": "" if told is None else told.code,
            "reason": "" if told is None else told.what,
        }
        if found:
            details["text"] = found
        self._log.append(at, Kind.SETTLED, turns=(turn.uuid,), details=details)
        self._log.wake()
        turn.settle(result, delivery)
        return result

    def _streamed(self, turn: Turn) -> str | None:
        """What `turn.text()` gives: a stream that broke off is part of it."""
        journal = self._log.journal
        if journal.lost_after(turn.begins_after):
            return None
        stream = TextStream()
        entries = journal.after(turn.begins_after, most=journal.last_seq)
        return "".join(stream.feed(entry) for entry in entries if turn.uuid in entry.turns)

    def _give_up_on_login(self, entry: Entry, retry: ApiRetry) -> None:
        if retry.error != "authentication_failed" or retry.attempt < AUTHENTICATION_TRIES:
            return
        turns = [turn for turn in self._turns_of(entry) if turn.cause is None]
        for turn in turns:
            turn.cause = NotLoggedIn(
                f"the API refused the credential (HTTP {retry.error_status})",
                hint="log in with `claude`, or set a valid ANTHROPIC_API_KEY; if user settings"
                ' hold the key helper, pass setting_sources=("user",)',
            )
        if turns and self._link is not None and self._link.is_open:
            self._link.tell(Interrupt(), self._request_timeout)

    def _turns_of(self, entry: Entry) -> list[Turn]:
        return [self._turns[uuid] for uuid in entry.turns if uuid in self._turns]


def _delivery_of(turn: Turn, result: Result) -> Delivery:
    """A prompt that shares its result with one before it was folded into that one's turn."""
    named = result.user_message_uuids or [turn.uuid]
    return "completed" if turn.uuid == named[0] else "folded"
