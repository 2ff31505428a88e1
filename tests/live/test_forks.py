"""A fork that we write, resumed by the CLI."""

from __future__ import annotations

import asyncio
import json
import uuid
from typing import Any

import pytest

from steersman.testing.request import ModelRequest
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import Script, call, calls, say, when
from steersman.transcripts import fork
from tests.live.staging import LIMIT, MakeScripted

pytestmark = pytest.mark.live

ORIGINAL = "12345678-1234-4234-8234-123456789abc"
FORKED = "87654321-4321-4321-8321-cba987654321"


def history(request: ModelRequest) -> list[Any]:
    """The messages of the user and of the model, without what the CLI adds for the model."""
    return [each for each in request.body["messages"] if each["role"] != "system"]


async def test_the_model_gets_from_our_fork_what_it_gets_from_one_of_the_cli(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    parallel = calls(call("Bash", command="echo one"), call("Bash", command="echo two"))
    script = Script(
        when("work", parallel, say("worked")),
        when("more", parallel, say("more work")),
        when("again", say("resumed"), say("resumed")),
        strict=True,
    )
    agent, model = scripted(script, allowed_tools=["Bash"])

    async with asyncio.timeout(LIMIT):
        async with agent.session(session_id=ORIGINAL) as session:
            await session.run("work")
            # The compaction keeps the last messages, and names them by their uuids.
            await (await session.command("/compact"))
            await session.run("more")
        path = next(sandbox.config.glob(f"projects/*/{ORIGINAL}.jsonl"))
        entries = [json.loads(line) for line in path.read_bytes().splitlines()]
        copies = fork(
            entries,
            session_id=ORIGINAL,
            new_id=FORKED,
            new_uuid=lambda: str(uuid.uuid4()),
            timestamp="2026-11-19T10:00:00.000Z",
        )
        lines = [json.dumps(each, separators=(",", ":")) for each in copies]
        path.with_stem(FORKED).write_text("\n".join([*lines, ""]))
        async with agent.session(resume=ORIGINAL, fork_session=True) as by_the_cli:
            await by_the_cli.run("again")
        async with agent.session(resume=FORKED) as ours:
            await ours.run("again")

    expected, found = (history(each) for each in model.asked[-2:])
    assert found == expected
    assert all(word in str(found) for word in ("worked", "one", "two", "more work"))
