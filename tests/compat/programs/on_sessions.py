"""Conversations that are continued, forked, stored elsewhere, and read."""

from __future__ import annotations

from typing import Any

from steersman.testing.script import say
from tests.compat.programs.catalogue import program
from tests.compat.programs.stage import Stage

FIRST = "00000000-0000-4000-8000-000000000002"
SECOND = "00000000-0000-4000-8000-000000000003"


async def ask(sdk: Any, stage: Stage, text: str, **options: Any) -> Any:
    """Run one prompt and return its result."""
    found = await stage.read(sdk.query(prompt=text, options=stage.options(**options)))
    return found[-1]


def told(stage: Stage) -> None:
    """Record what the model got in each request, as roles."""
    for request in stage.model.asked:
        stage.note("roles", [each["role"] for each in request.body["messages"]])


@program(say("one"), say("two"))
async def session_resumed(sdk: Any, stage: Stage) -> None:
    first = await ask(sdk, stage, "first", session_id=FIRST)
    second = await ask(sdk, stage, "second", resume=first.session_id)
    stage.note("ids", [first.session_id, second.session_id])
    told(stage)


@program(say("one"), say("two"))
async def session_continued(sdk: Any, stage: Stage) -> None:
    await ask(sdk, stage, "first", session_id=FIRST)
    second = await ask(sdk, stage, "second", continue_conversation=True)
    stage.note("id", second.session_id)
    told(stage)


@program(say("one"), say("two"), say("three"))
async def session_forked(sdk: Any, stage: Stage) -> None:
    await ask(sdk, stage, "first", session_id=FIRST)
    fork = await ask(sdk, stage, "second", resume=FIRST, fork_session=True, session_id=SECOND)
    again = await ask(sdk, stage, "third", resume=FIRST)
    stage.note("ids", [fork.session_id, again.session_id])
    told(stage)


@program(say("one"), say("two"), say("three"))
async def session_resumed_at_an_earlier_message(sdk: Any, stage: Stage) -> None:
    options = stage.options(session_id=FIRST)
    at = ""
    async with sdk.ClaudeSDKClient(options) as client:
        for text in ("first", "second"):
            await client.query(text)
            found = await stage.read(client.receive_response())
            at = at or next(each.uuid for each in found if isinstance(each, sdk.AssistantMessage))
    await ask(sdk, stage, "third", resume=FIRST, resume_session_at=at)
    told(stage)


@program(say("one"), say("two"))
async def session_in_a_store(sdk: Any, stage: Stage) -> None:
    store = sdk.InMemorySessionStore()
    await ask(sdk, stage, "first", session_store=store, session_id=FIRST)
    key = sdk.project_key_for_directory(str(stage.cwd))
    entries = await store.load({"project_key": key, "session_id": FIRST})
    stage.note("types", sorted({each["type"] for each in entries}))
    # The next one has another home: everything comes from the store.
    elsewhere = stage.sandbox.root / "elsewhere"
    env = {"CLAUDE_CONFIG_DIR": str(elsewhere)}
    await ask(sdk, stage, "second", session_store=store, resume=FIRST, env=env)
    told(stage)
    messages = await sdk.get_session_messages_from_store(store, FIRST, directory=str(stage.cwd))
    stage.note("messages", [[each.type, each.message.get("content")] for each in messages])


@program(say("one"))
async def session_in_a_store_that_fails(sdk: Any, stage: Stage) -> None:
    class Broken:
        async def append(self, _key: Any, _entries: Any) -> None:
            raise OSError("the disk is full")

        async def load(self, _key: Any) -> Any:
            return None

    await ask(sdk, stage, "first", session_store=Broken(), session_id=FIRST)
    # One message per failed batch: how many there are is the CLI's affair.
    kinds = [each["is"] for each in stage.messages]
    stage.note("mirror errors", "MirrorErrorMessage" in kinds)
    stage.messages = [each for each in stage.messages if each["is"] != "MirrorErrorMessage"]


@program(say("one"), say("two"), alone=True)
async def sessions_read(sdk: Any, stage: Stage) -> None:
    await ask(sdk, stage, "first words", session_id=FIRST)
    await ask(sdk, stage, "second words", resume=FIRST)
    folder = str(stage.cwd)
    sdk.rename_session(FIRST, "A name", directory=folder)
    sdk.tag_session(FIRST, "kept", directory=folder)
    stage.note("list", sdk.list_sessions(directory=folder))
    stage.note("info", sdk.get_session_info(FIRST, directory=folder))
    messages = sdk.get_session_messages(FIRST, directory=folder)
    stage.note("messages", [[each.type, each.message.get("content")] for each in messages])
    fork = sdk.fork_session(FIRST, directory=folder, title="A copy")
    stage.note("titles", sorted(each.summary for each in sdk.list_sessions(directory=folder)))
    sdk.delete_session(fork.session_id, directory=folder)
    stage.note("left", len(sdk.list_sessions(directory=folder)))
    stage.note("none", sdk.get_session_info(SECOND, directory=folder))
