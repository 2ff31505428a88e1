"""What becomes of an ask, and what happens in an inbox."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from steersman.errors import AlreadyAnswered, AskError, AskGone
from steersman.permissions import Ask

__all__ = ["AskOutcome", "Change"]


@dataclass(frozen=True, slots=True)
class AskOutcome:
    """How an ask ended: answered, expired, or gone with its session."""

    ask_id: str
    how: Literal["answered", "expired", "closed"]
    by: str = ""
    """Who answered, or why nobody did."""
    answer: Any = None

    def error(self) -> AskError:
        """What somebody is told who answers after this."""
        if self.how == "answered":
            return AlreadyAnswered(self.ask_id, self.by, self.answer)
        if self.how == "expired":
            return AskGone(self.ask_id, f"it has expired, and was denied by {self.by}")
        return AskGone(self.ask_id, f"nobody waits for it any more: {self.by}")


@dataclass(frozen=True, slots=True)
class Change:
    """Something happened in an inbox."""

    what: Literal["opened", "delegated", "answered", "expired", "closed"]
    ask: Ask
    outcome: AskOutcome | None = None
