"""`query()`: what ends it, and that no CLI is left by a query that is."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from steersman import sync
from steersman._portal.portal import shared_portal
from steersman.agent import Agent, Query, Session
from steersman.errors import CliExited, RequestTimeout, SteersmanError, TurnFailed
from steersman.journal import Phase
from steersman.messages import Message
from steersman.testing.script import Script, call, say, stall
from steersman.testing.scripted.cli import ScriptedCLI

ROOT = Path(__file__).parents[1]
UNCLOSED = "unclosed Query of the session"
LIMIT = 10.0


def stalling() -> ScriptedCLI:
    return ScriptedCLI(Script(say("half") + stall()))


async def lost(query: Query, cli: ScriptedCLI) -> tuple[list[Message], SteersmanError | None]:
    """Read a query whose CLI is killed while it answers; return what it raises at its end."""
    killing = asyncio.create_task(_kill(cli))
    messages: list[Message] = []
    try:
        async with asyncio.timeout(LIMIT):
            async for message in query:
                messages.append(message)  # noqa: PERF401 - those before an error count
    except SteersmanError as error:
        return messages, error
    finally:
        await killing
    return messages, None


async def _kill(cli: ScriptedCLI) -> None:
    await cli.wait_for_stall()
    cli.exit(-9, "killed")


async def quiet(cli: ScriptedCLI) -> None:
    """Wait until nothing but the test itself runs."""
    async with asyncio.timeout(LIMIT):
        while cli.running or len(asyncio.all_tasks()) > 1:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0)


async def ended(session: Session) -> Phase:
    """Wait for the end of the session, without closing it, and return its phase."""
    async with asyncio.timeout(LIMIT):
        _ = [entry async for entry in session.journal()]
    return session.phase


def _said(error: TurnFailed) -> tuple[str, str, str]:
    """Return outcome, reason and text of an error, without the command line, which has an id."""
    return error.outcome, error.reason.splitlines()[0], error.text


@contextmanager
def unclosed() -> Generator[list[str], None, None]:
    """Collect the warnings about queries that were not closed."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ResourceWarning)
        texts: list[str] = []
        yield texts
        gc.collect()
        texts += [str(each.message) for each in caught if UNCLOSED in str(each.message)]


# The end of its messages


async def test_a_query_whose_cli_is_lost_raises_what_run_raises() -> None:
    cli, other = stalling(), stalling()

    _, of_query = await lost(Agent(transport=cli, revive=False).query("go"), cli)
    killing = asyncio.create_task(_kill(other))
    with pytest.raises(TurnFailed) as of_run:
        await Agent(transport=other, revive=False).run("go")
    await killing

    assert isinstance(of_query, TurnFailed)
    assert isinstance(of_query.__cause__, CliExited)
    assert isinstance(of_run.value.__cause__, CliExited)
    assert _said(of_query) == _said(of_run.value)


async def test_a_query_after_its_error_has_ended_and_its_session_is_closed() -> None:
    cli = stalling()
    query = Agent(transport=cli, revive=False).query("go")

    await lost(query, cli)

    assert [each async for each in query] == []
    assert query.session.phase is Phase.FAILED
    await quiet(cli)


async def test_a_lost_cli_ends_a_stream_of_prompts_with_the_failure_of_its_turn() -> None:
    cli = ScriptedCLI(Script(say("first"), say("half") + stall()))

    async def prompts() -> AsyncIterator[str]:
        yield "one"
        yield "two"

    messages, error = await lost(Agent(transport=cli, revive=False).query(prompts()), cli)

    assert [each.raw["type"] for each in messages].count("result") == 1
    assert isinstance(error, TurnFailed)
    assert isinstance(error.__cause__, CliExited)
    await quiet(cli)


async def test_a_lost_cli_ends_a_stream_that_has_more_prompts_with_its_cause() -> None:
    cli = ScriptedCLI(Script(say("first")))
    answered = asyncio.Event()

    async def prompts() -> AsyncIterator[str]:
        yield "one"
        await answered.wait()
        cli.exit(-9, "killed")
        await asyncio.Event().wait()

    query = Agent(transport=cli, revive=False).query(prompts())
    async with asyncio.timeout(LIMIT):
        while (await anext(query)).raw["type"] != "result":
            pass
        answered.set()
        with pytest.raises(CliExited):
            _ = [message async for message in query]

    await quiet(cli)


async def test_a_stream_that_fails_in_mid_turn_is_raised_and_not_the_turn_that_it_ends() -> None:
    cli = stalling()

    async def prompts() -> AsyncIterator[str]:
        yield "go"
        await cli.wait_for_stall()
        raise ZeroDivisionError

    async with asyncio.timeout(LIMIT):
        with pytest.raises(ZeroDivisionError):
            _ = [each async for each in Agent(transport=cli).query(prompts())]

    await quiet(cli)


