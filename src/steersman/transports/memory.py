"""A CLI that is an object in this process.

A `Peer` receives what a session writes and answers through a `Wire`. Nothing is delivered inside
the call that writes it: both directions go through the event loop, as they would through pipes.
"""

from __future__ import annotations

import asyncio
import contextvars
import signal
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from steersman.ports import Channel, Launch, Receiver


class Peer(Protocol):
    """Acts as the CLI. Called only by the event loop, and never after the exit."""

    def connected(self, launch: Launch, wire: Wire) -> None:
        """Start, with the arguments of `launch`. Writes to `wire` are delivered later."""
        ...

    def data_received(self, data: bytes) -> None:
        """Handle the next chunk of stdin."""
        ...

    def input_ended(self) -> None:
        """Handle the end of stdin."""
        ...

    def killed(self) -> asyncio.Future[Any] | None:
        """Release everything: the session has killed this CLI and ignores its output.

        Return a future if tasks need time to end; the exit is reported when the future is done.
        """
        ...


class Wire:
    """The stdout, stderr and exit of a peer."""

    def __init__(self, channel: _MemoryChannel) -> None:
        self._channel = channel

    def write(self, data: bytes) -> None:
        """Write `data` to stdout."""
        if data:
            self._channel.deliver(lambda receiver: receiver.data_received(data))

    def write_stderr(self, data: bytes) -> None:
        """Write `data` to stderr."""
        if data:
            self._channel.deliver(lambda receiver: receiver.stderr_received(data))

    def exit(self, status: int) -> None:
        """Exit, after everything written was delivered. Later calls are ignored."""
        self._channel.finish(status)


@dataclass(frozen=True, slots=True)
class MemoryTransport:
    """Runs a peer instead of a process."""

    peer: Peer

    async def open(self, launch: Launch, receiver: Receiver) -> Channel:
        channel = _MemoryChannel(self.peer, receiver)
        self.peer.connected(launch, Wire(channel))
        return channel


class _MemoryChannel:
    pid: int | None = None

    def __init__(self, peer: Peer, receiver: Receiver) -> None:
        self._peer = peer
        self._receiver = receiver
        self._loop = asyncio.get_running_loop()
        context = contextvars.copy_context()
        self._to_peer = _Pipe(self._loop, context)
        self._to_receiver = _Pipe(self._loop, context)
        self._reaper: asyncio.TimerHandle | None = None
        self._input_has_ended = False
        self._is_suspended = False
        self._is_ending = False
        """True when the session has killed the peer, whose output is dropped from then on."""
        self._has_exited = False

    # Called by the session

    def write(self, data: bytes) -> None:
        if not self._input_has_ended:
            self._to_peer.put(lambda: self._peer.data_received(data))

    def end_input(self) -> None:
        if not self._input_has_ended:
            self._input_has_ended = True
            self._to_peer.put(self._peer.input_ended)

    def suspend(self) -> None:
        if self._has_exited:
            # A CLI that has exited cannot be stopped; its last output and its exit are scheduled.
            return
        self._is_suspended = True
        self._to_peer.hold()
        self._to_receiver.hold()

    def resume(self) -> None:
        self._is_suspended = False
        self._to_peer.release()
        self._to_receiver.release()

    def close(self, grace: float) -> None:
        if self._has_exited:
            # The CLI exited while it was suspended: report the exit to the session that closes it.
            self._to_receiver.release()
        if self._has_exited or self._is_ending or self._loop.is_closed():
            return
        self.end_input()
        deadline = self._loop.time() + grace
        if self._reaper is not None:
            deadline = min(deadline, self._reaper.when())
            self._reaper.cancel()
        self._reaper = self._loop.call_at(deadline, self._end, -signal.SIGTERM)

    def kill(self) -> None:
        self._end(-signal.SIGKILL)

    # Called by the peer

    def deliver(self, call: Callable[[Receiver], None]) -> None:
        if not self._has_exited and not self._is_ending:
            self._to_receiver.put(lambda: call(self._receiver))

    def finish(self, status: int) -> None:
        if not self._is_ending:
            self._finish(status)

    def _end(self, status: int) -> None:
        if self._has_exited:
            self._to_receiver.release()
        if self._has_exited or self._is_ending:
            return
        self._is_ending = True
        self._to_peer.drop()
        ending = self._peer.killed()
        if ending is None:
            self._finish(status)
        else:
            ending.add_done_callback(lambda _: self._finish(status))

    def _finish(self, status: int) -> None:
        if self._has_exited:
            return
        self._has_exited = self._input_has_ended = True
        self._to_peer.drop()
        if self._reaper is not None:
            self._reaper.cancel()
        self._to_receiver.put(lambda: self._receiver.exited(status))
        # A suspended process that is killed exits without being resumed.
        if self._is_ending or self._reaper is not None:
            self._to_receiver.release()


class _Pipe:
    """Calls to make in the next round of the event loop, in order."""

    def __init__(self, loop: asyncio.AbstractEventLoop, context: contextvars.Context) -> None:
        self._loop = loop
        self._context = context
        self._waiting: deque[Callable[[], object]] = deque()
        self._is_held = False
        self._is_due = False

    def put(self, action: Callable[[], object]) -> None:
        self._waiting.append(action)
        self._schedule()

    def drop(self) -> None:
        self._waiting.clear()

    def hold(self) -> None:
        self._is_held = True

    def release(self) -> None:
        self._is_held = False
        self._schedule()

    def _schedule(self) -> None:
        if self._waiting and not (self._is_held or self._is_due or self._loop.is_closed()):
            self._is_due = True
            self._loop.call_soon(self._run, context=self._context)

    def _run(self) -> None:
        self._is_due = False
        # Calls that these calls add wait for the next round.
        for _ in range(len(self._waiting)):
            if self._is_held or not self._waiting:
                break
            self._waiting.popleft()()
        self._schedule()
