"""Asks that outlive the program: it is killed while it waits, answered from elsewhere, goes on.

Run `python examples/answer_later.py work "a task"` and kill it while it waits, as a deploy or a
crash would. Run `python examples/answer_later.py answer` on any day; then `work` with the same task
again: it goes on with the turn, and the tool that was allowed runs once. It uses your own login and
the current folder. `steersman asks list --store asks.db` shows the same asks.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable

from steersman import Agent, Allow, Deny, TurnResult
from steersman.inbox import StoredInbox
from steersman.permissions import Ask, Decision
from steersman.stores import SqliteStore


async def work(agent: Agent, task: str) -> TurnResult:
    """Do the task, or go on with it: conversation and turn are found by their keys."""
    async with agent.open(task) as session:
        turn = await session.send(task, key=task)
        result = await turn
    print(result.outcome, result.text)
    return result


async def answer(inbox: StoredInbox, decide: Callable[[Ask], Decision], by: str) -> int:
    """Decide about all asks that are open, of all processes; return how many there were."""
    asks = await inbox.list()
    for ask in asks:
        # `seen` makes sure that the decision is about what was shown.
        await inbox.answer(ask, decide(ask), by=by, seen=ask.digest)
    return len(asks)


def ask_user(ask: Ask) -> Decision:
    """Show an ask on the terminal."""
    print(ask.tool_name, dict(ask.tool_input))
    return Allow() if input("Allow? [y/N] ") == "y" else Deny("The user said no.")


async def main(what: str, task: str) -> None:
    """Do one of the two things."""
    async with SqliteStore("asks.db") as store:
        if what == "answer":
            print(await answer(store.inbox(), ask_user, by="the user"), "answered")
        else:
            await work(Agent(inbox=store.inbox(expires_after=7 * 24 * 3600)), task)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], " ".join(sys.argv[2:]) or "Write a poem to poem.txt."))
