"""Background tasks are started again after an error, and say so."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from itertools import pairwise

import pytest

from steersman._background import CALM, LAST_PAUSE, BackgroundTasks
from steersman.errors import StoreError
from steersman.testing.faults import VirtualClockLoop

LOG = logging.getLogger("steersman.tests")


def in_virtual_time(test: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        await test()

    with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
        runner.run(run())


def test_a_task_that_fails_is_started_again_after_pauses_that_grow_up_to_a_bound(
    caplog: pytest.LogCaptureFixture,
) -> None:
    begun: list[float] = []

    async def fail() -> None:
        begun.append(asyncio.get_running_loop().time())
        raise StoreError("the disk is full")

    async def test() -> None:
        tasks = BackgroundTasks(LOG)
        tasks.keep("the look", fail, meanwhile="jobs wait")
        await asyncio.sleep(60.0)
        assert tasks.faults == {"the look": "the disk is full"}
        await tasks.aclose()
        assert tasks.faults == {}

    in_virtual_time(test)

    pauses = [round(after - before, 6) for before, after in pairwise(begun)]
    assert pauses[:5] == [0.5, 1.0, 2.0, 4.0, LAST_PAUSE]
    assert set(pauses[5:]) == {LAST_PAUSE}
    assert caplog.messages[0] == (
        "the look has failed: the disk is full. It is started again in 0.5 s; until then jobs wait."
    )


def test_a_failure_is_over_once_the_task_has_run_for_a_while_and_pauses_begin_anew() -> None:
    begun: list[float] = []

    async def fail_now_and_then() -> None:
        loop = asyncio.get_running_loop()
        begun.append(loop.time())
        if len(begun) > 3:
            await asyncio.sleep(2 * CALM)
        raise RuntimeError("by chance")

    async def test() -> None:
        tasks = BackgroundTasks(LOG)
        tasks.keep("the look", fail_now_and_then, meanwhile="jobs wait")
        while len(begun) < 4:  # noqa: ASYNC110 - the time is virtual
            await asyncio.sleep(0.1)
        assert tasks.faults == {"the look": "RuntimeError: by chance"}
        await asyncio.sleep(CALM + 0.1)
        assert tasks.faults == {}
        await asyncio.sleep(2 * CALM)
        await tasks.aclose()

    in_virtual_time(test)

    assert [round(after - before, 6) for before, after in pairwise(begun)] == [
        *(0.5, 1.0, 2.0),
        2 * CALM + 0.5,
    ]


def test_a_task_that_was_not_cancelled_itself_is_started_again_after_a_cancellation() -> None:
    begun: list[str] = []

    async def wait_for_what_is_cancelled() -> None:
        begun.append("work")
        other = asyncio.get_running_loop().create_future()
        if len(begun) == 1:
            other.cancel()
        await other

    async def test() -> None:
        tasks = BackgroundTasks(LOG)
        task = tasks.keep("the look", wait_for_what_is_cancelled, meanwhile="jobs wait")
        while len(begun) < 2:  # noqa: ASYNC110 - the time is virtual
            await asyncio.sleep(0.1)
        assert tasks.faults == {"the look": "CancelledError"}
        await tasks.aclose()
        assert task.cancelled()

    in_virtual_time(test)

    assert begun == ["work", "work"]


def test_work_that_returns_is_done_and_a_name_that_runs_is_not_started_twice() -> None:
    begun: list[str] = []

    async def test() -> None:
        done = asyncio.Event()
        tasks = BackgroundTasks(LOG)

        async def work() -> None:
            begun.append("work")
            await done.wait()

        first = tasks.keep("the look", work, meanwhile="jobs wait")
        assert tasks.keep("the look", work, meanwhile="jobs wait") is first
        done.set()
        await first
        await tasks.keep("the look", work, meanwhile="jobs wait")

    in_virtual_time(test)

    assert begun == ["work", "work"]


def test_the_log_has_the_first_line_of_a_foreign_error_and_where_it_came_from(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fail() -> None:
        raise ValueError("no such column\n[parameters: secret]")

    async def test() -> None:
        tasks = BackgroundTasks(LOG)
        tasks.keep("the look", fail, meanwhile="jobs wait")
        while not tasks.faults:  # noqa: ASYNC110 - the time is virtual
            await asyncio.sleep(0.1)
        await tasks.aclose()

    in_virtual_time(test)

    (record,) = caplog.records
    assert "ValueError: no such column. It is" in record.getMessage()
    assert record.exc_info is not None
