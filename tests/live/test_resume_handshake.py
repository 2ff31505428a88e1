"""A resumed CLI runs no deferred tool before it knows our hooks.

`make soak` resumes 50 times.
"""

from __future__ import annotations

import asyncio
import logging
import os
from typing import Any

import pytest

from steersman import Agent, Allow
from steersman.hooks import HookAnswer, Hooks, PreToolUse, defer, deny
from steersman.permissions import PermissionContext
from steersman.testing.older_cli import find_older_cli
from steersman.testing.request import ModelRequest
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import Script, Step, call, say
from tests.live.staging import LIMIT, MakeScripted
from tests.live.test_harness import stock_cli

pytestmark = pytest.mark.live

RESUMES = 50 if os.environ.get("STEERSMAN_SOAK") else 4
ABREAST = 2


def on_write(reply: Any) -> Hooks:
    hooks = Hooks()
    hooks.on(PreToolUse, "Write")(lambda _event: reply)
    return hooks


def letting(_name: str, _given: dict[str, Any], _context: PermissionContext) -> Allow:
    return Allow()


async def deferred(agent: Agent, prompt: str) -> str:
    """Let a tool call be deferred, and return the id of its session."""
    async with agent.session(hooks=on_write(defer())) as session:
        result = await (await session.send(prompt))
    assert result.terminal_reason == "tool_deferred"
    assert session.id is not None
    return session.id


async def raising() -> None:
    raise BaseException("no Exception")  # noqa: TRY002 - that is the point


async def waiting() -> None:
    await asyncio.Event().wait()


async def denying() -> HookAnswer:
    return deny("nothing is written here")


async def misplacing() -> HookAnswer:
    return {"permissionDecision": "deny"}


GUARDS = (denying, raising, waiting, misplacing)
"""A guard that denies, and some that fail; each resumed session has one."""


@pytest.mark.soak
@pytest.mark.timeout(RESUMES * LIMIT)
async def test_a_guard_that_denies_or_fails_holds_in_every_resume_of_a_deferred_call(
    scripted: MakeScripted, sandbox: CliSandbox, caplog: pytest.LogCaptureFixture
) -> None:
    def write(request: ModelRequest) -> Step:
        if request.tool_results:
            return say("done")
        path = str(sandbox.project / request.first_text.rpartition(" ")[2])
        return call("Write", file_path=path, content="written")

    agent, _model = scripted(Script(*[write] * 4 * RESUMES), can_use_tool=letting)
    asked = list[str]()

    async def resume(number: int) -> None:
        session_id = await deferred(agent, f"write file-{number}")
        hooks = Hooks()

        @hooks.on(PreToolUse, "Write", timeout=0.5)
        async def guard(event: PreToolUse) -> HookAnswer:
            asked.append(str(event.tool_input["file_path"]))
            return await GUARDS[number % len(GUARDS)]()

        async with agent.session(resume=session_id, hooks=hooks) as session:
            await (await session.send("go on"))

    async def several(first: int) -> None:
        for number in range(first, RESUMES, ABREAST):
            await resume(number)

    with caplog.at_level(logging.CRITICAL):
        async with asyncio.timeout(RESUMES * LIMIT):
            await asyncio.gather(*(several(first) for first in range(ABREAST)))

    assert list(sandbox.project.glob("file-*")) == []
    assert len(set(asked)) == RESUMES


@pytest.mark.ci_only
async def test_an_older_cli_is_resumed_without_waiting(scripted: MakeScripted) -> None:
    older = stock_cli(find_older_cli)
    agent, model = scripted(say("one"), say("two"), say("three"), cli_path=older)

    async with asyncio.timeout(2 * LIMIT):
        async with agent.session() as session:
            await (await session.send("first"))
        texts = list[str]()
        for prompt in ("second", "third"):
            async with agent.session(resume=session.id) as resumed:
                texts.append((await (await resumed.send(prompt))).text)

    assert texts == ["two", "three"]
    assert len(model.asked) == 3


@pytest.mark.ci_only
async def test_an_older_cli_may_not_defer(scripted: MakeScripted, sandbox: CliSandbox) -> None:
    older = stock_cli(find_older_cli)
    path = str(sandbox.project / "later")
    agent, model = scripted(
        call("Write", file_path=path, content="written", id_="later"),
        say("a pity"),
        hooks=on_write(defer()),
        can_use_tool=letting,
        cli_path=older,
    )

    async with asyncio.timeout(LIMIT):
        await agent.run("go")

    assert not (sandbox.project / "later").exists()
    assert "before it knows the hooks" in model.asked[-1].tool_results["later"]
