"""Tool calls of a session that is over, and what another policy would have made of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from steersman.permissions.rules import ToolCall

__all__ = ["RecordedCall", "WouldBe"]


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A call as a journal tells of it."""

    tool_use_id: str
    call: ToolCall
    ran: bool
    """Whether it was let through, however that came."""
    source: str = ""
    """Who decided: rule, callback, hook, cli, person; empty if nobody is on record."""
    by: str = ""


@dataclass(frozen=True, slots=True)
class WouldBe:
    """What a policy would have made of a recorded call."""

    recorded: RecordedCall
    verdict: Literal["allow", "deny", "ask", "cli"]
    rule: str
    changes: bool
    """Whether something else would have happened: `ask` counts if nobody was asked then."""


def compared(
    recorded: RecordedCall, found: tuple[Literal["allow", "deny", "ask", "cli"], str]
) -> WouldBe:
    """Hold what happened against what would have been decided."""
    verdict, rule = found
    was_asked = recorded.source in ("callback", "person")
    changes = {
        "allow": not recorded.ran or was_asked,
        "deny": recorded.ran,
        "ask": not was_asked,
        "cli": False,
    }[verdict]
    return WouldBe(recorded, verdict, rule, changes)
