"""`steersman fleet`: workers of a store, and its jobs."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from steersman import _json
from steersman._terminal import one_line
from steersman.cli.arguments import load_agent
from steersman.cli.output import complain
from steersman.cli.statuses import COMPLETED, FAILED
from steersman.errors import LeaseLost, UsageError

if TYPE_CHECKING:
    from steersman.agent import Agent
    from steersman.fleet.client import FleetClient
    from steersman.fleet.ports import JobRow, JobState
    from steersman.fleet.worker import Worker


def run_worker(  # noqa: PLR0913 - each is an option
    *,
    store: str,
    agents: list[str],
    slots: int,
    lease: float,
    park_after: float,
    drain_timeout: float,
    connections: int,
    create: bool,
) -> int:
    """Run jobs until SIGTERM or `steersman fleet drain`."""
    from steersman.fleet._dbos.places import place_at  # noqa: PLC0415 - slow to import
    from steersman.fleet.worker import Worker  # noqa: PLC0415 - as above

    place = place_at(store, create=create, connections=connections)
    loaded = _agents(agents)
    logging.basicConfig(format="steersman: %(message)s", level=logging.WARNING)

    async def main() -> int:
        made = Worker(
            place,
            loaded,
            slots=slots,
            lease=lease,
            park_after=park_after,
            drain_timeout=drain_timeout,
        )
        return await _run(made)

    status = asyncio.run(main())
    sys.stdout.flush()
    # What threads of the engine are left must not keep the process: its jobs are elsewhere.
    os._exit(status)


async def _run(worker: Worker) -> int:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, worker.drain)
    running = asyncio.ensure_future(worker.run())
    ready = asyncio.ensure_future(worker.is_ready.wait())
    await asyncio.wait({running, ready}, return_when=asyncio.FIRST_COMPLETED)
    if ready.done():
        print(f"worker {worker.name} takes jobs", flush=True)
    ready.cancel()
    try:
        await running
    except LeaseLost as error:
        complain(error)
        return FAILED
    print(f"worker {worker.name} has ended", flush=True)
    return COMPLETED


def _agents(named: list[str]) -> Mapping[str, Agent]:
    found: dict[str, Agent] = {}
    for each in named:
        name, _, path = each.rpartition("=")
        if (name or "default") in found:
            raise UsageError("--agent", each, "each name once")
        found[name or "default"] = load_agent(path)
    return found


def _with_client(store: str, act: Callable[[FleetClient], Awaitable[int]]) -> int:
    from steersman.fleet.client import FleetClient  # noqa: PLC0415 - slow to import

    async def main() -> int:
        async with FleetClient(store) as client:
            return await act(client)

    return asyncio.run(main())


def _print_json(value: object) -> None:
    print(_json.dumps(value).decode())


def show_status(*, store: str, is_json: bool) -> int:
    """Show workers, jobs that are not settled, what holds them, and budgets."""

    async def act(client: FleetClient) -> int:
        found = await client.status()
        if is_json:
            _print_json(
                {
                    "workers": [
                        {**asdict(each), "is_alive": each.is_alive} for each in found.workers
                    ],
                    "jobs": dict(found.jobs),
                    "holds": dict(found.holds),
                    "budgets": [asdict(each) for each in found.budgets],
                }
            )
            return COMPLETED
        for each in found.workers:
            how = each.state if each.is_alive else "dead"
            agents = ", ".join(each.agents)
            print(one_line(f"worker {each.worker}: {how}, {each.slots} slots, agents {agents}"))
            for fault in each.faults if each.is_alive else ():
                print(one_line(f"  fails, and is tried again: {fault}"))
        for name, count in sorted(found.jobs.items()):
            print(f"{count} {name}")
        for words, count in sorted(found.holds.items()):
            print(one_line(f"{count} {words}"))
        for budget in found.budgets:
            left = f"{budget.spent:g} of {budget.usd:g} USD spent, {budget.reserved:g} reserved"
            print(one_line(f"budget {budget.name} ({budget.per}): {left}"))
        return COMPLETED

    return _with_client(store, act)


def list_jobs(
    *, store: str, conversation: str | None, states: list[JobState], most: int, is_json: bool
) -> int:
    """List jobs, the oldest first. Prompts are not shown."""

    async def act(client: FleetClient) -> int:
        for row in await client.jobs(conversation=conversation, states=states, most=most):
            if is_json:
                _print_json(_row(row))
                continue
            how = f"{row.state}: {row.why}" if row.why else row.state
            print(one_line(f"{row.id}  {how}  {row.spec.conversation}  {row.spec.key}"))
        return COMPLETED

    return _with_client(store, act)


def _row(row: JobRow) -> dict[str, Any]:
    spec = row.spec
    return {
        "id": row.id,
        "conversation": spec.conversation,
        "key": spec.key,
        "agent": spec.agent,
        "priority": spec.priority,
        "budget": spec.budget,
        "state": row.state,
        "why": row.why,
        "worker": row.worker,
        "attempts": row.attempts,
        "created": row.created,
        "outcome": (row.result or {}).get("outcome"),
    }


def drain(*, store: str, worker: str | None) -> int:
    """Have a worker, or all of them, take no more jobs, finish, and end."""

    async def act(client: FleetClient) -> int:
        count = await client.drain(worker)
        print(f"asked {count} worker{'' if count == 1 else 's'} to drain")
        return COMPLETED if count else FAILED

    return _with_client(store, act)


def cancel(*, store: str, job: str) -> int:
    """End a job as cancelled; a turn that runs is interrupted."""

    async def act(client: FleetClient) -> int:
        if await client.cancel(job):
            print(one_line(f"{job}: cancelled"))
            return COMPLETED
        complain(f"{job} is settled, or there is no such job")
        return FAILED

    return _with_client(store, act)
