"""One guard process and the CLI behind it: the start and the stop sequence.

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
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from steersman import _process
from steersman.transports import guard, kernel
from steersman.transports.guards import Guards, GuardServer, SpawnRequest, spawn_guard
from steersman.transports.leftovers import (
    TREE,
    end_orphans_once,
    end_tree,
    new_tree_name,
    sweep_once,
)
from steersman.transports.pipes import PipeEnd, pipe

START_PATIENCE = 30.0
"""Seconds that a guard may take to start a CLI."""
SERVER_PATIENCE = 0.1
"""Seconds between two looks at a server that has an order and has not answered."""
KILL_PATIENCE = guard.KILL_PATIENCE + 1.0
"""Seconds that a guard may take to kill its tree before the supervisor kills it directly."""
LONGEST_DEADLINE = 999_999_999
"""Milliseconds that the guard's command for a deadline can hold."""
LAST_PATIENCE = 1.0
"""Seconds to wait for a guard that was killed before its exit is reported anyway."""

logger = logging.getLogger(__name__)


class ProcessObserver(Protocol):
    """Is notified about one process, in the supervisor's thread. Must not block or raise."""

    def started(self, pid: int) -> None:
        """The CLI runs, with this pid."""
        ...

    def failed(self, stage: str, error: Exception) -> None:
        """The CLI could not be started, and nothing is left of the attempt."""
        ...

    def exited(self, status: int) -> None:
        """The CLI had started and has exited, with its whole process tree."""
        ...

    def suspended(self) -> None:
        """Every process of the tree is stopped."""
        ...

    @property
    def home(self) -> object:
        """What carries the notifications: observers with the same one are lost together."""
        ...

    def is_lost(self) -> bool:
        """Return whether notifications can no longer be delivered."""
        ...


class StopStage(enum.IntEnum):
    """How far the stop sequence has come. Later stages are less patient."""

    STARTING = 0
    RUNNING = 1
    INPUT_ENDED = 2
    TERMINATED = 3
    KILLED = 4
    GUARD_KILLED = 5
    GIVEN_UP = 6


