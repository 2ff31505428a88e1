"""System prompts: none of yours, one of yours, that of Claude Code, and more text after it.

Run it with `python examples/system_prompts.py`; it uses your own login.
"""

from __future__ import annotations

import asyncio

from steersman import Agent
from steersman.options import OptionKwargs

PROMPTS: dict[str, OptionKwargs] = {
    "yours": {"system_prompt": "You are a pirate. Answer like one."},
    "preset and more": {
        "system_prompt": {
            "type": "preset",
            "preset": "claude_code",
            "append": "End every answer with a fun fact.",
        }
    },
}


async def compare(agent: Agent, question: str) -> dict[str, str]:
    """Ask the same question with each system prompt, all at once."""
    runs = [agent.run(question, **words) for words in PROMPTS.values()]
    answers = [each.text for each in await asyncio.gather(*runs)]
    for name, answer in zip(PROMPTS, answers, strict=True):
        print(f"--- {name}\n{answer}")
    return dict(zip(PROMPTS, answers, strict=True))


if __name__ == "__main__":
    asyncio.run(compare(Agent(tools=[]), "What is 2 + 2?"))
