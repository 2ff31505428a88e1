from __future__ import annotations

import asyncio
import threading

from steersman.tools.context import call_in


async def test_a_call_into_the_running_loop_is_made_at_once() -> None:
    called: list[str] = []

    call_in(asyncio.get_running_loop(), called.append, "now")
    call_in(None, called.append, "here")

    assert called == ["now", "here"]


async def test_a_call_from_another_thread_is_made_in_the_loop() -> None:
    loop, called = asyncio.get_running_loop(), asyncio.Event()
    where: list[threading.Thread] = []

    def note() -> None:
        where.append(threading.current_thread())
        called.set()

    async with asyncio.timeout(5):
        await asyncio.to_thread(call_in, loop, note)
        await called.wait()

    assert where == [threading.main_thread()]


def test_a_call_into_a_closed_loop_is_none() -> None:
    loop = asyncio.new_event_loop()
    loop.close()
    called: list[str] = []

    call_in(loop, called.append, "never")

    assert called == []
