from __future__ import annotations

import asyncio
import dataclasses
import threading
from typing import Any

import pytest

from steersman.errors import UsageError
from steersman.tools import ToolContext, tool
from steersman.tools._calls import running_calls
from steersman.tools._threads import MOST_THREADS, run_in_thread
from tests.tools.clients import Client, failure, text


class Gate:
    """Counts who is inside, and lets them out one by one."""

    def __init__(self) -> None:
        self.inside = 0
        self.most = 0
        self.entered = threading.Semaphore(0)
        self.leave = threading.Semaphore(0)
        self._lock = threading.Lock()

    def enter(self) -> None:
        with self._lock:
            self.inside += 1
            self.most = max(self.most, self.inside)
        self.entered.release()

    def exit(self) -> None:
        with self._lock:
            self.inside -= 1

    def block(self) -> None:
        self.enter()
        assert self.leave.acquire(timeout=5)
        self.exit()


async def acquired(semaphore: threading.Semaphore) -> bool:
    return await asyncio.to_thread(semaphore.acquire, timeout=5)


async def test_a_tool_that_takes_too_long_is_cancelled_with_an_error_for_the_model() -> None:
    ended: list[str] = []

    @tool(timeout=0.05)
    async def wait(context: ToolContext) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    client = Client(wait)

    assert await client.call("wait") == failure("tool 'wait' failed: timed out after 0.05 s")
    assert ended == ["cancelled"]
    assert [(name, type(error)) for name, error in client.reported] == [("wait", TimeoutError)]


async def test_a_timeout_of_the_tools_own_is_a_failure_like_any_other() -> None:
    @tool(timeout=60)
    async def wait() -> None:
        raise TimeoutError("the database is slow")

    assert await Client(wait).call("wait") == failure("tool 'wait' failed: TimeoutError")


async def test_a_tool_in_time_is_not_disturbed() -> None:
    @tool(timeout=60)
    async def quick() -> str:
        return "done"

    @tool(timeout=60)
    def quick_thread() -> str:
        return "done"

    client = Client(quick, quick_thread)

    assert await client.call("quick") == text("done")
    assert await client.call("quick_thread") == text("done")


async def test_no_more_calls_run_at_once_than_the_tool_allows() -> None:
    inside, most, release = 0, 0, asyncio.Event()

    @tool(max_concurrency=2)
    async def work() -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await release.wait()
        inside -= 1

    first, second = Client(work), Client(work)
    calls = [asyncio.ensure_future(each.call("work")) for each in [first, second] * 3]
    async with asyncio.timeout(5):
        while inside < 2:  # noqa: ASYNC110 - both must have begun
            await asyncio.sleep(0)
        release.set()
        await asyncio.gather(*calls)

    assert (inside, most) == (0, 2)


async def test_a_thread_keeps_its_place_until_it_is_done_even_if_nobody_waits() -> None:
    gate = Gate()
    work = tool(gate.block, name="work", max_concurrency=1)
    first = asyncio.ensure_future(Client(work).call("work"))
    async with asyncio.timeout(5):
        assert await acquired(gate.entered)
        second = asyncio.ensure_future(Client(work).call("work"))
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        gate.leave.release()
        assert await acquired(gate.entered)
        gate.leave.release()

        assert await second == {"content": []}

    assert gate.most == 1


async def test_a_def_tool_that_is_cancelled_before_its_thread_is_free_does_not_run() -> None:
    ran: list[str] = []

    @tool
    def act() -> None:
        ran.append("acted")

    release = threading.Event()
    busy = [run_in_thread(release.wait, 5) for _ in range(MOST_THREADS)]
    call = asyncio.create_task(Client(act).call("act"))
    async with asyncio.timeout(5):
        await asyncio.sleep(0)
        call.cancel()
        await asyncio.wait([call])
        release.set()
        await asyncio.gather(*busy)
        # Jobs begin in the order in which they came: the cancelled one was before this one.
        await run_in_thread(str)

    assert call.cancelled()
    assert ran == []


@pytest.mark.parametrize("how", ["returns", "raises", "is cancelled", "is too slow"])
async def test_a_call_that_has_ended_is_no_running_call(how: str) -> None:
    began = asyncio.Event()

    @tool(timeout=0.05 if how == "is too slow" else 60)
    async def act() -> None:
        began.set()
        if how == "raises":
            raise ValueError
        if how != "returns":
            await asyncio.Event().wait()

    call = asyncio.create_task(Client(act).call("act"))
    async with asyncio.timeout(5):
        await began.wait()
        if how == "is cancelled":
            call.cancel()
        await asyncio.wait([call])

    assert not running_calls().running


async def test_a_call_that_leaves_the_queue_takes_no_place_with_it() -> None:
    gate = Gate()
    work = tool(gate.block, name="work", max_concurrency=1)
    client = Client(work)
    async with asyncio.timeout(5):
        first = asyncio.ensure_future(client.call("work"))
        assert await acquired(gate.entered)
        waiting = [asyncio.ensure_future(client.call("work")) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[1].cancel()
        for _ in range(3):
            gate.leave.release()
        await first
        await asyncio.gather(*waiting, return_exceptions=True)
        gate.leave.release()
        after = await client.call("work")

    assert after == {"content": []}
    assert [each.cancelled() for each in waiting] == [False, True, False]


async def test_the_wait_for_a_place_counts_as_time_of_the_call() -> None:
    gate = Gate()
    work = tool(gate.block, name="work", max_concurrency=1)
    impatient = dataclasses.replace(work, timeout=0.05)
    async with asyncio.timeout(5):
        first = asyncio.ensure_future(Client(work).call("work"))
        assert await acquired(gate.entered)

        refused = await Client(impatient).call("work")
        gate.leave.release()
        await first

    assert refused == failure("tool 'work' failed: timed out after 0.05 s")
    assert gate.most == 1


async def test_a_tool_with_another_limit_is_still_the_same_function() -> None:
    @tool
    async def double(x: int) -> int:
        return 2 * x

    wider = dataclasses.replace(double, max_concurrency=3)

    assert wider.max_concurrency == 3
    assert wider.input_schema == double.input_schema
    assert await Client(wider).call("double", x=2) == text("4")


async def test_the_limit_holds_over_several_event_loops() -> None:
    gate = Gate()
    work = tool(gate.block, name="work", max_concurrency=1)
    results: list[Any] = []

    def elsewhere() -> None:
        results.append(asyncio.run(Client(work).call("work")))

    threads = [threading.Thread(target=elsewhere, daemon=True) for _ in range(3)]
    for each in threads:
        each.start()
    async with asyncio.timeout(10):
        for _ in threads:
            assert await acquired(gate.entered)
            gate.leave.release()
        for each in threads:
            await asyncio.to_thread(each.join, 5)

    assert gate.most == 1
    assert results == [{"content": []}] * 3


@pytest.mark.parametrize(
    ("argument", "given"),
    [
        ("timeout", 0),
        ("timeout", True),
        ("timeout", "1"),
        ("max_concurrency", 0),
        ("max_concurrency", 1.5),
        ("max_concurrency", True),
    ],
)
def test_a_limit_that_cannot_be_is_refused(argument: str, given: Any) -> None:
    limits: Any = {argument: given}

    with pytest.raises(UsageError) as refused:
        tool(print, name="x", **limits)

    assert refused.value.argument == argument
