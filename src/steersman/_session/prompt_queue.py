"""The prompts of a session: queued, sent, settled."""

from __future__ import annotations

import contextvars
import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from steersman import _json
from steersman._json import JsonDict
from steersman._protocol.events import TurnSettled
from steersman._session.journal_writer import JournalWriter
from steersman._session.link import CliLink
from steersman._session.recovery import CONTINUE, Handover, again
from steersman._session.turn import Delivery, SentPrompt
from steersman._uuids import uuid_of
from steersman.control.session import Interrupt
from steersman.errors import (
    ApiFailed,
    CliExited,
    LeaseLost,
    NotLoggedIn,
    Stalled,
    SteersmanError,
    TurnStopped,
)
from steersman.journal import Entry, Kind, Outcome, TurnResult
from steersman.journal.calls import ToolCallRecord
from steersman.journal.costs import unreported_in
from steersman.journal.ends import ended_by_hook, outcome_of, was_deferred
from steersman.journal.journal import DEFAULT_MEMORY
from steersman.journal.text import TextStream
from steersman.journal.totals import SessionTotals
from steersman.messages.limits import ApiRetry
from steersman.messages.parsing import parse_message
from steersman.messages.turns import Result
from steersman.permissions import CanUseTool
from steersman.transcripts import (
    answer_to,
    ending_of,
    failure_of,
    has_prompt,
    is_unfinished,
    was_folded,
)
from steersman.transcripts.lookup import was_followed

AUTHENTICATION_TRIES = 2
"""Rejected logins after which we end the CLI's retries, which take minutes and cannot succeed."""


def _ignore(_uuid: str, _outcome: str) -> None:
    """Write nothing: the turns have no rows."""


