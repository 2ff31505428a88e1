"""Starts the guards of this process: forked by a guard server, or as a program for each CLI.

A server is started with the first CLI, and ended when there has been none for a while. It takes an
order only while a guard that it forks has what a child of this process would have; else, and when
it is killed or stopped, the guard is a program of its own and the next one gets a new server.

Runs in the supervisor's thread. Knows how guards and servers are started, not what they do.
"""

from __future__ import annotations

import array
import contextlib
import os
import signal
import socket
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType

from steersman.transports import guard, guard_server, kernel
from steersman.transports.pipes import PipeEnd, message_sockets

SEND_PATIENCE = 0.25
"""Seconds that a server may take to have room for an order."""
END_PATIENCE = 0.2
"""Seconds to wait for the end of a server that has nothing left to do."""
ROUND = 0.001
"""Seconds between two looks at servers that are ending."""
MOST_USELESS = 3
"""Servers of one interpreter that took no order. After so many there is no other attempt."""
LOADER_NAMES = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", kernel.PORTABLE)
"""Variables that this interpreter may need in order to start a second time, and the tests' switch.
"""


@dataclass(frozen=True, slots=True)
class SpawnRequest:
    """Everything that is needed to start one CLI."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)
    cwd: str | None
    directory: str | None
    """The private directory that the guard creates; None if there are no files."""
    files: Mapping[str, bytes] = field(repr=False)
    pipes: tuple[PipeEnd, PipeEnd, PipeEnd]
    """The CLI's ends of stdin, stdout and stderr. Closed here once a guard has them."""
    python: str = sys.executable
    user: tuple[int, ...] = ()
    """Ids to run the CLI as: user, group, supplementary groups. Empty for the current user."""


def boot(*modules: ModuleType) -> str:
    """Return a program that runs a script like Python, but uses compiled files if there are any.

    It saves 4 of 15 ms. The `modules` are loaded before it: the package itself cannot be imported
    there, because the interpreter is isolated.
    """
    return f"""\
import sys
from _frozen_importlib_external import SourceFileLoader as Loader
def load(name, space):
    exec(Loader(name, sys.argv.pop(1)).get_code(name), space)
for name in {[module.__name__ for module in modules]}:
    module = sys.modules[name] = type(sys)(name)
    load(name, vars(module))
load("__main__", globals())
"""


BOOT = boot(kernel)
"""Runs the guard as a program: the first two arguments are the paths of `kernel` and `guard`."""
SERVER_BOOT = boot(kernel, guard)


class Guards:
    """Starts guards, and keeps the servers that fork them."""

    def __init__(self) -> None:
        self._servers: dict[str, GuardServer] = {}
        """By the path of their interpreter."""
        self._retired: list[GuardServer] = []
        """Servers that get no more orders, and may still have guards."""
        self._useless: Counter[str] = Counter()
        """How many servers of an interpreter in succession have started no guard."""

    @property
    def has_servers(self) -> bool:
        return bool(self._servers)

    def order(
        self, request: SpawnRequest, env: Mapping[str, str], ends: Sequence[PipeEnd]
    ) -> GuardServer | None:
        """Order a guard from a server; return None if none can take it.

        Raises what starting the server or writing the order raises.
        """
        order = _order(request, env)
        if len(order) > guard_server.LARGEST_ORDER or not kernel.can_watch():
            return None
        # Twice: the first server may have been killed, or have ended because this host has changed.
        for _ in range(2):
            server = self._server(request.python)
            if server is None or server.send(order, ends):
                return server
            if server.takes_orders:
                return None
            self._retire(request.python)
        return None

    def end_stopped(self) -> None:
        """Kill the servers that are stopped: their guards continue without them."""
        for server in self._servers.values():
            server.kill_if_stopped()

    def end(self) -> None:
        """End all servers, when there is no CLI any more."""
        for python in tuple(self._servers):
            self._retire(python)
        deadline = time.monotonic() + END_PATIENCE
        while not self._have_ended() and time.monotonic() < deadline:
            time.sleep(ROUND)

    def _server(self, python: str) -> GuardServer | None:
        if python in self._servers and self._servers[python].has_ended():
            self._retire(python)
        if python not in self._servers and self._useless[python] < MOST_USELESS:
            self._servers[python] = GuardServer(python)
        return self._servers.get(python)

    def _retire(self, python: str) -> None:
        server = self._servers.pop(python)
        self._useless[python] = 0 if server.is_useful else self._useless[python] + 1
        server.close()
        self._retired.append(server)
        self._have_ended()

    def _have_ended(self) -> bool:
        self._retired = [server for server in self._retired if not server.has_ended()]
        return not self._retired


