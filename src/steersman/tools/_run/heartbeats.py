"""The calls that are running in one event loop, and progress notifications for the long ones.

A call costs one entry in a table: all calls of an event loop share one timer.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from steersman.tools._run.stalls import StallDetector
from steersman.tools.context import ToolContext

PROGRESS_STEP = 1e-6
"""What a heartbeat adds to the progress: MCP requires that progress increases."""


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


_per_thread = _PerThread()
_stalls = StallDetector()


def running_calls() -> RunningCalls:
    """Return the calls of the running event loop."""
    loop = asyncio.get_running_loop()
    calls = _per_thread.calls
    if calls is None or calls.loop is not loop:
        calls = _per_thread.calls = RunningCalls(loop, _stalls.watch)
    return calls
