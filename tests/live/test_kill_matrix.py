"""Kills at every call of the store, however a host is left, and whatever it is doing: stock CLI.

The suite plays a slice, `make soak` all: leave x state x call, before and after it.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import signal
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from steersman import Agent, TurnResult
from steersman.permissions import Policy
from steersman.stores import PostgresStore, SqliteStore
from steersman.testing.model import ScriptedModel
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import say, stall
from tests.live.durable import CUSTOMER, allow_all, next_ask, store_at
from tests.live.mortal_host import GO
from tests.live.staging import LIMIT, MakeScripted
from tests.live.test_leaving import DONE, answering, begun, let_end, lines_of, slow, until_paid

pytestmark = pytest.mark.live

LEAVES = ("park", "aclose", "SIGTERM", "SIGKILL")
STATES = ("the model thinks", "an ask waits", "answered", "the tool runs", "told")
DEATHS = (None, *range(16))
"""At which end of a call of its store the host is killed, counted from when it leaves; None: never.

An even number is before a call, an odd one after it.
"""
WHOLE = tuple(itertools.product(LEAVES, STATES, DEATHS, (True, False)))


def cases() -> Iterator[object]:
    for number, (leave, state, death, is_exact) in enumerate(WHOLE):
        if leave == "SIGKILL" and death is not None:
            # It has no time to call its store.
            continue
        # Each leave and each state several times in the suite, with another death.
        marks = () if number % 61 == 0 else pytest.mark.soak_only
        name = f"{leave}-{state}-{death}-{'exact' if is_exact else 'told'}"
        yield pytest.param(leave, state, death, is_exact, id=name, marks=marks)


@asynccontextmanager
async def mortal_host(
    agent: Agent, store: str, folder: Path, leave: str, death: int | None, *, is_exact: bool
) -> AsyncGenerator[asyncio.subprocess.Process]:
    options = agent.options
    given = {
        "cwd": str(options.cwd),
        "cli_path": str(options.cli_path),
        "env": dict(options.env),
        "inherit_env": False,
        "store": store,
        "folder": str(folder),
        "leave": leave,
        "dies_at": death,
        "is_exact": is_exact,
    }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.live.mortal_host", json.dumps(given)),
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def reach(
    state: str, store: SqliteStore | PostgresStore, box: CliSandbox, model: ScriptedModel
) -> int:
    """Bring the turn of the host to a state; returns how many asks were answered."""
    if state == "the model thinks":
        await asyncio.to_thread(model.wait_for_request, 1, LIMIT)
        return 0
    await next_ask(store.inbox())
    if state == "an ask waits":
        return 0
    if state == "told":
        let_end(box)
    await allow_all(store.inbox())
    if state == "the tool runs":
        await begun(box)
    elif state == "told":
        await asyncio.to_thread(model.wait_for_request, 2, LIMIT)
    return 1


async def continued(worker: Agent, store: SqliteStore | PostgresStore) -> list[TurnResult]:
    """Continue what the host has left: one of the same machine that is dead has no lease."""
    async with worker.open(CUSTOMER) as session:
        return [await turn for turn in await session.resume_turns()]


@pytest.mark.timeout(4 * LIMIT)
@pytest.mark.parametrize(("leave", "state", "death", "is_exact"), list(cases()))
async def test_a_host_that_is_killed_while_it_leaves_has_lost_nothing(  # noqa: PLR0913 - fixtures, and a case
    scripted: MakeScripted,
    sandbox: CliSandbox,
    work_url: str,
    tmp_path: Path,
    leave: str,
    state: str,
    death: int | None,
    *,
    is_exact: bool,
) -> None:
    thinks = stall(0.5) if state in ("the model thinks", "told") else stall(0.0)
    plays = until_paid(lambda id_: thinks + slow(sandbox, id_), paid=thinks + say("Paid."))
    agent, model = scripted(plays)

    async with asyncio.timeout(3 * LIMIT), store_at(work_url) as store:
        host = mortal_host(agent, work_url, tmp_path, leave, death, is_exact=is_exact)
        async with host as process:
            answered = await reach(state, store, sandbox, model)
            if leave in ("park", "aclose"):
                (tmp_path / GO).touch()
            else:
                process.send_signal(getattr(signal, leave))
            let_end(sandbox)
            status = await process.wait()
        policy = Policy(otherwise="ask") if is_exact else None
        worker = Agent(agent.options, inbox=store.inbox(), policy=policy)
        async with answering(store.inbox()) as asked_again:
            turns = await continued(worker, store)
        left = await store.inbox().list()

    if leave == "SIGKILL" or death == 0:
        assert status == -signal.SIGKILL
    # Nothing is left if the host had come to the end of its turn.
    assert [(each.outcome, each.text) for each in turns] in ([("completed", "Paid.")], [])
    assert left == []
    assert 1 <= lines_of(sandbox, DONE) <= answered + len(asked_again)
    # One that is not the same ask shows what was answered before.
    assert all(each.earlier is not None for each in asked_again[: answered * len(asked_again)])
