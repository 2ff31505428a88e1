"""The workers and budgets of a store, for any event loop: done in the thread of its asks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from steersman.inbox.fleet_rows import FleetRows, Reserved, StoredBudget, WorkerRow

if TYPE_CHECKING:
    from steersman.inbox.keeper import AskKeeper

__all__ = ["StoredFleet"]

T = TypeVar("T")


class StoredFleet:
    """The port `FleetRows` over the thread of a store."""

    def __init__(self, keeper: AskKeeper) -> None:
        self._keeper = keeper

    async def join(self, worker: WorkerRow, seconds: float) -> None:
        """Add a worker, with a lease for `seconds`."""
        await self._call(lambda rows: rows.join(worker, seconds))

    async def renew(self, worker: str, seconds: float, faults: Sequence[str] = ()) -> str | None:
        """Have the lease for `seconds` from now on, and store what fails in the worker.

        Returns the state; None if the lease is lost.
        """
        return await self._call(lambda rows: rows.renew(worker, seconds, faults))

    async def set_state(self, worker: str | None, state: str) -> int:
        """Set the state of a worker that is alive, or of all; returns of how many."""
        return await self._call(lambda rows: rows.set_state(worker, state))

    async def leave(self, worker: str) -> None:
        """Remove a worker."""
        await self._call(lambda rows: rows.leave(worker))

    async def workers(self) -> Sequence[WorkerRow]:
        """Return all workers, also those whose lease has ended."""
        return await self._call(lambda rows: rows.workers())

    async def define(self, name: str, usd: float, per: str) -> None:
        """Add a budget, or change one; what it has spent stays."""
        await self._call(lambda rows: rows.define(name, usd, per))

    async def budgets(self) -> Sequence[StoredBudget]:
        """Return what each budget has left in this period."""
        return await self._call(lambda rows: rows.budgets())

    async def reserve(self, name: str, job: str, usd: float | None) -> Reserved:
        """Reserve for a turn; a job reserves once."""
        return await self._call(lambda rows: rows.reserve(name, job, usd))

    async def settle(self, job: str, cost: float) -> bool:
        """Replace what a job has reserved by what it has cost."""
        return await self._call(lambda rows: rows.settle(job, cost))

    async def _call(self, call: Callable[[FleetRows], Awaitable[T]]) -> T:
        return await self._keeper.call(lambda rows: call(rows.fleet))
