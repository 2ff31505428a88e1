"""`Governor`: when a fleet begins no further turn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from steersman.fleet.memory import free_memory
from steersman.options import checks


@dataclass(frozen=True, slots=True, kw_only=True)
class Governor:
    """Holds turns back while memory or the rate limit of the API does not allow more."""

    memory_free: int = 256 << 20
    """Bytes that must be free before a CLI is started. 0 is no limit.

    With less, sessions that are not in use are closed, one at a time.
    """
    cli_memory: int = 190 << 20
    """Bytes that a CLI takes. They are counted while it starts, before it has taken them."""
    quiet: float = 10.0
    """Seconds without a 429 or 529 after which one turn more may run at once."""
    read_memory: Callable[[], int | None] = free_memory
    """Returns the free bytes: of the control group (version 2 or 1) or the machine. None if they
    are not known; then nothing is held.
    """

    def __post_init__(self) -> None:
        checks.whole("governor.memory_free", self.memory_free)
        checks.whole("governor.cli_memory", self.cli_memory)
        checks.positive("governor.quiet", self.quiet)
        checks.callable_("governor.read_memory", self.read_memory)
