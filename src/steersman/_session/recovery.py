"""Restart budget, and what becomes of unsettled prompts when a CLI is lost. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from steersman._session.turn import SentPrompt
from steersman.options import Revival
from steersman.transcripts import has_prompt, was_folded


class RestartBudget:
    """How many restarts in a row are left, and how long to wait before each."""

    def __init__(self, limits: Revival) -> None:
        self.attempts = 0
        """Restarts since a turn last completed, or a CLI last ran long enough."""
        self._limits = limits
        self._running_since = 0.0

    @property
    def is_spent(self) -> bool:
        """Whether no further restart is allowed."""
        return self.attempts >= self._limits.most

    @property
    def per_turn(self) -> int:
        """How many restarts one turn may use."""
        return self._limits.per_turn

    def lost(self, now: float) -> None:
        """Handle the loss of a CLI; if it ran long enough, the count starts again."""
        if now - self._running_since > self._limits.well_after:
            self.attempts = 0

    def next_pause(self) -> float:
        """Use one restart; returns the seconds to wait before it."""
        self.attempts += 1
        return self._limits.backoff * 2 ** (self.attempts - 2) if self.attempts > 1 else 0.0

    def restarted(self, now: float) -> None:
        """Record that a new CLI runs since `now`."""
        self._running_since = now

    def clear(self) -> None:
        """Start the count again, after a turn that completed."""
        self.attempts = 0


@dataclass(frozen=True, slots=True)
class Handover:
    """The unsettled prompts, by what is done about each."""

    resent: list[SentPrompt] = field(default_factory=list[SentPrompt])
    """Sent to the next CLI, which drops those that it has already processed."""
    joined: list[SentPrompt] = field(default_factory=list[SentPrompt])
    """Part of a turn that the next CLI continues. Sent again, they would run twice."""
    lost: list[SentPrompt] = field(default_factory=list[SentPrompt])
    """Started by a CLI whose successor cannot continue them."""

    @property
    def resumed(self) -> list[SentPrompt]:
        """The prompts whose turn the next CLI continues by itself, in order."""
        begun = [turn for turn in self.resent if turn.has_begun]
        return [*begun[:1], *self.joined]


def plan_handover(
    turns: Sequence[SentPrompt], lines: Sequence[bytes], *, is_new: bool, is_modern: bool
) -> Handover:
    """Decide by the state of each prompt and by the `lines` of the lost CLI's session file.

    A new conversation contains none of them. A CLI that is not modern continues nothing.
    """
    plan = Handover()
    for turn in turns:
        if is_new:
            plan.resent.append(turn)
        elif not is_modern:
            is_begun = turn.has_begun or has_prompt(lines, turn.uuid)
            (plan.lost if is_begun else plan.resent).append(turn)
        else:
            is_folded = plan.resumed and (turn.has_begun or was_folded(lines, turn.uuid))
            (plan.joined if is_folded else plan.resent).append(turn)
    return plan
