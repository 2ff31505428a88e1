"""Partial messages: every event of a message while the model writes it.

`turn.text()` is enough for text. With `include_partial_messages` the events themselves are
messages too. Run it with `python examples/partial_messages.py "a prompt"`; it uses your own login.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter

from steersman import Agent, Assistant, StreamEvent


async def watch(agent: Agent, prompt: str) -> Counter[str]:
    """Print the text as its events arrive, and return how many events of each type there were."""
    seen: Counter[str] = Counter()
    async for message in agent.query(prompt, include_partial_messages=True):
        if isinstance(message, StreamEvent):
            seen[message.event["type"]] += 1
            delta = message.event.get("delta", {})
            print(delta.get("text", ""), end="", flush=True)
        elif isinstance(message, Assistant):
            print(f"\n[complete: {len(message.text)} characters]")
    print(dict(seen))
    return seen


if __name__ == "__main__":
    asyncio.run(watch(Agent(), " ".join(sys.argv[1:]) or "Write a poem of four lines."))
