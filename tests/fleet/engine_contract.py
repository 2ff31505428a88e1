"""What every engine of a fleet must do: each rule is a function that takes a maker of engines.

`make(segment)` gives a running engine that runs `segment` on `SLOTS` slots. The conversations of a
rule begin with `prefix`, so that rules can share an engine, and run at the same time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from dataclasses import replace
from itertools import count
from uuid import uuid4

import pytest

from steersman._json import JsonDict
from steersman.errors import KeyTaken
from steersman.fleet.jobs import answered
from steersman.fleet.ports import (
    NO_SLOT,
    Engine,
    JobRow,
    JobSpec,
    JobState,
    Segment,
    SegmentEnd,
)
from tests.live.staging import until

SLOTS = 2
LIMIT = 30.0

MakeEngine = Callable[[Segment], AbstractAsyncContextManager[Engine]]

prefix: ContextVar[str] = ContextVar("prefix", default="c")

all_slots = asyncio.Lock()
"""Of the rules that need more than one slot: two of them would wait for each other."""

_numbers = count()


def a_job(conversation: str | None = None, key: str = "k", **more: object) -> JobSpec:
    name = conversation or f"{prefix.get()}:{next(_numbers)}-{uuid4().hex[:8]}"
    spec = JobSpec(conversation=name, prompt="pay", key=key)
    return replace(spec, **more)  # type: ignore[arg-type]  # the names of fields, in tests


def settled(**result: object) -> SegmentEnd:
    return SegmentEnd(state="settled", result={"outcome": "completed", **result})


async def end_of(engine: Engine, spec: JobSpec) -> JobRow:
    row = await engine.get(spec.id, wait=LIMIT)
    assert row is not None
    assert row.state == "settled"
    return row


async def in_state(engine: Engine, spec: JobSpec, state: JobState, why: str = "") -> JobRow:
    """The job, once it is in a state."""
    while True:
        row = await engine.get(spec.id)
        if row is not None and row.state == state and (not why or row.why == why):
            return row
        await asyncio.sleep(0.02)


class Gate:
    """A segment that waits until it is let through, and counts."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.begun: list[str] = []
        self.at_work: list[str] = []
        self.most = 0
        self.overlaps = 0

    async def __call__(self, spec: JobSpec, number: int) -> SegmentEnd:
        del number
        self.overlaps += spec.conversation in self.at_work
        self.begun.append(spec.key)
        self.at_work.append(spec.conversation)
        self.most = max(self.most, len(self.at_work))
        try:
            await self.open.wait()
            await asyncio.sleep(0)
        finally:
            self.at_work.remove(spec.conversation)
        return settled(answer=spec.key)


async def a_job_is_run_and_its_result_kept(make: MakeEngine) -> None:
    seen: list[tuple[JobSpec, int]] = []

    async def segment(spec: JobSpec, number: int) -> SegmentEnd:
        seen.append((spec, number))
        return settled(answer="paid")

    spec = a_job(
        prompt=[{"type": "text", "text": "p\u00e4y \u2603"}], priority=5, limits={"turns": 3}
    )
    began = time.time()
    async with make(segment) as engine:
        assert await engine.get(spec.id) is None
        await engine.submit(spec)
        row = await end_of(engine, spec)

        assert row.spec == spec
        # Some engines keep whole seconds.
        assert began - 1.0 <= row.created <= time.time()
        assert row.result == {"outcome": "completed", "answer": "paid"}
        assert seen == [(spec, 0)]
        assert [each.spec for each in await engine.list(conversation=spec.conversation)] == [spec]


async def sending_the_same_job_again_runs_it_once(make: MakeEngine) -> None:
    runs: list[str] = []

    async def segment(spec: JobSpec, number: int) -> SegmentEnd:
        runs.append(spec.key)
        return settled(number=number)

    spec = a_job()
    async with make(segment) as engine:
        await asyncio.gather(*(engine.submit(spec) for _ in range(5)))
        await end_of(engine, spec)
        again = await engine.submit(spec)

        assert again.state == "settled"
        assert runs == ["k"]


async def the_same_key_with_another_prompt_is_refused(make: MakeEngine) -> None:
    gate = Gate()
    spec = a_job()
    async with make(gate) as engine:
        await engine.submit(spec)
        for changed in ({"prompt": "pay twice"}, {"agent": "other"}, {"budget": "team-b"}):
            with pytest.raises(KeyTaken):
                await engine.submit(replace(spec, **changed))  # type: ignore[arg-type]
        gate.open.set()
        await end_of(engine, spec)
        with pytest.raises(KeyTaken):
            await engine.submit(replace(spec, prompt="pay twice"))


