"""A calculator: Python functions as tools, and the answer as a value of your own class.

Run it with `python examples/calculator.py`; it uses your own login.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated

from steersman import Agent, Toolbox, tool
from steersman.tools import ToolError


@dataclass
class Answer:
    """The form of the answer: a number instead of text."""

    value: float


@tool(read_only=True)
def add(
    a: Annotated[float, "the first summand"], b: Annotated[float, "the second summand"]
) -> float:
    """Add two numbers."""
    return a + b


@tool(read_only=True)
def subtract(a: float, b: float) -> float:
    """Subtract b from a."""
    return a - b


@tool(read_only=True)
async def divide(a: float, b: float) -> float:
    """Divide a by b."""
    if b == 0:
        raise ToolError("Error: Division by zero")
    return a / b


calculator = Toolbox("calculator", [add, subtract, divide], version="1.0.0")


async def calculate(agent: Agent, task: str) -> Answer:
    """Let Claude calculate with our tools."""
    return await agent.run(task, output=Answer)


if __name__ == "__main__":
    found = asyncio.run(
        calculate(
            Agent(mcp_servers={"calc": calculator}, allowed_tools=["mcp__calc"], tools=[]),
            "Calculate 100 + 50, then subtract 25 from the result",
        )
    )
    print(found)
