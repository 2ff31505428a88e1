"""One guard and the CLI behind it: how it is started, how it is ended.

Controlled through the methods of `GuardedProcess`; reports what became of the CLI to a
`ProcessObserver`. Knows the guard's commands and reports, the stop sequence and its deadlines.
The supervisor decides in which thread this runs.
"""

from __future__ import annotations

import contextlib
import enum
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from steersman.transports import guard
from steersman.transports.pipes import PipeEnd, pipe

__all__ = ["GuardedProcess", "ProcessObserver", "SpawnRequest", "StopStage"]

START_PATIENCE = 30.0
"""How long a guard may take to bring up a CLI."""
KILL_PATIENCE = guard.KILL_PATIENCE + 1.0
"""How long a guard may take to kill its tree before we do it ourselves."""
LAST_PATIENCE = 1.0

LOADER_NAMES = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""What our own interpreter may need from our environment to start once more."""

BOOT = """\
import sys
from _frozen_importlib_external import SourceFileLoader as Loader
exec(Loader("__main__", sys.argv.pop(1)).get_code("__main__"))
"""
"""Runs the guard like a script, but takes the compiled file where there is one: 4 of 15 ms."""

logger = logging.getLogger(__name__)


class ProcessObserver(Protocol):
    """Is notified about one spawned process. Called in the supervisor's thread; must not block."""

    def started(self, pid: int) -> None:
        """Learn that the CLI runs, under this pid."""
        ...

    def failed(self, stage: str, error: Exception) -> None:
        """Learn that it does not, and that nothing is left of the attempt."""
        ...

    def exited(self, status: int) -> None:
        """Learn that a CLI that had started has exited, with its whole process tree."""
        ...

    def is_lost(self) -> bool:
        """Whether notifications can no longer be delivered."""
        ...


@dataclass(frozen=True, slots=True)
class SpawnRequest:
    """Everything it takes to start one CLI."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)
    cwd: str | None
    directory: str | None
    """Where the guard is to make the private directory; None for no files."""
    files: Mapping[str, bytes] = field(repr=False)
    pipes: tuple[PipeEnd, PipeEnd, PipeEnd]
    """The CLI's ends of stdin, stdout and stderr; closed here once the guard has them."""
    python: str = sys.executable
    user: tuple[int, ...] = ()
    """Whom the CLI runs as: the numbers of the user, the group, and the further groups."""


class StopStage(enum.IntEnum):
    """How far down the ladder a child is."""

    STARTING = 0
    RUNNING = 1
    INPUT_ENDED = 2
    TERMINATED = 3
    KILLED = 4
    GUARD_KILLED = 5
    GIVEN_UP = 6


