"""A policy, and a person who takes ten minutes: the request waits in an inbox, as data.

Run it with `python examples/slow_approval.py "a task"`; it uses your own login and the current
folder. Another part of the program, such as a web page, would call `inbox.answer`.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable

from steersman import Agent, Allow, Deny, Inbox, Policy, TurnResult
from steersman.permissions import Ask, Decision, allow, ask, deny

POLICY = Policy(
    deny("Bash(rm *)", because="files are removed by hand here"),
    ask("Bash(git push *)"),
    allow("Bash(git status *)", "Bash(git commit *)"),
    auto_approve=["Read", "Glob", "Grep"],
    otherwise="ask",
    remember="session",
)

Person = Callable[[Ask], Awaitable[Decision]]


async def answer_asks(inbox: Inbox, person: Person) -> None:
    """Pass each request to the person. The session waits, and reads on meanwhile."""
    async for change in inbox.watch():
        if change.what == "opened":
            print("asked:", change.ask.tool_name, dict(change.ask.tool_input))
            await inbox.answer(change.ask, await person(change.ask), by="ann")


async def work(agent: Agent, inbox: Inbox, task: str, person: Person) -> TurnResult:
    """Do the task, with a person who decides."""
    answering = asyncio.ensure_future(answer_asks(inbox, person))
    try:
        async with agent.session() as session:
            turn = await session.send(task)
            result = await turn
    finally:
        answering.cancel()
    print(result.answer)
    return result


async def slow_person(ask: Ask) -> Decision:
    """Think for ten minutes, then allow everything but a push to main."""
    await asyncio.sleep(600)
    is_main = "main" in str(ask.tool_input.get("command", ""))
    return Deny("Not to main.") if is_main else Allow()


if __name__ == "__main__":
    inbox = Inbox(expires_after=3600)
    task = " ".join(sys.argv[1:]) or "Push the current branch."
    asyncio.run(work(Agent(policy=POLICY, inbox=inbox), inbox, task, slow_person))
