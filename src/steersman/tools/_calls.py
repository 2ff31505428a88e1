"""The running calls of each event loop: heartbeats, and the tool that blocks its loop.

A call costs one entry in a table: all calls of an event loop share one timer. While calls run, a
thread looks at their coroutines every `INTERVAL` seconds. If a loop is executing one, the thread
schedules a callback in that loop. Until the callback runs, the loop has done nothing else, and the
time since then counts as blocked by that call.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable

from steersman.errors import ToolExecutionError
from steersman.tools.context import ToolContext

INTERVAL = 0.1
"""Seconds between two looks."""
LINGER = 5.0
"""Seconds without a call after which a loop is no longer watched."""
PROGRESS_STEP = 1e-6
"""What a heartbeat adds to the progress: MCP requires that progress increases."""

logger = logging.getLogger("steersman.tools")


class RunningCall:
    """One call that is running."""

    __slots__ = ("began", "context", "coroutine", "heartbeat", "next_beat", "stall_after")

    def __init__(
        self, context: ToolContext, now: float, heartbeat: float | None, stall_after: float | None
    ) -> None:
        self.context = context
        self.began = now
        self.heartbeat = heartbeat
        """Seconds between heartbeats; `None` for none."""
        self.next_beat = None if heartbeat is None else now + heartbeat
        self.stall_after = stall_after
        """Seconds for which the call may block the event loop unreported; `None` for ever."""
        self.coroutine: object = None
        """The coroutine of the handler, if it runs in the event loop."""

    @property
    def name(self) -> str:
        """The name of the tool."""
        return self.context.tool_name

    @property
    def is_in_loop(self) -> bool:
        """Whether the event loop is executing the handler at this moment."""
        return self.stall_after is not None and getattr(self.coroutine, "cr_running", False)

    def report(self, error: BaseException) -> None:
        """Record a failure of the tool in the journal."""
        if self.context.caller is not None:
            self.context.caller.report(self.name, error)

    def beat(self, now: float) -> None:
        """Send a progress notification, which shows the CLI that the tool is still running."""
        assert self.heartbeat is not None
        self.next_beat = now + self.heartbeat
        context = self.context
        context.progress(
            context.progressed + PROGRESS_STEP, message=f"running for {now - self.began:.0f} s"
        )


class RunningCalls:
    """The calls of one event loop."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, watch: Callable[[RunningCalls], None]
    ) -> None:
        self.loop = loop
        self.thread = threading.get_ident()
        self.is_watched = False
        self.running: dict[RunningCall, None] = {}
        self._watch = watch
        self._timer: asyncio.TimerHandle | None = None
        self._is_resting = False

    def add(self, call: RunningCall, *, may_stall: bool) -> None:
        """Send heartbeats for `call` until it is removed, and watch it if it may stall the loop."""
        self.running[call] = None
        self._is_resting = False
        if may_stall and not self.is_watched:
            self._watch(self)
        if call.next_beat is not None and (
            self._timer is None or call.next_beat < self._timer.when()
        ):
            self._set_timer(call.next_beat)

    def remove(self, call: RunningCall) -> None:
        """Remove a call that has ended."""
        del self.running[call]
        if self._is_resting:
            self.rest()

    def rest(self) -> None:
        """Cancel the timer as soon as no call runs: a session has ended, perhaps the last one."""
        self._is_resting = True
        if self._timer is not None and not self.running:
            self._timer.cancel()
            self._timer = None

    def _set_timer(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_at(when, self._beat)

    def _beat(self) -> None:
        self._timer = None
        now = self.loop.time()
        for call in list(self.running):
            if call.next_beat is not None and call.next_beat <= now:
                call.beat(now)
        beats = [call.next_beat for call in self.running if call.next_beat is not None]
        if beats:
            self._set_timer(min(beats))


class _PerThread(threading.local):
    calls: RunningCalls | None = None


def running_calls() -> RunningCalls:
    """Return the calls of the running event loop."""
    loop = asyncio.get_running_loop()
    calls = _per_thread.calls
    if calls is None or calls.loop is not loop:
        calls = _per_thread.calls = RunningCalls(loop, _stalls.watch)
    return calls


class StallDetector:
    """Watches event loops for as long as calls run in them."""

    def __init__(self, look: float = INTERVAL, linger: float = LINGER) -> None:
        self._interval = look
        self._linger = linger
        self._states: dict[RunningCalls, _LoopState] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        os.register_at_fork(after_in_child=self._forget)

    @property
    def is_looking(self) -> bool:
        """Whether the watching thread runs."""
        return self._thread is not None

    def watch(self, loop: RunningCalls) -> None:
        """Watch `loop` too; called in the thread of that loop."""
        with self._lock:
            loop.is_watched = True
            self._states.setdefault(loop, _LoopState(loop))
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="steersman-stalls", daemon=True
                )
                self._thread.start()

    def _run(self) -> None:
        timer = threading.Event()
        while not timer.wait(self._interval):
            with self._lock:
                states = list(self._states.values())
            now = time.monotonic()
            for state in states:
                if not state.look(now) and now - state.last_call >= self._linger:
                    self._unwatch(state)
            with self._lock:
                if not self._states:
                    self._thread = None
                    return

    def _unwatch(self, state: _LoopState) -> None:
        with self._lock:
            # In this order: a call that starts now either finds the flag cleared and calls
            # `watch`, or is found by the check below.
            state.loop.is_watched = False
            if list(state.loop.running) and not state.loop.loop.is_closed():
                state.loop.is_watched = True
            else:
                del self._states[state.loop]

    def _forget(self) -> None:
        self._thread = None
        self._states = {}


