"""A turn that the next CLI continues has its in-process tools from the first request on."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from steersman import Session
from steersman.options import Revival
from steersman.testing.script import Script, call, calls, say, stall
from steersman.tools import Toolbox
from tests.live.staging import LIMIT, MakeScripted
from tests.mcp_servers.everything import fast_server

pytestmark = pytest.mark.live

QUICK = Revival(backoff=0.01)
TURNS = 40 if "STEERSMAN_SOAK" in os.environ else 2


def double(number: int) -> int:
    """Double a number."""
    return 2 * number


def triple(number: int) -> int:
    """Triple a number."""
    return 3 * number


def kill(session: Session) -> None:
    assert session.pid is not None
    os.kill(session.pid, signal.SIGKILL)


@pytest.mark.soak
@pytest.mark.timeout(LIMIT * TURNS + 30)
@pytest.mark.parametrize("require", [False, True], ids=["plain", "required"])
async def test_a_continued_turn_can_call_its_tools_at_once(
    scripted: MakeScripted, *, require: bool
) -> None:
    steps = [
        step
        for n in range(TURNS)
        for step in (stall(), call("mcp__box__double", number=n, id_=f"call_{n}"), say(f"done {n}"))
    ]
    agent, model = scripted(
        Script(*steps, strict=True),
        mcp_servers={"box": Toolbox("box", [double])},
        allowed_tools=["mcp__box"],
        revive=QUICK,
        require=require,
    )

    results: list[object] = []
    async with asyncio.timeout(LIMIT * TURNS), agent.session() as session:
        for n in range(TURNS):
            turn = await session.send(f"go {n}")
            await asyncio.to_thread(model.wait_for_request, 3 * n + 1)
            kill(session)
            results.append((await turn).text)

    answers = [each.tool_results for each in model.asked]
    assert [answers[3 * n + 2].get(f"call_{n}") for n in range(TURNS)] == [
        str(2 * n) for n in range(TURNS)
    ]
    assert results == [f"done {n}" for n in range(TURNS)]


async def test_toolboxes_and_instances_serve_a_continued_turn_and_the_next(
    scripted: MakeScripted,
) -> None:
    box = Toolbox("box", [double])
    servers = {"box": box, "instance": fast_server()}
    agent, model = scripted(
        stall(),
        calls(
            call("mcp__box__double", number=2, id_="box"),
            call("mcp__instance__greet", name="you", id_="instance"),
        ),
        say("first"),
        call("mcp__box__triple", number=2, id_="late"),
        say("second"),
        mcp_servers=servers,
        allowed_tools=[f"mcp__{key}" for key in servers],
        revive=QUICK,
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        turn = await session.send("go")
        await asyncio.to_thread(model.wait_for_request, 1, LIMIT)
        kill(session)
        await turn
        box.register(triple)
        await (await session.send("and then"))
        status = {each.name: each.status for each in (await session.mcp_status()).servers}

    read = {name: text for each in model.asked for name, text in each.tool_results.items()}
    assert (read["box"], read["late"]) == ("4", "6")
    assert "Hello, you!" in read["instance"]
    assert status == dict.fromkeys(servers, "connected")
