"""The thread of a store: it ends when nothing is left to do, and leaves nothing open."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable

import pytest

from steersman._portal import home_thread
from steersman._portal.home_thread import HomeThread
from steersman.errors import StoreError

LIMIT = 20.0
AT_ONCE = 0.001


class Opened:
    """Something that work opens, and that is closed at rest."""

    def __init__(self) -> None:
        self.is_open = False
        self.meanwhile: Callable[[], None] | None = None
        self.closings = 0

    def open(self) -> int:
        self.is_open = True
        return threading.get_ident()

    async def close(self) -> None:
        self.is_open = False
        self.closings += 1
        if self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            meanwhile()
            await asyncio.sleep(0)


async def ended(thread: HomeThread) -> None:
    """Wait until the thread has ended by itself."""
    async with asyncio.timeout(LIMIT):
        while thread._life is not None:  # noqa: ASYNC110 - the thread sets no event
            await asyncio.sleep(0.001)


async def test_functions_and_coroutines_run_in_one_thread_in_their_order() -> None:
    opened, order, came = Opened(), list[str](), asyncio.Event()
    thread = HomeThread("test", opened.close, 30.0)

    async def slow() -> int:
        order.append("slow begins")
        await came.wait()
        order.append("slow ends")
        return thread_here()

    def thread_here() -> int:
        order.append("here")
        came.set()
        return threading.get_ident()

    async with asyncio.timeout(LIMIT):
        found = await asyncio.gather(thread.call(slow), thread.do(thread_here))
        await thread.aclose()

    assert order == ["slow begins", "here", "slow ends", "here"]
    assert len(set(found) - {threading.get_ident()}) == 1


async def test_work_that_begins_as_the_last_one_ends_does_not_wait_for_more() -> None:
    opened, done = Opened(), threading.Event()
    thread = HomeThread("test", opened.close, 30.0)

    async def second() -> None:
        await asyncio.sleep(0)
        done.set()

    async def first() -> None:
        # Called behind the last step of this one.
        asyncio.get_running_loop().call_later(0, thread.start, second)
        await asyncio.sleep(0)

    thread.start(first)

    assert await asyncio.to_thread(done.wait, 5.0)
    await thread.aclose()


async def test_an_error_is_raised_where_its_result_is_awaited() -> None:
    thread = HomeThread("test", Opened().close, 30.0)

    async def fails() -> None:
        raise ValueError("a defect")

    async with asyncio.timeout(LIMIT):
        with pytest.raises(ValueError, match="a defect"):
            await thread.do(lambda: int("a defect"))
        with pytest.raises(ValueError, match="a defect"):
            await thread.call(fails)
        await thread.aclose()
        with pytest.raises(StoreError, match="closed"):
            await thread.do(int)
        with pytest.raises(StoreError, match="closed"):
            await thread.call(fails)


@pytest.mark.parametrize("is_closing", [True, False], ids=["closed", "at rest"])
async def test_what_is_opened_while_the_rest_is_closed_is_closed_as_well(
    *, is_closing: bool
) -> None:
    opened = Opened()
    thread = HomeThread("test", opened.close, 30.0 if is_closing else AT_ONCE)

    def open_again() -> None:
        opened.open()

    opened.meanwhile = lambda: thread.post(open_again)

    async with asyncio.timeout(LIMIT):
        await thread.do(opened.open)
        if is_closing:
            await thread.aclose()
        else:
            await ended(thread)

    assert (opened.is_open, opened.closings) == (False, 2)


def defect() -> None:
    raise ValueError("a defect")


async def test_a_job_with_a_defect_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    thread = HomeThread("test", Opened().close, 30.0)

    async with asyncio.timeout(LIMIT):
        thread.post(defect)
        assert await thread.do(lambda: "done") == "done"
        await thread.aclose()

    assert "a job in the thread of a store has failed" in caplog.text


async def test_lives_that_have_ended_are_not_kept() -> None:
    thread = HomeThread("test", Opened().close, AT_ONCE)

    for _ in range(5):
        await thread.do(int)
        await ended(thread)

    gc.collect()
    lives = [each for each in gc.get_objects() if isinstance(each, home_thread._Life)]
    assert len([each for each in lives if each._rest == AT_ONCE]) <= 1
