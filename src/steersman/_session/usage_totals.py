"""What a session has used, computed from the CLI's own totals.

The CLI reports its totals with each result and as the answer to `get_usage`. In a resumed
conversation they include its past; `/clear` resets them; and the cost of an interrupted turn may be
added after its result. So only the difference between two totals is used, never a total alone.
"""

from __future__ import annotations

from dataclasses import dataclass


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
