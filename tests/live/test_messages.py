"""What the stock CLI says is read in the classes that it is declared to be."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest

from steersman import Deny
from steersman.journal import Kind
from steersman.messages import (
    ApiRetry,
    Assistant,
    BackgroundTasksChanged,
    CommandLifecycle,
    HookResponse,
    HookStarted,
    Init,
    Message,
    Result,
    SessionStateChanged,
    Status,
    StreamEvent,
    TaskNotification,
    TaskStarted,
    TaskUpdated,
    TextBlock,
    ThinkingBlock,
    ThinkingTokens,
    ToolResultBlock,
    ToolUseBlock,
    UnknownBlock,
    UnknownMessage,
    User,
)
from steersman.messages.streaming import (
    ContentBlockDelta,
    ContentBlockStart,
    ContentBlockStop,
    InputJsonDelta,
    MessageDelta,
    MessageStart,
    MessageStop,
    SignatureDelta,
    TextDelta,
    ThinkingDelta,
    UnknownDelta,
    UnknownEvent,
)
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import call, fail, say, think, when
from tests.live.staging import LIMIT, MakeScripted, entries_of, entry_where

pytestmark = pytest.mark.live

HOOK = {"matcher": "Bash", "hooks": [{"type": "command", "command": "true"}]}
STRANGERS = {UnknownBlock, UnknownDelta, UnknownEvent, UnknownMessage}


def refuse(*_: Any) -> Deny:
    return Deny("no")


def classes_in(messages: Iterable[Message]) -> set[type]:
    """The classes of messages, and of the blocks, events and deltas inside them."""
    found: set[type] = set()
    for message in messages:
        found.add(type(message))
        match message:
            case Assistant(content=blocks) | User(content=list(blocks)):
                found.update(type(block) for block in blocks)
            case StreamEvent():
                event = message.typed()
                found.add(type(event))
                if isinstance(event, ContentBlockDelta):
                    found.add(type(event.delta))
            case _:
                pass
    return found


async def test_the_first_messages_name_the_key_the_speed_and_what_the_cli_does(
    scripted: MakeScripted,
) -> None:
    agent, _model = scripted(say("hello"))

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await session.set_permission_mode("plan")
        await session.run("go")
    found = [message async for message in session.messages()]

    (init,) = (message for message in found if isinstance(message, Init))
    modes = [message for message in found if isinstance(message, Status)]
    assert [(each.status, each.permission_mode) for each in modes] == [(None, "plan")]
    assert init.api_key_source == init.raw["apiKeySource"] != ""
    assert init.fast_mode_state == init.raw["fast_mode_state"]
    assert init.fast_mode_disabled_reason == init.raw.get("fast_mode_disabled_reason")


async def test_a_conversation_is_read_in_its_classes(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    command = call("Bash", command="echo hi")
    later = call("Bash", command="true", run_in_background=True)
    agent, _model = scripted(
        when(
            "go",
            fail(529),
            think("hm") + say("let me see", chunks=2) + command,
            call("Write", file_path=str(sandbox.project / "f"), content="x"),
            later,
            say("done"),
            # The end of what runs in the background is told to the model.
            say("I see"),
        ),
        include_partial_messages=True,
        include_hook_events=True,
        settings={"hooks": {"PreToolUse": [HOOK]}},
        allowed_tools=["Bash"],
        can_use_tool=refuse,
    )

    async with asyncio.timeout(LIMIT), agent.session() as session:
        await (await session.send("go"))
        # What runs in the background may end after the session was idle for a moment.
        await entry_where(
            session,
            lambda entry: (
                entry.kind is Kind.MESSAGE and isinstance(entry.message, TaskNotification)
            ),
        )
        await session.wait_idle(LIMIT)
        entries = await entries_of(session)

    kinds = {Kind.MESSAGE, Kind.PARTIAL, Kind.BOOKKEEPING}
    found = classes_in(each.message for each in entries if each.kind in kinds if each.message)
    assert found & STRANGERS == set()
    assert found >= {
        *(Init, Status, SessionStateChanged, CommandLifecycle, Result),
        *(Assistant, TextBlock, ThinkingBlock, ToolUseBlock, User, ToolResultBlock),
        *(StreamEvent, MessageStart, ContentBlockStart, ContentBlockDelta, ContentBlockStop),
        *(MessageDelta, MessageStop, TextDelta, ThinkingDelta, SignatureDelta, InputJsonDelta),
        *(ApiRetry, HookStarted, HookResponse, ThinkingTokens),
        *(TaskStarted, TaskUpdated, TaskNotification, BackgroundTasksChanged),
    }
