"""Listeners by themselves: queues, removal and the end."""

from __future__ import annotations

import asyncio
import logging

import pytest

from steersman._session.listeners import EventListeners


async def stuck(_event: object) -> None:
    await asyncio.get_running_loop().create_future()


async def test_a_listener_that_is_ended_has_not_failed(caplog: pytest.LogCaptureFixture) -> None:
    listeners = EventListeners()
    listeners.add("message", stuck)
    listeners.emit("message", 1)
    listeners.emit("message", 2)
    await asyncio.sleep(0)

    async with asyncio.timeout(5):
        await listeners.drain(0.01)

    assert caplog.text == ""
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_listener_that_is_too_slow_loses_the_oldest_event_and_it_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    listeners, received = EventListeners(), list[int]()
    listeners.add("message", received.append)

    with caplog.at_level(logging.ERROR, "steersman.session"):
        for number in range(100_001):
            listeners.emit("message", number)
        async with asyncio.timeout(5):
            await listeners.drain(5)

    assert (len(received), received[0]) == (100_000, 1)
    assert caplog.messages == ["a listener for 'message' is too slow: an event was dropped"]


async def test_only_events_with_a_listener_are_asked_for() -> None:
    listeners = EventListeners()
    assert not listeners.is_any

    remove = listeners.add("message", stuck)

    assert listeners.is_any
    assert (listeners.has("message"), listeners.has("error")) == (True, False)
    remove()
    remove()
    assert not listeners.has("message")


async def test_a_listener_that_drains_does_not_wait_for_itself() -> None:
    listeners, done = EventListeners(), list[str]()

    async def ends(_event: object) -> None:
        await listeners.drain(5)
        done.append("drained")

    listeners.add("message", ends)
    listeners.emit("message", 1)
    async with asyncio.timeout(5):
        while not done:  # noqa: ASYNC110 - it ends in a few steps of the loop
            await asyncio.sleep(0)

    assert done == ["drained"]
