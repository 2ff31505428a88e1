"""The CLI's memory and transcripts are closed to agents unless `memory=True`."""

from __future__ import annotations

import asyncio
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from steersman import Deny
from steersman.permissions import PermissionContext
from steersman.testing.sandbox import CliSandbox
from steersman.testing.script import call, calls, say
from tests.live.staging import LIMIT, MakeScripted

pytestmark = pytest.mark.live

CANARY = "CANARY_IN_MEMORY"


def folder_of(sandbox: CliSandbox) -> Path:
    """Return the directory in which the CLI keeps what belongs to the project."""
    return sandbox.config / "projects" / re.sub(r"[^A-Za-z0-9]", "-", str(sandbox.project))


def remember(sandbox: CliSandbox) -> Path:
    memory = folder_of(sandbox) / "memory" / "MEMORY.md"
    memory.parent.mkdir(parents=True)
    memory.write_text(f"Remember {CANARY}.\n")
    return memory


def refuse(_name: str, _given: dict[str, Any], _context: PermissionContext) -> Deny:
    return Deny("nothing is allowed here")


@pytest.mark.parametrize("opened", [False, True])
async def test_the_memory_is_in_the_prompt_only_if_the_option_opens_it(
    scripted: MakeScripted, sandbox: CliSandbox, *, opened: bool
) -> None:
    remember(sandbox)
    agent, model = scripted(say("done"), memory=opened)

    async with asyncio.timeout(LIMIT):
        await agent.run("go")

    assert (CANARY in json.dumps(model.asked[0].body)) is opened


ALIKE = [pytest.param(mode, marks=pytest.mark.soak_only) for mode in ("dontAsk", "acceptEdits")]


@pytest.mark.parametrize("mode", ["default", "bypassPermissions", *ALIKE])
async def test_memories_and_transcripts_are_neither_read_nor_written(
    scripted: MakeScripted, sandbox: CliSandbox, mode: str
) -> None:
    memory = remember(sandbox)
    transcript = folder_of(sandbox) / "0a1b2c3d-1111-4222-8333-123456789abc.jsonl"
    transcript.write_text(json.dumps({"text": CANARY}))
    agents = sandbox.config / "agent-memory" / "helper" / "MEMORY.md"
    agents.parent.mkdir(parents=True)
    agents.write_text(CANARY)
    before = [each.read_text() for each in (memory, transcript, agents)]
    steps = [
        call("Read", file_path=str(memory)),
        call("Read", file_path=str(transcript)),
        call("Read", file_path=str(agents)),
        call("Write", file_path=str(memory), content="changed"),
        call("Write", file_path=str(memory.parent / "new.md"), content="changed"),
        call("Write", file_path=str(agents), content="changed"),
        call("Write", file_path=str(agents.parent / "new.md"), content="changed"),
    ]
    is_open = mode == "bypassPermissions"
    guard: dict[str, Any] = (
        {} if mode in ("dontAsk", "bypassPermissions") else {"can_use_tool": refuse}
    )
    agent, model = scripted(
        *steps,
        say("done"),
        permission_mode=mode,
        allow_dangerously_skip_permissions=is_open,
        env={"IS_SANDBOX": "1"},
        **guard,
    )

    async with asyncio.timeout(LIMIT):
        await agent.run("go")

    assert [each.read_text() for each in (memory, transcript, agents)] == before
    assert list(sandbox.config.rglob("new.md")) == []
    assert CANARY not in json.dumps([each.body for each in model.asked])
    assert len(model.asked) == len(steps) + 1


async def test_a_long_result_of_a_tool_can_still_be_read(
    scripted: MakeScripted, sandbox: CliSandbox
) -> None:
    """The CLI writes it into a file beside the transcripts, and names the file to the model."""

    def read_it(request: Any) -> Any:
        found = re.search(r"/\S+/tool-results/[\w.-]+", json.dumps(request.body))
        assert found is not None
        return call("Read", file_path=found[0], limit=1)

    (sandbox.project / "long").write_text("line of the long file\n" * 8000)
    agent, model = scripted(
        call("Bash", command="cat long", description="a test"), read_it, say("done")
    )

    async with asyncio.timeout(LIMIT):
        await agent.run("go")

    assert "line of the long file" in list(model.asked[-1].tool_results.values())[-1]


