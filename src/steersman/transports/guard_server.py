"""The guard server: one program beside a host that forks a guard for each of its CLIs.

A script of its own: `python -I -S guard_server.py HOST`, loaded together with `kernel.py` and
`guard.py`. A guard that is forked from a process that has loaded everything starts in a millisecond
instead of twenty, and shares most of its memory with the server.

Orders come over descriptor 3, a socket for whole messages. The first message is the state of the
host when the server was started, `kernel.state_of`. Each order has seven descriptors: 0 to 4 of the
guard, the working directory of the host and its root. Its parts end with a null byte: the private
directory, the working directory of the CLI, its user, the number of its arguments, arguments,
variables. An order that the server does not take has no other effect than that its descriptors
are closed, which the host sees.

A guard must inherit what the host has now, and the server has what the host had when it started the
server. So before each order the server compares: once the host has given up rights, changed its
limits or entered another root, no order is taken any more, from any sender.

The server is the outer process of all its guards. If one of them is killed, the processes of its
tree become children of the server, which ends them and reports it. If the host dies, the server
ends everything. If the server itself is killed, its guards continue, and watch the host themselves.

Knows guards, not what they do. Imports next to nothing; keep it that way.
"""

# ruff: noqa: PTH116, SIM105

from __future__ import annotations

import errno
import gc
import os
import select
import sys
import time

