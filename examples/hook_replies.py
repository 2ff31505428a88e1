"""Hooks: add context to a prompt, deny a command, comment on a result, and end a turn.

Run it with `python examples/hook_replies.py`; it uses your own login and the current folder.
"""

from __future__ import annotations

import asyncio

from steersman import Agent, Hooks
from steersman.hooks import PostToolUse, PreToolUse, Reply, UserPromptSubmit, context, deny

hooks = Hooks()


@hooks.on(UserPromptSubmit)
def add_preference(_event: UserPromptSubmit) -> Reply:
    """Tell the model something with every prompt."""
    return context("My favourite colour is hot pink.")


@hooks.on(PreToolUse, "Bash")
def check_command(event: PreToolUse) -> Reply | None:
    """Deny one script; `None` leaves other commands to the usual rules."""
    if "foo.sh" in event.tool_input.get("command", ""):
        return deny("foo.sh is not run here; use bar.sh.")
    return None


@hooks.on(PostToolUse, "Bash")
def review_output(event: PostToolUse) -> Reply | None:
    """Comment on errors, and end the turn after a critical one."""
    output = str(event.tool_response)
    if "critical" in output:
        return Reply(continue_=False, stop_reason="a critical error: look at the log first")
    if "error" in output:
        return Reply(
            system_message="A command printed an error.", reason="Read it before you go on."
        )
    return None


async def work(agent: Agent, *prompts: str) -> list[str]:
    """Send the prompts, and print each answer, or why there is none."""
    reasons: list[str] = []
    async with agent.session() as session:
        for prompt in prompts:
            result = await session.run(prompt)
            print(result.text or f"[{result.reason}]")
            reasons.append(result.reason)
    return reasons


if __name__ == "__main__":
    agent = Agent(hooks=hooks, allowed_tools=["Bash"])
    asyncio.run(work(agent, "What is my favourite colour?", "Run ./foo.sh.", "Run: echo critical"))
