from __future__ import annotations

import asyncio
import errno
import gc
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from steersman.ports import Channel, Launch, Receiver
from steersman.testing.faults import (
    HARMLESS,
    KINDS,
    CloseOutput,
    Corrupt,
    Delay,
    DelayInput,
    Drop,
    Duplicate,
    Exit,
    Fault,
    FaultPlan,
    FaultyTransport,
    FullDisk,
    Join,
    JumpingClock,
    Kill,
    Noise,
    NothingScheduled,
    SlowReader,
    Split,
    SplitInput,
    StderrFlood,
    Suspend,
    Truncate,
    VirtualClockLoop,
    cancelled_after,
    rounds,
)
from steersman.transports.memory import MemoryTransport, Wire
from steersman.transports.subprocess import SubprocessTransport

LINES = b"one\ntwo\nthree\n"


class Told:
    """A receiver that keeps everything, in order."""

    def __init__(self) -> None:
        self.chunks: list[bytes] = []
        self.stderr = b""
        self.status: int | None = None
        self.gone = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        assert data
        assert self.status is None
        self.chunks.append(data)

    def stderr_received(self, data: bytes) -> None:
        self.stderr += data

    def exited(self, status: int) -> None:
        assert self.status is None
        self.status = status
        self.gone.set()


class Peer:
    """A CLI that writes what the test demands, and records its input."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self.input_is_over = False
        self._wire: Wire | None = None

    @property
    def wire(self) -> Wire:
        assert self._wire is not None
        return self._wire

    def connected(self, launch: Launch, wire: Wire) -> None:
        self._wire = wire

    def data_received(self, data: bytes) -> None:
        self.heard.append(data)

    def input_ended(self) -> None:
        self.input_is_over = True
        self.wire.exit(0)

    def killed(self) -> None:
        pass


class Stage:
    """A faulty CLI in memory, seen from both ends."""

    def __init__(self, *faults: Fault) -> None:
        self.peer = Peer()
        self.told = Told()
        self.transport = FaultyTransport(MemoryTransport(self.peer), FaultPlan(1, *faults))

    async def open(self) -> Channel:
        self.channel = await self.transport.open(Launch(("claude",)), self.told)
        return self.channel

    async def say(self, data: bytes, *, count: int = 3) -> list[bytes]:
        """Let the peer write data, and return what arrives within some rounds."""
        self.peer.wire.write(data)
        await rounds(count)
        return self.told.chunks


async def arrived(*faults: Fault, data: bytes = LINES) -> list[bytes]:
    """The chunks that come of some lines, once the CLI has ended."""
    stage = Stage(*faults)
    await stage.open()
    stage.peer.wire.write(data)
    stage.peer.wire.exit(0)
    async with asyncio.timeout(5):
        await stage.told.gone.wait()
    return stage.told.chunks


# On the way from the CLI


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (Duplicate(2), b"one\ntwo\ntwo\nthree\n"),
        (Drop(2), b"one\nthree\n"),
        (Corrupt(3, where=0.5, byte=0x7E), b"one\ntwo\nth~ee\n"),
        (Corrupt(3, where=1.0, byte=0x7E), b"one\ntwo\nthre~\n"),
        (Truncate(3, where=0.5), b"one\ntwo\nth\n"),
        (Noise(1, b"!?"), b"!?\none\ntwo\nthree\n"),
        (Delay(2), LINES),
        (Delay("two", rounds=0, seconds=0.001), LINES),
        (Join(1), LINES),
        (Split(2), LINES),
        (Kill(3), b"one\ntwo\n"),
        (Exit(1, status=3), b""),
        (CloseOutput(2), b"one\n"),
        (Suspend(2, rounds=4), LINES),
        (Drop(99), LINES),
    ],
    ids=str,
)
async def test_a_fault_does_to_the_lines_what_it_says(fault: Fault, expected: bytes) -> None:
    assert b"".join(await arrived(fault)) == expected


async def test_without_a_fault_chunks_pass_as_they_come() -> None:
    assert await arrived(Drop(99)) == [LINES]


async def test_lines_are_counted_however_they_are_chunked() -> None:
    stage = Stage(Drop(2))
    await stage.open()

    for byte in LINES:
        await stage.say(bytes([byte]), count=1)
    await rounds(3)

    assert b"".join(stage.told.chunks) == b"one\nthree\n"


async def test_a_last_line_without_an_end_is_not_lost() -> None:
    assert b"".join(await arrived(Drop(1), data=b"one\ntwo")) == b"two"


async def test_a_fault_may_wait_for_a_text() -> None:
    assert b"".join(await arrived(Drop("hr"), Drop("o"))) == b"two\n"


async def test_faults_of_one_line_apply_one_after_the_other() -> None:
    assert b"".join(await arrived(Truncate(1), Duplicate(1))) == b"o\no\ntwo\nthree\n"


async def test_a_delayed_line_keeps_all_behind_it_waiting() -> None:
    stage = Stage(Delay(2, rounds=20))
    await stage.open()

    early = list(await stage.say(LINES))
    late = await stage.say(b"four\n", count=25)

    assert early == [b"one\n"]
    assert late == [b"one\n", b"two\n", b"three\n", b"four\n"]


async def test_joined_lines_come_in_one_chunk() -> None:
    stage = Stage(Join(1, rounds=9))
    await stage.open()

    for line in (b"one\n", b"two\n", b"three\n"):
        await stage.say(line, count=2)
    await rounds(9)

    assert stage.told.chunks == [LINES]


async def test_a_split_line_comes_in_two_chunks() -> None:
    assert await arrived(Split(2, where=0.7)) == [b"one\n", b"tw", b"o\n", b"three\n"]


# On the way to the CLI


async def test_a_write_may_be_late_but_never_out_of_order() -> None:
    stage = Stage(DelayInput(1, rounds=9))
    channel = await stage.open()
    channel.write(b"one\n")
    channel.write(b"two\n")
    await rounds(3)
    early = list(stage.peer.heard)
    await rounds(12)

    assert (early, stage.peer.heard) == ([], [b"one\n", b"two\n"])


async def test_a_write_may_come_in_two_pieces() -> None:
    stage = Stage(SplitInput("two"))
    channel = await stage.open()

    channel.write(b"one\n")
    channel.write(b"two\n")
    await rounds(9)

    assert stage.peer.heard == [b"one\n", b"t", b"wo\n"]


async def test_input_that_ends_ends_behind_what_is_on_its_way() -> None:
    stage = Stage(DelayInput(1, rounds=9))
    channel = await stage.open()

    channel.write(b"one\n")
    channel.end_input()
    async with asyncio.timeout(5):
        await stage.told.gone.wait()

    assert (stage.peer.heard, stage.peer.input_is_over) == ([b"one\n"], True)


async def test_closing_does_not_wait_for_a_slow_write() -> None:
    stage = Stage(DelayInput(1, seconds=3600))
    channel = await stage.open()

    channel.write(b"one\n")
    channel.close(1)
    async with asyncio.timeout(5):
        await stage.told.gone.wait()

    assert stage.peer.heard == [b"one\n"]


# The process


@pytest.mark.parametrize(
    ("fault", "status"), [(Kill(2), -9), (Exit(2, status=0), 0), (Exit(2, status=137), 137)]
)
async def test_a_process_ends_as_the_fault_says(fault: Fault, status: int) -> None:
    stage = Stage(fault)
    await stage.open()

    await stage.say(LINES)
    await stage.say(b"four\n")

    assert (stage.told.chunks, stage.told.status) == ([b"one\n"], status)
    assert stage.transport.running == 0


async def test_a_stopped_process_says_nothing_until_somebody_lets_it_run_on() -> None:
    stage = Stage(Suspend(2))
    channel = await stage.open()
    stopped = list(await stage.say(LINES, count=50))

    channel.resume()
    await rounds(3)

    assert stopped == [b"one\n"]
    assert b"".join(stage.told.chunks) == LINES


@pytest.mark.parametrize("rounds_", [0, 1000])
@pytest.mark.parametrize("end", [lambda channel: channel.kill(), lambda channel: channel.close(0)])
async def test_a_stopped_process_can_be_ended(end: Callable[[Channel], None], rounds_: int) -> None:
    stage = Stage(Suspend(2, rounds=rounds_))
    channel = await stage.open()
    await stage.say(LINES)

    end(channel)
    async with asyncio.timeout(5):
        await stage.told.gone.wait()

    assert stage.told.chunks == [b"one\n"]
    assert stage.transport.running == 0


async def test_stderr_can_be_flooded() -> None:
    stage = Stage(StderrFlood(1, size=200_000))
    await stage.open()

    await stage.say(LINES)

    assert len(stage.told.stderr) == 200_000
    assert b"".join(stage.told.chunks) == LINES


async def test_the_output_may_close_and_the_process_live_on() -> None:
    stage = Stage(CloseOutput(2))
    channel = await stage.open()

    await stage.say(LINES)
    channel.write(b"still there?\n")
    await rounds(3)

    assert (stage.told.chunks, stage.told.status) == ([b"one\n"], None)
    assert stage.peer.heard == [b"still there?\n"]


async def test_a_fault_that_is_due_before_the_channel_is_there_strikes_all_the_same() -> None:
    class Hasty:
        async def open(self, launch: Launch, receiver: Receiver) -> Channel:
            channel = await MemoryTransport(Peer()).open(launch, receiver)
            receiver.data_received(LINES)
            return channel

    told = Told()
    await FaultyTransport(Hasty(), FaultPlan(0, Kill(2))).open(Launch(("claude",)), told)
    await rounds(3)

    assert (told.chunks, told.status) == ([b"one\n"], -9)


async def test_each_process_meets_its_own_plan_and_later_ones_none() -> None:
    peer = Peer()
    plans = (FaultPlan(0, Drop(1)), FaultPlan(0, Drop(2)))
    transport = FaultyTransport(MemoryTransport(peer), *plans)
    seen: list[bytes] = []

    for _ in range(3):
        told = Told()
        await transport.open(Launch(("claude",)), told)
        peer.wire.write(LINES)
        peer.wire.exit(0)
        await rounds(3)
        seen.append(b"".join(told.chunks))

    assert seen == [b"two\nthree\n", b"one\nthree\n", LINES]
    assert transport.happened == [Drop(1), Drop(2)]


# Real processes

COUNT = "for number in 1 2 3; do echo $number; done; read line; echo $line; exit 4"


async def of_shell(*faults: Fault, line: bytes = b"done\n") -> tuple[Told, Channel]:
    """A shell that was given its line, or waits for it."""
    told = Told()
    transport = FaultyTransport(SubprocessTransport(), FaultPlan(0, *faults))
    launch = Launch(("/bin/sh", "-c", COUNT), env={"PATH": "/usr/bin:/bin"})
    channel = await transport.open(launch, told)
    channel.write(line)
    async with asyncio.timeout(10):
        while not told.gone.is_set() and b"".join(told.chunks) != b"1\n":  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return told, channel


@pytest.mark.parametrize(
    ("faults", "said", "status"),
    [
        ([Duplicate(2), Split(3)], b"1\n2\n2\n3\ndone\n", 4),
        ([Kill(2)], b"1\n", -9),
        ([Exit(4, status=7)], b"1\n2\n3\n", 7),
        ([SplitInput(1), DelayInput(2)], b"1\n2\n3\ndone\n", 4),
    ],
)
async def test_a_real_process_misbehaves_as_well(
    faults: list[Fault], said: bytes, status: int
) -> None:
    told, _channel = await of_shell(*faults)
    async with asyncio.timeout(10):
        await told.gone.wait()

    assert (b"".join(told.chunks), told.status) == (said, status)


async def test_a_real_process_that_is_stopped_for_ever_can_be_closed() -> None:
    told, channel = await of_shell(Suspend(2), line=b"")

    channel.close(0.05)
    async with asyncio.timeout(10):
        await told.gone.wait()

    assert (b"".join(told.chunks), told.gone.is_set()) == (b"1\n", True)


@pytest.mark.skipif(sys.platform != "linux", reason="counts references")
async def test_a_channel_that_nobody_holds_still_ends_its_process() -> None:
    told, channel = await of_shell(Suspend(2), line=b"")

    del channel
    gc.collect()
    async with asyncio.timeout(10):
        await told.gone.wait()

    assert told.status == -9


# Plans


def test_a_plan_prints_itself_readably() -> None:
    plan = FaultPlan(17, Duplicate(12), Kill(30))

    assert str(plan) == "FaultPlan(seed=17): line 12 duplicated, killed at line 30"


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (Delay(4, 3, 0.5), "line 4 delayed by 3 rounds and 0.5 s"),
        (Join(4), "line 4 joined with those of the next 5 rounds"),
        (Split(4, 0.25), "line 4 split at 25%"),
        (Drop("result"), "the first line with 'result' dropped"),
        (Corrupt(4, 0.5, 0), "line 4 corrupted at 50% by 0x00"),
        (Truncate(4, 0.1), "line 4 truncated at 10%"),
        (Noise(4), "noise before line 4"),
        (DelayInput(4, 2), "write 4 delayed by 2 rounds"),
        (SplitInput(4), "write 4 split at 50%"),
        (Exit(4, 137), "exited with 137 at line 4"),
        (Suspend(4), "stopped for ever at line 4"),
        (Suspend(4, seconds=2), "stopped for 2 s at line 4"),
        (StderrFlood(4, 10), "10 bytes on stderr at line 4"),
        (CloseOutput(4), "output closed at line 4"),
    ],
)
def test_every_fault_says_what_it_is(fault: Fault, text: str) -> None:
    assert str(fault) == text


def test_the_same_seed_is_the_same_plan() -> None:
    assert [str(FaultPlan(seed)) for seed in range(50)] == [
        str(FaultPlan(seed)) for seed in range(50)
    ]
    assert len({str(FaultPlan(seed)) for seed in range(50)}) > 30


def test_every_kind_is_drawn_sooner_or_later() -> None:
    drawn = {type(fault) for seed in range(200) for fault in FaultPlan(seed).faults}

    assert drawn == set(KINDS)


def test_a_plan_keeps_to_what_it_is_given() -> None:
    plans = [FaultPlan(seed, among=(Drop, Kill), lines=5, most=2) for seed in range(50)]

    faults = [fault for plan in plans for fault in plan.faults]
    assert {type(fault) for fault in faults} == {Drop, Kill}
    assert {fault.at for fault in faults} == {1, 2, 3, 4, 5}
    assert {len(plan.faults) for plan in plans} == {0, 1, 2}


def test_a_plan_aims_at_marks() -> None:
    faults = [fault for seed in range(50) for fault in FaultPlan(seed, marks=("result",)).faults]

    assert {isinstance(fault.at, str) for fault in faults} == {True, False}


def test_a_plan_among_nothing_is_empty() -> None:
    plan = FaultPlan(3, among=())

    assert (plan.faults, plan.is_harmless, plan.loses) == ((), True, False)
    assert str(plan) == "FaultPlan(seed=3): no fault"


def test_a_plan_tells_whether_something_is_lost() -> None:
    assert all(not FaultPlan(seed, among=HARMLESS).loses for seed in range(50))
    assert FaultPlan(0, Drop(1)).loses
    assert not FaultPlan(0, Duplicate(1)).loses
    assert not FaultPlan(0, Duplicate(1)).is_harmless


# The host


async def test_a_slow_reader_reads_all_in_its_own_time() -> None:
    async def numbers() -> AsyncIterator[int]:
        for number in range(3):
            yield number

    assert [each async for each in SlowReader(numbers(), rounds=2, seconds=0.001)] == [0, 1, 2]


async def test_a_caller_can_be_cancelled_at_any_step() -> None:
    async def count() -> str:
        await rounds(3)
        return "done"

    assert [await cancelled_after(steps, count()) for steps in (0, 2, 9)] == [None, None, "done"]


async def test_what_a_cancelled_caller_raises_is_raised() -> None:
    async def stumble() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await cancelled_after(5, stumble())


def test_a_full_disk_takes_what_fits_and_then_raises(tmp_path: Path) -> None:
    disk = FullDisk(room=10)

    with disk.open(tmp_path / "a") as first, disk.open(tmp_path / "b", "ab") as second:
        first.write(b"12345")
        with pytest.raises(OSError, match="space") as full:
            second.write(b"1234567")
        with pytest.raises(OSError, match="space"):
            first.write(b"6")

    assert full.value.errno == errno.ENOSPC
    assert (tmp_path / "a").read_bytes() + (tmp_path / "b").read_bytes() == b"1234512345"


def test_a_full_disk_has_room_again_when_somebody_makes_some(tmp_path: Path) -> None:
    disk = FullDisk(room=0)

    with disk.open(tmp_path / "a") as file:
        with pytest.raises(OSError, match="space"):
            file.write(b"1")
        disk.room = 1
        written = file.write(b"1")

    assert written == 1


# Time


def test_a_clock_jumps_when_it_is_told_to() -> None:
    clock = JumpingClock({3: -3600, 5: 7200}, clock=lambda: 10_000.0)

    assert [clock() for _ in range(6)] == [10_000, 10_000, 6_400, 6_400, 13_600, 13_600]
    assert clock.readings == 6


def in_virtual_time(main: Callable[[], Any]) -> Any:
    with asyncio.Runner(loop_factory=VirtualClockLoop) as runner:
        return runner.run(main())


def test_virtual_time_passes_at_once_and_in_order() -> None:
    async def main() -> list[Any]:
        loop, order = asyncio.get_running_loop(), list[str]()
        loop.call_later(7200, order.append, "late")
        loop.call_later(3600, order.append, "early")
        await asyncio.sleep(3600 * 24)
        return [*order, loop.time()]

    assert in_virtual_time(main) == ["early", "late", 3600 * 24]


def test_a_timeout_in_virtual_time_is_a_timeout() -> None:
    async def main() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(60):
                await asyncio.Event().wait()
        return asyncio.get_running_loop().time()

    assert in_virtual_time(main) == 60


def test_a_deadlock_in_virtual_time_is_told_at_once() -> None:
    async def main() -> None:
        await asyncio.Event().wait()

    with pytest.raises(NothingScheduled):
        in_virtual_time(main)
