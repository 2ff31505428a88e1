"""What the snippets of each page need, what they print, and which of them cannot be run.

A page that is not named here runs as it stands, on a CLI that answers "Done.".
"""

from __future__ import annotations

import asyncio
import base64
import os
import sys
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path

import pytest

from steersman import Agent
from steersman.errors import TurnFailed
from steersman.journal import Entry
from steersman.messages.parsing import parse_message
from steersman.stores import read_journal
from steersman.testing import Script, ScriptedCLI, call, calls, say
from steersman.testing.script import Answer
from steersman.transcripts.keys import project_key
from tests.docs.snippets import Names, Stage
from tests.sessions.made import conversation, write

ONLY_CHECKED: Mapping[tuple[str, str], str] = {
    ("docs/moving-from-python.md", "claude_agent_sdk"): "tests/live/test_moving_page.py runs it: "
    "the official SDK brings its own CLI",
}
"""Snippets that are only type-checked, by page and a phrase in them, each with the reason."""

ELSEWHERE: Mapping[str, str] = {"docs/recipes.md": "tests/house/test_recipes.py"}
"""Pages whose snippets have tests of their own, which call each function."""

ENDLESS: Mapping[str, Mapping[str, str]] = {
    "docs/asks.md": {"inbox.watch()": "permission Bash"},
    "docs/durable.md": {
        "session.resume_turns()": "",
        "conversation.machine": "",
        "store.follow(": "",
    },
    "docs/journal.md": {"follow_journal(": "completed"},
}
"""Snippets without an end, by page and a phrase in them, and what they print at last."""

DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABpfZFQAAAAABJRU5E"
    "rkJggg=="
)
"""A picture."""

SCRIPTS: Mapping[str, tuple[Answer, ...]] = {
    "README.md": (call("mcp__functions__add", a=19.99, b=5.01), say("It is 25.", chunks=3)),
    "docs/asks.md": (call("Bash", command="touch new"), say("Touched.")),
    "docs/hooks.md": (call("Bash", command="git push --force"), say("Refused.")),
    "docs/mcp.md": (call("mcp__shop__price", item="tea"), say("It costs 3.50.")),
    "docs/moving-from-python.md": (call("mcp__functions__add", a=1, b=2), say("It is 25.")),
    "docs/moving-from-typescript.md": (call("mcp__functions__add", a=1, b=2), say("It is 25.")),
    "docs/permissions.md": (call("Bash", command="git push"), say("Not pushed.")),
    "docs/quickstart.md": (
        say("README.md is here."),
        call("mcp__functions__price", item="tea"),
        say("11.25, that is.", chunks=2),
        call("Bash", command="rm notes.txt"),
        say("Kept."),
    ),
    "docs/sessions.md": (call("Bash", command="true"), say("There are none.")),
    "docs/sync.md": (call("mcp__functions__add", a=2, b=3), say("It is 5.")),
    "docs/tools.md": (
        call("mcp__functions__count", item="pear"),
        call("mcp__functions__order", item="apple", number=1, id_="toolu_1"),
        say("Ordered."),
    ),
    "docs/tour.md": (call("mcp__functions__add", a=2, b=3), say("5.")),
}
"""What the model answers on a page, in order."""

PRINTED: Mapping[str, tuple[str, ...]] = {
    "README.md": ("It is 25.\n0.0",),
    "docs/asks.md": ("permission Bash {'command': 'touch new'",),
    "docs/compat.md": ("result success", "completed"),
    "docs/command-line.md": ("git this is no repository git init",),
    "docs/debugging.md": ("idle", "message", "completed"),
    "docs/journal.md": ("'idle', 'starting', 'idle', 'running'", "It says hi."),
    "docs/mcp.md": ("It costs 3.50.",),
    "docs/messages.md": ("$ ls", "a list"),
    "docs/mirroring.md": ("Done.",),
    "docs/moving-from-python.md": ("It is 25.\ncompleted",),
    "docs/moving-from-typescript.md": ("It is 25.\ncompleted",),
    "docs/permissions.md": ("Bash cli -> deny",),
    "docs/quickstart.md": ("README.md is here.", "11.25, that is.completed 1", "Hello."),
    "docs/sessions.md": ("paused", "There are none.", "completed 1"),
    "docs/stored-sessions.md": ("Fix the login bug", "2 entries copied", "0 the second time"),
    "docs/stores.md": ("1 entries",),
    "docs/sync.md": ("It is 5.",),
    "docs/tools.md": ("Ordered.",),
    "docs/verbs.md": ("[]",),
}
"""Texts that the snippets of a page print, among others."""

