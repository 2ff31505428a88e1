"""One key, one turn: whatever happens to the processes that send it."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from steersman import Agent
from steersman.errors import SessionInUse
from steersman.testing.script import say, stall
from tests.live.staging import LIMIT, MakeScripted, first_words, is_alive, until

pytestmark = pytest.mark.live

ID = "12345678-1234-4234-8234-123456789abc"
CONTINUE = "Continue from where you left off."

HOST = """\
import asyncio, json, sys
from steersman import Agent

async def main():
    given = json.loads(sys.argv[1])
    session = await Agent(inherit_env=False, **given).start()
    turn = await session.send("pay", key="invoice 7")
    async for _ in turn.text():
        print(session.pid, flush=True)
    await turn

asyncio.run(main())
"""


HOSTS = {"session_id": '"pay"', "resume": "No response requested."}
"""How each host opens the conversation, and what its CLI has stored before it is killed."""


def is_stored(text: str, config: Path) -> bool:
    """Whether the CLI has written `text` into a session file; it does so a moment later."""
    return any(text in path.read_text() for path in config.glob("projects/*/*.jsonl"))


@asynccontextmanager
async def another_host(
    agent: Agent, how: str
) -> AsyncIterator[tuple[asyncio.subprocess.Process, int]]:
    """A host process whose turn has streamed its first words, and the pid of its CLI."""
    options = agent.options
    given = json.dumps(
        {
            "cwd": str(options.cwd),
            "cli_path": str(options.cli_path),
            "env": dict(options.env),
            how: ID,
        }
    )
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", HOST, given, stdout=pipe)
    try:
        assert process.stdout is not None
        yield process, int(await process.stdout.readline())
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def config_of(env: Mapping[str, str]) -> Path:
    return Path(env["CLAUDE_CONFIG_DIR"])


async def test_a_prompt_whose_hosts_were_killed_twice_is_answered_and_stays_answered(
    scripted: MakeScripted,
) -> None:
    agent, model = scripted(say("half") + stall(), say("half again") + stall(), say("Paid."))

    config = config_of(agent.options.env)
    # Two more processes that import steersman.
    async with asyncio.timeout(2 * LIMIT):
        for how, stored in HOSTS.items():
            async with another_host(agent, how) as (process, cli):
                await until(partial(is_stored, stored, config))
                with pytest.raises(SessionInUse) as refused:
                    await agent.start(resume=ID)
                process.kill()
                await process.wait()
        async with aclosing(await agent.start(resume=ID)) as third:
            was_alive = is_alive(cli)
            paid = await (await third.send("pay", key="invoice 7"))
        async with aclosing(await agent.start(resume=ID)) as fourth:
            again = await (await fourth.send("pay", key="invoice 7"))

    assert (refused.value.pid, was_alive) == (process.pid, False)
    assert (paid.outcome, paid.text) == ("completed", "Paid.")
    assert (again.outcome, again.text, again.cost_usd) == ("completed", "Paid.", 0.0)
    assert [each.last_text for each in model.asked] == ["pay", "pay", CONTINUE]


async def test_an_interrupted_turn_stays_interrupted_in_the_next_process(
    scripted: MakeScripted,
) -> None:
    agent, model = scripted(say("half") + stall(), say("Behind."))

    async with asyncio.timeout(LIMIT):
        async with agent.session() as first:
            turn = await first.send("pay", key="invoice 7")
            await first_words(turn, "half")
            await turn.interrupt()
            stopped = await turn
        async with agent.session(resume=first.id) as second:
            again = await (await second.send("pay", key="invoice 7"))
            behind = await (await second.send("and then"))

    assert (stopped.outcome, stopped.text) == ("interrupted", "half")
    assert (again.outcome, again.text) == ("interrupted", "half")
    assert behind.text == "Behind."
    assert len(model.asked) == 2


async def test_a_key_is_the_same_for_a_conversation_that_is_continued_or_resumed(
    scripted: MakeScripted,
) -> None:
    agent, model = scripted(say("Hello."), say("Paid."))

    async with asyncio.timeout(LIMIT):
        async with agent.session() as first:
            await (await first.send("hello"))
        async with agent.session(continue_conversation=True) as second:
            name = second.id
            paid = await (await second.send("pay", key="invoice 7"))
        async with agent.session(resume=first.id) as third:
            again = await (await third.send("pay", key="invoice 7"))

    assert name == first.id
    assert (paid.uuid, paid.text) == (again.uuid, again.text)
    assert [each.last_text for each in model.asked] == ["hello", "pay"]


async def test_a_conversation_has_one_owner_and_the_next_one_may_wait(
    scripted: MakeScripted,
) -> None:
    agent, model = scripted(say("One."), say("Two."), say("Three."))

    async with asyncio.timeout(LIMIT):
        async with aclosing(await agent.open("order 7")) as first:
            one = await (await first.send("first"))
            with pytest.raises(SessionInUse) as refused:
                await agent.open("order 7")
            with pytest.raises(SessionInUse):
                await agent.start(continue_conversation=True)
            waiting = [
                asyncio.create_task(agent.open("order 7", wait=20)),
                asyncio.create_task(agent.start(continue_conversation=True, wait=20)),
            ]
            two = await (await first.send("second"))
        done, (last,) = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        (second,) = [task.result() for task in done]
        await second.aclose()
        async with aclosing(await last) as third:
            three = await (await third.send("third"))

    assert refused.value.pid is not None
    assert first.id == second.id == third.id
    assert [each.text for each in (one, two, three)] == ["One.", "Two.", "Three."]
    said = json.dumps(model.asked[-1].body["messages"])
    assert all(word in said for word in ("first", "One.", "second", "Two."))
    assert not list((config_of(agent.options.env) / "steersman").iterdir())
