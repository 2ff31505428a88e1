"""Tasks that run their first step at once behave like any other task."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from typing import Any

import pytest

from steersman._session.requests.tasks import EagerStarter, Work

NAME = contextvars.ContextVar("NAME", default="default")
LIMIT = 5


def start(work: Work, context: contextvars.Context) -> asyncio.Task[None]:
    return EagerStarter()()(work, context)


async def from_a_callback(act: Callable[[], asyncio.Task[None]]) -> asyncio.Task[None]:
    """Call `act` outside of any task, as a transport's reader is called; return its task."""
    given: asyncio.Future[asyncio.Task[None]] = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(lambda: given.set_result(act()))
    async with asyncio.timeout(LIMIT):
        return await given


async def test_a_task_that_does_not_wait_is_done_when_it_is_started() -> None:
    seen: list[str] = []

    async def work() -> None:
        seen.append("worked")

    def act() -> asyncio.Task[None]:
        task = start(work(), contextvars.copy_context())
        seen.append("started")
        assert task.done()
        return task

    await (await from_a_callback(act))

    assert seen == ["worked", "started"]


async def test_a_task_runs_in_its_context_and_is_the_current_task() -> None:
    context = contextvars.copy_context()
    context.run(NAME.set, "caller")
    seen: list[Any] = []

    async def work() -> None:
        seen.extend([NAME.get(), asyncio.current_task()])
        NAME.set("changed")
        await asyncio.sleep(0)
        seen.extend([NAME.get(), asyncio.current_task()])

    task = await from_a_callback(lambda: start(work(), context))
    await task

    assert seen == ["caller", task, "changed", task]
    assert (NAME.get(), context[NAME]) == ("default", "changed")


async def test_a_timeout_that_begins_in_the_first_step_expires() -> None:
    seen: list[str] = []

    async def work() -> None:
        try:
            async with asyncio.timeout(0.01):
                await asyncio.Event().wait()
        except TimeoutError:
            seen.append("too late")

    async with asyncio.timeout(LIMIT):
        await (await from_a_callback(lambda: start(work(), contextvars.copy_context())))

    assert seen == ["too late"]


async def test_a_task_can_be_cancelled_while_it_waits() -> None:
    async def work() -> None:
        await asyncio.Event().wait()

    task = await from_a_callback(lambda: start(work(), contextvars.copy_context()))
    task.cancel()

    async with asyncio.timeout(LIMIT):
        await asyncio.wait([task])
    assert task.cancelled()


async def test_an_exception_of_the_first_step_is_raised_when_awaited() -> None:
    async def work() -> None:
        raise ZeroDivisionError

    task = await from_a_callback(lambda: start(work(), contextvars.copy_context()))

    with pytest.raises(ZeroDivisionError):
        await task


async def test_inside_another_task_a_task_starts_later() -> None:
    asyncio.get_running_loop().set_task_factory(None)
    seen: list[str] = []

    async def work() -> None:
        seen.append("worked")

    task = start(work(), contextvars.copy_context())
    seen.append("started")
    await task

    assert seen == ["started", "worked"]


async def test_a_task_factory_of_the_loop_is_used() -> None:
    made: list[asyncio.Task[Any]] = []

    def factory(loop: asyncio.AbstractEventLoop, work: Any, **more: Any) -> asyncio.Task[Any]:
        made.append(asyncio.Task(work, loop=loop, **more))
        return made[-1]

    async def work() -> None:
        """Return at once."""

    loop = asyncio.get_running_loop()
    loop.set_task_factory(factory)
    try:
        task = await from_a_callback(lambda: start(work(), contextvars.copy_context()))
        await task
    finally:
        loop.set_task_factory(None)

    assert made == [task]


async def test_the_loop_is_not_changed() -> None:
    async def work() -> None:
        """Return at once."""

    await (await from_a_callback(lambda: start(work(), contextvars.copy_context())))

    assert "call_soon" not in vars(asyncio.get_running_loop())
