from __future__ import annotations

import asyncio

from hypothesis import example, given
from hypothesis import strategies as st

from steersman.tools._threads import ConcurrencyLimit


async def work(limit: ConcurrencyLimit, inside: list[int], rounds: int) -> None:
    await limit.acquire()
    inside.append(1)
    try:
        assert len(inside) <= limit.most
        for _ in range(rounds):
            await asyncio.sleep(0)
    finally:
        inside.pop()
        limit.release()


async def play(limit: ConcurrencyLimit, steps: list[tuple[str, int]]) -> int:
    """Begin and cancel calls in any order, let all of them end, and count the places."""
    inside: list[int] = []
    tasks: list[asyncio.Task[None]] = []
    for action, number in steps:
        if action == "begin":
            tasks.append(asyncio.create_task(work(limit, inside, 1 + number % 3)))
        elif action == "wait":
            await asyncio.sleep(0)
        elif tasks:
            # While others are inside, this one waits, or was just given its place.
            tasks[number % len(tasks)].cancel()
    async with asyncio.timeout(5):
        endings = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(each is None or isinstance(each, asyncio.CancelledError) for each in endings)
    return await places(limit)


async def places(limit: ConcurrencyLimit) -> int:
    """Take every place that is free, and return how many there were."""
    taken = 0
    while True:
        taking = asyncio.create_task(limit.acquire())
        await asyncio.sleep(0)
        if not taking.done():
            taking.cancel()
            await asyncio.wait([taking])
            return taken
        taken += 1


STEPS = st.lists(
    st.tuples(st.sampled_from(["begin", "begin", "cancel", "wait"]), st.integers(0, 20)),
    max_size=40,
)


BEGIN, WAIT = ("begin", 0), ("wait", 0)


@given(most=st.integers(1, 3), steps=STEPS)
# Cancelled just after its place was assigned, and cancelled long before.
@example(1, [BEGIN, BEGIN, WAIT, WAIT, ("cancel", 1)])
@example(1, [("begin", 2), BEGIN, WAIT, ("cancel", 1)])
# Two that wait while one runs.
@example(1, [BEGIN, BEGIN, BEGIN])
def test_no_place_is_lost_and_none_is_given_twice(most: int, steps: list[tuple[str, int]]) -> None:
    assert asyncio.run(play(ConcurrencyLimit(most), steps)) == most


async def test_a_place_that_is_given_to_a_call_as_it_is_cancelled_is_passed_on() -> None:
    limit = ConcurrencyLimit(1)
    await limit.acquire()
    waiting = asyncio.create_task(limit.acquire())
    await asyncio.sleep(0)

    # The place is on its way to the waiting call, which does not know of it yet.
    limit.release()
    waiting.cancel()
    await asyncio.wait([waiting], timeout=5)

    assert waiting.cancelled()
    assert await places(limit) == 1


async def test_places_are_given_in_the_order_in_which_they_were_asked_for() -> None:
    limit, order = ConcurrencyLimit(1), list[int]()
    await limit.acquire()

    async def take(number: int) -> None:
        await limit.acquire()
        order.append(number)
        limit.release()

    waiting = [asyncio.create_task(take(number)) for number in range(5)]
    await asyncio.sleep(0)
    limit.release()
    async with asyncio.timeout(5):
        await asyncio.gather(*waiting)

    assert order == [0, 1, 2, 3, 4]


def test_a_place_is_not_given_to_a_loop_that_is_closed() -> None:
    limit = ConcurrencyLimit(1)
    loop = asyncio.new_event_loop()
    lost = loop.create_task(limit.acquire())

    async def begin() -> None:
        await limit.acquire()

    async def step() -> None:
        await asyncio.sleep(0)

    asyncio.run(begin())
    loop.run_until_complete(step())
    loop.close()
    limit.release()

    asyncio.run(asyncio.wait_for(begin(), 5))
    assert not lost.done()
    # Its loop is closed, so it stays pending; asyncio would log that in the middle of another test.
    lost._log_destroy_pending = False  # type: ignore[attr-defined]
