"""Runs the coroutines of a backend: at once, in a thread, or in an event loop of their own.

A backend for files never waits for anything, so its coroutines can be run without an event loop. A
backend for a store awaits the store. From synchronous code, all stores of the process run in the
event loop of one thread, that of `steersman.sync`, which is started when it is first needed: a
store that binds connections to its first event loop can so be used by every later call.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from steersman._portal.portal import shared_portal
from steersman.errors import UsageError
from steersman.sessions.backends import Follower
from steersman.transcripts.entries import TranscriptEntry

T = TypeVar("T")

Work = Coroutine[Any, Any, T]
Next = Callable[[Follower], Awaitable[list[TranscriptEntry] | None]]


def drive(work: Work[T]) -> T:
    """Run a coroutine that waits for nothing, and return its result."""
    try:
        work.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    work.close()
    raise AssertionError("a backend for files has waited for something")


def refuse_running_loop() -> None:
    """Raise `UsageError` where an event loop runs: a call that blocks would stop that loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise UsageError(
        "store",
        "a call of steersman.sessions.Sessions inside an event loop",
        "synchronous code only, because the methods of a store are async",
        hint="use steersman.sessions.aio.Sessions(store) and await its methods",
    )


def run_in_private_loop(work: Work[T]) -> T:
    """Run a coroutine in the thread for stores, and wait for its result."""
    try:
        refuse_running_loop()
    except UsageError:
        work.close()
        raise
    return shared_portal().call(_awaited, work)


def begin_in_private_loop(work: Work[object]) -> None:
    """Run a coroutine in the thread for stores, and do not wait for it."""
    asyncio.run_coroutine_threadsafe(work, shared_portal().thread.loop)


async def in_private_loop(work: Work[T]) -> T:
    """Run a coroutine in the thread for stores, and wait for its result in this event loop."""
    future = asyncio.run_coroutine_threadsafe(work, shared_portal().thread.loop)
    return await asyncio.wrap_future(future)


async def _awaited(work: Work[T]) -> T:
    return await work


async def follow(follower: Follower, next_of: Next) -> AsyncIterator[TranscriptEntry]:
    """Yield entries as they are added, until the session is deleted."""
    while (found := await next_of(follower)) is not None:
        for entry in found:
            yield entry
        if not found:
            await asyncio.sleep(follower.interval)
