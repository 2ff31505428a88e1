"""Structured output: the answer is an instance of a class, and the cost is not lost if it fails.

Run it with `python examples/structured.py "a text"`; it uses your own login.
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from typing import Literal

from steersman import Agent
from steersman.errors import BadOutput, NoOutput, TurnFailed


@dataclass
class Review:
    """What the model must return."""

    mood: Literal["good", "mixed", "bad"]
    stars: int
    complaints: list[str]


async def review(agent: Agent, text: str) -> Review | None:
    """Return the review as data, or print why there is none."""
    try:
        return await agent.run(f"Rate this review:\n{text}", output=Review)
    except TurnFailed as error:
        print(f"failed after {error.cost_usd:.4f} USD: {error.reason}", file=sys.stderr)
    except (NoOutput, BadOutput) as error:
        print(f"the answer does not fit: {error.text!r}", file=sys.stderr)
    return None


if __name__ == "__main__":
    given = " ".join(sys.argv[1:]) or "Good food, but we waited for an hour."
    print(asyncio.run(review(Agent(tools=[], max_turns=3), given)))
