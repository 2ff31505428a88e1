"""Fault injection: a transport that makes the CLI of another transport misbehave.

`FaultyTransport(inner, plan)` wraps any transport (in memory, scripted or the stock CLI) and
carries out the faults of a `FaultPlan`. It knows lines and the ports, but not the protocol.
"""

from __future__ import annotations

import asyncio
import math
import weakref
from collections import deque
from collections.abc import Callable
from typing import TypeVar

from steersman.ports import Channel, Launch, Receiver, SupportsSuspended, Transport
from steersman.testing.faults.host import (
    FullDisk,
    JumpingClock,
    NothingScheduled,
    SlowReader,
    Standstill,
    VirtualClockLoop,
    cancelled_after,
    rounds,
)
from steersman.testing.faults.kinds import (
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
    InputFault,
    Join,
    Kill,
    LineFault,
    Noise,
    ProcessFault,
    Segment,
    Split,
    SplitInput,
    StderrFlood,
    Suspend,
    Truncate,
    Wait,
)

__all__ = [
    "HARMLESS",
    "KINDS",
    "CloseOutput",
    "Corrupt",
    "Delay",
    "DelayInput",
    "Drop",
    "Duplicate",
    "Exit",
    "Fault",
    "FaultPlan",
    "FaultyTransport",
    "FullDisk",
    "Join",
    "JumpingClock",
    "Kill",
    "Noise",
    "NothingScheduled",
    "SlowReader",
    "Split",
    "SplitInput",
    "Standstill",
    "StderrFlood",
    "Suspend",
    "Truncate",
    "VirtualClockLoop",
    "cancelled_after",
    "rounds",
]

FaultT = TypeVar("FaultT", bound=Fault)

STDERR_CHUNK = 64 * 1024


class FaultyTransport:
    """Runs a CLI on another transport and injects faults.

    The first process gets the first plan, the second process the second plan, and so on.
    Processes after the last plan run without faults.
    """

    def __init__(self, inner: Transport, *plans: FaultPlan) -> None:
        self.happened: list[Fault] = []
        """The faults so far, in the order in which they occurred."""
        self.running = 0
        """How many CLIs have not reported their exit to the session."""
        self._inner = inner
        self._plans = list(plans)

    async def open(self, launch: Launch, receiver: Receiver) -> Channel:
        """Start the CLI with the faults of the next plan."""
        faults = self._plans.pop(0).faults if self._plans else ()
        faulty = _FaultyReceiver(receiver, _Schedule(faults, self.happened), self._ended)
        channel = FaultyChannel(await self._inner.open(launch, faulty), faulty)
        self.running += 1
        faulty.attach(channel)
        return channel

    def _ended(self) -> None:
        self.running -= 1


class FaultyChannel:
    """A channel that delays or splits writes as the plan demands."""

    def __init__(self, inner: Channel, receiver: _FaultyReceiver) -> None:
        self._inner = inner
        self._receiver = receiver
        self._input = Flow(inner.write)
        self._written = 0

    @property
    def pid(self) -> int | None:
        """The CLI's process id."""
        return self._inner.pid

    def write(self, data: bytes) -> None:
        """Write `data`, changed by the faults of this write."""
        self._written += 1
        segments: list[Segment] = [data]
        for fault in self._receiver.schedule.at_write(self._written, data):
            segments = _changed(segments, fault)
        self._input.put(*segments)

    def end_input(self) -> None:
        """Close stdin after the delayed writes."""
        self._input.put(self._inner.end_input)

    def suspend(self) -> None:
        """Stop the process tree."""
        self._inner.suspend()

    async def suspended(self) -> None:
        """Return once the process tree is stopped."""
        if isinstance(self._inner, SupportsSuspended):
            await self._inner.suspended()

    def resume(self) -> None:
        """Let the process tree continue, also after a `Suspend` fault."""
        self._inner.resume()
        self._receiver.resumed()

    def close(self, grace: float) -> None:
        """Write what was delayed, then end the CLI."""
        self._input.flush()
        self._receiver.ending()
        self._inner.close(grace)

    def kill(self) -> None:
        """Drop what was delayed and kill the CLI."""
        self._input.drop()
        self._receiver.ending()
        self._inner.kill()


