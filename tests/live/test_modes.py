"""The permission mode on the stock CLI: every change that it reports is one that we expect."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from steersman.messages import Init, Status
from steersman.permissions import Allow, SetMode
from steersman.testing.cli_releases import find_cli
from steersman.testing.older_cli import find_older_cli
from steersman.testing.sandbox import CliSandbox, find_stock_cli
from steersman.testing.script import Step, call, say
from tests.live.staging import LIMIT, MakeScripted
from tests.live.test_harness import stock_cli

pytestmark = [
    pytest.mark.live,
    pytest.mark.filterwarnings("ignore::steersman.options.conflicts.ShadowedCallbackWarning"),
]

CLIS: dict[str, Callable[[], Path]] = {
    "newest": find_stock_cli,
    "older": find_older_cli,
    "2.1.300": partial(find_cli, "2.1.300"),
}
SET = Allow(updated_permissions=[SetMode(mode="acceptEdits", destination="session")])


def let_run(*_: object) -> Allow:
    return Allow()


def set_mode(*_: object) -> Allow:
    return SET


async def modes(agent: Any, *, sets: Any = None) -> list[str]:
    """Return the modes that the CLI reports in two turns, each once in a row."""
    found: list[str] = []

    def hear(message: object) -> None:
        mode = message.permission_mode if isinstance(message, Init | Status) else None
        if mode and found[-1:] != [mode]:
            found.append(mode)

    async with asyncio.timeout(LIMIT), agent.session() as session:
        session.on("message", hear)
        if sets is not None:
            await session.set_permission_mode(sets)
        for prompt in ("go", "go on"):
            settled = await (await session.send(prompt))
            assert settled.outcome == "completed", settled.cause
        assert session.cause is None
    return found


OLDER = [pytest.param(name, marks=pytest.mark.ci_only) for name in CLIS if name != "newest"]


@pytest.fixture(params=["newest", *OLDER])
def release(request: pytest.FixtureRequest) -> Any:
    return stock_cli(CLIS[request.param])


LEAVE = call("ExitPlanMode", plan="do it")
ENTER = call("EnterPlanMode")


@pytest.mark.parametrize(
    ("mode", "steps", "decide", "reported"),
    [
        (None, (), let_run, ["default"]),
        ("plan", (LEAVE,), let_run, ["plan", "default"]),
        ("plan", (LEAVE,), set_mode, ["plan", "acceptEdits"]),
        (None, (ENTER, LEAVE), let_run, ["default", "plan", "default"]),
        ("acceptEdits", (ENTER, LEAVE), let_run, ["acceptEdits", "plan", "acceptEdits"]),
        ("auto", (), let_run, ["auto"]),
        ("dontAsk", (), let_run, ["dontAsk"]),
    ],
    ids=["none", "leave", "leave-and-set", "enter", "enter-and-return", "auto", "dont-ask"],
)
async def test_the_modes_of_a_session_are_those_that_it_was_given(
    mode: Any,
    steps: tuple[Step, ...],
    decide: Any,
    reported: list[str],
    release: Any,
    scripted: MakeScripted,
) -> None:
    agent, _ = scripted(
        *steps, say("a"), say("b"), permission_mode=mode, can_use_tool=decide, cli_path=release
    )

    assert await modes(agent) == reported


async def test_an_approver_may_set_the_mode(
    release: Any, scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    write = call("Write", file_path=str(sandbox.project / "a.txt"), content="x")
    agent, _ = scripted(write, say("a"), say("b"), can_use_tool=set_mode, cli_path=release)

    assert await modes(agent) == ["default", "acceptEdits"]


async def test_the_session_may_set_the_mode(release: Any, scripted: MakeScripted) -> None:
    agent, _ = scripted(say("a"), say("b"), cli_path=release)

    assert (await modes(agent, sets="acceptEdits"))[-1:] == ["acceptEdits"]


async def test_a_mode_that_the_model_does_not_have_is_replaced_by_default(
    release: Any, scripted: MakeScripted
) -> None:
    agent, _ = scripted(
        say("a"), say("b"), permission_mode="auto", model="claude-haiku-4-5", cli_path=release
    )

    assert await modes(agent) == ["default"]


async def test_the_mode_of_the_settings_holds_if_no_other_is_given(
    release: Any, scripted: MakeScripted
) -> None:
    settings = {"permissions": {"defaultMode": "acceptEdits"}}
    agent, _ = scripted(say("a"), say("b"), settings=settings, cli_path=release)

    assert await modes(agent) == ["acceptEdits"]
