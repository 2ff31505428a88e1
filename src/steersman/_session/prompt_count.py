"""How many prompts a session has sent, and which one followed each checkpoint."""

from __future__ import annotations

__all__ = ["PromptCount"]


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
