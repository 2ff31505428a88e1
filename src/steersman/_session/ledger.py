"""The prompts of a session: those that wait, the one the CLI is at work on, and how each ended."""

from __future__ import annotations

import contextvars
from collections import deque

from steersman._protocol.events import TurnSettled
from steersman._session.link import Link
from steersman._session.turn import Turn
from steersman.control import Interrupt
from steersman.errors import NotLoggedIn, SteersmanError
from steersman.journal import Entry, Kind, Outcome, TurnResult
from steersman.journal.results import CostMeter, cause_of, outcome_of
from steersman.journal.text import TextStream
from steersman.messages import ApiRetry, Assistant, Result, parse_message

__all__ = ["Ledger"]

AUTHENTICATION_TRIES = 2
"""A wrong key stays wrong: after so many refusals we end the CLI's retries, which take minutes."""


class Ledger:
    """Gives the CLI one prompt at a time, and each prompt its result."""

    def __init__(self, link: Link, request_timeout: float) -> None:
        self.cost_usd = 0.0
        """Of all turns, those that nobody asked for included."""
        self._link = link
        self._request_timeout = request_timeout
        self._queue: deque[Turn] = deque()
        self._turns: dict[str, Turn] = {}
        self._meter = CostMeter()
        self._cost_of_result = 0.0

    @property
    def at_work(self) -> Turn | None:
        """The prompt that was written and has not settled."""
        return next(iter(self._turns.values()), None)

    @property
    def uuid_at_work(self) -> str | None:
        """Its uuid."""
        return next(iter(self._turns), None)

    @property
    def queued(self) -> list[str]:
        """The uuids of prompts that the CLI has not seen."""
        return [turn.uuid for turn in self._queue]

    # Prompts on their way

    def add(self, turn: Turn) -> None:
        """Write the prompt now, or when those before it have settled."""
        self._queue.append(turn)
        self.send_next()

    def send_next(self) -> None:
        """Write the next prompt, if the CLI is not at work on one of ours: it would merge them."""
        if self._turns or not self._queue or not self._link.is_open:
            return
        turn = self._queue.popleft()
        self._turns[turn.uuid] = turn
        turn.begins_after = self._link.journal.last_seq
        line = self._link.connection.prompt(turn.uuid, turn.content, **turn.fields)
        self._link.write(line, (turn.uuid,))

    def take_back(self, meant: Turn | None, *, also_queued: bool) -> list[str]:
        """Settle prompts that the CLI has not seen: all of them, or the one that is meant."""
        taken = [turn for turn in self._queue if also_queued or turn is meant]
        for turn in taken:
            self._queue.remove(turn)
            turn.was_interrupted = turn is meant
            self._settle(turn, self._end_of(turn, None, cancelled=True))
        return [turn.uuid for turn in taken]

    def began(self, uuid: str) -> None:
        """The CLI is at work on this prompt."""
        if uuid in self._turns:
            self._turns[uuid].begin()

    def context(self) -> contextvars.Context:
        """A copy of the context of the `send()` that caused what happens now."""
        turn = self.at_work
        return contextvars.copy_context() if turn is None else turn.context.copy()

    # What becomes of them

    def hear(self, entry: Entry, name: str) -> None:
        """Keep what a turn's result will need of a message."""
        if name == "assistant" and entry.turns:
            message = entry.message
            if isinstance(message, Assistant):
                for turn in self._turns_of(entry):
                    turn.transcript.add(message)
        elif name == "result" and isinstance(entry.message, Result):
            self._cost_of_result = self._meter.cost_of(entry.message)
            self.cost_usd += self._cost_of_result
        elif name == "abandoned":
            for turn in self._turns_of(entry):
                turn.is_broken = True
        elif name == "api_retry" and isinstance(entry.message, ApiRetry):
            self._give_up_on_login(entry, entry.message)

    def settle(self, settled: TurnSettled) -> None:
        """A prompt is done with; the next one may go."""
        turn = self._turns.pop(settled.uuid, None)
        if turn is None:
            return
        result = None if settled.result is None else parse_message(settled.result)
        # Closed under a prompt that had not reached the model: the CLI calls that a success.
        is_cut_off = self._link.is_closing and isinstance(result, Result) and not result.num_turns
        if isinstance(result, Result) and not is_cut_off:
            cost, self._cost_of_result = self._cost_of_result, 0.0
            text = self._text_of(turn) if turn.is_broken else turn.transcript.text
            self._settle(turn, _result_of(turn, result, text, cost))
        else:
            self._settle(
                turn, self._end_of(turn, None, cancelled=settled.was_cancelled or is_cut_off)
            )
        self.send_next()

    def withdrawn(self, uuid: str) -> None:
        """The CLI has taken a prompt out of its queue."""
        for event in self._link.connection.turns.lifecycle(uuid, "cancelled"):
            if isinstance(event, TurnSettled):
                self.settle(event)

    def settle_all(self, cause: SteersmanError | None) -> None:
        """The CLI is gone: what is left has failed with `cause`, or is cancelled without one."""
        left = [*self._turns.values(), *self._queue]
        self._turns.clear()
        self._queue.clear()
        for turn in left:
            self._settle(turn, self._end_of(turn, cause, cancelled=cause is None))

    def _text_of(self, turn: Turn) -> str:
        """What `turn.text()` gives: a stream that broke off is part of it."""
        journal = self._link.journal
        if journal.lost_after(turn.begins_after):
            return turn.transcript.text
        stream = TextStream()
        entries = journal.after(turn.begins_after, most=journal.last_seq)
        return "".join(stream.feed(entry) for entry in entries if turn.uuid in entry.turns)

    def _end_of(self, turn: Turn, cause: SteersmanError | None, *, cancelled: bool) -> TurnResult:
        """How a turn ended that no result names."""
        outcome: Outcome = "failed" if cause is not None else "completed"
        if cancelled:
            outcome = "interrupted" if turn.was_interrupted else "cancelled"
        return TurnResult(
            uuid=turn.uuid,
            outcome=outcome,
            text=self._text_of(turn),
            answer=turn.transcript.answer,
            cause=cause,
        )

    def _settle(self, turn: Turn, result: TurnResult) -> None:
        self._link.note(Kind.SETTLED, (turn.uuid,), outcome=result.outcome)
        turn.settle(result)

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
        if turns and self._link.is_open:
            self._link.tell(Interrupt(), self._request_timeout)

    def _turns_of(self, entry: Entry) -> list[Turn]:
        return [self._turns[uuid] for uuid in entry.turns if uuid in self._turns]


def _result_of(turn: Turn, result: Result, text: str, cost: float) -> TurnResult:
    outcome = outcome_of(result, was_interrupted=turn.was_interrupted)
    return TurnResult(
        uuid=turn.uuid,
        outcome="failed" if turn.cause is not None else outcome,
        text=text,
        answer=result.result or turn.transcript.answer,
        cost_usd=cost,
        usage=result.usage,
        structured_output=result.structured_output,
        stop_reason=result.stop_reason,
        terminal_reason=result.terminal_reason,
        permission_denials=result.permission_denials,
        api_error=result.api_error_status,
        cause=turn.cause or cause_of(result),
        result=result,
    )
