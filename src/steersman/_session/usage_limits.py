"""Enforces `Options.limits`: counts what turns and the session use, warns, and stops.

Model responses and tool calls are counted as they arrive. Money and tokens are the CLI's own
figures: it reports them with each result, and during a turn they are requested with `get_usage`.
In a resumed conversation its totals include the past; `/clear` resets them; and the cost of an
interrupted turn may be added after its result. So only the difference between two totals is used,
never a total alone.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from steersman._json import JsonObject
from steersman._session.cli import CliSlot, RunningCli
from steersman._session.journal_writer import JournalWriter
from steersman._session.prompt_queue import PromptQueue
from steersman._session.turn import SentPrompt
from steersman.control.context import GetUsage, UsageReport
from steersman.control.verbs import Answer
from steersman.errors import LimitReached
from steersman.journal import Entry, Kind
from steersman.journal.ends import outcome_of
from steersman.messages.content import ToolUseBlock
from steersman.messages.turns import Assistant, Result
from steersman.messages.usage import ModelUsage, Usage
from steersman.options import Budget, Caps, Limits

PATIENCE = 10.0
"""Seconds for the CLI to obey an interrupt, or to answer `get_usage`."""

RETRY_AFTER = 0.5
"""Seconds until the next check, if a time limit is reached while the CLI is restarted."""

COUNTED = frozenset({"turns", "tool_calls"})
"""Figures that may be equal to their limit; only a greater one is too much."""


@dataclass(slots=True)
class _Used:
    """What was used so far; the fields are those of `Caps`."""

    usd: float = 0.0
    tokens: float = 0
    turns: float = 0
    tool_calls: float = 0
    seconds: float = 0.0
    reported: set[str] = field(default_factory=set[str])
    """Names whose warning was recorded, and `name!` for limits whose reaching was recorded."""


class UsageLimiter:
    """Counts usage, records warnings, and stops turns. Does nothing if nothing is limited."""

    def __init__(
        self,
        limits: Limits,
        budget: Budget | None,
        slot: CliSlot,
        prompts: PromptQueue,
        log: JournalWriter,
    ) -> None:
        self._limits = limits
        self._budget = budget
        self._shared = _Used()
        """What all sessions of the budget have used."""
        self._account = object()
        """The name of this session in the budget, which must not keep the session alive."""
        self._slot = slot
        self._prompts = prompts
        self._log = log
        self.is_on = budget is not None or not (limits.turn.is_empty and limits.session.is_empty)
        """Whether anything is limited."""
        self._needs_reports = budget is not None or any(
            caps.usd or caps.tokens for caps in (limits.turn, limits.session)
        )
        self._session = _Used()
        self._turn = _Used()
        self._totals = UsageTotals()
        self._used_up: LimitReached | None = None
        self._message_ids: set[str] = set()
        self._is_running = False
        self._is_paused = False
        self._since: float | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._stopping: asyncio.Task[None] | None = None
        self._asked_cli: RunningCli | None = None
        """The CLI that has not answered `get_usage` yet."""
        self._requests_again = False
        """Whether a message has arrived since the request, so that its answer will be outdated."""
        self._results = 0

    def refuse_more(self) -> None:
        """Raise `LimitReached` if a limit of the session or its budget is reached."""
        self._copy_budget()
        for name, figure, limit in self._of_budget():
            if limit is not None and figure >= limit:
                raise LimitReached("budget", name, figure, limit)
        if self._used_up is not None:
            raise self._used_up

    def launched(self, *, is_fresh: bool) -> None:
        """Request the totals of a new CLI, before a prompt is written to it."""
        if self._needs_reports:
            self._asked_cli, self._requests_again = None, False
            self._totals.new_cli(is_fresh=is_fresh)
            self._request_report()

    def started(self, _uuid: str) -> None:
        """Start to count a turn, because a prompt was started."""
        if not self.is_on:
            return
        if not self._is_running:
            self._is_running = True
            self._turn = _Used()
            self._totals.new_turn()
            self._message_ids.clear()
            self._run_clock()
        self._request_report()

    def settled(self, _uuid: str) -> None:
        """Stop the clock if the last unsettled prompt settles."""
        if len(self._prompts.unsettled) <= 1:
            self._is_running = False
            self._stop_clock()

    # Time

    def pause(self) -> None:
        """Stop the clock while the session is paused."""
        self._is_paused = True
        self._stop_clock()

    def resume(self) -> None:
        """Start the clock again if a turn is in progress."""
        self._is_paused = False
        self._run_clock()

    def stop(self) -> None:
        """Cancel the timer."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _run_clock(self) -> None:
        if self._is_running and not self._is_paused and self._since is None:
            self._since = asyncio.get_running_loop().time()
            self._set_alarm()

    def _stop_clock(self) -> None:
        self._count_time()
        self._since = None
        self.stop()

    def _count_time(self) -> None:
        if self._since is not None:
            now = asyncio.get_running_loop().time()
            self._turn.seconds += now - self._since
            self._session.seconds += now - self._since
            self._since = now

    def _set_alarm(self) -> None:
        """Set the timer to the next warning or limit in seconds."""
        marks = [
            mark - used.seconds
            for used, caps, _ in self._each()
            if caps.seconds is not None
            for mark in (caps.seconds * self._limits.warn_at, caps.seconds)
            if mark > used.seconds
        ]
        if marks:
            loop = asyncio.get_running_loop()
            self._alarm = loop.call_later(min(marks), self._tick)

    def _tick(self) -> None:
        self._alarm = None
        cli = self._slot.running
        if cli is None or not cli.link.is_open:
            self._alarm = asyncio.get_running_loop().call_later(RETRY_AFTER, self._tick)
            return
        self._count_time()
        self._check()
        if self._since is not None:
            self._set_alarm()

    # Use

    def record(self, entry: Entry, name: str) -> None:
        """Count what a message uses."""
        if name not in ("assistant", "user", "result"):
            return
        message = entry.message
        if isinstance(message, Result):
            self._add_up(message)
            self._clear_cause(entry, message)
            # The turn has ended by itself, so there is nothing to stop.
            self._check(has_ended=True)
            return
        if isinstance(message, Assistant):
            self._totals.model_answered()
            self._count(message)
            self._check()
        self._request_report()

    def _count(self, message: Assistant) -> None:
        """Count a message. The CLI sends each content block as its own line, with the same id."""
        calls = sum(isinstance(block, ToolUseBlock) for block in message.content)
        is_new = message.message.id not in self._message_ids
        self._message_ids.add(message.message.id)
        for used in (self._turn, self._session):
            used.tool_calls += calls
            used.turns += is_new

    def _add_up(self, result: Result) -> None:
        self._results += 1
        totals = Spent(result.total_cost_usd or 0.0, _tokens(result.model_usage.values()))
        added = self._prompts.totals.uncharged
        self._totals.settle(totals, Spent(added.cost_usd, _tokens(added.model_usage.values())))
        self._copy_totals()

    def _clear_cause(self, entry: Entry, result: Result) -> None:
        """Remove the `LimitReached` of a turn that completed before it could be stopped."""
        if outcome_of(result) != "completed":
            return
        for turn in filter(None, map(self._prompts.find, entry.turns)):
            if isinstance(turn.cause, LimitReached):
                turn.cause = None

    def _copy_totals(self) -> None:
        """Copy money and tokens from the totals into the counted figures."""
        for used, amount in (
            (self._session, self._totals.session),
            (self._turn, self._totals.turn),
        ):
            used.usd, used.tokens = amount.usd, amount.tokens
        if self._budget is not None:
            self._budget.set_used(self._account, self._session.usd, self._session.tokens)
            self._copy_budget()

    def _copy_budget(self) -> None:
        if self._budget is not None:
            self._shared.usd = self._budget.used_usd
            self._shared.tokens = self._budget.used_tokens

    def _of_budget(self) -> Iterator[tuple[str, float, float | None]]:
        if self._budget is not None:
            yield "usd", self._shared.usd, self._budget.caps.usd
            yield "tokens", self._shared.tokens, self._budget.caps.tokens

    def _request_report(self) -> None:
        """Request the CLI's totals, which it does not report before the end of a turn.

        A message that arrives before the answer makes it outdated; then the request is repeated.
        """
        cli = self._slot.running
        if not self._needs_reports or cli is None or not cli.link.is_open:
            return
        if self._asked_cli is cli:
            self._requests_again = True
            return
        self._asked_cli, results = cli, self._results
        request_id, answer = cli.link.post(GetUsage(skip_behaviors=True), PATIENCE)

        def received(report: asyncio.Future[Answer]) -> None:
            cli.link.forget(request_id)
            if cli is not self._asked_cli:
                return
            again, self._asked_cli, self._requests_again = self._requests_again, None, False
            # If the CLI refuses, only results report totals. A result that arrived since the
            # request is newer than this answer.
            if not report.cancelled() and report.exception() is None and results == self._results:
                self._apply(report.result())
            if again and self._is_running:
                self._request_report()

        answer.add_done_callback(received)

    def _apply(self, report: Answer) -> None:
        if not isinstance(report, UsageReport):
            return
        models = report.session.model_usage.values()
        self._totals.update(
            Spent(report.session.total_cost_usd, sum(map(_reported_tokens, models)))
        )
        self._copy_totals()
        self._check()

    # Limits

    def _each(self) -> Iterator[tuple[_Used, Caps, str]]:
        yield self._turn, self._limits.turn, "turn"
        yield self._session, self._limits.session, "session"
        if self._budget is not None:
            yield self._shared, self._budget.caps, "budget"

    def _check(self, *, has_ended: bool = False) -> None:
        for used, caps, scope in self._each():
            for each in dataclasses.fields(caps):
                limit, figure = getattr(caps, each.name), getattr(used, each.name)
                if limit is None:
                    continue
                reached = LimitReached(scope, each.name, figure, limit)
                self._report(used, reached)
                is_too_much = figure > limit if each.name in COUNTED else figure >= limit
                if is_too_much and not has_ended:
                    self._stop(reached)

    def _report(self, used: _Used, reached: LimitReached) -> None:
        """Record once that a limit is near, and once that it is reached."""
        name, figure, limit = reached.name, reached.used, reached.limit
        is_reached = figure >= limit
        mark = f"{name}!" if is_reached else name
        if figure < limit * self._limits.warn_at or mark in used.reported:
            return
        used.reported |= {name, mark}
        self._log.note(
            Kind.LIMIT,
            scope=reached.scope,
            name=name,
            used=figure,
            limit=limit,
            is_reached=is_reached,
        )
        if is_reached and reached.scope != "turn":
            self._refuse_prompts(reached)

    def _refuse_prompts(self, why: LimitReached) -> None:
        """Accept no more prompts, and withdraw the queued ones."""
        self._used_up = self._used_up or why
        queue = self._prompts
        for prompt in filter(None, map(queue.find, queue.queued)):
            prompt.cause = why
        queue.withdraw_queued(None, also_others=True)

    def _stop(self, why: LimitReached) -> None:
        turns = [turn for turn in self._prompts.unsettled if turn.cause is None]
        for turn in turns:
            # Set at once, because the turn may settle before the CLI receives the interrupt.
            turn.cause = why
        if turns and self._limits.is_hard:
            self._slot.kill(why)
        elif turns:
            stopping = self._interrupt(turns, why)
            self._stopping = asyncio.Task(stopping)

    async def _interrupt(self, turns: list[SentPrompt], why: LimitReached) -> None:
        left = [turn for turn in turns if not turn.is_settled]
        if left:
            # If all have settled, an interrupt would stop the next prompt.
            await self._slot.stop_turns(left, why, PATIENCE)