from steersman.transports.guard import (
    CONTROL,
    HOST,
    KILL_PATIENCE,
    PARENT_DIED,
    ROUND,
    STATUS,
    Guard,
    close_above,
    release_pipes,
    remove_directory,
    wake_on_signals,
)
from steersman.transports.kernel import (
    PR_SET_CHILD_SUBREAPER,
    PR_SET_PDEATHSIG,
    children_of,
    kill_below,
    kill_group,
    prctl,
    row_of,
    send_signal,
    state_of,
    watch_process,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    import socket
else:
    # `signal` imports `enum`, and `socket` much more.
    import _signal as signal
    import _socket as socket

ORDERS = CONTROL
NUMBER = 4
"""Bytes of a number that comes with an order: a descriptor, or an id of its sender."""
CWD = 5
ROOT = 6
ENDS = 7
"""Descriptors of an order: 0 to 4 of the guard, the host's working directory and its root."""
LARGEST_ORDER = 192 * 1024
"""Bytes: what the socket's usual buffer holds as one message."""

FallenGuard = tuple[int, str]
"""The pipe for reports and the private directory of a guard."""


def main() -> None:
    """Fork guards until the host has no more orders, and all guards have ended. Never returns."""
    try:
        server = Server(int(sys.argv[1]))
        server.serve()
        server.finish()
    finally:
        os._exit(0)


class Server:
    """The guards of one host."""

    def __init__(self, host: int) -> None:
        self.host = host
        close_above(ORDERS)
        os.setsid()
        release_pipes()
        # All that is opened from now on is above the descriptors that a guard needs.
        os.dup2(0, STATUS, inheritable=False)
        os.dup2(0, HOST, inheritable=False)
        self.wake = wake_on_signals()
        prctl(PR_SET_PDEATHSIG, PARENT_DIED)
        is_subreaper = prctl(PR_SET_CHILD_SUBREAPER, 1)
        watched = watch_process(host)
        # The pid may be that of another process; not if the parent still has it.
        self.can_serve = is_subreaper and watched >= 0 and os.getppid() == host
        if self.can_serve:
            os.dup2(watched, HOST, inheritable=False)
            os.close(watched)
        self.orders: socket.socket | None = socket.socket(fileno=ORDERS)
        self.state = self.orders.recv(LARGEST_ORDER)
        self.guards: dict[int, FallenGuard] = {}
        """By their pids."""
        self.fallen: list[FallenGuard] = []
        """Guards that were killed, and whose trees have not ended."""
        self.deadline = 0.0
        """When the end of the trees of `fallen` is no longer waited for."""
        # The garbage collector would write to memory that is shared with the guards.
        gc.disable()
        gc.freeze()

    def serve(self) -> None:
        """Fork guards, until the host dies or it has no more orders and all guards have ended."""
        while self.can_serve and (self.orders or self.guards or self.fallen):
            waiting = [HOST, self.wake] + ([ORDERS] if self.orders else [])
            readable, _, _ = select.select(waiting, [], [], ROUND if self.fallen else None)
            if HOST in readable:
                return
            if self.wake in readable and PARENT_DIED in os.read(self.wake, 512):
                return
            self.reap()
            self.end_fallen()
            if ORDERS in readable:
                self.take_order()

    def take_order(self) -> None:
        """Fork a guard for the next order, if it is one that may be taken."""
        assert self.orders is not None
        size = socket.CMSG_SPACE(ENDS * NUMBER) + socket.CMSG_SPACE(3 * NUMBER)
        order, passed, _, _ = self.orders.recvmsg(LARGEST_ORDER, size, socket.MSG_CMSG_CLOEXEC)
        found = {kind: numbers_of(data) for _, kind, data in passed}
        ends = found.get(socket.SCM_RIGHTS, [])
        pid, *ids = found.get(socket.SCM_CREDENTIALS, [0])
        # A copy of the host that was forked in C has the socket, too. With fewer descriptors, this
        # process may open no more of them.
        is_whole = pid == self.host and len(ends) == ENDS
        if not order or (is_whole and not self.is_like_host(ids, ends[ROOT])):
            self.orders.close()
            self.orders = None
        elif is_whole and self.start(order, ends):
            del ends[STATUS]
        for end in ends:
            os.close(end)

    def is_like_host(self, ids: list[int], root: int) -> bool:
        """Return whether a child of this process has the rights, limits and root of the host."""
        own, theirs = os.stat("/"), os.stat(root)
        is_same_root = (own.st_dev, own.st_ino) == (theirs.st_dev, theirs.st_ino)
        is_same_user = ids == [os.getuid(), os.getgid()]
        return is_same_user and is_same_root and self.state == state_of(self.host) != b""

    def start(self, order: bytes, ends: list[int]) -> bool:
        """Fork a guard, and keep its pipe for reports. Report and return False if that fails."""
        try:
            pid = os.fork()
        except OSError as error:
            os.write(ends[STATUS], f"failed fork {error.errno or errno.EAGAIN}\n".encode())
            return False
        parts = os.fsdecode(order).split("\0")[:-1]
        if not pid:
            become_guard(parts, ends)
        self.guards[pid] = ends[STATUS], parts[0]
        return True

    def reap(self) -> bool:
        """Wait for all exited children, note killed guards, and return whether some are left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if not pid:
                return True
            if pid not in self.guards:
                continue
            found = self.guards.pop(pid)
            if status:
                self.fallen.append(found)
                self.deadline = time.monotonic() + KILL_PATIENCE
            else:
                os.close(found[0])

    def end_fallen(self) -> None:
        """Kill what killed guards have left; when nothing is, report it."""
        if not self.fallen:
            return
        left = [pid for pid in children_of(os.getpid()) if pid not in self.guards]
        for pid in left:
            row = row_of(pid)
            kill_below(pid)
            if row and row[2] not in (0, 1, os.getpgid(0)):
                kill_group(row[2])
            send_signal(pid, signal.SIGKILL)
        if not left or time.monotonic() > self.deadline:
            for status, directory in self.fallen:
                report_end(status, directory)
            self.fallen.clear()

    def finish(self) -> None:
        """Kill all that is left, guards too, and remove their directories."""
        deadline = time.monotonic() + KILL_PATIENCE
        while time.monotonic() < deadline:
            kill_below(os.getpid())
            if not self.reap():
                break
            if select.select([self.wake], [], [], ROUND)[0]:
                os.read(self.wake, 512)
        for status, directory in (*self.guards.values(), *self.fallen):
            report_end(status, directory)


def numbers_of(data: bytes) -> list[int]:
    """Return the numbers that came with an order."""
    return [
        int.from_bytes(data[at : at + NUMBER], sys.byteorder) for at in range(0, len(data), NUMBER)
    ]


def become_guard(order: list[str], ends: list[int]) -> None:
    """Be the guard of one CLI, in the process that was forked for it. Never returns."""
    try:
        signal.set_wakeup_fd(-1)
        os.fchdir(ends[CWD])
        for at, end in enumerate(ends[:CWD]):
            os.dup2(end, at, inheritable=at < CONTROL)
        close_above(HOST)
        directory, cwd, user, count, *rest = order
        argv, variables = rest[: int(count)], rest[int(count) :]
        env = dict(each.split("=", 1) for each in variables)
        Guard(directory, cwd, user, argv, env).run()
    finally:
        os._exit(1)


def report_end(status: int, directory: str) -> None:
    """Remove the directory of a guard that was killed, and report that its tree has ended."""
    if directory:
        remove_directory(directory)
    try:
        os.write(status, b"exited -9\n")
    except OSError:
        # The host has exited, so there is no reader.
        pass
    os.close(status)


if __name__ == "__main__":
    main()