class _LoopState:
    """The state of one watched event loop."""

    def __init__(self, loop: RunningCalls) -> None:
        self.loop = loop
        self.last_call = time.monotonic()
        """When a call was last seen running."""
        self._stall: _Stall | None = None

    def look(self, now: float) -> bool:
        """Log a call that blocks the loop; return whether any call runs."""
        if self.loop.loop.is_closed():
            return False
        running = list(self.loop.running)
        in_loop = next((call for call in running if call.is_in_loop), None)
        if self._stall is None or self._stall.has_ended:
            self._stall = None if in_loop is None else self._start(in_loop, now)
        elif self._stall.call is not in_loop:
            # The loop executes another call, but has not reached our callback yet.
            self._stall.switch_to(in_loop, now)
        elif self._stall.is_overdue(now):
            self._stall.log(now, self.loop.thread)
        if running:
            self.last_call = now
        return bool(running)

    def _start(self, call: RunningCall, now: float) -> _Stall | None:
        stall = _Stall(call, now)
        try:
            self.loop.loop.call_soon_threadsafe(stall.end)
        except RuntimeError:
            return None
        return stall


class _Stall:
    """The time since a call was found executing in the loop, until the loop runs `end`."""

    def __init__(self, call: RunningCall, now: float) -> None:
        self.call: RunningCall | None = call
        self.has_ended = False
        self._since = now
        self._is_logged = False
        self._stalled: list[tuple[RunningCall, float]] = []

    def switch_to(self, call: RunningCall | None, now: float) -> None:
        """Measure another call from now on, or none."""
        self._finish_call(now)
        self.call, self._since, self._is_logged = call, now, False

    def is_overdue(self, now: float) -> bool:
        limit = None if self.call is None else self.call.stall_after
        return not self._is_logged and limit is not None and now - self._since >= limit

    def log(self, now: float, thread: int) -> None:
        """Log the stall and the stack while the call still blocks: it may never return."""
        assert self.call is not None
        self._is_logged = True
        frames = sys._current_frames()  # pyright: ignore[reportPrivateUsage] - there is no other way
        logger.warning(
            "tool %r has blocked the event loop for %.1f s; make it a plain `def`, or await\n%s",
            self.call.name,
            now - self._since,
            "".join(traceback.format_stack(frames.get(thread))),
        )

    def end(self) -> None:
        """Report the stalled calls; called in the event loop, which is free again."""
        self._finish_call(time.monotonic())
        self.has_ended = True
        for call, seconds in self._stalled:
            how = f"blocked the event loop for {seconds:.1f} s"
            logger.warning("tool %r %s", call.name, how)
            call.report(ToolExecutionError(call.name, how))

    def _finish_call(self, now: float) -> None:
        if self.call is not None and self._is_logged:
            self._stalled.append((self.call, now - self._since))


_per_thread = _PerThread()
_stalls = StallDetector()
