"""What the scripted model claims, asked of the real one: a few cents, and tolerant of its words.

`make test-real` runs them with your own login; nothing else does.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steersman import Agent, Deny, tool
from steersman.messages import Init, Result

LIMIT = 120.0


@dataclass
class Capital:
    """A city."""

    name: str


async def test_an_answer_comes_in_pieces_and_costs_something(real_agent: Agent) -> None:
    async with asyncio.timeout(LIMIT), real_agent.session(tools=()) as session:
        turn = await session.send("Count from one to twenty, in words, separated by commas.")
        pieces = [piece async for piece in turn.text()]
        result = await turn
        messages = [message async for message in turn.messages()]

    assert result.outcome == "completed"
    assert "".join(pieces) == result.text
    assert "seven" in result.text.lower()
    assert len(pieces) > 1
    assert result.cost_usd > 0
    assert (type(messages[0]), type(messages[-1])) == (Init, Result)


async def test_a_python_tool_is_called(real_agent: Agent) -> None:
    given: list[tuple[int, int]] = []

    @tool
    def combine(a: int, b: int) -> int:
        """Combine two numbers by our secret rule, which cannot be guessed."""
        given.append((a, b))
        return a * 1000 + b

    async with asyncio.timeout(LIMIT):
        result = await real_agent.run(
            "Use the tool to combine 7 and 42. Tell me the number.", functions=[combine], tools=()
        )

    assert given == [(7, 42)]
    assert "7042" in result.text.replace(",", "").replace(" ", "")


async def test_a_denial_reaches_the_model_and_nothing_is_made(real_agent: Agent) -> None:
    asked: list[str] = []

    def refuse(name: str, _input: dict[str, Any], _context: Any) -> Deny:
        asked.append(name)
        return Deny("no files today; do not try another way")

    async with asyncio.timeout(LIMIT):
        result = await real_agent.run(
            "Create a file named made.txt with the Write tool. If you may not, say so.",
            can_use_tool=refuse,
        )

    assert asked
    assert result.permission_denials
    assert made(real_agent) == []


def made(agent: Agent) -> list[Path]:
    return list(Path(str(agent.options.cwd)).iterdir())


async def test_an_answer_comes_as_a_value(real_agent: Agent) -> None:
    async with asyncio.timeout(LIMIT):
        capital = await real_agent.run("The capital of France.", output=Capital, tools=())

    assert capital.name == "Paris"


async def test_an_interrupt_leaves_the_session_usable(real_agent: Agent) -> None:
    async with asyncio.timeout(LIMIT), real_agent.session(tools=()) as session:
        turn = await session.send("Write a story of two thousand words about the sea.")
        async for _ in turn.text():
            break
        await turn.interrupt()
        stopped = await turn
        after = await (await session.send("Say the word fresh, and nothing else."))

    assert stopped.outcome == "interrupted"
    assert "fresh" in after.text.lower()
