"""A worker that leaves while it waits for a person, and goes on when there is an answer.

Run `python examples/leave_and_go_on.py begin "a task"`: it ends after ten seconds of waiting, and
leaves no process. Answer on any day, with `steersman asks list --store work.db` and `steersman asks
answer`. `python examples/leave_and_go_on.py serve` goes on with whatever was answered, and with
what a crash has left; SIGTERM, as of a deploy, makes it leave too. It uses your own login and the
current folder.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import suppress

from steersman import Agent, TurnResult
from steersman.errors import SessionInUse
from steersman.options import Park
from steersman.ports import Conversation
from steersman.stores import SqliteStore


async def begin(agent: Agent, task: str) -> TurnResult:
    """Do a task, as far as that is possible without an answer."""
    async with agent.open(task) as session:
        result = await (await session.send(task, key=task))
    print(result.outcome, *result.waits_for, result.text)
    return result


async def go_on(agent: Agent, conversation: Conversation) -> list[TurnResult]:
    """Go on with the turns of a conversation. Leaving the block parks them again if they wait."""
    async with agent.open(conversation.key) as session:
        results = [await turn for turn in await session.resume_turns()]
    for result in results:
        print(conversation.key, result.outcome, result.text)
    return results


async def serve(agent: Agent, store: SqliteStore) -> None:
    """Go on with each conversation that can go on, until the program is ended."""
    async for conversation in store.ready():
        # Another worker may be faster.
        with suppress(SessionInUse):
            await go_on(agent, conversation)


async def main(what: str, task: str) -> None:
    """Do one of the two things. SIGTERM cancels it, so that sessions are closed, which parks."""
    mine = asyncio.current_task()
    assert mine is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, mine.cancel)
    async with SqliteStore("work.db") as store:
        agent = Agent(inbox=store.inbox(expires_after=7 * 24 * 3600), park=Park(after=10.0))
        await (serve(agent, store) if what == "serve" else begin(agent, task))


if __name__ == "__main__":
    with suppress(asyncio.CancelledError):
        asyncio.run(main(sys.argv[1], " ".join(sys.argv[2:]) or "Write a poem to poem.txt."))
