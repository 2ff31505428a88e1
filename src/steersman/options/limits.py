"""How long a start may take."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from steersman.options import checks

__all__ = ["StartupLimits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StartupLimits:
    """How long each phase of a start may take, in seconds."""

    spawn: float = 20.0
    """Until the process runs."""
    first_byte: float = 60.0
    """From there until it says anything."""
    initialize: float = 60.0
    """From there until it has answered the handshake."""
    servers: float = 90.0
    """From there until every tool server in `require` is connected."""

    def __post_init__(self) -> None:
        for each in dataclasses.fields(self):
            checks.positive(f"startup.{each.name}", getattr(self, each.name))