def _tokens(usages: Iterable[Usage | ModelUsage]) -> float:
    return sum(
        each.input_tokens + each.output_tokens + (each.cache_creation_input_tokens or 0)
        for each in usages
    )


def _reported_tokens(model: JsonObject) -> float:
    names = ("inputTokens", "outputTokens", "cacheCreationInputTokens")
    figures = [model.get(name) for name in names]
    return sum(each for each in figures if isinstance(each, int | float))


@dataclass(frozen=True, slots=True)
class Spent:
    """Money and tokens."""

    usd: float = 0.0
    tokens: float = 0.0

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.usd + other.usd, self.tokens + other.tokens)

    def __sub__(self, other: Spent) -> Spent:
        return Spent(self.usd - other.usd, self.tokens - other.tokens)

    def covers(self, other: Spent) -> bool:
        """Whether both money and tokens are at least those of `other`."""
        return self.usd >= other.usd and self.tokens >= other.tokens


NOTHING = Spent()


class UsageTotals:
    """What the session and its current turn have used."""

    def __init__(self) -> None:
        self.session = NOTHING
        self._settled = NOTHING
        """The sum of what results have reported."""
        self._baseline: Spent | None = None
        """The CLI's totals where the unsettled use begins; None while they are unknown."""
        self._before_turn = NOTHING
        self._has_answered = False

    @property
    def turn(self) -> Spent:
        """What the current turn has used."""
        return self.session - self._before_turn

    def new_cli(self, *, is_fresh: bool) -> None:
        """Begin with another CLI; a fresh one counts from zero, others from unknown totals."""
        self._settled = self.session
        self._baseline = NOTHING if is_fresh else None

    def new_turn(self) -> None:
        """Begin another turn."""
        self._before_turn = self.session
        self._has_answered = False

    def model_answered(self) -> None:
        """Note that the model has answered in this turn; costs are reported after the answer."""
        self._has_answered = True

    def update(self, totals: Spent) -> None:
        """Apply the totals of a `get_usage` answer."""
        if self._baseline is None:
            self._baseline = totals
        if totals.covers(self._baseline):
            self.session = self._settled + (totals - self._baseline)
        if not self._has_answered:
            # The model has not answered in this turn, so this use belongs to earlier turns.
            self._before_turn = self.session

    def settle(self, totals: Spent, added_by_result: Spent) -> None:
        """Apply a result's totals; `added_by_result` counts if there are no earlier totals."""
        added = added_by_result
        if self._baseline is not None:
            # Totals that became smaller were reset.
            added = totals - self._baseline if totals.covers(self._baseline) else totals
        self._settled += added
        self._baseline = totals
        self.session = self._settled