class PromptQueue:
    """Writes one prompt at a time to the CLI, unless a prompt steers, and settles each of them."""

    def __init__(
        self,
        journal: JournalWriter,
        request_timeout: float,
        transcript: Callable[[], Sequence[bytes]] = tuple,
        settled: Callable[[str, str], None] = _ignore,
    ) -> None:
        # Not less for a small journal: a result has the whole text of any usual turn.
        self.totals = SessionTotals(max(journal.journal.memory, DEFAULT_MEMORY))
        """Messages, tool calls and costs, by turn and in total."""
        self.is_held = False
        """Whether prompts wait because the session is paused or parked."""
        self.is_parking = False
        """Whether the session ends without interrupting: prompts that are left are parked."""
        self.reports_lifecycle = True
        """Whether the CLI reports `command_lifecycle` for each prompt; older releases do not."""
        self._journal = journal
        self._link: CliLink | None = None
        self._request_timeout = request_timeout
        self._transcript = transcript
        """Reads the lines of the CLI's session file, for prompts that ended unobserved."""
        self._on_settled = settled
        """Called with the uuid and the outcome of each prompt that settles."""
        self.last_result: TurnResult | None = None
        """The result of the turn that settled last."""
        self._was_stopped = False
        """Whether the last turn was ended before its end."""
        self.unowned: set[str] = set()
        """The calls of a turn that the CLI continues although its prompt was not sent here."""
        self._queue: deque[SentPrompt] = deque()
        self._sent: dict[str, SentPrompt] = {}

    @property
    def current(self) -> SentPrompt | None:
        """The oldest prompt that was sent and has not settled."""
        return next(iter(self._sent.values()), None)

    @property
    def is_busy(self) -> bool:
        """Whether a prompt was sent and has not settled."""
        return bool(self._sent)

    @property
    def current_uuid(self) -> str | None:
        """The uuid of the oldest prompt that the CLI works on, or None.

        None also while it continues the turn of an earlier session, before it reads a prompt.
        """
        return next((uuid for uuid, each in self._sent.items() if each.has_begun), None)

    @property
    def unsettled(self) -> list[SentPrompt]:
        """All prompts that were sent and have not settled."""
        return list(self._sent.values())

    @property
    def queued(self) -> list[str]:
        """The uuids of prompts that were not sent yet."""
        return [prompt.uuid for prompt in self._queue]

    @property
    def not_begun(self) -> list[str]:
        """The uuids of prompts, sent or not, that the CLI has not begun to process."""
        return [each.uuid for each in (*self.unsettled, *self._queue) if not each.has_begun]

    def find(self, uuid: str) -> SentPrompt | None:
        """Return the queued or sent prompt of that uuid, unless it has settled."""
        queued = (prompt for prompt in self._queue if prompt.uuid == uuid)
        return self._sent.get(uuid) or next(queued, None)

    # Sending

    def submit(self, prompt: SentPrompt) -> None:
        """Write the prompt now, or when those before it have settled."""
        if prompt.when == "later":
            self._queue.append(prompt)
        elif self._sent and self._can_write:
            self._write(prompt)
            return
        else:
            # There is no turn to steer, so this prompt is the next one, behind others of its kind.
            before = itertools.takewhile(lambda each: each.when != "later", self._queue)
            self._queue.insert(sum(1 for _ in before), prompt)
        self.send_next()

    def send_next(self) -> None:
        """Write the next prompt, unless one is unsettled: the CLI merges prompts that wait."""
        while self._queue and not self._sent and self._can_write:
            prompt = self._queue.popleft()
            if not self._settle_processed(prompt):
                self._write(prompt)

    def _settle_processed(self, prompt: SentPrompt) -> bool:
        """Settle a prompt that has been processed, and that the CLI would drop or run again.

        Older CLIs silently drop it. No CLI recognises a prompt that joined another turn.
        """
        if not prompt.may_be_processed:
            return False
        lines = self._transcript()
        is_known = was_folded if self.reports_lifecycle else has_prompt
        if not is_known(lines, prompt.uuid):
            return False
        if self.reports_lifecycle and is_unfinished(lines, prompt.uuid):
            return False
        self._end_as_stored(prompt)
        return True

    @property
    def _can_write(self) -> bool:
        return self._link is not None and self._link.is_open and not self.is_held

    def _write(self, prompt: SentPrompt) -> None:
        assert self._link is not None
        prompt.steers = bool(self._sent) and prompt.when != "later"
        self._open(prompt)
        self._send(prompt, self._link)

    def _open(self, prompt: SentPrompt) -> None:
        self._sent[prompt.uuid] = prompt
        prompt.begins_after = self._journal.journal.last_seq
        self.totals.open(prompt.uuid, self._journal.clock())

    def _send(self, prompt: SentPrompt, link: CliLink) -> None:
        fields = {**prompt.fields, "priority": prompt.when} if prompt.steers else prompt.fields
        line = link.connection.prompt(prompt.uuid, prompt.content, **fields)
        link.write(line, (prompt.uuid,))

    def adopt(self, prompt: SentPrompt, calls: Iterable[CanUseTool]) -> None:
        """Count the turn that the CLI has begun by itself as that of this prompt; write nothing.

        `calls` are those of an earlier CLI that it asks about: no message of this one begins them.
        """
        assert self._link is not None
        self._resume((prompt.uuid,), calls)
        self._open(prompt)
        self._link.connection.adopt(prompt.uuid)
        prompt.started()

    def called(self, call: CanUseTool) -> None:
        """Count a call of the main agent as running, if no message of this CLI has begun it.

        A CLI that was restarted asks about a call that was deferred once more, without a message.
        So does one that continues a turn of which this session has no prompt.
        """
        uuid = self.current_uuid
        if uuid is None:
            self.unowned.add(call.tool_use_id)
        if not self.totals.calls.knows(call.tool_use_id):
            self._resume(() if uuid is None else (uuid,), [call])

    def _resume(self, turns: tuple[str, ...], calls: Iterable[CanUseTool]) -> None:
        assert self._link is not None
        given = [
            {"tool_use_id": each.tool_use_id, "tool_name": each.tool_name, "input": each.input}
            for each in calls
        ]
        details = _json.loads(self._link.redactor.line(_json.dumps({"calls": given})))
        now = self._journal.clock()
        entry = self._journal.append(now, Kind.TAKEN_UP, turns=turns, details=details)
        self._journal.wake()
        self.totals.resume(entry)

    def withdraw(self, uuid: str) -> bool:
        """Cancel a prompt that was not sent yet; returns whether it was one."""
        prompt = next((each for each in self._queue if each.uuid == uuid), None)
        if prompt is None:
            return False
        self._queue.remove(prompt)
        self._end(prompt, None, cancelled=True)
        return True

    def withdraw_queued(self, interrupted: str | None, *, also_others: bool) -> list[str]:
        """Settle the queued prompt with the uuid `interrupted`, or all; returns their uuids."""
        withdrawn = [each for each in self._queue if also_others or each.uuid == interrupted]
        for prompt in withdrawn:
            self._queue.remove(prompt)
            prompt.was_interrupted = prompt.uuid == interrupted
            self._end(prompt, prompt.cause, cancelled=True)
        return [prompt.uuid for prompt in withdrawn]

    def started(self, uuid: str) -> None:
        """Record that the CLI has started to process this prompt."""
        if uuid in self._sent:
            self._sent[uuid].started()

    def stopped_by_hook(self, stop_reason: str) -> None:
        """Record the `stop_reason` of a hook that ends the current turn, without known secrets."""
        shown = stop_reason if self._link is None else self._link.redactor.text(stop_reason)
        for prompt in self.unsettled:
            prompt.stop_reason = shown

    def context(self) -> contextvars.Context:
        """Copy the context of the `send()` that the current turn comes from."""
        prompt = self.current
        return contextvars.copy_context() if prompt is None else prompt.context.copy()

    # One CLI after the other

    def cli_lost(self, cause: SteersmanError, most: int) -> None:
        """Settle prompts that were being stopped when the CLI exited; keep the others.

        A turn that has lost `most` CLIs before is not continued: it fails with `cause`.
        """
        self._count_unreported()
        self.totals.cli_lost(self._journal.clock())
        left = self.unsettled
        is_stopping = any(prompt.was_interrupted for prompt in left)
        is_given_up = any(prompt.losses >= most and prompt.has_begun for prompt in left)
        for prompt in left:
            if prompt.was_interrupted or (is_stopping and prompt.has_begun):
                del self._sent[prompt.uuid]
                prompt.was_interrupted = True
                self._end(prompt, None, cancelled=True)
            elif prompt.cause is not None and not isinstance(prompt.cause, Stalled):
                del self._sent[prompt.uuid]
                self._end(prompt, prompt.cause, cancelled=False)
            elif prompt.losses >= most or (is_given_up and prompt.has_begun):
                del self._sent[prompt.uuid]
                self._end(prompt, cause, cancelled=False)
            else:
                prompt.cli_lost()
        if len(self._sent) < len(left):
            self._was_stopped = True

    @property
    def needs_rerun(self) -> bool:
        """Whether the next CLI must continue the turn in which the last one exited.

        It would also continue a turn that was ended before its end, if that was not saved yet.
        """
        has_begun = any(prompt.has_begun for prompt in self.unsettled)
        return has_begun or (bool(self._sent) and not self._was_stopped)

    def expect(self, link: CliLink, handover: Handover) -> None:
        """Prepare for a CLI that continues a turn by itself, before anything is written to it."""
        for prompt in self.unsettled:
            link.connection.expect(prompt.uuid)
            for alias in prompt.aliases:
                link.connection.alias(alias, prompt.uuid)
        link.connection.resume(prompt.uuid for prompt in handover.resumed)

    def attach(
        self, link: CliLink, handover: Handover | None = None, cause: SteersmanError | None = None
    ) -> None:
        """Send to this CLI from now on; prompts that cannot be continued fail with `cause`."""
        self._link = link
        plan = handover or Handover()
        for prompt in plan.lost:
            if self._sent.pop(prompt.uuid, None):
                self._end(prompt, cause, cancelled=False)
        for prompt in plan.resent:
            if prompt.uuid in self._sent:
                self._send(prompt, link)
        self.send_next()

    # Settling

    def record(self, entry: Entry, name: str) -> list[ToolCallRecord]:
        """Record a message for the results; returns the tool calls that begin or end with it."""
        if name == "abandoned":
            for prompt in self._prompts_of(entry):
                prompt.is_broken = True
        elif name == "api_retry" and isinstance(entry.message, ApiRetry):
            self._stop_login_retries(entry, entry.message)
        return self.totals.record(entry, name)

    def settle(self, settled: TurnSettled) -> TurnResult | None:
        """Settle a prompt as the protocol reports, and send the next one."""
        prompt = self._sent.pop(settled.uuid, None)
        if prompt is not None and self._is_left(prompt, settled):
            self._sent[prompt.uuid] = prompt
            return None
        if prompt is None or (
            settled.result is None and self._continue_unfinished(prompt, settled)
        ):
            return None
        result = None if settled.result is None else parse_message(settled.result)
        # If it is closed before a prompt reached the model, the CLI reports a success.
        is_closing = self._link is None or self._link.is_closing
        is_cut_off = is_closing and isinstance(result, Result) and not result.num_turns
        is_cancelled = settled.was_cancelled or is_cut_off
        if isinstance(result, Result) and not is_cut_off:
            done = self._end_by(prompt, result)
        elif prompt.may_be_processed and not is_cancelled and prompt.cause is None:
            done = self._end_as_stored(prompt)
        else:
            done = self._end_without_result(prompt, settled, is_cut_off=is_cut_off)
        self.send_next()
        return done

    def _is_left(self, prompt: SentPrompt, settled: TurnSettled) -> bool:
        """Whether the turn would have to be continued, in a session that is being parked."""
        has_ended = settled.result is not None or settled.was_cancelled or prompt.cause is not None
        if not self.is_parking or has_ended or not prompt.may_be_processed:
            return False
        lines = self._transcript()
        return is_unfinished(lines, *_uuids_of(prompt, lines))

    def _end_without_result(
        self, prompt: SentPrompt, settled: TurnSettled, *, is_cut_off: bool
    ) -> TurnResult:
        """Settle a prompt that the CLI has finished with, although no result names it.

        The CLI reports a turn as cancelled that was interrupted or failed; its result is lost.
        """
        cause, is_cancelled = prompt.cause, settled.was_cancelled or is_cut_off
        if settled.was_cancelled and prompt.has_begun:
            failure = self.totals.api_failure(prompt.uuid)
            cause = cause or (ApiFailed(failure) if failure else None)
            is_cancelled = prompt.was_interrupted = cause is None
        return self._end(prompt, cause, cancelled=is_cancelled)

    def _continue_unfinished(self, prompt: SentPrompt, settled: TurnSettled) -> bool:
        """Have the CLI continue a turn that it reports as completed, but only began.

        The CLI continues a turn in which its predecessor exited, but not one that was continued
        before: that one it drops as processed.
        """
        may_continue = prompt.expects_answer and prompt.may_be_processed
        if not may_continue or settled.was_cancelled or prompt.was_continued:
            return False
        if prompt.cause is not None:
            return False
        lines = self._transcript()
        uuids = _uuids_of(prompt, lines)
        if not is_unfinished(lines, *uuids):
            return False
        if self._link is None or not self._link.is_open:
            # The next CLI continues it, or the end of the session decides.
            self._sent[prompt.uuid] = prompt
            return True
        prompt.was_continued = True
        alias = next(each for each in continuations(prompt.uuid) if not has_prompt(lines, each))
        prompt.aliases.append(alias)
        self._sent[prompt.uuid] = prompt
        self._link.connection.continue_as(prompt.uuid, alias)
        # Used once: later, the calls may have run.
        words, prompt.continuation = prompt.continuation or CONTINUE, ""
        content = again(prompt.content, words) if was_followed(lines, *uuids) else words
        line = self._link.connection.prompt(alias, content, **prompt.fields)
        self._link.write(line, (prompt.uuid,))
        return True

    def line_lost(self) -> None:
        """Take the text of the current turns as it was streamed: a line of theirs may be lost."""
        for prompt in self.unsettled:
            prompt.is_broken = True

    def cli_cancelled(self, uuid: str) -> None:
        """Settle a prompt that the CLI has removed from its own queue."""
        assert self._link is not None
        for event in self._link.connection.cancelled(uuid):
            if isinstance(event, TurnSettled):
                self.settle(event)

    def settle_all(self, cause: SteersmanError | None) -> None:
        """Settle everything that is left: failed with `cause`, or cancelled without one.

        If the session is being parked, prompts are parked instead of cancelled.
        """
        if self._sent:
            self._count_unreported()
        left = [*self._sent.values(), *self._queue]
        self._sent.clear()
        self._queue.clear()
        for prompt in left:
            is_stopped = prompt.was_interrupted or (prompt.cause or cause) is not None
            if self.is_parking and not is_stopped:
                self._settle(prompt, "parked", None, prompt.delivery, has_result=False)
            else:
                self._end(prompt, prompt.cause or cause, cancelled=cause is None)
        self.totals.cli_lost(self._journal.clock())

    def _end_as_stored(self, prompt: SentPrompt) -> TurnResult:
        """Settle a prompt that an earlier CLI has processed, as that CLI has written it down."""
        lines = self._transcript()
        uuids = _uuids_of(prompt, lines)
        ending = ending_of(lines, *uuids) if prompt.expects_answer else "answered"
        outcome: Outcome = "completed"
        cause: SteersmanError | None = None
        if ending == "interrupted":
            outcome = "interrupted"
        elif ending == "failed":
            outcome, cause = "failed", TurnStopped("failed", failure_of(lines, *uuids))
        elif ending == "unfinished":
            lost = "the CLI exited in the middle of this turn, and cannot continue it"
            outcome, cause = "failed", CliExited(lost)
        return self._settle(prompt, outcome, cause, "completed", has_result=False)

    def _end_by(self, prompt: SentPrompt, result: Result) -> TurnResult:
        """Settle a prompt with the result that names it."""
        outcome = outcome_of(result, was_interrupted=prompt.was_interrupted)
        if prompt.cause is not None:
            outcome = "failed"
        elif self.is_parking and was_deferred(result):
            return self._settle(prompt, "parked", None, prompt.delivery, has_result=True)
        cause = prompt.cause or ended_by_hook(result, prompt.stop_reason)
        delivery = _delivery_of(prompt, result)
        return self._settle(prompt, outcome, cause, delivery, has_result=True)

    def _end(
        self, prompt: SentPrompt, cause: SteersmanError | None, *, cancelled: bool
    ) -> TurnResult:
        """Settle a prompt that no result names."""
        outcome: Outcome = "failed" if cause is not None else "completed"
        if cancelled:
            outcome = "interrupted" if prompt.was_interrupted else "cancelled"
        was_processed = prompt.has_begun or not cancelled
        delivery: Delivery = "completed" if was_processed else "cancelled"
        return self._settle(prompt, outcome, cause, delivery, has_result=False)

    def _settle(
        self,
        prompt: SentPrompt,
        outcome: Outcome,
        cause: SteersmanError | None,
        delivery: Delivery,
        *,
        has_result: bool,
    ) -> TurnResult:
        text = self._streamed(prompt) if prompt.is_broken or not has_result else None
        found = self._stored_text(prompt, outcome) if text == "" else ""
        self._was_stopped = outcome == "interrupted"
        if not has_result and (self._link is None or self._link.is_closing):
            self._count_unreported()
        # As the entry will have it, so that a replay of the journal has the same duration.
        at = max(self._journal.clock(), self._journal.journal.last_at)
        result = self.totals.settle(
            prompt.uuid,
            at,
            outcome,
            has_result=has_result,
            cause=cause,
            text=found or text,
            waits_for=prompt.waits_for if outcome == "parked" else (),
        )
        details = _settled_details(result, found, has_result=has_result)
        self._journal.append(at, Kind.SETTLED, turns=(prompt.uuid,), details=details)
        self._journal.wake()
        # Without the lease nothing is decided: the next owner continues the turn.
        self._on_settled(prompt.uuid, "parked" if isinstance(cause, LeaseLost) else outcome)
        prompt.settle(result, delivery)
        self.last_result = result
        return result

    def _stored_text(self, prompt: SentPrompt, outcome: Outcome) -> str:
        """Return the answer in the CLI's own file to a prompt of which nothing was streamed."""
        may_be_stored = outcome == "completed" or prompt.may_be_processed
        if not (may_be_stored and prompt.expects_answer):
            return ""
        lines = self._transcript()
        return answer_to(lines, *_uuids_of(prompt, lines))

    def _count_unreported(self) -> None:
        """Count the tokens of messages that the CLI has sent since its last result."""
        journal, since = self._journal.journal, self.totals.counted_upto
        entries = journal.after(since, most=journal.last_seq)
        is_whole = not journal.lost_after(max(since, journal.began_after))
        for uuid, tokens in unreported_in(entries, is_whole=is_whole).items():
            self.totals.add_unreported(uuid, tokens)
        self.totals.counted_upto = journal.last_seq

    def _streamed(self, prompt: SentPrompt) -> str | None:
        """Return what `turn.text()` yields, which includes a stream that broke off."""
        journal = self._journal.journal
        if journal.lost_after(prompt.begins_after):
            return None
        stream = TextStream()
        entries = journal.after(prompt.begins_after, most=journal.last_seq)
        return "".join(stream.feed(entry) for entry in entries if prompt.uuid in entry.turns)

    def _stop_login_retries(self, entry: Entry, retry: ApiRetry) -> None:
        if retry.error != "authentication_failed" or retry.attempt < AUTHENTICATION_TRIES:
            return
        prompts = [prompt for prompt in self._prompts_of(entry) if prompt.cause is None]
        for prompt in prompts:
            prompt.cause = NotLoggedIn(
                f"the API refused the credential (HTTP {retry.error_status})",
                hint="log in with `claude`, or set a valid ANTHROPIC_API_KEY; if user settings"
                ' hold the key helper, pass setting_sources=("user",)',
            )
        if prompts and self._link is not None and self._link.is_open:
            self._link.notify(Interrupt(), self._request_timeout)

    def _prompts_of(self, entry: Entry) -> list[SentPrompt]:
        return [self._sent[uuid] for uuid in entry.turns if uuid in self._sent]


