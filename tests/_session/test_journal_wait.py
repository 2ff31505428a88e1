"""How readers of a journal wait, and how they are woken."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable

import pytest

from steersman._protocol.events import StreamEventsArrived
from steersman._session.journal_writer import JournalSignal, JournalWriter
from steersman._session.readers import JournalReader
from steersman.journal import Entry, Kind
from steersman.journal.journal import message_of
from steersman.messages import StreamEvent, parse_message

PATIENCE = 5.0


def partials(count: int = 1) -> StreamEventsArrived:
    """Return `count` partial messages that arrived together."""
    return StreamEventsArrived([b"{}"] * count, ())


def reader_of(writer: JournalWriter) -> JournalReader[int]:
    def number(entry: Entry) -> int:
        return entry.seq

    return JournalReader(writer.journal, writer.signal, number, conversation_only=True)


async def waiting(*tasks: asyncio.Task[None]) -> None:
    """Return when the tasks have run until they wait."""
    for _ in range(3):
        await asyncio.sleep(0)
    assert not any(task.done() for task in tasks)


async def in_callback(call: Callable[[], object]) -> None:
    """Run `call` as the event loop runs what reads a pipe: outside of any task."""
    done = asyncio.get_running_loop().create_future()

    def run() -> None:
        try:
            call()
        except BaseException as error:  # noqa: BLE001 - raised again below
            done.set_exception(error)
        else:
            done.set_result(None)

    asyncio.get_running_loop().call_soon(run)
    await done


async def test_a_reader_of_the_conversation_is_woken_by_the_conversation_only() -> None:
    made = JournalWriter(1_000_000)
    spoken = asyncio.ensure_future(anext(reader_of(made)))

    async def wait() -> None:
        await made.signal.wait()

    every = asyncio.create_task(wait())
    await waiting(every)

    made.note(Kind.FAULT, where="x")
    async with asyncio.timeout(PATIENCE):
        await every
    await asyncio.sleep(0)
    assert not spoken.done()

    made.append(1.0, Kind.MESSAGE, b"{}")
    made.wake()
    async with asyncio.timeout(PATIENCE):
        assert await spoken == 1


async def test_after_the_end_nobody_waits() -> None:
    signal = JournalSignal()

    async def wait() -> None:
        await signal.wait()

    tasks = [asyncio.create_task(wait()) for _ in range(3)]
    await waiting(*tasks)
    signal.end()

    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(*tasks)
        await signal.wait()
    assert signal.has_ended


async def test_a_wait_that_was_cancelled_is_not_kept() -> None:
    made = JournalWriter(1_000_000)
    reader = reader_of(made)
    kept = made.signal.waiting(conversation_only=True)

    for _ in range(100):
        task = asyncio.ensure_future(anext(reader))
        await asyncio.sleep(0)
        assert len(kept) == 1
        task.cancel("enough")
        with pytest.raises(asyncio.CancelledError, match="enough"):
            await task
    assert kept == []

    made.append(1.0, Kind.MESSAGE, b"{}")
    made.wake()
    assert await anext(reader) == 1


async def test_a_reader_that_is_woken_and_cancelled_loses_no_entry() -> None:
    made = JournalWriter(1_000_000)
    reader = reader_of(made)
    task = asyncio.ensure_future(anext(reader))
    await asyncio.sleep(0)

    made.append(1.0, Kind.MESSAGE, b"{}")
    made.wake()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert await anext(reader) == 1


async def test_a_reader_can_be_given_a_time_limit() -> None:
    reader = reader_of(JournalWriter(1_000_000))

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.001):
            await anext(reader)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(anext(reader), 0.001)


async def test_partial_messages_reach_their_readers_before_the_writer_goes_on() -> None:
    made = JournalWriter(1_000_000)
    seen: list[list[int]] = [[], []]

    async def read(into: list[int]) -> None:
        async for number in reader_of(made):
            into += [number]

    tasks = [asyncio.create_task(read(into)) for into in seen]
    await waiting(*tasks)

    def write() -> None:
        made.write_partials(partials(2))
        assert seen == [[1, 2], [1, 2]]
        made.write_partials(partials())
        assert seen == [[1, 2, 3], [1, 2, 3]]

    await in_callback(write)
    made.end()
    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(*tasks)


async def test_a_task_that_writes_partial_messages_does_not_run_their_reader_inside() -> None:
    made = JournalWriter(1_000_000)
    reading = asyncio.ensure_future(anext(reader_of(made)))
    await asyncio.sleep(0)

    made.write_partials(partials())
    assert not reading.done()

    async with asyncio.timeout(PATIENCE):
        assert await reading == 1


async def test_a_reader_runs_in_the_context_of_its_task() -> None:
    made, name = JournalWriter(1_000_000), contextvars.ContextVar("name", default="")
    seen: list[tuple[str, asyncio.Task[None] | None]] = []

    async def read() -> None:
        name.set("reader")
        await anext(reader_of(made))
        seen.append((name.get(), asyncio.current_task()))

    task = asyncio.create_task(read())
    await waiting(task)
    await in_callback(lambda: made.write_partials(partials()))
    await task

    assert seen == [("reader", task)]


async def test_a_reader_may_write_and_read_on_while_it_is_run() -> None:
    made = JournalWriter(1_000_000)
    seen: list[int] = []

    async def read() -> None:
        async for number in reader_of(made):
            seen.append(number)
            if number < 5:
                made.write_partials(partials())

    task = asyncio.create_task(read())
    await waiting(task)
    await in_callback(lambda: made.write_partials(partials()))
    made.end()
    async with asyncio.timeout(PATIENCE):
        await task

    assert seen == [1, 2, 3, 4, 5]


async def test_two_tasks_that_share_a_reader_are_both_woken() -> None:
    made = JournalWriter(1_000_000)
    reader = reader_of(made)
    tasks = [asyncio.ensure_future(anext(reader)) for _ in range(2)]
    await asyncio.sleep(0)

    await in_callback(lambda: made.write_partials(partials()))
    await in_callback(lambda: made.write_partials(partials()))

    async with asyncio.timeout(PATIENCE):
        assert await asyncio.gather(*tasks) == [1, 2]


async def test_a_reader_may_cancel_another_one_that_the_same_chunk_wakes() -> None:
    made = JournalWriter(1_000_000)
    reader = reader_of(made)
    tasks: list[asyncio.Task[int]] = []

    async def cancel_others() -> int:
        found = await anext(reader_of(made))
        for each in tasks:
            each.cancel()
        return found

    first = asyncio.ensure_future(cancel_others())
    await asyncio.sleep(0)
    tasks.append(asyncio.ensure_future(anext(reader)))
    await asyncio.sleep(0)
    await in_callback(lambda: made.write_partials(partials()))

    assert await first == 1
    with pytest.raises(asyncio.CancelledError):
        await tasks[0]
    assert await anext(reader) == 1


async def test_a_reader_that_fails_fails_its_own_task_only() -> None:
    made = JournalWriter(1_000_000)

    async def fail() -> None:
        await anext(reader_of(made))
        raise ValueError("mine")

    failing = asyncio.create_task(fail())
    other = asyncio.ensure_future(anext(reader_of(made)))
    await waiting(failing)
    await in_callback(lambda: made.write_partials(partials()))

    with pytest.raises(ValueError, match="mine"):
        await failing
    assert await other == 1


def test_a_reader_that_exits_the_program_does_not_keep_the_others_from_their_end() -> None:
    made = JournalWriter(1_000_000)
    seen: list[int] = []

    async def leave() -> None:
        await anext(reader_of(made))
        raise SystemExit(3)

    async def read() -> None:
        seen.append(await anext(reader_of(made)))

    tasks: list[asyncio.Task[None]] = []

    async def main() -> None:
        tasks.extend((asyncio.create_task(leave()), asyncio.create_task(read())))
        await waiting(*tasks)
        asyncio.get_running_loop().call_soon(made.write_partials, partials())
        await asyncio.wait(tasks)

    loop = asyncio.new_event_loop()
    try:
        with pytest.raises(SystemExit):
            loop.run_until_complete(main())
        loop.run_until_complete(asyncio.sleep(0))
        loop.run_until_complete(asyncio.sleep(0))
    finally:
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()

    assert seen == [1]
    assert isinstance(tasks[0].exception(), SystemExit)


async def test_what_was_read_is_kept_as_a_line_only() -> None:
    line = b'{"type":"stream_event","event":{},"session_id":"s"}'
    made = JournalWriter(1_000_000)
    reader = JournalReader(made.journal, made.signal, message_of, conversation_only=True)
    read: list[object] = []

    async def read_all() -> None:
        read.extend([message async for message in reader])

    task = asyncio.create_task(read_all())
    await waiting(task)
    for _ in range(3):
        event = parse_message(line)
        assert isinstance(event, StreamEvent)
        made.write_partials(StreamEventsArrived([line] * 2, (), [event] * 2))
    made.end()
    async with asyncio.timeout(PATIENCE):
        await task

    assert read == [parse_message(line)] * 6
    assert [entry.decoded for entry in made.journal.after(0)] == [None] * 6