async def jobs_of_a_conversation_run_in_order_one_at_a_time(make: MakeEngine) -> None:
    gate = Gate()
    gate.open.set()
    first = a_job(key="0")
    specs = [replace(first, key=str(number)) for number in range(4)]
    async with make(gate) as engine:
        for spec in specs:
            await engine.submit(spec)
        for spec in specs:
            await end_of(engine, spec)

        assert gate.begun == ["0", "1", "2", "3"]
        assert gate.overlaps == 0


async def no_more_segments_run_than_there_are_slots(make: MakeEngine) -> None:
    gate = Gate()
    specs = [a_job(key=str(number)) for number in range(6)]
    async with all_slots, make(gate) as engine:
        for spec in specs:
            await engine.submit(spec)
        await until(lambda: len(gate.at_work) >= SLOTS)
        gate.open.set()
        for spec in specs:
            await end_of(engine, spec)

        assert gate.most == SLOTS


async def a_higher_priority_gets_the_next_slot(make: MakeEngine) -> None:
    gate = Gate()
    async with all_slots, make(gate) as engine:
        before = [a_job(key=f"before {number}") for number in range(SLOTS)]
        for spec in before:
            await engine.submit(spec)
        await until(lambda: len(gate.at_work) >= SLOTS)
        low, high = a_job(key="low", priority=-5), a_job(key="high", priority=5)
        for spec in (low, high):
            await engine.submit(spec)
        for spec in (low, high):
            await in_state(engine, spec, "queued", NO_SLOT)
        gate.open.set()
        for spec in (*before, low, high):
            await end_of(engine, spec)

        assert gate.begun.index("high") < gate.begun.index("low")


async def a_parked_job_has_no_slot_and_goes_on_when_it_is_answered(make: MakeEngine) -> None:
    async def segment(spec: JobSpec, number: int) -> SegmentEnd:
        if number == 0 and spec.key == "asks":
            return SegmentEnd(state="parked", waits_for=("a1",), why="waits for a1")
        return settled(number=number)

    async with make(segment) as engine:
        waiting = [a_job(key="asks") for _ in range(SLOTS + 1)]
        for spec in waiting:
            await engine.submit(spec)
        for spec in waiting:
            assert (await in_state(engine, spec, "parked")).why == "waits for a1"
        other = a_job()
        await engine.submit(other)
        await end_of(engine, other)

        for spec in waiting:
            await engine.signal(spec.id, answered("another"))
            await engine.signal(spec.id, answered("a1"), once="a1")
            await engine.signal(spec.id, answered("a1"), once="a1")
        rows = [await end_of(engine, spec) for spec in waiting]

        assert [row.result for row in rows] == [{"outcome": "completed", "number": 1}] * len(rows)
        events = [each.data.get("state") for each in await engine.read_events(waiting[0].id)]
        assert events == ["parked", "queued"]
        assert [each.number for each in await engine.read_events(waiting[0].id, 1)] == [2]


async def a_signal_that_comes_before_the_job_waits_is_kept(make: MakeEngine) -> None:
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def segment(spec: JobSpec, number: int) -> SegmentEnd:
        del spec
        if number:
            return settled(number=number)
        asked.set()
        await go_on.wait()
        return SegmentEnd(state="parked", waits_for=("a1",))

    spec = a_job()
    async with make(segment) as engine:
        await engine.submit(spec)
        await asked.wait()
        await engine.signal(spec.id, answered("a1"))
        go_on.set()

        assert (await end_of(engine, spec)).result == {"outcome": "completed", "number": 1}


async def a_parked_job_holds_the_next_one_of_its_conversation(make: MakeEngine) -> None:
    async def segment(spec: JobSpec, number: int) -> SegmentEnd:
        if spec.key == "first" and number == 0:
            return SegmentEnd(state="parked", waits_for=("a1",))
        return settled(answer=spec.key)

    first = a_job(key="first")
    second = replace(first, key="second")
    async with make(segment) as engine:
        await engine.submit(first)
        await engine.submit(second)
        await in_state(engine, first, "parked")
        assert (await in_state(engine, second, "queued")).result is None
        await engine.signal(first.id, answered("a1"))

        assert (await end_of(engine, second)).result == {"outcome": "completed", "answer": "second"}


