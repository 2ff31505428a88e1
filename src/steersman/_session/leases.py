"""The leases of a session whose conversation is in a store: taken, renewed, released.

A lease ends at a time of the store's clock. This process counts the same seconds from before each
call, so it never takes a lease for longer than the store does. A lease that cannot be renewed ends
the CLI before that time. A process that was stopped meanwhile, and its CLI not, finds out with the
next chunk that it reads, or line that it writes.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from contextlib import suppress

from steersman._background import BackgroundTasks
from steersman._session.durable import SessionWork
from steersman._session.lease_owner import token_if_ended
from steersman.errors import ChannelClosed, LeaseLost, SessionInUse, StoreError

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


class Leases:
    """The leases of one session: one, or several after `/clear`, which begins another one."""

    def __init__(
        self,
        work: SessionWork,
        lost: Callable[[LeaseLost], None],
        own: Callable[[str, Callable[[], bool] | None, str], None],
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
        self.on_renewed: Callable[[], None] = _nothing
        """Called when the leases last longer than before."""

    @property
    def left(self) -> float:
        """Seconds until the CLI must have ended; below zero if it must not be used any more."""
        if self._error is not None:
            return -1.0
        until = min(self._until.values(), default=float("inf"))
        return until - self._clock() - RESERVE * self._work.seconds

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
    ) -> None:
        """Take the lease, if the conversation is known and not ours already.

        Raises `SessionInUse` after `wait` seconds, and `ChannelClosed` once they were released.
        """
        if session_id is None or session_id in self._until:
            return
        async with self._lock:
            if session_id not in self._until:
                await self._take(session_id, is_ending, wait)

    async def _take(self, session_id: str, is_ending: Callable[[], bool], wait: float) -> None:
        work, loop = self._work, asyncio.get_running_loop()
        began = loop.time()
        self._check_open()
        self._tried[session_id] = None
        while True:
            asked = self._clock()
            try:
                before = await work.work.take(
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
        self.on_renewed()
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
        await self._work.work.release(session_id, token)
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
                    is_ours = await work.work.renew(session_id, work.token, work.seconds)
                if not is_ours:
                    self._fail("another process has it")
                    return
                if session_id in self._until:
                    self._until[session_id] = asked + work.seconds
            self.on_renewed()
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
                    await self._work.work.release(session_id, self._work.token)


def _boot_time() -> float:
    """Return seconds that also count while the machine sleeps, where that is known."""
    if sys.platform == "linux":
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


def _nothing() -> None:
    """Do nothing."""
