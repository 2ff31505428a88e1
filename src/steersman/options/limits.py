"""Limits on time and use, and how often a lost CLI is restarted."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from steersman.errors import Described, UsageError
from steersman.options import checks


def _check_each(option: str, limits: object, check: checks.Check) -> None:
    for each in dataclasses.fields(limits):  # type: ignore[arg-type]
        check(f"{option}.{each.name}", getattr(limits, each.name))


@dataclass(frozen=True, slots=True, kw_only=True)
class StartupLimits:
    """How long each phase of a start may take, in seconds."""

    spawn: float = 20.0
    """Until the process runs."""
    first_byte: float = 60.0
    """From then until the CLI has written its first byte."""
    initialize: float = 60.0
    """From then until the CLI has answered the initialize request."""
    noise: float = 1.0
    """From the first output that is not JSON until the first line that is."""
    servers: float = 90.0
    """After the handshake, until every MCP server in `require` is connected."""

    def __post_init__(self) -> None:
        _check_each("startup", self, checks.positive)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watchdog:
    """How many seconds the CLI may be silent in each phase of a turn; `None` is no limit.

    The time in which the CLI waits for an answer of this program is not counted: for a permission,
    a hook or an in-process tool. While a tool of its own runs, the CLI sends a message every half
    minute, so silence is a fault then too.
    """

    first_token: float | None = 600.0
    """Until the first token of the model."""
    between_events: float | None = 300.0
    """Between two events of a message that the model is writing."""
    message: float | None = 1800.0
    """Until a whole message, in place of the two above if the CLI sends no partial messages."""
    tool: float | None = 300.0
    """While the CLI runs a tool of its own."""
    retry: float | None = 120.0
    """After the delay that the CLI announced before it calls the API again."""
    interrupt: float = 10.0
    """How long the CLI may take to react to an interrupt; after that it is killed."""

    def __post_init__(self) -> None:
        _check_each("watchdog", self, checks.optional(checks.positive))
        checks.positive("watchdog.interrupt", self.interrupt)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """Limits on what a turn or a session may use; `None` is no limit."""

    usd: float | None = None
    """Cost in US dollars."""
    tokens: int | None = None
    """Input and output tokens, without those that were read from the cache."""
    turns: int | None = None
    """Round trips to the model."""
    tool_calls: int | None = None
    """Calls of tools."""
    seconds: float | None = None
    """Time in which turns run; pauses are not counted."""

    def __post_init__(self) -> None:
        _check_each("limits", self, checks.optional(checks.positive))

    @property
    def is_empty(self) -> bool:
        """Whether there is no limit at all."""
        return all(getattr(self, each.name) is None for each in dataclasses.fields(self))

    def lowered(self, other: Caps) -> Caps:
        """Return the lower of both limits, for each."""
        found: dict[str, Any] = {}
        for each in dataclasses.fields(self):
            both = getattr(self, each.name), getattr(other, each.name)
            found[each.name] = min((one for one in both if one is not None), default=None)
        return Caps(**found)


_is_caps = checks.instance_of(Caps, "a Caps value")


class Budget:
    """Money or tokens that all sessions with this object may use together: `Agent(budget=...)`.

    Each session adds what it uses while its turns run. When nothing is left, running turns are
    interrupted and new prompts are refused, with `LimitReached`. Turns in progress may use more
    than is left. May be shared by agents and threads; lasts as long as the process.
    """

    def __init__(self, *, usd: float | None = None, tokens: int | None = None) -> None:
        self.caps = Caps(usd=usd, tokens=tokens)
        """The limits of the budget."""
        if self.caps.is_empty:
            raise UsageError("budget", Described("Budget()"), "usd= or tokens=")
        self._used: dict[object, tuple[float, float]] = {}

    def __repr__(self) -> str:
        return f"Budget(usd={self.caps.usd}, tokens={self.caps.tokens})"

    @property
    def used_usd(self) -> float:
        """The cost of all sessions so far, in US dollars."""
        return sum(usd for usd, _ in list(self._used.values()))

    @property
    def used_tokens(self) -> float:
        """The tokens of all sessions so far."""
        return sum(tokens for _, tokens in list(self._used.values()))

    def set_used(self, by: object, usd: float, tokens: float) -> None:
        """Replace what one session has used; called by the session."""
        self._used[by] = (usd, tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits that steersman enforces, beside the CLI's own.

    A turn that reaches one is interrupted, and its result has the outcome and the reason.
    """

    turn: Caps = Caps()
    """Limits for each turn."""
    session: Caps = Caps()
    """Limits for all turns together; after one is reached, prompts are refused."""
    warn_at: float = 0.8
    """The fraction of a limit at which the journal gets a warning."""
    is_hard: bool = False
    """Whether a limit kills the CLI, which ends the session, instead of interrupting the turn."""
    fleet_budget: str | None = None
    """The budget that each job of the agent uses in a fleet; a job cannot name another."""

    def __post_init__(self) -> None:
        for name in ("turn", "session"):
            _is_caps(f"limits.{name}", getattr(self, name))
        checks.positive("limits.warn_at", self.warn_at)
        if self.warn_at > 1:
            raise UsageError("limits.warn_at", self.warn_at, "a fraction, above 0 and at most 1")
        checks.flag("limits.is_hard", self.is_hard)
        checks.optional(checks.non_empty)("limits.fleet_budget", self.fleet_budget)

    def lowered(self, other: Limits) -> Limits:
        """Return these limits, each lowered to that of `other` where that is lower."""
        return Limits(
            turn=self.turn.lowered(other.turn),
            session=self.session.lowered(other.session),
            warn_at=min(self.warn_at, other.warn_at),
            is_hard=self.is_hard or other.is_hard,
            fleet_budget=self.fleet_budget,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Revival:
    """How often a lost CLI is restarted, and after which delays."""

    most: int = 3
    """The most restarts in a row. A completed turn, or `well_after` seconds, start a new row."""
    backoff: float = 0.5
    """Seconds before the second restart in a row; doubled before each further one."""
    well_after: float = 60.0
    """A CLI that has run for this many seconds is healthy: the restarts before it do not count."""
    per_turn: int = 10
    """The most restarts over one turn, however long each CLI has run. Then the turn fails."""

    def __post_init__(self) -> None:
        checks.count("revive.most", self.most)
        checks.not_negative("revive.backoff", self.backoff)
        checks.positive("revive.well_after", self.well_after)
        checks.count("revive.per_turn", self.per_turn)


@dataclass(frozen=True, slots=True, kw_only=True)
class Park:
    """When a session ends its CLI while asks wait, and continues later: `session.park()`."""

    after: float | None = None
    """Seconds of waiting for asks alone after which the session parks by itself; `None`: never."""
    grace: float = 5.0
    """How many seconds hooks and tools that run may take to finish; then they are lost."""
    lease: float = 30.0
    """Seconds after which others may continue the conversation of a process that was killed.

    The session renews its lease three times in that time, and ends if it cannot.
    """

    def __post_init__(self) -> None:
        checks.optional(checks.positive)("park.after", self.after)
        checks.not_negative("park.grace", self.grace)
        checks.positive("park.lease", self.lease)
