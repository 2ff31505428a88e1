"""What is decided when a CLI is lost. Pure: the lifecycle carries it out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from steersman._session.turn import SentPrompt
from steersman.options import Revival
from steersman.transcripts import has_prompt, was_folded

__all__ = ["Handover", "RestartBudget", "plan_handover"]


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

    def lost(self, now: float) -> None:
        """A CLI is lost; one that ran long enough before that clears the count."""
        if now - self._running_since > self._limits.well_after:
            self.attempts = 0

    def next_pause(self) -> float:
        """Use one restart; gives the seconds to wait before it."""
        self.attempts += 1
        return self._limits.backoff * 2 ** (self.attempts - 2) if self.attempts > 1 else 0.0

    def restarted(self, now: float) -> None:
        """A new CLI runs since `now`."""
        self._running_since = now

    def clear(self) -> None:
        """A turn completed: the count starts anew."""
        self.attempts = 0


@dataclass(frozen=True, slots=True)
class Handover:
    """Each prompt that was written and has not settled, by what is to be done about it."""

    resent: list[SentPrompt] = field(default_factory=list[SentPrompt])
    """Sent to the next CLI, which drops those that it knows to be done."""
    joined: list[SentPrompt] = field(default_factory=list[SentPrompt])
    """Part of a turn that the next CLI continues: it would run them a second time."""
    lost: list[SentPrompt] = field(default_factory=list[SentPrompt])
    """Begun, and the next CLI cannot continue them."""

    @property
    def resumed(self) -> list[SentPrompt]:
        """Those whose turn continues without a new prompt, the first of them first."""
        begun = [turn for turn in self.resent if turn.has_begun]
        return [*begun[:1], *self.joined]


def plan_handover(
    turns: Sequence[SentPrompt], lines: Sequence[bytes], *, is_new: bool, is_modern: bool
) -> Handover:
    """Decide by what we know of each turn, and by the `lines` of the lost CLI's transcript.

    A new conversation knows none of them. A CLI that is not modern runs nothing again.
    """
    told = Handover()
    for turn in turns:
        if is_new:
            told.resent.append(turn)
        elif not is_modern:
            is_begun = turn.has_begun or has_prompt(lines, turn.uuid)
            (told.lost if is_begun else told.resent).append(turn)
        else:
            is_folded = told.resumed and (turn.has_begun or was_folded(lines, turn.uuid))
            (told.joined if is_folded else told.resent).append(turn)
    return told
