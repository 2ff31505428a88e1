"""A session behaves the same in a loop with a task factory of its own."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from steersman.testing.script import Script, call, say
from steersman.testing.scripted.cli import ScriptedCLI
from tests._session.peers import opened

T = TypeVar("T")

if sys.version_info < (3, 12):
    pytest.skip("eager tasks are new in 3.12", allow_module_level=True)


def in_eager_loop(doing: Coroutine[Any, Any, T]) -> T:
    def make_loop() -> asyncio.AbstractEventLoop:
        loop = asyncio.new_event_loop()
        loop.set_task_factory(asyncio.eager_task_factory)
        return loop

    with asyncio.Runner(loop_factory=make_loop) as runner:
        return runner.run(doing)


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


EVENTS = ("message", "tool_call", "tool_result", "state_change", "ask", "complete", "error")


async def heard() -> list[str]:
    """Play a turn with a tool call, and return the names of the events that listeners got."""
    names: list[str] = []
    cli = ScriptedCLI(Script(call("mcp__functions__add", a=2, b=3), say("done")))
    async with opened(cli, functions=[add]) as session:
        for name in EVENTS:
            session.on(name, lambda _value, name=name: names.append(name))
        await (await session.send("work"))
    return names


def test_listeners_get_every_event_in_a_loop_with_eager_tasks() -> None:
    assert sorted(in_eager_loop(heard())) == sorted(asyncio.run(heard()))
