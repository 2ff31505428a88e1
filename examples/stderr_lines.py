"""What the CLI writes to stderr, such as its debug log, line by line.

Run it with `python examples/stderr_lines.py`; it uses your own login.
"""

from __future__ import annotations

import asyncio

from steersman import Agent


async def errors_of(agent: Agent, prompt: str) -> list[str]:
    """Ask, and return the lines of the debug log that tell of errors."""
    lines: list[str] = []
    result = await agent.run(prompt, stderr=lines.append, extra_args={"debug-to-stderr": None})
    errors = [line for line in lines if "[ERROR]" in line]
    print(f"{result.text}\n[{len(lines)} chunks of stderr, {len(errors)} with errors]")
    return lines


if __name__ == "__main__":
    asyncio.run(errors_of(Agent(), "What is 2 + 2?"))
