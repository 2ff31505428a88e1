"""Guards hold on an older CLI too, which knows nothing of `onFailure`.

Guards about tools are in the matrix of `test_guards_hold.py`.
"""

from __future__ import annotations

import asyncio

import pytest

from steersman.hooks import PermissionRequest, UserPromptSubmit, deny
from steersman.permissions import Allow
from steersman.testing.older_cli import find_older_cli
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import say
from tests.live.staging import LIMIT, MakeScripted
from tests.live.test_harness import stock_cli
from tests.live.test_hook_guards import BY_NAME, failing, files_in, on, write

pytestmark = [pytest.mark.live, pytest.mark.ci_only]


async def test_a_prompt_that_no_guard_could_look_at_reaches_no_model(
    scripted: MakeScripted,
) -> None:
    agent, model = scripted(
        hooks=on(UserPromptSubmit, failing, timeout=0.2), cli_path=stock_cli(find_older_cli)
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        for name in BY_NAME:
            await (await session.send(name))

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
