from __future__ import annotations

import asyncio
import contextvars
import os
import subprocess
import sys
import threading

import pytest

from steersman.tools._threads import Workers, run_in_thread

NAME: contextvars.ContextVar[str] = contextvars.ContextVar("name", default="none")


async def test_many_blocking_functions_run_at_the_same_time() -> None:
    all_here = threading.Barrier(40)

    waits = [run_in_thread(all_here.wait, 5) for _ in range(40)]
    async with asyncio.timeout(10):
        places = await asyncio.gather(*waits)

    assert sorted(places) == list(range(40))


async def test_what_does_not_fit_waits_and_is_done() -> None:
    workers = Workers(most=2)
    release = threading.Event()

    blocked = [run_in_thread(release.wait, 5, workers=workers) for _ in range(2)]
    queued = [run_in_thread(str, number, workers=workers) for number in range(20)]
    threads = workers.threads
    release.set()
    async with asyncio.timeout(5):
        await asyncio.gather(*blocked)
        done = await asyncio.gather(*queued)

    assert threads == 2
    assert done == [str(number) for number in range(20)]


async def test_a_thread_that_is_free_is_used_again() -> None:
    workers = Workers()

    async with asyncio.timeout(5):
        for _ in range(20):
            await run_in_thread(str, workers=workers)
            while workers.spare < 1:  # noqa: ASYNC110 - it is free a moment after its result
                await asyncio.sleep(0)

    assert workers.threads == 1


async def test_threads_that_nobody_needs_end_and_others_come_when_needed() -> None:
    workers = Workers(patience=0.01)

    async with asyncio.timeout(5):
        await run_in_thread(str, workers=workers)
        while workers.threads:  # noqa: ASYNC110 - a thread does not report its end
            await asyncio.sleep(0)
        again = await run_in_thread(str, 2, workers=workers)

    assert again == "2"


async def test_a_function_that_nobody_wants_any_more_is_not_begun() -> None:
    workers = Workers(most=1)
    release, ended = threading.Event(), threading.Event()
    done: list[str] = []

    blocking = run_in_thread(release.wait, 5, workers=workers)
    unwanted = run_in_thread(
        done.append, "x", is_wanted=lambda: False, at_end=ended.set, workers=workers
    )
    release.set()
    async with asyncio.timeout(5):
        await blocking
        await unwanted

    assert done == []
    assert ended.is_set()


async def test_contextvars_go_along_and_do_not_come_back() -> None:
    NAME.set("ours")

    def look() -> str:
        before = NAME.get()
        NAME.set("theirs")
        return before

    async with asyncio.timeout(5):
        seen = await run_in_thread(look)

    assert (seen, NAME.get()) == ("ours", "ours")


async def test_what_is_raised_is_raised_here() -> None:
    def fail() -> None:
        raise KeyError("x")

    async with asyncio.timeout(5):
        with pytest.raises(KeyError, match="x"):
            await run_in_thread(fail)


def test_a_result_for_a_loop_that_is_closed_harms_nobody() -> None:
    release, ended = threading.Event(), threading.Event()

    async def leave() -> None:
        run_in_thread(release.wait, 5, at_end=ended.set).cancel()

    asyncio.run(leave())
    release.set()

    assert ended.wait(5)
    assert asyncio.run(_seven()) == "7"


async def _seven() -> str:
    async with asyncio.timeout(5):
        result: str = await run_in_thread(str, 7)
        return result


PROGRAM = """
import asyncio, threading
from steersman.tools._threads import run_in_thread

async def main():
    started = threading.Event()
    def block():
        started.set()
        threading.Event().wait()
    run_in_thread(block).cancel()
    await run_in_thread(started.wait, 5)

asyncio.run(main())
print("over")
"""


def test_a_tool_that_hangs_does_not_keep_the_program_from_ending() -> None:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
    )

    assert (run.stdout, run.stderr, run.returncode) == ("over\n", "", 0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_has_threads_of_its_own() -> None:
    program = (
        PROGRAM.split("\nasync def", maxsplit=1)[0]
        + """
import os

async def answer():
    return await asyncio.wait_for(run_in_thread(str, 5), 5)

asyncio.run(answer())
child = os.fork()
if child == 0:
    os._exit(0 if asyncio.run(answer()) == "5" else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    )
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
    )

    assert (run.stdout, run.stderr) == ("0\n", "")
