"""A transport for sessions with leases: nothing is read from or written to a CLI without one.

asyncio handles readable pipes before timers that are due. So a process that was stopped, and wakes
up after the end of its lease, finds that out here, before it answers the CLI.
"""

from __future__ import annotations

from dataclasses import dataclass

from steersman._session.leases import Leases
from steersman.ports import (
    Channel,
    Launch,
    Receiver,
    SupportsEndAfter,
    SupportsSuspended,
    Transport,
)


@dataclass(frozen=True, slots=True)
class LeasedTransport:
    """Starts CLIs of a session while it has its leases."""

    inner: Transport
    leases: Leases

    async def open(self, launch: Launch, receiver: Receiver) -> Channel:
        """Start the CLI, if the leases are valid. Raises `LeaseLost`."""
        self.leases.require()
        channel = await self.inner.open(launch, _LeasedReceiver(receiver, self.leases))
        leased = _LeasedChannel(channel, self.leases)
        self.leases.on_renewed = leased.renew
        leased.renew()
        return leased


@dataclass(frozen=True, slots=True)
class _LeasedReceiver:
    inner: Receiver
    leases: Leases

    def data_received(self, data: bytes) -> None:
        if self.leases.check():
            self.inner.data_received(data)

    def stderr_received(self, data: bytes) -> None:
        self.inner.stderr_received(data)

    def exited(self, status: int) -> None:
        # First: a CLI that was ended with the lease is not replaced.
        self.leases.check()
        self.inner.exited(status)


@dataclass(frozen=True, slots=True)
class _LeasedChannel:
    inner: Channel
    leases: Leases

    @property
    def pid(self) -> int | None:
        return self.inner.pid

    def write(self, data: bytes) -> None:
        if self.leases.check():
            self.inner.write(data)

    def end_input(self) -> None:
        self.inner.end_input()

    def suspend(self) -> None:
        self.inner.suspend()

    async def suspended(self) -> None:
        if isinstance(self.inner, SupportsSuspended):
            await self.inner.suspended()

    def resume(self) -> None:
        if self.leases.check():
            self.inner.resume()

    def close(self, grace: float) -> None:
        self.inner.close(grace)

    def kill(self) -> None:
        self.inner.kill()

    def renew(self) -> None:
        """Let the CLI run until shortly before the leases end, whatever this process does."""
        left = self.leases.left
        if isinstance(self.inner, SupportsEndAfter) and left < float("inf"):
            self.inner.end_after(max(left, 0.0))
