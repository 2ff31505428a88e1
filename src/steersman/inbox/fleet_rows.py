"""The port to the rows of a fleet: who works, and what budgets have left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

__all__ = ["FleetRows", "Reserved", "StoredBudget", "WorkerRow"]

Reserved = Literal["reserved", "wait", "out", "unknown"]
"""`wait`: what others have reserved may come back. `out`: nothing is left for this turn."""


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A worker as it is stored."""

    worker: str
    """The name: machine, pid and random."""
    machine: str
    pid: int
    slots: int
    agents: tuple[str, ...] = ()
    state: str = "working"
    """`working`, `draining`, or `asked` to drain."""
    started: float = 0.0
    left: float = 0.0
    """Seconds until its lease ends; it is dead if this is below 0."""
    faults: tuple[str, ...] = ()
    """The background tasks of it that fail now, each with its error."""

    @property
    def is_alive(self) -> bool:
        """Whether its lease is valid."""
        return self.left > 0


@dataclass(frozen=True, slots=True)
class StoredBudget:
    """What a budget has left in this period."""

    name: str
    usd: float
    per: str
    spent: float = 0.0
    reserved: float = 0.0


class FleetRows(Protocol):
    """Rows of workers and budgets. The time is that of the database."""

    async def join(self, worker: WorkerRow, seconds: float) -> None:
        """Add a worker, with a lease for `seconds`."""
        ...

    async def renew(self, worker: str, seconds: float, faults: Sequence[str] = ()) -> str | None:
        """Have the lease for `seconds` from now on, and store what fails in the worker.

        Returns the state; None if the lease is lost.
        """
        ...

    async def set_state(self, worker: str | None, state: str) -> int:
        """Set the state of a worker that is alive, or of all; returns of how many."""
        ...

    async def leave(self, worker: str) -> None:
        """Remove a worker."""
        ...

    async def workers(self) -> Sequence[WorkerRow]:
        """Return all workers, also those whose lease has ended."""
        ...

    async def define(self, name: str, usd: float, per: str) -> None:
        """Add a budget, or change one; what it has spent stays."""
        ...

    async def budgets(self) -> Sequence[StoredBudget]:
        """Return what each budget has left in this period."""
        ...

    async def reserve(self, name: str, job: str, usd: float | None) -> Reserved:
        """Reserve for a turn; without `usd`, the mean of past turns. A job reserves once."""
        ...

    async def settle(self, job: str, cost: float) -> bool:
        """Replace what a job has reserved by what it has cost. Returns False the second time."""
        ...