def continuations(uuid: str) -> Iterator[str]:
    """Yield the uuids under which the prompt is continued: the same ones in every process."""
    for number in itertools.count(1):
        yield uuid_of(uuid, f"continuation {number}")


def _settled_details(result: TurnResult, found: str, *, has_result: bool) -> JsonDict:
    """Return the details of a `settled` entry. `found` is what was read in the CLI's own file."""
    reported = result.cause
    details: JsonDict = {
        "outcome": result.outcome,
        "has_result": has_result,
        "cause": "" if reported is None else reported.code,
        "reason": "" if reported is None else reported.what,
    }
    if found:
        details["text"] = found
    if result.model_usage:
        details["cost_usd"] = result.cost_usd
        details["model_usage"] = {
            model: {name: each for name, each in msgspec.to_builtins(usage).items() if each}
            for model, usage in result.model_usage.items()
        }
    if result.unreported:
        details["unreported"] = result.unreported.to_details()
    if result.waits_for:
        details["waits_for"] = list(result.waits_for)
    return details


def _uuids_of(prompt: SentPrompt, lines: Sequence[bytes]) -> list[str]:
    """Return the uuids of a prompt and of its continuations, also those of other processes."""
    stored = itertools.takewhile(lambda each: has_prompt(lines, each), continuations(prompt.uuid))
    return list(dict.fromkeys((prompt.uuid, *prompt.aliases, *stored)))


def _delivery_of(prompt: SentPrompt, result: Result) -> Delivery:
    """Return `folded` for a prompt that shares its result with an earlier one."""
    named = result.user_message_uuids or [prompt.uuid]
    return "completed" if prompt.uuid == named[0] else "folded"
