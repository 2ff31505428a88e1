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
from steersman.transports.guarded_process import GuardedProcess, ProcessObserver, SpawnRequest
from steersman.transports.pipes import pipe

__all__ = ["Supervisor"]

EXIT_PATIENCE = 2.0
"""Seconds to wait at interpreter exit for all CLIs to end."""
LOST_INTERVAL = 0.5
"""Seconds between two checks whether an observer's event loop is still open."""

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
        self._children: set[GuardedProcess] = set()
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
        child = GuardedProcess(self.post, request, observer)
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
                time.sleep(LOST_INTERVAL)

    def _round(self) -> None:
        for key, _ in self._selector.select(self._timeout()):
            if key.data is None:
                os.read(self._wake_reader.number, 4096)
            else:
                self._read_status(key.data)
        while self._jobs:
            self._jobs.popleft()()
        now = time.monotonic()
        for child in self._children:
            if child.is_lost:
                child.kill_now()
            if child.deadline is not None and child.deadline <= now:
                child.escalate(now)
        if not self._children:
            self._idle.set()

    def _timeout(self) -> float | None:
        if not self._children:
            return None
        deadlines = [child.deadline for child in self._children if child.deadline is not None]
        until = min(deadlines, default=float("inf")) - time.monotonic()
        return max(0.0, min(until, LOST_INTERVAL))

    def _spawn(self, child: GuardedProcess) -> None:
        if child.spawn():
            self._children.add(child)
            self._selector.register(child.status_number, selectors.EVENT_READ, child)

    def _read_status(self, child: GuardedProcess) -> None:
        if child.read_status():
            return
        self._selector.unregister(child.status_number)
        self._children.discard(child)
        child.guard_exited()

    def _kill_all(self) -> None:
        for child in self._children:
            child.kill_now()


os.register_at_fork(after_in_child=Supervisor.forget)
AT_EXIT.append(Supervisor.shut_down)
