"""The prompts that a session has sent: turns by uuid, and the prompt after each checkpoint."""

from __future__ import annotations

from steersman._session.turn import Turn
from steersman.errors import UsageError

__all__ = ["KnownTurns", "PromptCount"]

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


class PromptCount:
    """Counts prompts. Keeps the uuids only of those that were the first after a checkpoint."""

    def __init__(self) -> None:
        self._count = 0
        self._after: dict[int, str | None] = {}
        """The first prompt after each checkpoint, by the count at the checkpoint."""

    def sent(self, uuid: str) -> None:
        """Count a prompt."""
        if self._count in self._after and self._after[self._count] is None:
            self._after[self._count] = uuid
        self._count += 1

    def checkpoint(self) -> int:
        """Return the count, and keep the prompt that is sent next."""
        self._after.setdefault(self._count)
        return self._count

    def first_after(self, checkpoint: int) -> str | None:
        """Return the first prompt after a checkpoint of this session; `None` if there is none."""
        return self._after.get(checkpoint)

    def rewind(self, checkpoint: int) -> None:
        """Forget what was sent after a checkpoint."""
        kept = {count: uuid for count, uuid in self._after.items() if count < checkpoint}
        self._after = {**kept, checkpoint: None}
        self._count = checkpoint