class GuardedProcess:
    """One guard and its CLI. The methods may be called from any thread and return at once."""

    def __init__(
        self,
        post: Callable[[Callable[[], None]], None],
        request: SpawnRequest,
        observer: ProcessObserver,
    ) -> None:
        self._post = post
        self._request = request
        self._observer = observer
        self._stage = StopStage.STARTING
        self._deadline: float | None = time.monotonic() + START_PATIENCE
        self._grace = 0.0
        self._is_suspended = False
        self._guard = 0
        self._cli = 0
        self._control: PipeEnd | None = None
        self._status: PipeEnd | None = None
        self._unread = b""
        self._failure: tuple[str, Exception] | None = None
        self._exit_status: int | None = None

    def suspend(self) -> None:
        self._post(self._suspend)

    def resume(self) -> None:
        self._post(self._resume)

    def close(self, grace: float) -> None:
        """Take it that stdin was ended; wait, terminate, wait, kill."""
        self._post(lambda: self._close(grace))

    def kill(self) -> None:
        self._post(self.kill_now)

    # From here on everything runs in the supervisor's thread.

    @property
    def deadline(self) -> float | None:
        return self._deadline

    @property
    def status_number(self) -> int:
        return self._status.number if self._status else -1

    @property
    def is_lost(self) -> bool:
        return self._observer.is_lost()

    def spawn(self) -> bool:
        """Start the guard. If that fails, notify the observer and return False."""
        try:
            control, self._control = pipe()
            self._status, status = pipe()
            os.set_blocking(self._control.number, False)
            os.set_blocking(self._status.number, False)
            self._guard = _spawn_guard(self._request, control, status)
            control.close()
            status.close()
        except (OSError, ValueError) as error:
            self._close_ends()
            self._observer.failed("guard", error)
            return False
        finally:
            for end in self._request.pipes:
                end.close()
        if not self._request.directory:
            self._send(b"g")
        return True

    def read_status(self) -> bool:
        """Take in what the guard reports; False when it has nothing more to say."""
        try:
            data = os.read(self.status_number, 4096)
        except BlockingIOError:
            return True
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            self._handle_report(line.decode())
        return bool(data)

    def escalate(self, now: float) -> None:
        """The deadline has passed: become less patient."""
        if self._stage == StopStage.STARTING:
            self._failure = ("guard", TimeoutError("the guard did not start the CLI in time"))
        match self._stage:
            case StopStage.INPUT_ENDED:
                self._enter(StopStage.TERMINATED, now + self._grace, b"t")
            case StopStage.STARTING | StopStage.RUNNING | StopStage.TERMINATED:
                self._enter(StopStage.KILLED, now + KILL_PATIENCE, b"k")
            case StopStage.KILLED:
                self._kill_guard()
                self._enter(StopStage.GUARD_KILLED, now + LAST_PATIENCE)
            case StopStage.GUARD_KILLED | StopStage.GIVEN_UP:
                # Not even SIGKILL ends it. Nobody shall wait for it; we go on watching.
                self._report_end()
                self._enter(StopStage.GIVEN_UP, None)

    def kill_now(self) -> None:
        if self._stage < StopStage.KILLED:
            self._enter(StopStage.KILLED, time.monotonic() + KILL_PATIENCE, b"k")

    def guard_exited(self) -> None:
        """The guard has ended: leave nothing of it, and tell."""
        if self._cli and self._exit_status is None:
            _kill_group(self._cli)
        # A host that reaps children of its own accord leaves us nothing to wait for.
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._guard, 0)
        if self._request.directory:
            guard.remove_directory(self._request.directory)
        self._close_ends()
        if self._stage != StopStage.GIVEN_UP:
            self._report_end()

    def _suspend(self) -> None:
        self._is_suspended = True
        self._send(b"s")

    def _resume(self) -> None:
        self._is_suspended = False
        self._send(b"r")

    def _close(self, grace: float) -> None:
        now = time.monotonic()
        if self._stage < StopStage.INPUT_ENDED:
            self._grace = grace
            self._enter(StopStage.INPUT_ENDED, now + grace)
            if self._is_suspended:
                # It cannot see the end of its input, and must not run on to see it.
                self.escalate(now)
        elif self._stage < StopStage.KILLED and self._deadline is not None:
            self._grace = min(self._grace, grace)
            self._deadline = min(self._deadline, now + grace)

    def _enter(self, stage: StopStage, deadline: float | None, command: bytes = b"") -> None:
        self._stage = stage
        self._deadline = deadline
        if command:
            self._send(command)

    def _send(self, command: bytes) -> None:
        if self._control is None:
            return
        # On failure the guard is ending already, or is stuck and the deadline will see to it.
        with contextlib.suppress(OSError):
            os.write(self._control.number, command)

    def _handle_report(self, line: str) -> None:
        kind, _, rest = line.partition(" ")
        match kind:
            case "ready":
                self._write_files()
            case "started":
                self._cli = int(rest)
                self._observer.started(self._cli)
                if self._stage == StopStage.STARTING:
                    self._enter(StopStage.RUNNING, None)
            case "failed":
                stage, code = rest.split()
                self._failure = (stage, OSError(int(code), os.strerror(int(code))))
            case "exited":
                self._exit_status = int(rest)
            case _:
                logger.error("guard of %s: %s", self._request.argv[0], line)

    def _write_files(self) -> None:
        if not self._request.directory:
            return
        try:
            for name, content in self._request.files.items():
                _write_private(Path(self._request.directory, name), content, self._request.user)
        except OSError as error:
            self._failure = ("files", error)
            self.kill_now()
        else:
            self._send(b"g")

    def _report_end(self) -> None:
        if self._cli:
            killed = -int(signal.SIGKILL)
            self._observer.exited(killed if self._exit_status is None else self._exit_status)
        else:
            stage, error = self._failure or ("guard", OSError("the guard ended"))
            self._observer.failed(stage, error)

    def _kill_guard(self) -> None:
        # While its end of the status pipe is open it lives, so the number is still its own.
        guard.kill_below(self._guard, {self._cli} if self._cli else ())
        guard.send_signal(self._guard, signal.SIGKILL)

    def _close_ends(self) -> None:
        for end in (self._control, self._status):
            if end is not None:
                end.close()


def _spawn_guard(request: SpawnRequest, control: PipeEnd, status: PipeEnd) -> int:
    ends = (*request.pipes, control, status)
    own = {name: os.environ[name] for name in LOADER_NAMES if name in os.environ}
    passed = {guard.ENV_PREFIX + name: value for name, value in request.env.items()}
    script = (request.python, "-I", "-S", "-B", "-c", BOOT, guard.__file__)
    user = " ".join(map(str, request.user))
    arguments = (str(os.getpid()), request.directory or "", request.cwd or "", user, *request.argv)
    return os.posix_spawn(
        request.python,
        [*script, *arguments],
        {**own, **passed},
        file_actions=[(os.POSIX_SPAWN_DUP2, end.number, at) for at, end in enumerate(ends)],
        setsigmask=[],
    )


def _kill_group(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _write_private(path: Path, content: bytes, user: tuple[int, ...]) -> None:
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    if user:
        os.fchown(number, user[0], user[1])
    with open(number, "wb") as file:  # noqa: PTH123 - it is open already
        file.write(content)
