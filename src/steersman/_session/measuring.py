"""Limits of our own: what turns and the session have used, and what happens when it is too much."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field

from steersman._session.life import Living
from steersman._session.stopping import stop
from steersman.control import Answer, GetUsage, UsageReport
from steersman.errors import LimitReached
from steersman.journal import Entry, Kind
from steersman.messages import Assistant, Result, ToolUseBlock, Usage
from steersman.options import Caps, Limits

__all__ = ["Meter"]

PATIENCE = 10.0
"""Seconds that the CLI may take to obey an interrupt."""


@dataclass(slots=True)
class _Used:
    """What was used so far, in the words of `Caps`."""

    usd: float = 0.0
    tokens: float = 0
    turns: float = 0
    tool_calls: float = 0
    seconds: float = 0.0
    warned: set[str] = field(default_factory=set[str])


class Meter:
    """Counts, warns and stops. Costs nothing where nothing is limited."""

    def __init__(self, limits: Limits, living: Living) -> None:
        self._limits = limits
        self._living = living
        self._is_on = not (limits.turn.is_empty and limits.session.is_empty)
        self._session = _Used()
        self._turn = _Used()
        self._reached: LimitReached | None = None
        self._seen: dict[str, float] = {}
        self._cost_before_turn = 0.0
        self._since: float | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._stopping: asyncio.Task[None] | None = None

    def refuse_more(self) -> None:
        """Raise `LimitReached` if the session may not go on."""
        if self._reached is not None and self._reached.scope == "session":
            raise self._reached

    # Time

    def began(self, _uuid: str) -> None:
        """A prompt of ours is at work."""
        if self._is_on and self._since is None:
            self._turn = _Used()
            self._cost_before_turn = self._session.usd
            self.resume()

    def settled(self, _uuid: str) -> None:
        """A prompt is done with; the last one stops the clock."""
        if len(self._living.ledger.written) <= 1:
            self.pause()

    def pause(self) -> None:
        """Let the clock stand still."""
        self._count_time()
        self._since = None
        self._cancel_alarm()

    def resume(self) -> None:
        """Let the clock run while something is at work."""
        if self._is_on and self._living.ledger.at_work is not None:
            self._since = asyncio.get_running_loop().time()
            self._set_alarm()

    def rest(self) -> None:
        """Nothing is measured any more."""
        self._cancel_alarm()

    def _cancel_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _count_time(self) -> None:
        if self._since is not None:
            now = asyncio.get_running_loop().time()
            self._turn.seconds += now - self._since
            self._session.seconds += now - self._since
            self._since = now

    def _set_alarm(self) -> None:
        """Look again when the next mark on the clock is reached: a warning or a limit."""
        marks = [
            mark - used.seconds
            for used, caps in self._pairs()
            if caps.seconds is not None
            for mark in (caps.seconds * self._limits.warn_at, caps.seconds)
            if mark > used.seconds
        ]
        if marks:
            loop = asyncio.get_running_loop()
            self._alarm = loop.call_later(min(marks), self._tick)

    def _tick(self) -> None:
        self._alarm = None
        self._count_time()
        self._check()
        if self._since is not None:
            self._set_alarm()

    # Use

    def hear(self, entry: Entry, name: str) -> None:
        """Count what a message tells of."""
        if not self._is_on or name not in ("assistant", "result"):
            return
        message = entry.message
        if isinstance(message, Assistant):
            self._count(message)
            self._ask_for_cost()
        elif isinstance(message, Result):
            self._add_cost(self._living.ledger.accounts.cost_usd)
            self._add_tokens(_tokens(message.usage) - self._turn.tokens)
        self._check()

    def _count(self, message: Assistant) -> None:
        """Count a message, of which each block comes as a frame of its own, with the same id."""
        calls = sum(isinstance(block, ToolUseBlock) for block in message.content)
        identity = message.message.id
        tokens = _tokens(message.message.usage)
        more = max(0.0, tokens - self._seen.get(identity, 0.0))
        is_new = identity not in self._seen
        self._seen[identity] = max(tokens, self._seen.get(identity, 0.0))
        self._add_tokens(more)
        for used in (self._turn, self._session):
            used.tool_calls += calls
            used.turns += is_new

    def _add_tokens(self, more: float) -> None:
        """What the frames of a message tell is not final: its result may tell of more."""
        for used in (self._turn, self._session):
            used.tokens += max(0.0, more)

    def _ask_for_cost(self) -> None:
        """The CLI tells the cost only at the end of a turn, unless it is asked."""
        life = self._living.life
        if life is None or not life.link.is_open or not any(c.usd for _, c in self._pairs()):
            return
        request_id, answer = life.link.post(GetUsage(skip_behaviors=True), PATIENCE)

        def heard(told: asyncio.Future[Answer]) -> None:
            life.link.forget(request_id)
            if not told.cancelled() and told.exception() is None:
                report = told.result()
                if isinstance(report, UsageReport):
                    self._add_cost(report.session.total_cost_usd)
                    self._check()

        answer.add_done_callback(heard)

    def _add_cost(self, total: float) -> None:
        self._session.usd = max(self._session.usd, total)
        self._turn.usd = self._session.usd - self._cost_before_turn

    # Too much

    def _pairs(self) -> Iterator[tuple[_Used, Caps]]:
        yield self._turn, self._limits.turn
        yield self._session, self._limits.session

    def _check(self) -> None:
        for (used, caps), scope in zip(self._pairs(), ("turn", "session"), strict=True):
            for each in dataclasses.fields(caps):
                limit, figure = getattr(caps, each.name), getattr(used, each.name)
                if limit is not None:
                    self._compare(scope, each.name, used, figure, limit)

    def _compare(self, scope: str, name: str, used: _Used, figure: float, limit: float) -> None:
        if figure >= limit and f"{name}!" not in used.warned:
            used.warned |= {name, f"{name}!"}
            self._note(scope, name, figure, limit, is_reached=True)
            self._stop(LimitReached(scope, name, figure, limit))
        elif figure >= limit * self._limits.warn_at and name not in used.warned:
            used.warned.add(name)
            self._note(scope, name, figure, limit, is_reached=False)

    def _note(
        self, scope: str, name: str, figure: float, limit: float, *, is_reached: bool
    ) -> None:
        self._living.log.note(
            Kind.LIMIT, scope=scope, name=name, used=figure, limit=limit, is_reached=is_reached
        )

    def _stop(self, why: LimitReached) -> None:
        self._reached = why
        turns = [turn for turn in self._living.ledger.written if not turn.is_settled]
        if self._limits.is_hard:
            for turn in turns:
                turn.cause = turn.cause or why
            self._living.kill(why)
        elif turns:
            stopping = stop(self._living, turns, why, PATIENCE)
            self._stopping = asyncio.get_running_loop().create_task(stopping)


def _tokens(usage: Usage) -> float:
    return usage.input_tokens + usage.output_tokens + (usage.cache_creation_input_tokens or 0)
