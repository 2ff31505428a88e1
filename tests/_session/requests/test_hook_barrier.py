"""The wait of `can_use_tool` for the hooks about the same call, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from steersman._session.requests.hooks import PermissionHookBarrier
from steersman.hooks import Hooks, PermissionRequest
from steersman.hooks.registry import Registered
from steersman.testing.faults import VirtualClockLoop

ARRIVAL, WITHDRAWAL, REMEMBERED = 2.0, 30.0, 1000


def hook(matcher: str | None = None) -> Registered:
    hooks = Hooks()
    hooks.on(PermissionRequest, matcher)(lambda _event: None)
    return next(iter(hooks))


def played(coroutine: Coroutine[Any, Any, float]) -> float:
    """Run in virtual time and return the seconds that the coroutine returns."""
    with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
        return runner.run(coroutine)


async def waited(barrier: PermissionHookBarrier, tool: str, call: str = "t1") -> float:
    loop = asyncio.get_running_loop()
    began = loop.time()
    await barrier.wait(tool, call)
    return loop.time() - began


def test_without_a_hook_for_the_tool_nothing_is_waited_for() -> None:
    assert played(waited(PermissionHookBarrier({"h": hook("Read")}), "Bash")) == 0


def test_a_hook_that_the_cli_does_not_call_is_waited_for_not_for_long() -> None:
    assert played(waited(PermissionHookBarrier({"h": hook("Bash")}), "Bash")) == ARRIVAL


def test_a_hook_that_runs_is_waited_for_until_it_is_done() -> None:
    async def run() -> float:
        barrier = PermissionHookBarrier({"h": hook()})

        async def call() -> None:
            with barrier.running("h", "t1"):
                await asyncio.sleep(500)

        running = asyncio.create_task(call())
        took = await waited(barrier, "Bash")
        await running
        return took

    assert played(run()) == 500


def test_a_hook_that_is_done_before_the_request_is_not_waited_for() -> None:
    async def run() -> float:
        barrier = PermissionHookBarrier({"h": hook()})
        with barrier.running("h", "t1"):
            pass
        return await waited(barrier, "Bash")

    assert played(run()) == 0


def test_a_hook_of_another_call_does_not_count() -> None:
    async def run() -> float:
        barrier = PermissionHookBarrier({"h": hook()})
        with barrier.running("h", "t2"):
            pass
        return await waited(barrier, "Bash", "t1")

    assert played(run()) == ARRIVAL


def test_a_decision_of_a_hook_is_not_overridden_for_thirty_seconds() -> None:
    async def run() -> float:
        barrier = PermissionHookBarrier({"h": hook()})
        with barrier.running("h", "t1") as decide:
            decide()
        began = asyncio.get_running_loop().time()
        with pytest.raises(TimeoutError, match="the CLI has not withdrawn its request"):
            await barrier.wait("Bash", "t1")
        return asyncio.get_running_loop().time() - began

    assert played(run()) == WITHDRAWAL


def test_the_oldest_calls_are_forgotten() -> None:
    async def run() -> float:
        barrier = PermissionHookBarrier({"h": hook()})
        for number in range(REMEMBERED + 1):
            with barrier.running("h", str(number)):
                pass
        assert await waited(barrier, "Bash", "1") == 0
        return await waited(barrier, "Bash", "0")

    assert played(run()) == ARRIVAL


def test_a_hook_that_decides_nothing_about_permissions_is_not_remembered() -> None:
    async def run() -> float:
        barrier = PermissionHookBarrier({"h": hook()})
        with barrier.running("other", "t1") as decide:
            decide()
        return await waited(barrier, "Bash")

    assert played(run()) == ARRIVAL
