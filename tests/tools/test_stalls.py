from __future__ import annotations

import asyncio
import threading
import time

import pytest

from steersman.errors import ToolExecutionError
from steersman.tools import Toolbox
from steersman.tools._calls import RunningCall, RunningCalls, StallDetector
from steersman.tools.context import ToolContext
from tests.tools.clients import Client, text

BLOCKED = 0.6


def block(seconds: float) -> None:
    """Keep the event loop busy, as a tool does that should have been a `def`."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        threading.Event().wait(0.01)


async def test_a_tool_that_blocks_the_event_loop_is_named_with_the_place_and_the_time(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def inner() -> None:
        block(BLOCKED)

    async def rude() -> str:
        await asyncio.sleep(0)
        await inner()
        return "done"

    async def polite() -> None:
        await asyncio.sleep(0)

    client = Client(box=Toolbox("box", [rude, polite], stall_after=0.2))
    waiting = asyncio.ensure_future(client.call("polite"))
    result = await client.call("rude")
    await waiting
    while not client.reported:  # noqa: ASYNC110 - the loop comes round to it
        await asyncio.sleep(0)

    ((name, error),) = client.reported
    assert result == text("done")
    assert (name, type(error)) == ("rude", ToolExecutionError)
    assert "tool 'rude' failed: blocked the event loop for " in str(error)
    # Another test may leave a task to the garbage collector, and asyncio logs that here.
    ours = [record for record in caplog.records if record.name.startswith("steersman")]
    warned = [record.getMessage() for record in ours]
    assert len(warned) == 2
    assert warned[0].startswith("tool 'rude' has blocked the event loop for ")
    assert "block(BLOCKED)" in warned[0]
    assert warned[1].startswith("tool 'rude' blocked the event loop for ")


async def test_a_tool_that_blocks_elsewhere_is_not_blamed() -> None:
    async def waiting() -> None:
        await asyncio.to_thread(block, BLOCKED)

    def blocking() -> None:
        block(BLOCKED)

    client = Client(box=Toolbox("box", [waiting, blocking], stall_after=0.2))
    await asyncio.gather(client.call("waiting"), client.call("blocking"))

    assert client.reported == []


async def test_the_program_itself_is_not_taken_for_a_tool() -> None:
    release = asyncio.Event()

    async def patient() -> None:
        await release.wait()

    client = Client(box=Toolbox("box", [patient], stall_after=0.2))
    call = asyncio.ensure_future(client.call("patient"))
    await asyncio.sleep(0)
    block(BLOCKED)
    release.set()
    await call

    assert client.reported == []


async def test_a_toolbox_may_look_away(caplog: pytest.LogCaptureFixture) -> None:
    async def rude() -> None:
        block(BLOCKED)

    client = Client(box=Toolbox("box", [rude], stall_after=None))
    await client.call("rude")

    assert client.reported == []
    assert caplog.records == []


async def test_nobody_looks_on_when_no_call_runs() -> None:
    watch = StallDetector(look=0.01, linger=0.02)
    calls = RunningCalls(asyncio.get_running_loop(), watch.watch)
    call = RunningCall(ToolContext(tool_name="x"), 0.0, None, 1.0)
    before = watch.is_looking

    calls.add(call, may_stall=True)
    during = watch.is_looking
    calls.remove(call)
    async with asyncio.timeout(5):
        while watch.is_looking:  # noqa: ASYNC110 - a thread does not report its end
            await asyncio.sleep(0)
    calls.add(call, may_stall=True)
    again = watch.is_looking
    calls.remove(call)

    assert (before, during, again) == (False, True, True)
