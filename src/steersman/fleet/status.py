"""What a fleet does at one moment, and how it was drained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from steersman.fleet.budgets import BudgetStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetStatus:
    """A fleet at one moment: its jobs, and what its slots are used for.

    `queued + held + running + parked + settled == sent`, and
    `working + warm + ready + starting + closing + free == slots`.
    """

    sent: int
    """Jobs since the fleet was opened."""
    queued: int
    """Jobs that wait for a slot, or for an earlier turn of their conversation."""
    held: int
    """Jobs that wait for memory, money or a rate limit; `holds` has the reasons."""
    running: int
    parked: int
    """Jobs that wait for the user, without a CLI."""
    settled: int
    slots: int
    working: int
    """Slots with a turn, also while its CLI starts. Prompts that join a turn have no own slot."""
    warm: int
    """Slots with a session whose turn has settled."""
    ready: int
    """Slots with a CLI for a conversation to come."""
    starting: int
    """Slots with a CLI that is being started for a conversation to come."""
    closing: int
    """Slots whose CLI is being ended."""
    free: int
    at_once: int
    """How many turns may run at once now: `slots`, or less after a rate limit."""
    is_draining: bool = False
    holds: Mapping[str, int] = field(default_factory=dict[str, int])
    """How many jobs wait for what, in words: `held: rate limit until 14:05`."""
    budgets: Mapping[str, BudgetStatus] = field(default_factory=dict[str, BudgetStatus])
    faults: Mapping[str, str] = field(default_factory=dict[str, str])
    """The background tasks of the fleet that fail now, with their errors; they are tried again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drained:
    """What became of the jobs of a fleet that was drained."""

    finished: int
    """Turns that settled before the timeout."""
    parked: int
    """Turns that were parked: the next fleet of the same store continues them."""
    stopped: int
    """Turns that were stopped, because their asks are in no store; sent again with their key they
    continue."""
    queued: int
    """Jobs that have not begun."""
