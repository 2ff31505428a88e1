"""The turns of a session by uuid, for callers that only have the id of one."""

from __future__ import annotations

from steersman._session.turn import Turn
from steersman.errors import UsageError

__all__ = ["KnownTurns"]

MOST_SETTLED = 200


class KnownTurns:
    """All turns that have not settled, and the last ones that have, in the order of their prompts.

    Older turns are not kept, so that a session of many prompts does not grow with them.
    """

    def __init__(self, most_settled: int = MOST_SETTLED) -> None:
        self._most = most_settled
        self._turns: dict[str, Turn] = {}

    def add(self, turn: Turn) -> None:
        """Add a new turn, and drop the oldest settled ones if there are too many."""
        self._turns[turn.uuid] = turn
        if len(self._turns) > self._most:
            settled = [uuid for uuid, each in self._turns.items() if each.is_settled]
            for uuid in settled[: -self._most]:
                del self._turns[uuid]

    @property
    def all(self) -> tuple[Turn, ...]:
        """The turns that are known."""
        return tuple(self._turns.values())

    def find(self, uuid: str) -> Turn:
        """Return the turn with this uuid. Raises `UsageError` if it is not known."""
        found = self._turns.get(uuid)
        if found is None:
            raise UsageError("uuid", uuid, "the uuid of a turn in session.turns")
        return found