class _Schedule:
    """The faults that have not occurred yet."""

    def __init__(self, faults: tuple[Fault, ...], happened: list[Fault]) -> None:
        self._lines = [each for each in faults if not isinstance(each, InputFault)]
        self._writes = [each for each in faults if isinstance(each, InputFault)]
        self._happened = happened

    def at_line(self, number: int, line: bytes) -> list[LineFault | ProcessFault]:
        """Return the faults of a line from the CLI, and remove them."""
        return self._take(self._lines, number, line)

    def at_write(self, number: int, data: bytes) -> list[InputFault]:
        """Return the faults of a write to the CLI, and remove them."""
        return self._take(self._writes, number, data)

    def _take(self, ahead: list[FaultT], number: int, data: bytes) -> list[FaultT]:
        found = [each for each in ahead if _is_at(each, number, data)]
        for fault in found:
            ahead.remove(fault)
        self._happened += found
        return found


class _FaultyReceiver:
    """Receives the CLI's output in place of the session, counts lines and applies faults."""

    def __init__(self, receiver: Receiver, schedule: _Schedule, on_end: Callable[[], None]) -> None:
        self.schedule = schedule
        self._on_end = on_end
        self._receiver = receiver
        self._output = Flow(receiver.data_received)
        self._tail = b""
        self._lines = 0
        self._is_mute = False
        self._is_stopped = False
        self._is_being_ended = False
        self._status: int | None = None
        self._executions: list[asyncio.TimerHandle] = []
        # Weak, so that an unreferenced channel is finalized and ends its process tree.
        self._channel: weakref.ref[FaultyChannel] | None = None
        self._owed: list[_Action] = []

    def attach(self, channel: FaultyChannel) -> None:
        """Set the channel, and carry out the faults that came before it was known."""
        self._channel = weakref.ref(channel)
        for action in self._owed:
            action(channel)

    # The receiver

    def data_received(self, data: bytes) -> None:
        *lines, self._tail = (self._tail + data).split(b"\n")
        untouched = b""
        for bare in lines:
            line = bare + b"\n"
            self._lines += 1
            faults = self.schedule.at_line(self._lines, line)
            if faults:
                self._forward(untouched)
                self._forward(*self._struck(line, faults))
                untouched = b""
            else:
                untouched += line
        self._forward(untouched)

    def stderr_received(self, data: bytes) -> None:
        self._receiver.stderr_received(data)

    def exited(self, status: int) -> None:
        for timer in self._executions:
            timer.cancel()
        if self._is_stopped and self._is_being_ended:
            # The stopped process was killed, so it never wrote what is still delayed here.
            self._output.drop()
        elif self._is_stopped:
            # The process had exited before it could be stopped.
            self._output.flush()
        self._forward(self._tail)
        reported = status if self._status is None else self._status
        self._output.put(lambda: self._receiver.exited(reported), self._on_end)

    def _forward(self, *segments: Segment) -> None:
        if not self._is_mute:
            self._output.put(*segments)

    def _struck(self, line: bytes, faults: list[LineFault | ProcessFault]) -> list[Segment]:
        segments: list[Segment] = [line]
        # Split last: the others change a whole line, or put a line before it.
        for fault in sorted(faults, key=lambda each: isinstance(each, Split)):
            if isinstance(fault, ProcessFault):
                fault.strike(self)
            else:
                segments = _changed(segments, fault)
        return segments

    # The target

    def kill(self, status: int, later: float) -> None:
        if later:
            loop = asyncio.get_running_loop()
            self._executions.append(loop.call_later(later, self.kill, status, 0.0))
            return
        self._is_mute = True
        self._status = status
        self._do(lambda channel: channel.kill())

    def suspend(self, wait: Wait) -> None:
        self._is_stopped = True
        self._do(lambda channel: channel.suspend())
        self._output.put(wait, lambda: self._do(lambda channel: channel.resume()))

    def flood(self, size: int) -> None:
        for start in range(0, size, STDERR_CHUNK):
            self._receiver.stderr_received(b"!" * min(STDERR_CHUNK, size - start))

    def mute(self) -> None:
        self._is_mute = True

    def ending(self) -> None:
        """Note that the session ends the process."""
        self._is_being_ended = True

    def resumed(self) -> None:
        """Note that the process was resumed, and release its output."""
        if self._is_stopped:
            self._is_stopped = False
            self._output.release()

    def _do(self, action: _Action) -> None:
        if self._channel is None:
            self._owed.append(action)
        elif (channel := self._channel()) is not None:
            action(channel)


