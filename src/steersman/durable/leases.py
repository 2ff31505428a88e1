"""The leases of a session whose conversation is in a store: taken, renewed, released.

Nothing is read from or written to a CLI without one: `LeasedTransport`.

A lease ends at a time of the store's clock. This process counts the same seconds from before each
call, so it never takes a lease for longer than the store does. A lease that cannot be renewed ends
the CLI before that time. A process that was stopped meanwhile, and its CLI not, finds out with the
next chunk that it reads, or line that it writes.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from uuid import uuid4

from steersman._background import BackgroundTasks
from steersman._process import boot_name, identity_of
from steersman.errors import ChannelClosed, LeaseLost, SessionInUse, StoreError
from steersman.ports import (
    Channel,
    Conversation,
    DurableWork,
    Launch,
    Receiver,
    SupportsEndAfter,
    SupportsSuspended,
    Transport,
)

POLL = 0.1
"""Seconds between two attempts to take a lease."""
RETRY = 1.0
"""Seconds at most between two attempts to renew a lease while the store fails."""
RENEWALS = 3
"""How often a lease is renewed in the time that it lasts."""
RESERVE = 0.1
"""The part of that time in which the CLI is killed, before the lease ends."""
RELEASING = 5.0
"""Seconds that a release may take; without it, the lease ends by itself."""

OWNER = re.compile(r"process (\d+) on .*, lease ([0-9a-f]+)-([0-9a-f]+)-([0-9a-f]+)", re.DOTALL)


Own = Callable[[str, Callable[[], bool] | None, str], None]
"""`SupportsAwaitAnswer.own`: informs an inbox whether this process has the conversation."""


@dataclass(slots=True)
class SessionWork:
    """The rows of one session in a store."""

    store: DurableWork
    key: str | None
    """The key that the conversation was opened with, if it was."""
    owner: str
    """Which process has the conversation, in words."""
    machine: str
    """Where the CLI of this session has its files."""
    token: str
    """What the lease of this session belongs to."""
    seconds: float
    """How long the lease lasts, from each renewal on."""
    before: Conversation | None = None
    """The conversation as it was when the lease was taken; None if it is new, or not taken yet."""


class Leases:
    """The leases of one session: one, or several after `/clear`, which begins another one."""

    def __init__(
        self,
        work: SessionWork,
        lost: Callable[[LeaseLost], None],
        own: Own,
        background: BackgroundTasks,
        *,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """Call `lost` when a lease has ended; `own` informs the inbox what is owned."""
        self._work = work
        self._lost = lost
        self._own = own
        self._background = background
        self._clock = clock or _boot_time
        self._until: dict[str, float] = {}
        """When each lease ends, by this process's clock."""
        self._tried: dict[str, None] = {}
        self._renewing: asyncio.Task[None] | None = None
        self._end: asyncio.TimerHandle | None = None
        """The look at the time at which the CLI must have ended."""
        self._error: LeaseLost | None = None
        self._lock = asyncio.Lock()
        self._has_ended = False
        """Whether the session has ended: nothing would renew or release another lease."""
        self._channel: Channel | None = None
        """The CLI that runs, or the last one."""

    @property
    def left(self) -> float:
        """Seconds until the CLI must have ended; below zero if it must not be used any more."""
        if self._error is not None:
            return -1.0
        until = min(self._until.values(), default=float("inf"))
        return until - self._clock() - RESERVE * self._work.seconds

    def runs(self, channel: Channel) -> None:
        """End this CLI with the leases."""
        self._channel = channel
        self._renewed()

    def _renewed(self) -> None:
        """Let the CLI run until shortly before the leases end, whatever this process does."""
        channel, left = self._channel, self.left
        if isinstance(channel, SupportsEndAfter) and left < float("inf"):
            channel.end_after(max(left, 0.0))

    def check(self) -> bool:
        """Return whether the CLI may be used; if not, the session fails."""
        if self.left > 0:
            return True
        self._fail("it was not renewed in time: this process was stopped, or the store is away")
        return False

    def require(self) -> None:
        """Raise `LeaseLost` if the CLI may not be used."""
        if not self.check():
            assert self._error is not None
            raise self._error

    async def take(
        self, session_id: str | None, is_ending: Callable[[], bool] = bool, *, wait: float = 0.0
    ) -> bool:
        """Take the lease, if the conversation is known and not ours already.

        Returns whether it is the first lease of the session. Raises `SessionInUse` after `wait`
        seconds, and `ChannelClosed` once the leases were released.
        """
        if session_id is None or session_id in self._until:
            return False
        async with self._lock:
            is_first = not self._until
            if session_id not in self._until:
                await self._take(session_id, is_ending, wait)
        return is_first

    async def _take(self, session_id: str, is_ending: Callable[[], bool], wait: float) -> None:
        work, loop = self._work, asyncio.get_running_loop()
        began = loop.time()
        self._check_open()
        self._tried[session_id] = None
        while True:
            asked = self._clock()
            try:
                before = await work.store.take(
                    session_id,
                    key=work.key or session_id,
                    owner=work.owner,
                    token=work.token,
                    machine=work.machine,
                    seconds=work.seconds,
                )
                break
            except SessionInUse as error:
                if await self._release_dead(session_id, error):
                    continue
                if loop.time() - began >= wait:
                    raise
            await asyncio.sleep(POLL)
            if is_ending():
                raise ChannelClosed("this session was closed while it was starting")
        if self._has_ended:
            # The lease may have been stored after the release.
            self._tried[session_id] = None
            await self.release()
        self._check_open()
        if not self._until:
            work.before = before
        self._until[session_id] = asked + work.seconds
        self._own(session_id, lambda: self.left > 0, work.token)
        self._renewed()
        self._watch_end()
        if self._renewing is None:
            self._renewing = self._background.keep(
                "the lease of the conversation",
                self._renew_all,
                meanwhile="it is not renewed, and its end will end the CLI",
                longest=RETRY,
            )

    def _check_open(self) -> None:
        if self._has_ended:
            raise ChannelClosed("this session has ended", hint="open the conversation again")

    async def _release_dead(self, session_id: str, error: SessionInUse) -> bool:
        """Release the lease of a process of this machine that has ended; returns whether it has."""
        token = token_if_ended(error.owner)
        if token is None:
            return False
        await self._work.store.release(session_id, token)
        return True

    def _watch_end(self) -> None:
        """End the CLI when the leases end, whatever has become of their renewal."""
        if self._end is not None:
            self._end.cancel()
        if self._error is None and self.check():
            self._end = asyncio.get_running_loop().call_later(self.left, self._watch_end)

    async def _renew_all(self) -> None:
        """Renew the leases until one is lost. Raises `StoreError` or `TimeoutError`."""
        work = self._work
        while self._error is None:
            due = min(self._until.values()) - work.seconds * (1 - 1 / RENEWALS)
            await asyncio.sleep(max(due - self._clock(), 0.0))
            for session_id in list(self._until):
                if not self.check():
                    return
                asked = self._clock()
                async with asyncio.timeout(self.left):
                    is_ours = await work.store.renew(session_id, work.token, work.seconds)
                if not is_ours:
                    self._fail("another process has it")
                    return
                if session_id in self._until:
                    self._until[session_id] = asked + work.seconds
            self._renewed()
            self._watch_end()

    def _fail(self, reason: str) -> None:
        if self._error is None:
            names = ", ".join(self._until)
            self._error = LeaseLost(names, reason)
            self._lost(self._error)

    async def release(self) -> None:
        """Give the leases up for good; the CLI has exited. May be called again."""
        self._has_ended = True
        if self._renewing is not None:
            self._renewing.cancel()
            self._renewing = None
        if self._end is not None:
            self._end.cancel()
        tried, self._tried = self._tried, {}
        self._until.clear()
        with suppress(StoreError, TimeoutError):
            async with asyncio.timeout(RELEASING):
                for session_id in tried:
                    self._own(session_id, None, "")
                    await self._work.store.release(session_id, self._work.token)


