"""Guards hold on an older CLI too, which knows nothing of `onFailure`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from steersman.hooks import PermissionRequest, PreToolUse, UserPromptSubmit, deny
from steersman.permissions import Allow
from steersman.testing.older_cli import find_older_cli
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import say
from tests.live.staging import LIMIT, MakeScripted
from tests.live.test_harness import stock_cli
from tests.live.test_hook_guards import FAILURES, files_in, on, write

pytestmark = pytest.mark.live


@pytest.mark.parametrize("fails", FAILURES)
async def test_a_guard_that_fails_leaves_the_file_unwritten(
    scripted: MakeScripted, sandbox: CliSandbox, fails: Callable[..., Any]
) -> None:
    agent, model = scripted(
        write(sandbox, "guarded"),
        say("done"),
        hooks=on(PreToolUse, fails, timeout=0.2),
        allowed_tools=["Write"],
        cli_path=stock_cli(find_older_cli),
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        assert not session.initialized.hook_on_failure_supported
        await (await session.send("write"))

    assert files_in(sandbox) == {}
    assert "Stopped: the PreToolUse hook" in model.asked[-1].tool_results["toolu_guarded"]


@pytest.mark.parametrize("fails", FAILURES)
async def test_a_prompt_that_no_guard_could_look_at_reaches_no_model(
    scripted: MakeScripted, fails: Callable[..., Any]
) -> None:
    agent, model = scripted(
        hooks=on(UserPromptSubmit, fails, timeout=0.2), cli_path=stock_cli(find_older_cli)
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await (await session.send("my prompt"))

    assert model.asked == []


async def test_an_approver_does_not_overtake_a_guard_on_the_same_question(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    agent, _ = scripted(
        write(sandbox, "asked"),
        say("done"),
        hooks=on(PermissionRequest, lambda _: deny("a hook says no")),
        can_use_tool=lambda *_: Allow(),
        cli_path=stock_cli(find_older_cli),
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await (await session.send("write"))

    assert files_in(sandbox) == {}
