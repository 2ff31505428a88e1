"""Finds the tool that blocks an event loop.

A thread looks on, and only while there are calls: a coroutine that it finds running is asked, by
way of its event loop, to let go. Until the loop comes round to that, nothing else got a turn.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
import time
import traceback
from collections.abc import Iterable
from typing import Protocol

from steersman.errors import ToolExecutionError

__all__ = ["LoopCall", "StallDetector", "WatchedLoop"]

LOOK = 0.1
"""Seconds between two looks."""
LINGER = 5.0
"""Seconds without a call after which a loop is no longer looked at."""

logger = logging.getLogger("steersman.tools")


class LoopCall(Protocol):
    """A call that may block its event loop."""

    stall_after: float | None

    @property
    def name(self) -> str:
        """The tool's."""
        ...

    @property
    def holds_the_loop(self) -> bool:
        """Whether the loop is inside it at this moment."""
        ...

    def report(self, error: BaseException) -> None:
        """Journal what it did; called in its event loop."""
        ...


class WatchedLoop(Protocol):
    """An event loop and what runs in it."""

    loop: asyncio.AbstractEventLoop
    thread: int
    is_watched: bool

    @property
    def running(self) -> Iterable[LoopCall]:
        """The calls in it."""
        ...


class StallDetector:
    """Looks at event loops for as long as calls run in them."""

    def __init__(self, look: float = LOOK, linger: float = LINGER) -> None:
        self._look_again = look
        self._linger = linger
        self._beats: dict[WatchedLoop, _LoopState] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        os.register_at_fork(after_in_child=self._forget)

    @property
    def is_looking(self) -> bool:
        """Whether there is a thread."""
        return self._thread is not None

    def watch(self, loop: WatchedLoop) -> None:
        """Look at this one too; called in its own thread."""
        with self._lock:
            loop.is_watched = True
            self._beats.setdefault(loop, _LoopState(loop))
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._patrol, name="steersman-stalls", daemon=True
                )
                self._thread.start()

    def _patrol(self) -> None:
        nap = threading.Event()
        while not nap.wait(self._look_again):
            with self._lock:
                beats = list(self._beats.values())
            now = time.monotonic()
            for beat in beats:
                if not beat.look(now) and now - beat.last_seen >= self._linger:
                    self._let_go(beat)
            with self._lock:
                if not self._beats:
                    self._thread = None
                    return

    def _let_go(self, beat: _LoopState) -> None:
        with self._lock:
            # In this order: a call that comes meanwhile finds the loop unwatched, or is seen here.
            beat.loop.is_watched = False
            if list(beat.loop.running) and not beat.loop.loop.is_closed():
                beat.loop.is_watched = True
            else:
                del self._beats[beat.loop]

    def _forget(self) -> None:
        self._thread = None
        self._beats = {}


class _LoopState:
    """What is known of one event loop."""

    def __init__(self, loop: WatchedLoop) -> None:
        self.loop = loop
        self.last_seen = time.monotonic()
        """When there were calls."""
        self._suspicion: _Stall | None = None

    def look(self, now: float) -> bool:
        """Whether there is a call; one that blocks is told of."""
        if self.loop.loop.is_closed():
            return False
        running = list(self.loop.running)
        holder = next((call for call in running if call.holds_the_loop), None)
        if self._suspicion is None or self._suspicion.is_over:
            self._suspicion = None if holder is None else self._suspect(holder, now)
        elif self._suspicion.call is not holder:
            # The loop has got on, but not yet round.
            self._suspicion.turn_to(holder, now)
        elif self._suspicion.is_overdue(now):
            self._suspicion.tell(now, self.loop.thread)
        if running:
            self.last_seen = now
        return bool(running)

    def _suspect(self, call: LoopCall, now: float) -> _Stall | None:
        suspicion = _Stall(call, now)
        try:
            self.loop.loop.call_soon_threadsafe(suspicion.clear)
        except RuntimeError:
            return None
        return suspicion


class _Stall:
    """A call that held its event loop when we looked, and when that was."""

    def __init__(self, call: LoopCall, now: float) -> None:
        self.call: LoopCall | None = call
        self.is_over = False
        self._since = now
        self._is_told = False
        self._guilty: list[tuple[LoopCall, float]] = []

    def turn_to(self, call: LoopCall | None, now: float) -> None:
        """Another one holds it now, or none."""
        self._convict(now)
        self.call, self._since, self._is_told = call, now, False

    def is_overdue(self, now: float) -> bool:
        limit = None if self.call is None else self.call.stall_after
        return not self._is_told and limit is not None and now - self._since >= limit

    def tell(self, now: float, thread: int) -> None:
        """Log it now: it may never end."""
        assert self.call is not None
        self._is_told = True
        frames = sys._current_frames()  # pyright: ignore[reportPrivateUsage] - there is no other way
        logger.warning(
            "tool %r has blocked the event loop for %.1f s; make it a plain `def`, or await\n%s",
            self.call.name,
            now - self._since,
            "".join(traceback.format_stack(frames.get(thread))),
        )

    def clear(self) -> None:
        """The loop has come round; called in it."""
        self._convict(time.monotonic())
        self.is_over = True
        for call, seconds in self._guilty:
            how = f"blocked the event loop for {seconds:.1f} s"
            logger.warning("tool %r %s", call.name, how)
            call.report(ToolExecutionError(call.name, how))

    def _convict(self, now: float) -> None:
        if self.call is not None and self._is_told:
            self._guilty.append((self.call, now - self._since))
