"""Pipe ends that are closed exactly once, by the process that made them.

A forked copy of the host must not keep a CLI's stdin open, and must not close a descriptor number
that has been reused. So the copy closes every end right after the fork and never again.
"""

from __future__ import annotations

import fcntl
import os
import socket
import sys
import termios
import threading

LOWEST = 10
"""Lowest descriptor of an end. A child gets its ends as 0 to 4, so numbers never collide."""


class PipeEnd:
    """One end of a pipe. Closes itself when it is garbage collected."""

    __slots__ = ("_number", "_owner")

    def __init__(self, number: int) -> None:
        self._number = number
        self._owner = _Owner.generation
        _Owner.numbers.add(number)

    @property
    def number(self) -> int:
        """The descriptor, or -1 if the end is closed."""
        return self._number if self._owner == _Owner.generation else -1

    @property
    def is_open(self) -> bool:
        return self.number >= 0

    def unread(self) -> int:
        """Return how many bytes are in the pipe. On Linux, either end will do."""
        found = fcntl.ioctl(self.number, termios.FIONREAD, bytes(4))
        return int.from_bytes(found, sys.byteorder)

    def close(self) -> None:
        with _Owner.lock:
            number, self._number = self.number, -1
            if number < 0:
                return
            _Owner.numbers.discard(number)
            os.close(number)

    def __del__(self) -> None:
        self.close()


def pipe() -> tuple[PipeEnd, PipeEnd]:
    """Make a pipe. Return the end to read from and the end to write to."""
    with _Owner.lock:
        reader, writer = os.pipe()
        return PipeEnd(_lift(reader)), PipeEnd(_lift(writer))


def message_sockets() -> tuple[PipeEnd, PipeEnd]:
    """Make two connected sockets that carry whole messages, and descriptors. Only on Linux.

    What comes to the second one has the ids of its sender, as they were when it was sent.
    """
    with _Owner.lock:
        one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        other.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        return PipeEnd(_lift(one.detach())), PipeEnd(_lift(other.detach()))


class _Owner:
    """The ends that this process has open. The lock keeps forks out while an end is being made."""

    lock = threading.RLock()
    numbers: set[int] = set()
    generation = 0


def _lift(number: int) -> int:
    if number >= LOWEST:
        return number
    try:
        return fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, LOWEST)
    finally:
        os.close(number)


def _disown() -> None:
    _Owner.lock = threading.RLock()
    _Owner.generation += 1
    for number in _Owner.numbers:
        os.close(number)
    _Owner.numbers.clear()


os.register_at_fork(
    before=lambda: _Owner.lock.acquire(),  # noqa: PLW0108 - the lock may have been replaced
    after_in_parent=lambda: _Owner.lock.release(),  # noqa: PLW0108
    after_in_child=_disown,
)
