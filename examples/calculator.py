"""A calculator: Python functions as tools, and the answer as a value of your own class.

Run it with `python examples/calculator.py`; it uses your own login.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated

from steersman import Agent, tool


@dataclass
class Total:
    """What we want back: a number, not prose about one."""

    amount: float
    currency: str


@tool
def add(
    a: Annotated[float, "the first summand"], b: Annotated[float, "the second summand"]
) -> float:
    """Add two numbers."""
    return a + b


@tool
async def convert(amount: float, currency: str) -> float:
    """Convert an amount of euros to another currency."""
    rates = {"USD": 1.25, "GBP": 0.875}
    if currency not in rates:
        raise ValueError(f"no rate for {currency}; there are {', '.join(rates)}")
    return amount * rates[currency]


async def total(agent: Agent) -> Total:
    """Let Claude work it out with our tools."""
    return await agent.run("Add 19.99 and 5.01 euros and convert them to USD.", output=Total)


if __name__ == "__main__":
    print(asyncio.run(total(Agent(functions=[add, convert], tools=[]))))
