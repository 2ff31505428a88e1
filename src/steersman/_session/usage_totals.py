"""The bill: what this session has used by the CLI's own totals, whenever they come.

The CLI tells its totals with each result, and when it is asked. They go on from a conversation's
past, they start anew with `/clear`, and what an interrupted turn costs may be added after its
result. So nothing here trusts a total alone: each is set against the one before.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["NOTHING", "Spent", "UsageTotals"]


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
        """Whether it is at least as much of both."""
        return self.usd >= other.usd and self.tokens >= other.tokens


NOTHING = Spent()


class UsageTotals:
    """What the session has used, and what the turn at work has."""

    def __init__(self) -> None:
        self.session = NOTHING
        self._settled = NOTHING
        """What is told by results."""
        self._baseline: Spent | None = None
        """The CLI's totals where the unsettled use begins; None while nobody knows them."""
        self._before_turn = NOTHING
        self._has_answered = False

    @property
    def turn(self) -> Spent:
        """What the turn at work has used."""
        return self.session - self._before_turn

    def new_cli(self, *, is_fresh: bool) -> None:
        """Another CLI counts from here on: from zero, or from a past that it has yet to tell."""
        self._settled = self.session
        self._baseline = NOTHING if is_fresh else None

    def new_turn(self) -> None:
        """Another turn is at work."""
        self._before_turn = self.session
        self._has_answered = False

    def model_answered(self) -> None:
        """The model has answered in this turn; each cost comes behind the answer it is for."""
        self._has_answered = True

    def update(self, totals: Spent) -> None:
        """The CLI tells its totals, as it was asked to."""
        if self._baseline is None:
            self._baseline = totals
        if totals.covers(self._baseline):
            self.session = self._settled + (totals - self._baseline)
        if not self._has_answered:
            # Told before this turn could use anything: it is from those before.
            self._before_turn = self.session

    def settle(self, totals: Spent, added_by_result: Spent) -> None:
        """A result tells the totals; `told` is what it says was added, for want of a mark."""
        added = added_by_result
        if self._baseline is not None:
            # Totals that fell began anew.
            added = totals - self._baseline if totals.covers(self._baseline) else totals
        self._settled += added
        self._baseline = totals
        self.session = self._settled
