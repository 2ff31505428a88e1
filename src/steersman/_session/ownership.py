"""A session owns its conversation: from before its first CLI starts until the last has exited.

Restarts and rewinds do not change the owner. A fork owns its own conversation, and not the one that
it was made from.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from steersman._session.durability import NoDurability
from steersman.errors import ChannelClosed, SessionInUse
from steersman.ports import Durability

POLL = 0.05
"""Seconds between two attempts to lock a conversation: nothing reports that a lock is free."""

ENDING = 10.0
"""Seconds that the next owner waits for one that is closing or was killed, also without `wait`."""


FINDING = 1.0
"""Seconds in which a CLI that has answered the handshake has written down its conversation."""


class Lock(Protocol):
    """The lock on one conversation."""

    def runs(self, pid: int | None) -> None:
        """Write down which CLI the owner runs."""
        ...

    def ends(self) -> None:
        """Write down that the owner is closing."""
        ...

    def release(self) -> None:
        """Unlock the conversation; may be called again."""
        ...


Claim = Callable[[str], Lock]
"""Locks the conversation with this session id, or raises `SessionInUse`."""


class Ownership:
    """The locks of one session: one, or several after `/clear`, which begins another one."""

    def __init__(
        self, claim: Claim | None, wait: float, durability: Durability | None = None
    ) -> None:
        """A lease in a store replaces the locks."""
        self._durability = durability or NoDurability()
        self._claim = None if self._durability.keeps_turns else claim
        self._wait = wait
        self._locks: dict[str, Lock] = {}
        self._pid: int | None = None

    async def take(self, session_id: str | None, is_ending: Callable[[], bool]) -> None:
        """Lock the conversation, if its id is known. Raises `SessionInUse` after `wait` seconds."""
        if self._durability.keeps_turns:
            await self._durability.take(session_id, is_ending, wait=self._wait)
            return
        clock = asyncio.get_running_loop().time
        began = clock()
        while True:
            try:
                self.follow(session_id)
            except SessionInUse as error:
                patience = max(self._wait, ENDING if error.is_ending else 0.0)
                if clock() - began >= patience:
                    raise
            else:
                return
            await asyncio.sleep(POLL)
            if is_ending():
                raise ChannelClosed("this session was closed while it was starting")

    async def own(self, session_id: str | None) -> None:
        """Lock the conversation, if it is another one than before. Raises `SessionInUse`."""
        self.follow(session_id)
        await self._durability.take(session_id)

    def follow(self, session_id: str | None) -> None:
        """Lock the conversation if it is another one than before. Raises `SessionInUse`."""
        if self._claim is None or session_id is None or session_id in self._locks:
            return
        self._locks[session_id] = lock = self._claim(session_id)
        if self._pid is not None:
            lock.runs(self._pid)

    def runs(self, pid: int | None) -> None:
        """Write down which CLI the session runs now."""
        self._pid = pid
        for lock in self._locks.values():
            lock.runs(pid)

    def ends(self) -> None:
        """Write down that the session is closing; the conversation is locked until it has."""
        for lock in self._locks.values():
            lock.ends()

    def release(self) -> None:
        """Unlock everything; the CLI has exited."""
        for lock in self._locks.values():
            lock.release()
        self._locks.clear()


async def find_session(find: Callable[[int], str | None], pid: int) -> str | None:
    """Return the id of the conversation that a CLI has continued; None if it does not write it."""
    found = None
    with suppress(TimeoutError):
        async with asyncio.timeout(FINDING):
            while (found := find(pid)) is None:  # noqa: ASYNC110 - a file sets no event
                await asyncio.sleep(POLL)
    return found
