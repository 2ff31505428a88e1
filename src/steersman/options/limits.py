"""How long things may take, how much they may use, and how often a CLI is brought back."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

from steersman.errors import UsageError
from steersman.options import checks

__all__ = ["Caps", "Limits", "Revival", "StartupLimits", "Watchdog"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StartupLimits:
    """How long each phase of a start may take, in seconds."""

    spawn: float = 20.0
    """Until the process runs."""
    first_byte: float = 60.0
    """From there until it says anything."""
    initialize: float = 60.0
    """From there until it has answered the handshake."""
    servers: float = 90.0
    """From there until every tool server in `require` is connected."""

    def __post_init__(self) -> None:
        _check_each("startup", self, checks.positive)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watchdog:
    """Seconds of silence that are borne in each phase of a turn; `None` is for ever.

    Nothing is timed while the CLI waits for us: for a person, a hook or a tool of ours. A CLI whose
    own tool runs gives a sign of life every half minute, so silence is a fault there too.
    """

    first_token: float | None = 600.0
    """Until the model says something."""
    between_events: float | None = 300.0
    """Within what it says."""
    tool: float | None = 300.0
    """While a tool of the CLI's runs."""
    retry: float | None = 120.0
    """Beyond the wait that the CLI announced before it tries the API again."""
    interrupt: float = 10.0
    """How long the CLI may take to obey an interrupt, before it is killed."""

    def __post_init__(self) -> None:
        _check_each("watchdog", self, checks.optional(checks.positive))
        checks.positive("watchdog.interrupt", self.interrupt)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """How much may be used; `None` is without limit."""

    usd: float | None = None
    tokens: int | None = None
    """Tokens in and out, those read from the cache not counted."""
    turns: int | None = None
    """Round trips to the model."""
    tool_calls: int | None = None
    seconds: float | None = None
    """Of work; pauses do not count."""

    def __post_init__(self) -> None:
        _check_each("limits", self, checks.optional(checks.positive))

    @property
    def is_empty(self) -> bool:
        """Whether nothing is limited."""
        return all(getattr(self, each.name) is None for each in dataclasses.fields(self))


_is_caps = checks.instance_of(Caps, "a Caps value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of our own, beside the CLI's. A turn that reaches one is stopped, and says so."""

    turn: Caps = field(default_factory=Caps)
    """For each turn."""
    session: Caps = field(default_factory=Caps)
    """For all of them together; once reached, no more prompts are taken."""
    warn_at: float = 0.8
    """The part of a limit at which the journal gets a warning."""
    is_hard: bool = False
    """Kill the CLI at once instead of interrupting the turn; that ends the session."""

    def __post_init__(self) -> None:
        for name in ("turn", "session"):
            _is_caps(f"limits.{name}", getattr(self, name))
        checks.positive("limits.warn_at", self.warn_at)
        if self.warn_at > 1:
            raise UsageError("limits.warn_at", self.warn_at, "a part, above 0 and up to 1")
        checks.flag("limits.is_hard", self.is_hard)


@dataclass(frozen=True, slots=True, kw_only=True)
class Revival:
    """How often, and how patiently, a lost CLI is replaced."""

    most: int = 3
    """New CLIs in a row, without a turn that completed, or a while that went well, between them."""
    backoff: float = 0.5
    """Seconds before the second attempt; doubled for each one after it."""
    well_after: float = 60.0
    """Seconds after which a CLI that lived so long counts as well: the row begins anew."""

    def __post_init__(self) -> None:
        checks.count("revive.most", self.most)
        checks.not_negative("revive.backoff", self.backoff)
        checks.positive("revive.well_after", self.well_after)


def _check_each(option: str, limits: object, check: checks.Check) -> None:
    for each in dataclasses.fields(limits):  # type: ignore[arg-type]
        check(f"{option}.{each.name}", getattr(limits, each.name))
