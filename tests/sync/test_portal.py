"""A portal runs coroutines in the loop of its thread, and loses none of them."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import logging
import threading
import traceback
import weakref
from collections.abc import Generator
from importlib import import_module

import pytest

from steersman._portal.portal import LoopThread, Portal, Trip
from steersman.errors import ChannelClosed, RequestTimeout, UsageError
from tests.sync.interrupting import interrupt_main, interrupted

pytestmark = pytest.mark.timeout(30)

LATE = RequestTimeout("test", "too late", 1.0)
VALUE: contextvars.ContextVar[int] = contextvars.ContextVar("value", default=0)


@pytest.fixture
def portal() -> Generator[Portal, None, None]:
    thread = LoopThread("test-portal")
    yield Portal(thread, grace=5.0)
    thread.close(5.0)


async def double(number: int) -> int:
    await asyncio.sleep(0)
    return 2 * number


class Broken(Exception):
    """An error of the test."""


async def fail(number: int) -> int:
    raise Broken(number)


async def wait_for_ever() -> None:
    await asyncio.Event().wait()


def test_a_call_returns_what_the_coroutine_returns(portal: Portal) -> None:
    assert portal.call(double, 21) == 42


def test_the_thread_begins_with_the_first_call_and_is_the_same_for_all(portal: Portal) -> None:
    async def thread() -> str:
        return threading.current_thread().name

    names = [each.name for each in threading.enumerate()]
    assert "test-portal" not in names

    assert {portal.call(thread), portal.call(thread)} == {"test-portal"}


def test_an_error_keeps_its_type_and_the_lines_that_it_came_through(portal: Portal) -> None:
    with pytest.raises(Broken) as caught:
        portal.call(fail, 7)

    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert caught.value.args == (7,)
    assert names[0].startswith("test_an_error_keeps")
    assert names[-1] == "fail"


def test_an_error_of_a_function_that_makes_the_coroutine_is_raised_too(portal: Portal) -> None:
    with pytest.raises(TypeError, match="missing 1 required"):
        portal.call(double)  # type: ignore[call-arg]


def test_an_error_is_freed_when_the_caller_has_handled_it(portal: Portal) -> None:
    def catch() -> weakref.ref[Broken]:
        try:
            portal.call(fail, 1)
        except Broken as error:
            return weakref.ref(error)
        raise AssertionError

    gc.disable()
    try:
        error = catch()
        portal.do(lambda: None)
        assert error() is None
    finally:
        gc.enable()


def test_contextvars_of_the_caller_are_seen_and_not_changed(portal: Portal) -> None:
    async def change() -> int:
        seen = VALUE.get()
        VALUE.set(2)
        return seen

    VALUE.set(1)

    assert portal.call(change) == 1
    assert VALUE.get() == 1


def test_a_call_in_the_thread_of_the_loop_is_refused_instead_of_waiting_for_itself(
    portal: Portal,
) -> None:
    async def nested() -> int:
        return portal.call(double, 1)

    with pytest.raises(UsageError, match="own event loop") as refused:
        portal.call(nested)

    assert "plain `def`" in str(refused.value)


def test_a_function_that_does_not_wait_may_be_called_in_the_thread_of_the_loop(
    portal: Portal,
) -> None:
    async def nested() -> int:
        return portal.do(lambda: 5)

    assert portal.call(nested) == 5


def test_one_portal_may_be_called_in_the_loop_of_another(portal: Portal) -> None:
    other = Portal(LoopThread("other-portal"))

    async def nested() -> int:
        return other.call(double, 4)

    assert portal.call(nested) == 8
    other.thread.close(5.0)


def test_ctrl_c_cancels_the_coroutine_waits_for_its_clean_up_and_is_raised(portal: Portal) -> None:
    seen: list[str] = []

    async def work() -> None:
        interrupt_main()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            seen.append("cleaned up")
            raise

    interrupted(lambda: portal.call(work))

    assert seen == ["cleaned up"]
    assert portal.call(double, 1) == 2


def test_a_call_that_has_ended_may_be_waited_for_again() -> None:
    """Ctrl-c may come between the end of the wait and the return of the lock."""
    trip = Trip(wait_for_ever)
    assert not trip.wait(0)

    trip.end(None)

    assert [trip.wait(), trip.wait(0)] == [True, True]


def test_ctrl_c_is_raised_after_the_grace_if_the_loop_is_blocked(portal: Portal) -> None:
    free = threading.Event()

    async def block() -> None:
        interrupt_main()
        free.wait(10)

    interrupted(lambda: portal.with_grace(0.05).call(block))
    free.set()

    assert portal.call(double, 1) == 2


def test_a_limit_is_kept_while_the_loop_is_blocked(portal: Portal) -> None:
    free, blocked = threading.Event(), threading.Event()

    def block() -> None:
        blocked.set()
        free.wait(10)

    portal.call(double, 1)
    portal.do_soon(block)
    assert blocked.wait(10)

    with pytest.raises(RequestTimeout, match="too late"):
        portal.call_within(0.01, LATE, wait_for_ever)

    free.set()
    assert portal.call(double, 1) == 2


def test_a_call_that_is_late_is_cancelled(portal: Portal) -> None:
    ended = threading.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    with pytest.raises(RequestTimeout):
        portal.call_within(0.01, LATE, work)

    assert ended.wait(5)


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt])
def test_what_would_end_the_program_is_raised_in_the_thread_that_waits(
    portal: Portal, kind: type[BaseException]
) -> None:
    """A tool that exits does so in a task of its own; the loop must go on."""

    def leave() -> None:
        raise kind(3)

    async def work() -> None:
        asyncio.get_running_loop().call_soon(leave)
        await asyncio.Event().wait()

    with pytest.raises(kind):
        portal.call(work)

    assert portal.call(double, 3) == 6


def test_it_is_logged_if_no_thread_waits(portal: Portal) -> None:
    logged = threading.Event()

    class Told(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            logged.set()

    def leave() -> None:
        raise SystemExit(3)

    logger, handler = logging.getLogger("steersman.sync"), Told()
    portal.call(double, 1)
    logger.addHandler(handler)
    try:
        portal.do_soon(leave)
        assert logged.wait(5)
    finally:
        logger.removeHandler(handler)

    assert portal.call(double, 3) == 6


def test_after_the_end_calls_are_refused_and_no_thread_is_left() -> None:
    portal = Portal(LoopThread("ended-portal"))
    portal.call(double, 1)

    portal.thread.close(5.0)

    assert "ended-portal" not in [each.name for each in threading.enumerate()]
    with pytest.raises(ChannelClosed, match="has ended"):
        portal.call(double, 1)
    portal.do_soon(lambda: None)
    portal.thread.close(5.0)


def test_the_end_wakes_the_threads_that_wait() -> None:
    portal = Portal(LoopThread("waking-portal"))
    begun = threading.Event()
    errors: list[BaseException] = []

    async def work() -> None:
        begun.set()
        await asyncio.Event().wait()

    def wait() -> None:
        try:
            portal.call(work)
        except ChannelClosed as error:
            errors.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    assert begun.wait(5)

    portal.thread.close(5.0)
    waiting.join(5)

    (error,) = errors
    assert str(error).startswith("the event loop of steersman.sync has ended")


def test_uvloop_may_be_the_loop() -> None:
    uvloop = pytest.importorskip("uvloop")
    portal = Portal(LoopThread("uvloop-portal", import_module("uvloop").new_event_loop))

    async def kind() -> type:
        return type(asyncio.get_running_loop())

    assert portal.call(kind) is uvloop.Loop
    assert portal.call(double, 2) == 4
    portal.thread.close(5.0)