class GuardedProcess:
    """One guard and its CLI.

    `suspend`, `resume`, `close` and `kill` may be called from any thread and return at once; the
    other members are used by the supervisor, in its thread.
    """

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
        self._start_deadline = time.monotonic() + START_PATIENCE
        self._deadline: float | None = self._start_deadline
        self._grace = 0.0
        self._is_suspended = False
        self._guard = 0
        """The pid of the guard, as soon as it is known."""
        self._guard_began: str | None = None
        self._server: GuardServer | None = None
        """Forks the guard; None if the guard is a child of this process."""
        self._has_report = False
        self._cli = 0
        self._control: PipeEnd | None = None
        self._status: PipeEnd | None = None
        self._tree = new_tree_name()
        self._unread = b""
        self._failure: tuple[str, Exception] | None = None
        self._exit_status: int | None = None

    def suspend(self) -> None:
        self._post(self._suspend)

    def resume(self) -> None:
        self._post(self._resume)

    def end_after(self, seconds: float) -> None:
        """Have the guard kill the tree in `seconds`, whatever becomes of this process."""
        milliseconds = min(int(seconds * 1000), LONGEST_DEADLINE)
        self._post(lambda: self._send(b"d%09d" % milliseconds))

    def close(self, grace: float) -> None:
        """Begin the stop sequence: wait `grace` seconds, SIGTERM, wait again, SIGKILL.

        The caller has closed stdin, unless the tree is suspended.
        """
        self._post(lambda: self._close(grace))

    def kill(self) -> None:
        self._post(self.kill_now)

    # Everything below runs in the supervisor's thread.

    @property
    def deadline(self) -> float | None:
        return self._deadline

    @property
    def status_number(self) -> int:
        return self._status.number if self._status else -1

    @property
    def home(self) -> object:
        return self._observer.home

    @property
    def is_lost(self) -> bool:
        return self._observer.is_lost()

    def spawn(self, guards: Guards) -> bool:
        """Start the guard. If that fails, notify the observer and return False."""
        try:
            self._start_guard(guards)
        except Exception as error:  # noqa: BLE001 - an audit hook of the host may raise anything
            self._close_ends()
            self._close_pipes()
            self._observer.failed("guard", error)
            return False
        # While the guard starts, which takes longer.
        end_orphans_once()
        if self._request.directory:
            sweep_once(str(Path(self._request.directory).parent))
        return True

    def spawn_again(self) -> bool:
        """Start a guard of its own if the server has not taken the order. Return whether it did."""
        if self._server is None or self._has_report or self._stage != StopStage.STARTING:
            return False
        if not self._request.directory and self._control and not self._control.unread():
            # A guard has read the command to start the CLI, and was killed before its report.
            return False
        self._close_ends()
        if self._request.directory:
            guard.remove_directory(self._request.directory)
        try:
            self._start_guard(None)
        except Exception as error:  # noqa: BLE001 - as above
            self._failure = ("guard", error)
            return False
        return True

    def _start_guard(self, guards: Guards | None) -> None:
        """Order a guard from a server of `guards`, or start one that is a program of its own."""
        control, self._control = pipe()
        self._status, status = pipe()
        os.set_blocking(self._control.number, False)
        os.set_blocking(self._status.number, False)
        if not self._request.directory:
            # First: when the other end has been closed, it could not be written.
            self._send(b"g")
        env = {**self._request.env, TREE: self._tree}
        ends = (*self._request.pipes, control, status)
        self._server = guards.order(self._request, env, ends) if guards else None
        if self._server is None:
            self._guard = spawn_guard(self._request, env, ends)
            self._close_pipes()
        patience = SERVER_PATIENCE if self._server else START_PATIENCE
        self._deadline = min(time.monotonic() + patience, self._start_deadline)
        control.close()
        status.close()

    def read_status(self) -> bool:
        """Handle what the guard reports. Return False when the guard has closed the pipe."""
        try:
            data = os.read(self.status_number, 4096)
        except BlockingIOError:
            return True
        *lines, self._unread = (self._unread + data).split(b"\n")
        if lines and not self._has_report:
            self._note_first_report()
        for line in lines:
            self._handle_report(line.decode())
        # The server keeps the pipe open for longer: it may be stopped, and then for ever.
        has_ended = self._server is not None and self._exit_status is not None
        return bool(data) and not has_ended

    def _note_first_report(self) -> None:
        self._has_report = True
        self._close_pipes()
        if self._server:
            self._server.is_useful = True
        if self._stage == StopStage.STARTING:
            self._deadline = self._start_deadline

    def escalate(self, now: float) -> None:
        """Enter the next stage, because the deadline of the current one has passed."""
        is_waiting = self._stage == StopStage.STARTING and now < self._start_deadline
        if self._server and is_waiting:
            # If it is killed, the order is lost with it, and the pipe for reports closes.
            self._server.kill_if_stopped()
            self._deadline = min(now + SERVER_PATIENCE, self._start_deadline)
            return
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
                # SIGKILL did not end it. Report the exit so that no caller waits; keep watching.
                self._report_end()
                self._enter(StopStage.GIVEN_UP, None)

    def kill_now(self) -> None:
        if self._stage < StopStage.KILLED:
            self._enter(StopStage.KILLED, time.monotonic() + KILL_PATIENCE, b"k")

    def guard_exited(self) -> None:
        """Clean up after a guard that has exited, and notify the observer."""
        if self._exit_status is None:
            # Both processes of the guard were killed: the CLI has died with them, its tools not.
            end_tree(self._tree)
            if self._cli:
                kernel.kill_group(self._cli)
        if self._server is None and self._guard:
            # A host program that reaps all its children has already waited for the guard.
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self._guard, 0)
        if self._request.directory:
            guard.remove_directory(self._request.directory)
        self._close_ends()
        self._close_pipes()
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
                # A suspended tree cannot read the end of its input, and must not be resumed for it.
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
        # On failure the guard is exiting, or it is stuck and the deadline will pass.
        with contextlib.suppress(OSError):
            os.write(self._control.number, command)

    def _handle_report(self, line: str) -> None:
        kind, _, rest = line.partition(" ")
        match kind:
            case "guard":
                self._guard = int(rest)
                self._guard_began = _process.start_time(self._guard)
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
            case "suspended":
                self._observer.suspended()
            case "exited":
                # The outer process of the guard may report a second time.
                if self._exit_status is None:
                    self._exit_status = int(rest)
                if self._stage <= StopStage.KILLED:
                    # The tree has ended; a guard that does not end now is stuck.
                    self._enter(StopStage.KILLED, time.monotonic() + LAST_PATIENCE)
            case _:
                self._failure = self._failure or ("guard", OSError(rest))
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
            stage, error = self._failure or ("guard", OSError("the guard exited"))
            self._observer.failed(stage, error)

    def _kill_guard(self) -> None:
        if self._server and not self._guard:
            # The guard has not begun: what does not answer is the server.
            self._server.kill()
            return
        # A child of this process has its pid until it is waited for. A server may have done that.
        if self._server and _process.start_time(self._guard) != self._guard_began:
            return
        kernel.kill_below(self._guard, {self._cli} if self._cli else ())
        kernel.send_signal(self._guard, signal.SIGKILL)

    def _close_ends(self) -> None:
        for end in (self._control, self._status):
            if end is not None:
                end.close()

    def _close_pipes(self) -> None:
        for end in self._request.pipes:
            end.close()


def _write_private(path: Path, content: bytes, user: tuple[int, ...]) -> None:
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    if user:
        os.fchown(number, user[0], user[1])
    with open(number, "wb") as file:  # noqa: PTH123 - takes a descriptor
        file.write(content)
