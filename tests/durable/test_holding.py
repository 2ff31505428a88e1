"""Calls that will be asked about are held before the CLI requests the permission."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from steersman import Agent, Allow, Deny, Session
from steersman.durable.hook_watch import decides
from steersman.hooks import Hooks, PreToolUse, Reply, allow, ask, context, deny, modify
from steersman.inbox import StoredInbox
from steersman.journal import Entry, Kind
from steersman.permissions import Ask, PermissionContext, Policy
from steersman.permissions import ask as asked_about
from steersman.stores import SqliteStore
from steersman.testing.script import Script, Step, call, say
from steersman.testing.scripted.cli import ScriptedCLI
from tests.live.staging import entries_of

WRITE = call("Write", file_path="/tmp/paid", content="x", id_="toolu_1")
ASKING: dict[str, Any] = {"policy": Policy(asked_about("Write"))}


@asynccontextmanager
async def session_of(
    folder: Path, *steps: Step, **options: Any
) -> AsyncGenerator[tuple[Session, StoredInbox], None]:
    """A session whose inbox is in a store, and that inbox."""
    async with asyncio.timeout(20), SqliteStore(folder / "work.db") as store:
        inbox = store.inbox()
        agent = Agent(inbox=inbox, transport=ScriptedCLI(Script(*steps)), **options)
        async with agent.session() as session:
            yield session, inbox


async def next_ask(inbox: StoredInbox) -> Ask:
    watch = inbox.watch()
    change = await anext(watch)
    await watch.aclose()
    return change.ask


async def asked_in(session: Session) -> list[Entry]:
    return [each for each in await entries_of(session) if each.kind is Kind.ASKED]


async def test_a_held_call_waits_for_the_user_and_is_shown_once(tmp_path: Path) -> None:
    async with session_of(tmp_path, WRITE, say("Done."), **ASKING) as (session, inbox):
        shown: list[Ask] = []
        session.on("ask", shown.append)
        turn = await session.send("pay")
        ask = await next_ask(inbox)
        state, pending = session.state, session.snapshot().pending_permissions
        await inbox.answer(ask, Allow(), by="ann")
        result = await turn
        notes = await asked_in(session)
        left = await inbox.list()

    assert [each.request_id for each in pending] == ["toolu_1"] == [ask.id]
    assert (state, [each.tool_use_id for each in pending]) == ("waiting_permission", ["toolu_1"])
    assert (result.text, len(notes), len(shown), left) == ("Done.", 1, 1, [])


@pytest.mark.parametrize(
    ("reply", "is_asked"),
    [(deny("no"), False), (ask("sure?"), True), (context("a hint"), True)],
    ids=["denies", "asks", "adds"],
)
async def test_nobody_is_asked_about_a_call_that_another_hook_decides(
    tmp_path: Path, reply: Reply, *, is_asked: bool
) -> None:
    hooks, replied = Hooks(), asyncio.Event()

    @hooks.on(PreToolUse)
    async def decide(_event: PreToolUse) -> Reply:
        await asyncio.sleep(0)
        replied.set()
        return reply

    async with session_of(tmp_path, WRITE, say("Done."), hooks=hooks, **ASKING) as (
        session,
        inbox,
    ):
        turn = await session.send("pay")
        await replied.wait()
        if is_asked:
            found = await next_ask(inbox)
            assert found.id == "toolu_1"
            await inbox.answer(found, Deny("no"), by="ann")
        await turn
        asked = await asked_in(session)

    assert len(asked) == is_asked


async def test_a_call_whose_input_a_hook_changes_is_asked_about_as_changed(tmp_path: Path) -> None:
    hooks = Hooks()
    hooks.on(PreToolUse)(lambda _: modify({"file_path": "/tmp/other", "content": "y"}))
    async with session_of(tmp_path, WRITE, say("Done."), hooks=hooks, **ASKING) as (
        session,
        inbox,
    ):
        turn = await session.send("pay")
        ask = await next_ask(inbox)
        await inbox.answer(ask, Deny("no"), by="ann")
        await turn
        left = await inbox.list()

    assert (ask.tool_input["file_path"], left) == ("/tmp/other", [])


async def test_an_interrupt_closes_the_ask_of_a_held_call(tmp_path: Path) -> None:
    async with session_of(tmp_path, WRITE, say("Done."), **ASKING) as (session, inbox):
        turn = await session.send("pay")
        await next_ask(inbox)
        await turn.interrupt()
        result = await turn
        while left := await inbox.list():  # noqa: ASYNC110 - another thread writes it
            await asyncio.sleep(0.01)

    assert (result.outcome, left) == ("interrupted", [])


def decline(_name: str, _given: dict[str, Any], _context: PermissionContext) -> Deny:
    return Deny("no")


@pytest.mark.parametrize(
    "options",
    [
        {**ASKING, "can_use_tool": decline},
        {"policy": Policy(asked_about("Write"), remember="session")},
        {},
    ],
    ids=["a callback decides", "answers are remembered", "the CLI decides whether to ask"],
)
async def test_a_call_that_may_not_be_asked_about_is_not_held(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    async with session_of(tmp_path, WRITE, say("Done."), **options) as (session, inbox):
        turn = await session.send("pay")
        if "can_use_tool" not in options:
            ask = await next_ask(inbox)
            assert ask.id != "toolu_1"
            await inbox.answer(ask, Deny("no"), by="ann")
        result = await turn

    assert result.outcome == "completed"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, False),
        ({}, False),
        (Reply(), False),
        (ask(), False),
        (context("x"), False),
        ({"hookSpecificOutput": {"permissionDecision": "ask"}}, False),
        ({"systemMessage": "hello"}, False),
        (deny("no"), True),
        (allow(), True),
        (modify({"a": 1}), True),
        (Reply(continue_=False), True),
        (Reply(decision="block"), True),
        ({"decision": "block"}, True),
        ({"continue": False}, True),
        ({"hookSpecificOutput": {"permissionDecision": "ask", "updatedInput": {}}}, True),
        ({"hookSpecificOutput": 5}, True),
        (5, True),
    ],
)
def test_a_reply_decides_unless_it_only_asks_or_adds(given: object, *, expected: bool) -> None:
    assert decides(given) is expected