@dataclass(frozen=True, slots=True)
class LeasedTransport:
    """Starts CLIs of a session while it has its leases, and lets them be used only then.

    asyncio handles readable pipes before timers that are due. So a process that was stopped, and
    wakes up after the end of its lease, finds that out here, before it answers the CLI.
    """

    inner: Transport
    leases: Leases
    launched: Callable[[], None]
    """Called before each CLI is started."""

    async def open(self, launch: Launch, receiver: Receiver) -> Channel:
        """Start the CLI, if the leases are valid. Raises `LeaseLost`."""
        self.leases.require()
        self.launched()
        channel = await self.inner.open(launch, _LeasedReceiver(receiver, self.leases))
        self.leases.runs(channel)
        return _LeasedChannel(channel, self.leases)


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


def new_lease(machine: str) -> tuple[str, str]:
    """Return the owner and the token of a new lease of this process.

    The owner is a string for users, and has the token: if its process has ended, another process of
    the same machine releases the lease, and need not wait until it ends.
    """
    pid = os.getpid()
    token = f"{_short(boot_name())}-{_short(identity_of(pid))}-{uuid4().hex}"
    return f"process {pid} on {machine}, lease {token}", token


def token_if_ended(owner: str) -> str | None:
    """Return the token of an owner that was a process of this machine, and has ended; else None."""
    found = OWNER.fullmatch(owner)
    if found is None or found[2] != _short(boot_name()):
        # Of another machine or container, where its process may run.
        return None
    if found[3] == _short(identity_of(int(found[1]))):
        return None
    return "-".join(found.group(2, 3, 4))


def _short(name: str | None) -> str:
    # What is not known is equal to nothing.
    known = uuid4().hex if name is None else name
    return hashlib.sha256(known.encode()).hexdigest()[:12]


def _boot_time() -> float:
    """Return seconds that also count while the machine sleeps, where that is known."""
    if sys.platform == "linux":
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()