_Action = Callable[[FaultyChannel], None]


def _is_at(fault: Fault, number: int, data: bytes) -> bool:
    return fault.at == number or (isinstance(fault.at, str) and fault.at.encode() in data)


def _changed(segments: list[Segment], fault: LineFault | InputFault) -> list[Segment]:
    """Apply a fault to every chunk of bytes among the segments."""
    return [
        changed
        for segment in segments
        for changed in (fault.change(segment) if isinstance(segment, bytes) else (segment,))
    ]


class Flow:
    """A pipe with delays. Chunks that need not wait are delivered inside `put`."""

    def __init__(self, deliver: Callable[[bytes], None]) -> None:
        self._deliver = deliver
        self._waiting: deque[Segment | Callable[[], None]] = deque()
        self._is_held = False
        self._is_flowing = False
        self._timer: asyncio.Handle | None = None

    def put(self, *segments: Segment | Callable[[], None]) -> None:
        """Deliver chunks, apply waits and call functions, in order, after those put before."""
        self._waiting.extend(segment for segment in segments if segment != b"")
        self._flow()

    def release(self) -> None:
        """End the current wait."""
        if self._timer is not None:
            self._timer.cancel()
        self._is_held = False
        self._flow()

    def drop(self) -> None:
        """Discard everything that was not delivered, and end the current wait."""
        self._waiting.clear()
        self.release()

    def flush(self) -> None:
        """Deliver everything now, without waiting."""
        kept = [segment for segment in self._waiting if not isinstance(segment, Wait)]
        self._waiting = deque(kept)
        self.release()

    def _flow(self) -> None:
        # A delivery may call `put`; the loop that is already running delivers those chunks.
        if self._is_flowing:
            return
        self._is_flowing = True
        try:
            while self._waiting and not self._is_held:
                self._pass(self._waiting.popleft())
        finally:
            self._is_flowing = False

    def _pass(self, segment: Segment | Callable[[], None]) -> None:
        if isinstance(segment, bytes):
            self._deliver(segment)
        elif isinstance(segment, Wait):
            self._is_held = True
            self._after(segment.rounds, segment)
        else:
            segment()

    def _after(self, rounds: int, wait: Wait) -> None:
        loop = asyncio.get_running_loop()
        if rounds > 0:
            self._timer = loop.call_soon(self._after, rounds - 1, wait)
        elif wait.seconds == math.inf:
            self._timer = None
        elif wait.seconds:
            elapsed = Wait(joins=wait.joins)
            self._timer = loop.call_later(wait.seconds, self._after, 0, elapsed)
        else:
            if wait.joins:
                self._join()
            self.release()

    def _join(self) -> None:
        chunks: list[bytes] = []
        while self._waiting and isinstance(first := self._waiting[0], bytes):
            chunks.append(first)
            self._waiting.popleft()
        if chunks:
            self._waiting.appendleft(b"".join(chunks))
