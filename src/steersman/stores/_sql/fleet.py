"""The tables of a fleet: who works, and what budgets have left.

All writes of budgets take the next change number first, so they wait for each other, and what is
read before a write is still true when it is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from steersman.stores._sql.database import Database, Transaction, from_plain, to_plain

Reserved = Literal["reserved", "wait", "out", "unknown"]
"""`wait`: what others have reserved may come back. `out`: nothing is left for this turn."""

WORKERS = (
    "SELECT worker, machine, pid, slots, agents, state, started, lease_until - :lease,"
    " faults FROM steersman_workers ORDER BY started, worker"
)
JOIN = (
    "INSERT INTO steersman_workers (worker, machine, pid, slots, agents, state, started,"
    " lease_until) VALUES (?, ?, ?, ?, ?, ?, :now, :lease + ?) ON CONFLICT DO NOTHING"
)
RENEW = (
    "UPDATE steersman_workers SET lease_until = :lease + ?, faults = ?"
    " WHERE worker = ? AND lease_until > :lease"
)
LEASED = "SELECT state FROM steersman_workers WHERE worker = ? AND lease_until > :lease"
BUDGET = "SELECT usd, per, turns, cost FROM steersman_budgets WHERE name = ?"
SPENDING = "SELECT spent, reserved FROM steersman_spendings WHERE budget = ? AND period = ?"
BEGIN_PERIOD = (
    "INSERT INTO steersman_spendings (budget, period) VALUES (?, ?) ON CONFLICT DO NOTHING"
)


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


def period_of(per: str, now: float) -> str:
    """Return the name of the period that a time is in, such as `2026-11-16`; in UTC."""
    if per == "ever":
        return ""
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d" if per == "day" else "%Y-%m")


class FleetTable:
    """Workers and budgets of a store. The time is that of the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def join(self, worker: WorkerRow, seconds: float) -> None:
        """Add a worker, with a lease for `seconds`."""
        values = (
            *(to_plain(worker.worker), to_plain(worker.machine), worker.pid, worker.slots),
            *(to_plain("\n".join(worker.agents)), worker.state, seconds),
        )

        async def work(tx: Transaction) -> None:
            await tx.run(JOIN, *values)

        await self._database.write(work)

    async def renew(self, worker: str, seconds: float, faults: Sequence[str] = ()) -> str | None:
        """Have the lease for `seconds` from now on, and store what fails in the worker.

        Returns the state; None if the lease is lost.
        """
        said = to_plain("\n".join(each.replace("\n", " ") for each in faults))

        async def work(tx: Transaction) -> str | None:
            await tx.run(RENEW, seconds, said, to_plain(worker))
            found = await tx.run(LEASED, to_plain(worker))
            return found[0][0] if found else None

        return await self._database.write(work)

    async def set_state(self, worker: str | None, state: str) -> int:
        """Set the state of a worker that is alive, or of all; returns of how many."""

        async def work(tx: Transaction) -> int:
            await tx.next_change()
            rows = [_worker(each) for each in await tx.run(WORKERS)]
            named = [
                each.worker for each in rows if each.is_alive and worker in (None, each.worker)
            ]
            for each in named:
                await tx.run(
                    "UPDATE steersman_workers SET state = ? WHERE worker = ?",
                    *(state, to_plain(each)),
                )
            return len(named)

        return await self._database.write(work)

    async def leave(self, worker: str) -> None:
        """Remove a worker."""

        async def work(tx: Transaction) -> None:
            await tx.run("DELETE FROM steersman_workers WHERE worker = ?", to_plain(worker))

        await self._database.write(work)

    async def workers(self) -> Sequence[WorkerRow]:
        """Return all workers, also those whose lease has ended."""

        async def work(tx: Transaction) -> list[WorkerRow]:
            return [_worker(each) for each in await tx.run(WORKERS)]

        return await self._database.read(work)

    async def define(self, name: str, usd: float, per: str) -> None:
        """Add a budget, or change one; what it has spent stays."""

        async def work(tx: Transaction) -> None:
            await tx.next_change()
            await tx.run(
                "INSERT INTO steersman_budgets (name, usd, per) VALUES (?, ?, ?)"
                " ON CONFLICT (name) DO UPDATE SET usd = excluded.usd, per = excluded.per",
                *(to_plain(name), usd, per),
            )

        await self._database.write(work, is_vital=True)

    async def budgets(self) -> Sequence[StoredBudget]:
        """Return the budgets, with what is left of each in this period."""

        async def work(tx: Transaction) -> list[StoredBudget]:
            now = await _now(tx)
            found: list[StoredBudget] = []
            for name, usd, per in await tx.run(
                "SELECT name, usd, per FROM steersman_budgets ORDER BY name"
            ):
                used = await tx.run(SPENDING, name, period_of(per, now))
                spent, reserved = used[0] if used else (0.0, 0.0)
                found.append(StoredBudget(from_plain(name), usd, per, spent, reserved))
            return found

        return await self._database.read(work)

    async def reserve(self, name: str, job: str, usd: float | None) -> Reserved:
        """Reserve for a turn; without `usd`, the mean of past turns. A job reserves once."""

        async def work(tx: Transaction) -> Reserved:
            await tx.next_change()
            if await tx.run("SELECT 1 FROM steersman_reservations WHERE job = ?", job):
                return "reserved"
            known = await tx.run(BUDGET, to_plain(name))
            if not known:
                return "unknown"
            ((limit, per, turns, cost),) = known
            wanted = usd if usd is not None else (cost / turns if turns else 0.0)
            period = period_of(per, await _now(tx))
            await tx.run(BEGIN_PERIOD, to_plain(name), period)
            ((spent, reserved),) = await tx.run(SPENDING, to_plain(name), period)
            if spent + reserved + wanted > limit or spent + reserved >= limit:
                return "wait" if reserved > 0 and spent + wanted <= limit else "out"
            await tx.run(
                "INSERT INTO steersman_reservations (job, budget, period, usd) VALUES (?, ?, ?, ?)",
                *(job, to_plain(name), period, wanted),
            )
            await _spend(tx, to_plain(name), period, 0.0, wanted)
            return "reserved"

        return await self._database.write(work, is_vital=True)

    async def settle(self, job: str, cost: float) -> bool:
        """Replace what a job has reserved by what it has cost. Returns False the second time."""

        async def work(tx: Transaction) -> bool:
            await tx.next_change()
            found = await tx.run(
                "SELECT budget, period, usd FROM steersman_reservations"
                " WHERE job = ? AND cost IS NULL",
                job,
            )
            if not found:
                return False
            ((budget, period, usd),) = found
            await tx.run("UPDATE steersman_reservations SET cost = ? WHERE job = ?", cost, job)
            await _spend(tx, budget, period, cost, -usd)
            if cost > 0:
                await tx.run(
                    "UPDATE steersman_budgets SET turns = turns + 1, cost = cost + ?"
                    " WHERE name = ?",
                    *(cost, budget),
                )
            return True

        return await self._database.write(work, is_vital=True)


async def _spend(tx: Transaction, budget: str, period: str, spent: float, reserved: float) -> None:
    await tx.run(
        "UPDATE steersman_spendings SET spent = spent + ?, reserved = reserved + ?"
        " WHERE budget = ? AND period = ?",
        *(spent, reserved, budget, period),
    )


async def _now(tx: Transaction) -> float:
    ((now,),) = await tx.run("SELECT :now")
    return float(now)


def _worker(found: Sequence[Any]) -> WorkerRow:
    worker, machine, pid, slots, agents, state, started, left, faults = found
    return WorkerRow(
        from_plain(worker),
        from_plain(machine),
        pid,
        slots,
        _lines(agents),
        state,
        started,
        left,
        _lines(faults),
    )


def _lines(stored: str) -> tuple[str, ...]:
    return tuple(each for each in from_plain(stored).split("\n") if each)