class GuardServer:
    """A guard server that this process has started."""

    def __init__(self, python: str) -> None:
        self.is_useful = False
        """Set when one of its guards has reported something."""
        self.takes_orders = True
        self._has_ended = False
        self._orders, theirs = message_sockets()
        files = (kernel.__file__, guard.__file__, guard_server.__file__)
        state = kernel.state_of(os.getpid())
        try:
            self._pid = os.posix_spawn(
                python,
                [python, "-I", "-S", "-B", "-c", SERVER_BOOT, *files, str(os.getpid())],
                _loader_variables(),
                file_actions=[(os.POSIX_SPAWN_DUP2, theirs.number, guard_server.ORDERS)],
                setsigmask=[],
            )
        finally:
            theirs.close()
        self._send([state], [])

    def send(self, order: bytes, ends: Sequence[PipeEnd]) -> bool:
        """Order a guard. Return whether that is done; it may still be lost with the server."""
        with contextlib.ExitStack() as opened:
            try:
                places = [os.open(place, os.O_PATH | os.O_CLOEXEC) for place in (".", "/")]
            except OSError:
                # A working directory that this user may not enter, or too many open files.
                return False
            for place in places:
                opened.callback(os.close, place)
            passed = array.array("i", [*(end.number for end in ends), *places])
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, passed)]
            return self.takes_orders and self._send([order], rights)

    def close(self) -> None:
        """Send no more orders. The server ends when it has no guards."""
        self.takes_orders = False
        self._orders.close()

    def kill(self) -> None:
        # While it is a child of this process, the pid is its own.
        if not self.has_ended():
            kernel.send_signal(self._pid, signal.SIGKILL)

    def kill_if_stopped(self) -> None:
        row = None if self.has_ended() else kernel.row_of(self._pid)
        if row is not None and row[3] in "Tt":
            self.kill()

    def has_ended(self) -> bool:
        if not self._has_ended:
            try:
                self._has_ended = os.waitpid(self._pid, os.WNOHANG)[0] != 0
            except ChildProcessError:
                # A host program that reaps all its children has waited for it.
                self._has_ended = True
        return self._has_ended

    def _send(self, message: list[bytes], rights: list[tuple[int, int, array.array[int]]]) -> bool:
        orders = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, fileno=self._orders.number)
        try:
            orders.settimeout(SEND_PATIENCE)
            orders.sendmsg(message, rights)
        except TimeoutError:
            self.kill_if_stopped()
            return False
        except OSError:
            self.takes_orders = False
            return False
        finally:
            orders.detach()
        return True


def spawn_guard(request: SpawnRequest, env: Mapping[str, str], ends: Sequence[PipeEnd]) -> int:
    """Start a guard as a program of its own, and return its pid."""
    passed = {guard.ENV_PREFIX + name: value for name, value in env.items()}
    script = (request.python, "-I", "-S", "-B", "-c", BOOT, kernel.__file__, guard.__file__)
    user = " ".join(map(str, request.user))
    arguments = (str(os.getpid()), request.directory or "", request.cwd or "", user, *request.argv)
    return os.posix_spawn(
        request.python,
        [*script, *arguments],
        {**_loader_variables(), **passed},
        file_actions=[(os.POSIX_SPAWN_DUP2, end.number, at) for at, end in enumerate(ends)],
        setsigmask=[],
    )


def _order(request: SpawnRequest, env: Mapping[str, str]) -> bytes:
    user = " ".join(map(str, request.user))
    head = (request.directory or "", request.cwd or "", user, str(len(request.argv)))
    variables = (f"{name}={value}" for name, value in env.items())
    parts = [*head, *request.argv, *variables, ""]
    order = os.fsencode("\0".join(parts))
    if order.count(b"\0") != len(parts) - 1:
        raise ValueError("embedded null byte")
    return order


def _loader_variables() -> dict[str, str]:
    return {name: os.environ[name] for name in LOADER_NAMES if name in os.environ}