async def test_a_conversation_is_resumed_as_before(scripted: MakeScripted) -> None:
    agent, model = scripted(say("first answer"), say("second answer"))

    async with asyncio.timeout(LIMIT):
        async with agent.session() as session:
            await (await session.send("first prompt"))
        async with agent.session(resume=session.id) as session:
            result = await (await session.send("second prompt"))

    assert result.text == "second answer"
    assert "first answer" in json.dumps(model.asked[-1].body["messages"])


OWN = "0a1b2c3d-1111-4222-8333-123456789abc"
OTHER = "0a1b2c3d-1111-4222-8333-123456789abd"

UNREAD = (
    *(f"{{folder}}/{OTHER}/tool-results/a.txt", f"{{folder}}/{OTHER}/subagents/a.txt"),
    *(
        f"{{folder}}/{OTHER}/session-memory/summary.md",
        f"{{folder}}/{OWN}/session-memory/summary.md",
    ),
    *(f"{{tmp}}/{OTHER}/tasks/a.output", f"{{tmp}}/{OTHER}/scratchpad/a"),
    *(f"{{config}}/tasks/{OTHER}/1.json", "{config}/teams/a/config.json"),
    *("{project}/.claude/agent-memory/a/M.md", "{project}/.claude/agent-memory-local/a/M.md"),
    *("{folder}/x/a.txt", "{config}/agent-memory/a/M.md"),
)
UNWRITTEN = (
    *("{project}/.claude/agent-memory/a/new.md", "{project}/.claude/agent-memory-local/a/new.md"),
    *("{project}/.claude/agent-memory/new.md", "{config}/agent-memory/a/new.md"),
    *("{folder}/memory/new.md", f"{{folder}}/{OWN}/session-memory/new.md"),
)
"""What the file tools of the stock CLI do unasked if nothing denies it.

Found by a trace of the files that the CLI opens itself, and by calls with every name in it.
"""


@pytest.mark.parametrize("mode", ["default", "plan", "dontAsk"])
async def test_what_other_sessions_left_is_not_read_and_memories_of_agents_are_not_written(
    scripted: MakeScripted, sandbox: CliSandbox, mode: str
) -> None:
    folder = folder_of(sandbox)
    places = {
        "folder": folder,
        "tmp": sandbox.tmp / f"claude-{os.getuid()}" / folder.name,
        "config": sandbox.config,
        "project": sandbox.project,
    }
    unread = [Path(each.format_map(places)) for each in UNREAD]
    unwritten = [Path(each.format_map(places)) for each in UNWRITTEN]
    own = folder / OWN / "tool-results" / "a.txt"
    for path in (*unread, own):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{CANARY} {path.parent.name}")
    options: dict[str, Any] = {} if mode == "dontAsk" else {"can_use_tool": refuse}
    agent, model = scripted(
        calls(
            *(call("Read", file_path=str(each), id_=f"r{n}") for n, each in enumerate(unread)),
            *(
                call("Write", file_path=str(each), content="new", id_=f"w{n}")
                for n, each in enumerate(unwritten)
            ),
            call("Read", file_path=str(own), id_="own"),
        ),
        say("done"),
        permission_mode=mode,
        **options,
    )

    async with asyncio.timeout(2 * LIMIT), agent.session(session_id=OWN) as session:
        await (await session.send("go"))

    results = model.asked[-1].tool_results
    assert [str(unread[n]) for n in range(len(unread)) if CANARY in results[f"r{n}"]] == []
    assert [str(each) for each in unwritten if each.exists()] == []
    # The long results of its own tools stay readable.
    assert CANARY in results["own"]