async def a_segment_that_decided_nothing_is_run_again(make: MakeEngine) -> None:
    async def segment(spec: JobSpec, number: int) -> SegmentEnd:
        del spec
        if number == 0:
            return SegmentEnd(state="again", why="the store is away", after=0.05)
        return settled() if number == 2 else SegmentEnd(state="parked")

    spec = a_job()
    async with make(segment) as engine:
        await engine.submit(spec)
        await end_of(engine, spec)

        (held, *_) = await engine.read_events(spec.id)
        assert held.data == {"state": "held", "why": "the store is away", "waits_for": []}


async def a_queued_job_can_be_cancelled_and_is_never_run(make: MakeEngine) -> None:
    gate = Gate()
    first = a_job(key="first")
    second = replace(first, key="second")
    third = replace(first, key="third")
    async with make(gate) as engine:
        for spec in (first, second, third):
            await engine.submit(spec)
        assert await engine.cancel(second.id)
        gate.open.set()
        await end_of(engine, third)
        row = await end_of(engine, second)

        assert gate.begun == ["first", "third"]
        assert (row.result or {}).get("outcome") == "cancelled"
        assert not await engine.cancel(second.id)
        assert not await engine.cancel(first.id)
        assert not await engine.cancel("job-none")


async def a_job_that_runs_or_waits_can_be_cancelled(make: MakeEngine) -> None:
    ended: list[str] = []

    async def segment(spec: JobSpec, number: int) -> SegmentEnd:
        del number
        if spec.key == "waits":
            return SegmentEnd(state="parked", waits_for=("a1",))
        if spec.key == "runs":
            try:
                await asyncio.sleep(LIMIT)
            finally:
                ended.append(spec.key)
        return settled(answer=spec.key)

    runs, waits = a_job(key="runs"), a_job(key="waits")
    async with all_slots, make(segment) as engine:
        for spec in (runs, waits):
            await engine.submit(spec)
        await in_state(engine, runs, "running")
        await in_state(engine, waits, "parked")
        for spec in (runs, waits):
            assert await engine.cancel(spec.id)
            row = await end_of(engine, spec)
            assert (row.result or {}).get("outcome") == "cancelled"
        await until(lambda: ended == ["runs"])
        # The conversation and the slot are free again.
        after = [replace(spec, key="after") for spec in (runs, waits)]
        for spec in after:
            await engine.submit(spec)
        for spec in after:
            await end_of(engine, spec)


async def jobs_are_listed_by_conversation_and_state(make: MakeEngine) -> None:
    gate = Gate()
    first = a_job(key="1")
    second = replace(first, key="2")
    async with make(gate) as engine:
        await engine.submit(first)
        await engine.submit(second)
        await in_state(engine, first, "running")

        async def keys(*states: JobState) -> list[str]:
            rows = await engine.list(conversation=first.conversation, states=states)
            return [row.spec.key for row in rows]

        assert await keys() == ["1", "2"]
        assert await keys("running") == ["1"]
        assert await keys("queued") == ["2"]
        assert await keys("settled", "parked") == []
        gate.open.set()
        await end_of(engine, second)
        assert await keys("settled") == ["1", "2"]


async def an_error_of_a_segment_is_the_result_of_its_job(make: MakeEngine) -> None:
    async def segment(spec: JobSpec, number: int) -> SegmentEnd:
        del spec, number
        raise RuntimeError("the segment has a defect")

    spec = a_job()
    async with make(segment) as engine:
        await engine.submit(spec)
        result: JsonDict = dict((await end_of(engine, spec)).result or {})

        assert result["outcome"] == "failed"
        assert "RuntimeError" in str(result["cause"])


RULES: tuple[Callable[[MakeEngine], Awaitable[None]], ...] = (
    a_job_is_run_and_its_result_kept,
    sending_the_same_job_again_runs_it_once,
    the_same_key_with_another_prompt_is_refused,
    jobs_of_a_conversation_run_in_order_one_at_a_time,
    no_more_segments_run_than_there_are_slots,
    a_higher_priority_gets_the_next_slot,
    a_parked_job_has_no_slot_and_goes_on_when_it_is_answered,
    a_signal_that_comes_before_the_job_waits_is_kept,
    a_parked_job_holds_the_next_one_of_its_conversation,
    a_segment_that_decided_nothing_is_run_again,
    a_queued_job_can_be_cancelled_and_is_never_run,
    a_job_that_runs_or_waits_can_be_cancelled,
    jobs_are_listed_by_conversation_and_state,
    an_error_of_a_segment_is_the_result_of_its_job,
)