async def test_a_prompt_that_cannot_be_sent_any_more_does_not_hide_the_loss() -> None:
    cli = stalling()

    async def prompts() -> AsyncIterator[str]:
        yield "go"
        await cli.wait_for_stall()
        cli.exit(-9, "killed")
        while cli.running:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0)
        yield "on"

    async with asyncio.timeout(LIMIT):
        with pytest.raises(TurnFailed) as failed:
            _ = [each async for each in Agent(transport=cli, revive=False).query(prompts())]

    assert isinstance(failed.value.__cause__, CliExited)
    await quiet(cli)


def test_closing_a_synchronous_query_does_not_wait_for_a_loop_that_a_tool_blocks() -> None:
    was_read, begun, free = threading.Event(), threading.Event(), threading.Event()

    async def block() -> str:
        """Block the event loop, once the first message was read."""
        await asyncio.to_thread(was_read.wait, LIMIT)
        begun.set()
        free.wait(LIMIT)
        return "done"

    cli = ScriptedCLI(Script(call("mcp__functions__block")))
    query = sync.Agent(transport=cli, functions=[block], close_grace=0.05).query("go")
    next(query)
    was_read.set()
    assert begun.wait(LIMIT)

    with pytest.raises(RequestTimeout):
        query.close()

    free.set()
    query.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_leaves_the_synchronous_query_of_its_parent_alone() -> None:
    cli = stalling()
    holder = [sync.Agent(transport=cli).query("go")]
    next(holder[0])

    pid = os.fork()
    if pid == 0:
        status = 1
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            holder.clear()
            gc.collect()
            status = len([each for each in caught if UNCLOSED in str(each.message)])
        os._exit(status)
    _, status = os.waitpid(pid, 0)

    was_running = cli.running
    holder[0].close()
    assert (os.waitstatus_to_exitcode(status), was_running) == (0, 1)


async def test_a_result_that_is_an_error_is_a_message_and_is_not_raised_again() -> None:
    cli = ScriptedCLI(Script(say("half") + stall()))
    query = Agent(transport=cli).query("go")

    async def interrupt() -> None:
        await cli.wait_for_stall()
        await query.session.interrupt()

    interrupting = asyncio.create_task(interrupt())
    async with asyncio.timeout(LIMIT):
        messages = [each async for each in query]
        await interrupting

    assert messages[-1].raw["type"] == "result"


async def test_a_query_that_its_owner_closes_ends_without_an_error() -> None:
    cli = stalling()
    query = Agent(transport=cli).query("go")

    async def close() -> None:
        await cli.wait_for_stall()
        await query.aclose()

    closing = asyncio.create_task(close())
    async with asyncio.timeout(LIMIT):
        messages = [each async for each in query]
        await closing

    assert "result" not in [each.raw["type"] for each in messages[:-1]]
    assert [each async for each in query] == []


def test_a_synchronous_query_whose_cli_is_lost_raises_what_run_raises() -> None:
    cli = stalling()
    query = sync.Agent(transport=cli, revive=False).query("go")

    next(query)
    shared_portal().call(_kill, cli)
    with pytest.raises(TurnFailed) as failed:
        list(query)

    assert isinstance(failed.value.__cause__, CliExited)
    assert list(query) == []


# A query that is left


async def test_a_block_closes_a_query_that_is_left() -> None:
    cli = stalling()

    with unclosed() as texts:
        async with asyncio.timeout(LIMIT), Agent(transport=cli).query("go") as messages:
            async for _ in messages:
                break
        assert cli.running == 0
        assert messages.session.phase is Phase.COMPLETED

    assert texts == []


async def test_a_query_in_a_variable_keeps_its_cli_until_it_is_forgotten() -> None:
    cli = stalling()
    with unclosed() as texts:
        query = Agent(transport=cli).query("go")
        async for _ in query:
            break
        await cli.wait_for_stall()
        session = query.session
        was_running = cli.running

        del query
        gc.collect()
        phase = await ended(session)
        await quiet(cli)

    assert was_running == 1
    assert phase is Phase.COMPLETED
    assert len(texts) == 1
    assert "async with" in texts[0]


async def test_a_stream_of_prompts_that_is_forgotten_is_closed_although_more_would_come() -> None:
    cli = ScriptedCLI()
    waiting = asyncio.Event()

    async def prompts() -> AsyncIterator[str]:
        yield "go"
        waiting.set()
        await asyncio.Event().wait()

    with unclosed() as texts:
        async with asyncio.timeout(LIMIT):
            async for _ in Agent(transport=cli).query(prompts()):
                await waiting.wait()
                break
        gc.collect()
        await quiet(cli)

    assert len(texts) == 1


async def test_a_loop_that_is_left_by_an_error_closes_the_query_once_the_error_is_handled() -> None:
    cli = stalling()

    async def stumble() -> None:
        async for _ in Agent(transport=cli).query("go"):
            raise ZeroDivisionError

    with unclosed() as texts:
        with pytest.raises(ZeroDivisionError):
            await stumble()
        gc.collect()
        await quiet(cli)

    assert len(texts) == 1


