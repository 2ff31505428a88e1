"""One thread that starts, watches and ends every CLI of this Python process.

Takes requests from any thread and notifies their observers. A separate thread is needed because
the kernel treats the end of the *thread* that started a guard as the host's death, and because a
cancelled task must not interrupt a stop sequence.
"""

from __future__ import annotations

import logging
import os
import selectors
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import ClassVar

from steersman.transports.at_exit import AT_EXIT
from steersman.transports.guarded_process import GuardedProcess, ProcessObserver
from steersman.transports.guards import Guards, SpawnRequest
from steersman.transports.pipes import pipe

EXIT_PATIENCE = 2.0
"""Seconds to wait at interpreter exit for all CLIs to end."""
LOOKS = 5.0
"""Seconds between two looks at the event loops and servers.

Nothing reports that one was closed or stopped. Each look wakes this thread, so they are rare; one
is for all CLIs of a loop.
"""
IDLE = 10.0
"""Seconds without a CLI after which the guard servers are ended."""
FAILURE_PAUSE = 0.5
"""Seconds after a failure of this thread, so that it does not fail all the time."""

logger = logging.getLogger(__name__)


class Supervisor:
    """The thread, its jobs, and the processes it watches."""

    _current: ClassVar[Supervisor | None] = None
    _lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self) -> None:
        self._jobs: deque[Callable[[], None]] = deque()
        self._wake_reader, self._wake_writer = pipe()
        os.set_blocking(self._wake_reader.number, False)
        os.set_blocking(self._wake_writer.number, False)
        # `poll` keeps no state in the kernel that a forked copy could change.
        self._selector = selectors.PollSelector()
        self._selector.register(self._wake_reader.number, selectors.EVENT_READ)
        self._children: dict[object, set[GuardedProcess]] = {}
        """The processes by the home of their observers, which are lost together."""
        self._timed: set[GuardedProcess] = set()
        """Those that have a deadline: none of those that just run."""
        self._guards = Guards()
        self._next_look = 0.0
        self._keep_guards = IDLE
        self._end_guards_at = 0.0
        self._idle = threading.Event()
        self._thread = threading.Thread(target=self._run, name="steersman-supervisor", daemon=True)
        self._thread.start()

    @classmethod
    def current(cls) -> Supervisor:
        """Return the supervisor of this process, and start it if there is none."""
        with cls._lock:
            if cls._current is None:
                cls._current = cls()
            return cls._current

    @classmethod
    def forget(cls) -> None:
        """Drop the supervisor in a forked copy, which has neither its thread nor its CLIs."""
        cls._lock = threading.Lock()
        cls._current = None

    @classmethod
    def shut_down(cls) -> None:
        """Kill every CLI at interpreter exit, and wait `EXIT_PATIENCE` seconds for their end."""
        if cls._current is not None:
            cls._current.kill_all(EXIT_PATIENCE)

    def spawn(self, request: SpawnRequest, observer: ProcessObserver) -> GuardedProcess:
        """Start a CLI. The observer is notified of the outcome."""

        def post(job: Callable[[], None]) -> None:
            self.post(lambda: self._run_job(child, job))

        child = GuardedProcess(post, request, observer)
        self.post(lambda: self._spawn(child))
        return child

    def kill_all(self, patience: float) -> bool:
        """Kill every CLI. Return whether all ended within `patience` seconds."""
        self._idle.clear()
        self.post(self._kill_all)
        return self._idle.wait(patience)

    def post(self, job: Callable[[], None]) -> None:
        """Run `job` in the supervisor's thread, soon."""
        self._jobs.append(job)
        try:
            os.write(self._wake_writer.number, b"!")
        except BlockingIOError:
            # The pipe is full of wake-ups, so the thread will wake without this one.
            pass
        except OSError:
            # This is a forked copy: the pipe is closed, and there is no thread.
            self._jobs.clear()

    def _run(self) -> None:
        while True:
            try:
                self._round()
            except Exception:  # without this thread no CLI would be ended
                logger.exception("steersman supervisor failed; please report this bug")
                time.sleep(FAILURE_PAUSE)

    def _round(self) -> None:
        for key, _ in self._selector.select(self._timeout()):
            if key.data is None:
                os.read(self._wake_reader.number, 4096)
            else:
                self._read_status(key.data)
        while self._jobs:
            self._jobs.popleft()()
        now = time.monotonic()
        if now >= self._next_look:
            self._next_look = now + LOOKS
            self._end_lost()
            self._guards.end_stopped()
        for child in tuple(self._timed):
            if child.deadline is not None and child.deadline <= now:
                child.escalate(now)
                self._note_deadline(child)
        if self._children:
            self._end_guards_at = now + self._keep_guards
        else:
            if now >= self._end_guards_at:
                self._guards.end()
            self._idle.set()

    def _timeout(self) -> float | None:
        if not self._children:
            left = self._end_guards_at - time.monotonic()
            return max(0.0, left) if self._guards.has_servers else None
        deadlines = [child.deadline for child in self._timed if child.deadline is not None]
        return max(0.0, min([*deadlines, self._next_look]) - time.monotonic())

    def _run_job(self, child: GuardedProcess, job: Callable[[], None]) -> None:
        job()
        if child in self._children.get(child.home, ()):
            self._note_deadline(child)

    def _note_deadline(self, child: GuardedProcess) -> None:
        if child.deadline is None:
            self._timed.discard(child)
        else:
            self._timed.add(child)

    def _end_lost(self) -> None:
        """Kill the processes whose observers can no longer be notified."""
        for children in self._children.values():
            if next(iter(children)).is_lost:
                for child in children:
                    child.kill_now()
                    self._note_deadline(child)

    def _spawn(self, child: GuardedProcess) -> None:
        if child.spawn(self._guards):
            self._children.setdefault(child.home, set()).add(child)
            self._note_deadline(child)
            self._selector.register(child.status_number, selectors.EVENT_READ, child)

    def _read_status(self, child: GuardedProcess) -> None:
        if child.read_status():
            self._note_deadline(child)
            return
        self._selector.unregister(child.status_number)
        if child.spawn_again():
            self._note_deadline(child)
            self._selector.register(child.status_number, selectors.EVENT_READ, child)
            return
        self._timed.discard(child)
        housemates = self._children[child.home]
        housemates.discard(child)
        if not housemates:
            del self._children[child.home]
        child.guard_exited()

    def _kill_all(self) -> None:
        self._keep_guards = self._end_guards_at = 0.0
        for children in self._children.values():
            for child in children:
                child.kill_now()
                self._note_deadline(child)


os.register_at_fork(after_in_child=Supervisor.forget)
AT_EXIT.append(Supervisor.shut_down)
