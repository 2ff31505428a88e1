"""A CLI that dies is replaced, and every prompt is answered exactly once."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from steersman import Session
from steersman.journal import Kind
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import call, say, stall
from tests.live.staging import LIMIT, MakeScripted, entries_of, first_words, until

pytestmark = pytest.mark.live


def kill(session: Session) -> None:
    """Kill the CLI as the kernel would."""
    assert session.pid is not None
    os.kill(session.pid, signal.SIGKILL)


async def show(session, model):
    for e in await entries_of(session):
        if e.kind is Kind.PARTIAL: continue
        d = dict(e.details) if e.details else e.line.decode()[:150]
        print(f"{e.seq:4} {e.kind.value:11} {[u[:4] for u in e.turns]} {d}")
    print("asked", len(model.asked))
    for r in model.asked[:0]:
        print("   ", str(r.body["messages"])[-300:])


@pytest.mark.parametrize("point", ["written", "started", "text", "tool", "after_tool", "result"])
async def test_probe(scripted: MakeScripted, sandbox: CliSandbox, point: str) -> None:
    from steersman.testing.script import Script
    flag = sandbox.project / "flag"
    bash = call("Bash", command=f"test -e {flag} || (touch {flag}; sleep 60); echo ran", id_="toolu_1")
    steps = {
        "written": [say("done")],
        "started": [stall(), say("done")],
        "text": [say("half") + stall(), say("done")],
        "tool": [bash, say("done"), say("x2"), say("x3")],
        "after_tool": [call("Bash", command="echo hi", id_="toolu_1"), stall(), say("done")],
        "result": [say("done")],
    }[point]
    agent, model = scripted(Script(*steps), allowed_tools=["Bash"])

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turn = await session.send("go")
        if point == "written":
            kill(session)
        elif point == "started":
            await asyncio.to_thread(model.wait_for_request, 1)
            kill(session)
        elif point == "text":
            await first_words(turn, "half")
            kill(session)
        elif point == "tool":
            await until(flag.exists)
            kill(session)
        elif point == "after_tool":
            await asyncio.to_thread(model.wait_for_request, 2)
            kill(session)
        else:
            await turn
            kill(session)
            await until(lambda: session.restarts == 1)
        try:
            async with asyncio.timeout(12):
                r = await turn; print(r.outcome, repr(r.text), r.cost_usd, r.cause)
        except TimeoutError:
            print("HANGS")
        second = await session.send("more")
        try:
            async with asyncio.timeout(8):
                r = await second; print(r.outcome, repr(r.text), r.cause)
        except TimeoutError:
            print("HANGS 2")
        await show(session, model)
        print("restarts", session.restarts, session.id)
