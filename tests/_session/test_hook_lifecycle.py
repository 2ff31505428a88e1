"""The start and the end of a session reach the hooks, once each, though the CLI is silent."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from steersman import Hooks
from steersman.hooks import (
    HookEvent,
    Reply,
    SessionEnd,
    SessionStart,
    SessionStartOutput,
    context,
)
from steersman.testing.script import Script, say
from steersman.testing.scripted.cli import ScriptedCLI
from tests._session.peers import opened


def watching() -> tuple[Hooks, list[HookEvent]]:
    hooks, seen = Hooks(), list[HookEvent]()
    hooks.on(SessionStart)(seen.append)
    hooks.on(SessionEnd)(seen.append)
    return hooks, seen


async def test_a_session_tells_of_its_start_and_of_its_end() -> None:
    hooks, seen = watching()

    async with opened(ScriptedCLI(), hooks=hooks, cwd="/x", model="opus") as session:
        before = list(seen)
    await session.aclose()

    start = SessionStart(session_id=session.id or "", cwd="/x", model="opus", source="startup")
    assert before == [start]
    assert seen == [start, SessionEnd(session_id=session.id or "", cwd="/x", reason="other")]


async def test_what_hooks_give_at_the_start_goes_ahead_of_the_first_prompt() -> None:
    hooks = Hooks()
    hooks.on(SessionStart, "startup")(lambda _: context("It is Sunday."))
    hooks.on(SessionStart, "resume")(lambda _: context("It is Monday."))
    cli = ScriptedCLI(Script(say("done")))

    async with opened(cli, hooks=hooks) as session:
        await (await session.send("go"))

    told = str(cli.asked[0].body)
    assert "It is Sunday." in told
    assert "It is Monday." not in told


async def test_a_hook_may_give_the_first_prompt() -> None:
    hooks = Hooks()
    output = SessionStartOutput(initial_user_message="good morning")
    hooks.on(SessionStart)(lambda _: Reply(hook_specific_output=output))
    cli = ScriptedCLI(Script(say("hello"), say("done")))

    async with opened(cli, hooks=hooks) as session:
        await (await session.send("go"))

    assert [each.last_text for each in cli.asked] == ["good morning", "go"]


def raising(_event: Any) -> None:
    raise RuntimeError


async def hang(_event: Any) -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize("callback", [raising, hang])
async def test_a_hook_that_fails_at_the_start_or_the_end_holds_nothing_up(
    callback: Any, caplog: pytest.LogCaptureFixture
) -> None:
    hooks = Hooks()
    hooks.on(SessionStart, timeout=0.05)(callback)
    hooks.on(SessionEnd)(callback)

    with caplog.at_level(logging.CRITICAL):
        async with (
            asyncio.timeout(5),
            opened(ScriptedCLI(), hooks=hooks, close_grace=0.2) as session,
        ):
            settled = await (await session.send("go"))

    assert settled.outcome == "completed"


async def test_an_async_hook_ends_with_the_session() -> None:
    hooks, ended = Hooks(), asyncio.Event()

    @hooks.on(SessionStart, run_async=True)
    async def work(_event: SessionStart) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with opened(ScriptedCLI(), hooks=hooks) as session:
        await (await session.send("go"))
        assert not ended.is_set()

    async with asyncio.timeout(5):
        await ended.wait()
