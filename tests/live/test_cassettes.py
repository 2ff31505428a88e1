"""What the stock CLI said once, it says again without being there."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from steersman import Agent, Allow, Deny, Hooks, TurnResult, tool
from steersman.hooks import PostToolUse, PreToolUse
from steersman.messages import Message
from steersman.ports import Transport
from steersman.testing.cassettes import Cassette, Drifted, Recorder, read_cassette
from steersman.testing.cassettes.scrubbing import lint
from steersman.testing.sandbox import SCRIPTED_API_KEY, CliSandbox
from steersman.testing.script import call, calls, say, stall, think, when
from tests.live.staging import LIMIT, MakeScripted, collect, entry_where
from tests.testing.cassette_samples import Story, story_of

pytestmark = pytest.mark.live

TALK = "work"
STOP = "talk"
LAST = "bye"
TOOLS_ARE_LISTED = b'"result":{"tools":['


@tool
def add(a: float, b: float) -> float:
    """Add two numbers."""
    return a + b


def watched(seen: list[str]) -> Hooks:
    hooks = Hooks()

    @hooks.on(PreToolUse)
    async def before(event: PreToolUse) -> None:
        seen.append(f"before {event.tool_name}")

    @hooks.on(PostToolUse)
    async def after(event: PostToolUse) -> None:
        seen.append(f"after {event.tool_name}")

    return hooks


async def decide(name: str, given: dict[str, Any], *_: Any) -> Allow | Deny:
    return Deny("not that one") if "denied" in str(given) else Allow()


async def decide_otherwise(*_: Any) -> Allow:
    return Allow()


Conversation = tuple[list[TurnResult], list[list[Message]], list[str], Story]


async def converse(
    agent: Agent, transport: Transport, *, after: bytes = b"", **options: Any
) -> Conversation:
    """Text, a function, permissions, hooks and an interrupt, in three turns.

    The first prompt is sent once a line that contains `after` is in the journal.
    """
    seen: list[str] = []
    usual: dict[str, Any] = {"hooks": watched(seen), "can_use_tool": decide, "functions": [add]}
    session = agent.session(transport=transport, **{**usual, **options})
    async with asyncio.timeout(LIMIT), session:
        if after:
            await entry_where(session, lambda entry: after in entry.line)
        turns = [await session.send(TALK)]
        await turns[0]
        if (await turns[0]).is_success:
            turns.append(await session.send(STOP))
            async for _ in turns[1].text():
                await turns[1].interrupt()
            turns.append(await session.send(LAST))
        results = [await turn for turn in turns]
        messages = [await collect(turn.messages()) for turn in turns]
    return results, messages, seen, await story_of(session)


@pytest.fixture
async def agent(scripted: MakeScripted, sandbox: CliSandbox) -> Agent:
    def write(name: str) -> Any:
        return call("Write", file_path=str(sandbox.project / name), content="x")

    made, _model = scripted(
        when(
            TALK,
            think("hm") + say("I add.", chunks=2) + call("mcp__functions__add", a=2, b=3),
            calls(write("allowed"), write("denied")),
            say("It is 5.", chunks=3),
        ),
        when(STOP, say("half a ") + stall() + say("thought")),
        when(LAST, say("Goodbye.")),
    )
    return made


def told(results: list[TurnResult]) -> list[tuple[Any, ...]]:
    return [
        (each.outcome, each.text, each.answer, each.cost_usd, each.usage, each.terminal_reason)
        for each in results
    ]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "conversation.jsonl"


@pytest.mark.parametrize("after", [b"", TOOLS_ARE_LISTED], ids=["at once", "tools listed"])
async def test_a_conversation_is_the_same_without_the_cli(
    agent: Agent, path: Path, after: bytes
) -> None:
    """A replay does not wait for what the host does without writing: it reads the tools at once."""
    then = await converse(agent, Recorder(path), after=after)

    for mode in ("stub", "verify", "once"):
        with Cassette(path, mode) as cassette:
            again = await converse(agent, cassette, after=after, cli_path=None)

        assert told(again[0]) == told(then[0])
        assert [[*map(type, each)] for each in again[1]] == [[*map(type, each)] for each in then[1]]
        assert (again[2], again[3]) == (then[2], then[3])

    assert [each.outcome for each in then[0]] == ["completed", "interrupted", "completed"]
    assert [each.text for each in then[0]] == ["I add.\n\nIt is 5.", "half a ", "Goodbye."]
    assert sum(each.cost_usd for each in then[0]) > 0
    assert then[2].count("after Write") == 1
    (track,) = read_cassette(path)
    assert track.header.cli
    assert lint(path) == []
    assert SCRIPTED_API_KEY.encode() not in b"".join(record.line for record in track.records)


async def test_a_replay_that_goes_otherwise_names_where(agent: Agent, path: Path) -> None:
    await converse(agent, Recorder(path))
    cassette = Cassette(path, "verify")

    results, *_ = await converse(agent, cassette, can_use_tool=decide_otherwise, cli_path=None)

    (drift,) = cassette.drifts
    assert drift.what.startswith("the answer to the permission for Write (toolu_")
    assert 'response.behavior: "deny" became "allow"' in str(drift)
    assert [each.outcome for each in results] == ["failed"]
    assert drift.what in results[0].reason

    with pytest.raises(Drifted, match="prompt 1 differs"), Cassette(path, "stub") as another:
        await agent.run("work harder", transport=another, cli_path=None)