async def test_a_query_may_be_freed_in_another_thread() -> None:
    cli = stalling()
    holder: list[Query] = [Agent(transport=cli).query("go")]
    with unclosed() as texts:
        await anext(holder[0])
        session = holder[0].session

        freeing = threading.Thread(target=holder.clear)
        freeing.start()
        await asyncio.to_thread(freeing.join, LIMIT)
        gc.collect()
        phase = await ended(session)
        await quiet(cli)

    assert phase is Phase.COMPLETED
    assert len(texts) == 1


async def test_a_query_that_is_freed_in_its_loop_is_closed_in_a_later_step() -> None:
    cli = stalling()
    with unclosed() as texts:
        query = Agent(transport=cli).query("go")
        await anext(query)
        session = query.session
        queued = await session.send("later")

        del query
        gc.collect()
        # The garbage collector runs anywhere, also in the middle of a step of the session itself.
        was_withdrawn = queued.is_settled
        phase = await ended(session)

    assert was_withdrawn is False
    assert (await queued).outcome == "cancelled"
    assert phase is Phase.COMPLETED
    assert len(texts) == 1


def test_a_query_that_is_freed_after_its_loop_has_ended_has_been_closed_by_the_loop() -> None:
    cli = stalling()

    async def forget() -> Query:
        query = Agent(transport=cli).query("go")
        await anext(query)
        return query

    with unclosed() as texts:
        query = asyncio.run(forget())
        phase = query.session.phase
        del query

    assert phase.is_over
    assert cli.running == 0
    assert texts == []


def test_a_query_whose_loop_was_closed_under_it_is_freed_with_a_warning_and_no_error() -> None:
    cli = stalling()
    loop = asyncio.new_event_loop()
    query = Agent(transport=cli).query("go")
    loop.run_until_complete(anext(query))
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()

    with unclosed() as texts:
        del query

    assert len(texts) == 1


async def test_a_query_that_was_not_read_or_read_to_its_end_warns_of_nothing() -> None:
    with unclosed() as texts:
        Agent(transport=ScriptedCLI()).query("go")
        _ = [each async for each in Agent(transport=ScriptedCLI()).query("go")]

    assert texts == []


async def test_a_query_over_a_cli_that_was_started_ahead_closes_it_unread() -> None:
    cli = ScriptedCLI()
    agent = Agent(transport=cli)
    await agent.prewarm(1)

    with unclosed() as texts:
        query = agent.query("go")
        await agent.prewarm(0)
        was_running = cli.running
        del query
        gc.collect()
        await quiet(cli)

    assert was_running == 1
    assert len(texts) == 1


def test_a_synchronous_query_that_is_forgotten_is_closed_with_a_warning() -> None:
    cli = stalling()
    with unclosed() as texts:
        query = sync.Agent(transport=cli).query("go")
        session = query.session
        next(query)

        del query

    assert len(texts) == 1
    session.close()
    assert session.phase is Phase.COMPLETED


def test_a_block_closes_a_synchronous_query_that_is_left() -> None:
    cli = stalling()

    with unclosed() as texts:
        with sync.Agent(transport=cli).query("go") as messages:
            for _ in messages:
                break
        assert messages.session.phase is Phase.COMPLETED

    assert texts == []


def test_a_synchronous_stream_that_is_forgotten_reads_no_more_prompts() -> None:
    cli, asked, free = ScriptedCLI(), threading.Event(), threading.Event()

    def prompts() -> Iterator[str]:
        yield "go"
        asked.set()
        free.wait(LIMIT)
        yield "never"

    with unclosed() as texts:
        query = sync.Agent(transport=cli).query(prompts())
        session = query.session
        next(query)
        assert asked.wait(LIMIT)

        del query
        session.close()
        free.set()

    assert len(texts) == 1
    assert session.phase is Phase.COMPLETED


EXITS = {
    "in the loop": "asyncio.run(read())",
    "with a loop that nobody closes": "asyncio.new_event_loop().run_until_complete(read())",
    "in the synchronous library": (
        "kept.append(sync.Agent(transport=CLI).query('go')); next(kept[0])"
    ),
}


@pytest.mark.process
@pytest.mark.parametrize("how", EXITS)
def test_a_program_that_ends_with_an_open_query_reports_no_error(how: str) -> None:
    program = f"""
import asyncio
from steersman import Agent, sync
from steersman.testing.script import Script, call, say, stall
from steersman.testing.scripted.cli import ScriptedCLI
CLI, kept = ScriptedCLI(Script(say("half") + stall())), []

async def read():
    kept.append(Agent(transport=CLI).query("go"))
    await anext(kept[0])

{EXITS[how]}
"""

    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 0
    assert "Query.__del__" not in done.stderr
    assert "agent.py" not in done.stderr
