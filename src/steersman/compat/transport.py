"""Transports of the caller: the official ABC, and what makes one a transport of a session.

A session writes without waiting, so one task writes its lines in order, and another one reads. What
the transport raises is kept in `CustomTransport.failure`, for the caller to get it as it is.
"""

from __future__ import annotations

import asyncio
import json
import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from steersman import _json
from steersman.compat._runtime import Runtime
from steersman.ports import Channel, Launch, Receiver

if TYPE_CHECKING:
    from collections.abc import Coroutine

log = logging.getLogger("steersman.compat")

STOPPING = 1.0
"""Seconds for the last lines to be written, and for both tasks to end after they were cancelled."""

CLOSING = 30.0
"""Seconds for `Transport.close()`; then the session ends without it."""


class Transport(ABC):
    """A way to a CLI that the caller has written, such as one to another machine."""

    @abstractmethod
    async def connect(self) -> None:
        """Connect; called once, before anything else."""

    @abstractmethod
    async def write(self, data: str) -> None:
        """Write one line of JSON, with its line end. Never called twice at the same time."""

    @abstractmethod
    def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        """Return what yields the messages of the CLI, as dicts, until there are no more."""

    @abstractmethod
    async def close(self) -> None:
        """Close the connection; called once. It must not wait without a limit."""

    @abstractmethod
    def is_ready(self) -> bool:
        """Return whether the transport is connected."""

    @abstractmethod
    async def end_input(self) -> None:
        """End the input of the CLI: nothing more is written."""


class CustomTransport:
    """Runs sessions over a transport of the caller. It is connected once and never restarted."""

    def __init__(self, transport: Transport, runtime: Runtime) -> None:
        self.failure: BaseException | None = None
        """What the transport has raised first."""
        self._transport = transport
        self._runtime = runtime
        self._channel: _CustomChannel | None = None

    async def open(self, launch: Launch, receiver: Receiver) -> Channel:
        """Connect the transport. The command of `launch` is not run: the transport has its own."""
        del launch
        try:
            await self._runtime.here(self._transport.connect)
        except BaseException as error:
            self.failure = error
            raise
        self._channel = _CustomChannel(self, self._transport, self._runtime, receiver)
        return self._channel

    async def flushed(self) -> None:
        """Wait until everything is written; raises what `write` has raised."""
        if self._channel is not None:
            await self._channel.flushed()
            if self._channel.write_failure is not None:
                raise self._channel.write_failure

    async def end_input(self, patience: float) -> None:
        """End the input, and wait at most `patience` seconds for the last message."""
        if self._channel is not None:
            self._channel.end_input()
            await self._channel.has_read(patience)

    def end_input_soon(self) -> None:
        """End the input after what was written."""
        if self._channel is not None:
            self._channel.end_input()


def _official_json(line: bytes) -> str:
    """Return a line as the official SDK writes it: programs compare what their transports get."""
    return json.dumps(json.loads(line.decode("utf-8", "surrogatepass"))) + "\n"


class _CustomChannel:
    """One connection: a task that reads, one that writes in order, and one that closes once."""

    pid: int | None = None

    def __init__(
        self, owner: CustomTransport, transport: Transport, runtime: Runtime, receiver: Receiver
    ) -> None:
        self._owner = owner
        self._transport = transport
        self._runtime = runtime
        self._receiver = receiver
        self._lines: deque[bytes] = deque()
        self._input_ends = False
        self._has_lines = asyncio.Event()
        self._is_idle = asyncio.Event()
        """Set while there is nothing to write, and when nothing is written any more."""
        self._is_idle.set()
        self.write_failure: Exception | None = None
        self._ending: asyncio.Task[None] | None = None
        self._writing = self._start(self._write())
        self._reading = self._start(self._read())

    # Called by the session

    def write(self, data: bytes) -> None:
        if self._ending is None and not self._input_ends:
            # One line per call, as the official SDK writes.
            self._lines.extend(data.splitlines(keepends=True))
            self._is_idle.clear()
            self._has_lines.set()

    def end_input(self) -> None:
        self._input_ends = True
        self._has_lines.set()

    def suspend(self) -> None:
        """Do nothing: there is no process here."""

    def resume(self) -> None:
        """Do nothing: there is no process here."""

    def close(self, grace: float) -> None:
        self._end(0, grace)

    def kill(self) -> None:
        self._end(0, 0.0)

    # Called by the owner

    async def flushed(self) -> None:
        await self._is_idle.wait()

    async def has_read(self, patience: float) -> None:
        await asyncio.wait([self._reading], timeout=patience)

    # The tasks

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return asyncio.Task(self._guarded(work))

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a task of the connection, which ends if the transport raises."""
        try:
            await work
        except Exception as error:  # noqa: BLE001 - the caller's own code; it gets the error
            self._owner.failure = self._owner.failure or error
            self._end(1, 0.0)

    async def _write(self) -> None:
        try:
            await self._write_lines()
        finally:
            # No one waits for lines that are not written any more.
            self._is_idle.set()

    async def _write_lines(self) -> None:
        while True:
            await self._has_lines.wait()
            while self._lines:
                await self._write_line(_official_json(self._lines.popleft()))
            self._has_lines.clear()
            self._is_idle.set()
            if self._input_ends:
                await self._runtime.here(self._transport.end_input)
                return

    async def _write_line(self, line: str) -> None:
        try:
            await self._runtime.here(self._transport.write, line)
        except Exception as error:
            self.write_failure = error
            raise

    async def _read(self) -> None:
        await self._runtime.here(self._read_all)
        # In the order of the messages, which may still be on their way.
        self._end(0, 0.0)

    async def _read_all(self) -> None:
        """Pass on every message; runs where the transport runs."""
        async for message in self._transport.read_messages():
            self._runtime.post(self._received, message)

    def _received(self, message: Any) -> None:
        if self._ending is None:
            self._receiver.data_received(_json.dump_line(message))

    def _end(self, status: int, grace: float) -> None:
        if self._ending is None:
            self._ending = asyncio.Task(self._close(status, grace))

    async def _close(self, status: int, grace: float) -> None:
        """Stop both tasks, close the transport, and report the exit."""
        with suppress(TimeoutError):
            async with asyncio.timeout(min(grace, STOPPING)):
                await self._is_idle.wait()
        for task in (self._reading, self._writing):
            task.cancel()
        await asyncio.wait([self._reading, self._writing], timeout=STOPPING)
        try:
            async with asyncio.timeout(CLOSING):
                await self._runtime.here(self._transport.close)
        except TimeoutError:
            log.warning("a transport has not closed within %g s", CLOSING)
        except Exception as error:  # noqa: BLE001 - as above
            self._owner.failure = self._owner.failure or error
            status = status or 1
        self._receiver.exited(status)