TEST_HEADS: Mapping[str, str] = {
    "docs/cassettes.md": """
import pytest
from steersman.testing import executable, say

@pytest.fixture(autouse=True)
def _scripted(tmp_path, monkeypatch):
    monkeypatch.setenv("STEERSMAN_CLI", str(executable([say("4")], tmp_path)))
"""
}
"""What comes before the snippets of a page that are tests: which CLI they record, for example."""


async def _asks(names: Names) -> AsyncGenerator[None]:
    async def ask() -> None:
        # A name tells nobody that it is there.
        while "agent" not in names:  # noqa: ASYNC110
            await asyncio.sleep(0)
        await names["agent"].run("Make a file.")

    asking = asyncio.ensure_future(ask())
    yield
    asking.cancel()


async def _debugging(names: Names) -> AsyncGenerator[None]:
    await _record()
    yield
    async with Agent(transport=ScriptedCLI()).session() as session:
        watching = asyncio.ensure_future(names["watch"](session))
        await session.run("hi")
        names["look"](session)
        watching.cancel()


async def _deployment(names: Names) -> AsyncGenerator[None]:
    yield
    waiting = asyncio.ensure_future(names["until_stopped"](asyncio.Event().wait()))
    await asyncio.sleep(0)
    os.kill(os.getpid(), 15)
    await waiting


async def _hooks(names: Names) -> AsyncGenerator[None]:
    yield
    assert (await names["agent"].run("Push.")).text == "Refused."


async def _journal(names: Names) -> AsyncGenerator[None]:
    await _record()

    def show(entry: Entry) -> None:
        names["print"](entry.kind.value, dict(entry.details))

    names["show"] = show
    yield


async def _messages(names: Names) -> AsyncGenerator[None]:
    asked = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}}
    said = {"id": "m", "role": "assistant", "model": "m", "content": [asked]}
    shown = {"type": "tool_result", "tool_use_id": "t", "content": "a list"}
    heard = {"role": "user", "content": [shown]}
    names["message"] = parse_message({"type": "assistant", "message": said})
    names["user"] = parse_message(
        {"type": "user", "message": heard, "tool_use_result": {"stdout": "a list"}}
    )
    yield


async def _mirroring(_names: Names) -> AsyncGenerator[None]:
    before, sys.argv = sys.argv, ["page", "conversations.db"]
    yield
    sys.argv = before


async def _permissions(names: Names) -> AsyncGenerator[None]:
    await _record()
    names["entries"] = list(read_journal("run.jsonl"))
    yield
    with pytest.raises(TurnFailed, match="interrupted"):
        await names["agent"].run("Push.")


async def _prompts(_names: Names) -> AsyncGenerator[None]:
    _write({"screenshot.png": DOT, "report.pdf": b"%PDF-1.4\n", "notes.txt": b"All is well."})
    yield


async def _quickstart(names: Names) -> AsyncGenerator[None]:
    yield
    assert (await names["agent"].run("Tidy up.")).text == "Kept."


async def _session(names: Names) -> AsyncGenerator[None]:
    """A session, and the agent that it comes from."""
    names["agent"] = Agent()
    async with names["agent"].session() as session:
        names["session"] = session
        yield


async def _stored_sessions(_names: Names) -> AsyncGenerator[None]:
    texts = conversation("Fix the login bug", "It is fixed.")
    write(Path(os.environ["CLAUDE_CONFIG_DIR"]), texts, project=project_key(str(Path.cwd())))
    yield


def _write(files: Mapping[str, bytes]) -> None:
    for name, content in files.items():
        Path(name).write_bytes(content)


async def _record() -> None:
    """Write `run.jsonl`: a session with a tool call."""
    script = Script(calls(call("Bash", command="rm notes.txt")), say("It says hi."))
    agent = Agent(transport=ScriptedCLI(script), journal="run.jsonl", allowed_tools=["Bash"])
    async with agent.session() as session:
        await session.run("Look.")


STAGES: Mapping[str, Stage] = {
    "docs/asks.md": _asks,
    "docs/debugging.md": _debugging,
    "docs/deployment.md": _deployment,
    "docs/hooks.md": _hooks,
    "docs/journal.md": _journal,
    "docs/messages.md": _messages,
    "docs/mirroring.md": _mirroring,
    "docs/permissions.md": _permissions,
    "docs/prompts.md": _prompts,
    "docs/quickstart.md": _quickstart,
    "docs/steering.md": _session,
    "docs/stored-sessions.md": _stored_sessions,
    "docs/verbs.md": _session,
}
"""What is done before and after the snippets of a page."""
