"""What a tool may know about the call it serves."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from steersman.ports import Caller

__all__ = ["ToolContext", "call_in"]

_making_events = threading.Lock()


@dataclass(slots=True, kw_only=True, eq=False)
class ToolContext:
    """One call of one tool; given to every parameter that is annotated with this class.

    Everything here may be used in any thread.
    """

    tool_name: str
    tool_use_id: str = ""
    """The id of the call as it stands in the model's message; empty if the CLI sent none."""
    session_id: str = ""
    server: str = ""
    """The key under which the toolbox serves this session."""
    request_id: int | str = ""
    turn: Any = field(default=None, repr=False)
    """The `Turn` that was at work when the call came, if there was one."""
    deadline: float | None = None
    """When the tool's `timeout` is over, on the clock of `time.monotonic()`."""
    is_cancelled: bool = False
    """Whether nobody waits for the result any more: taken back, interrupted, or out of time."""
    progressed: float = 0.0
    """What `progress()` was last told."""
    caller: Caller | None = field(default=None, repr=False)
    progress_token: int | str | None = field(default=None, repr=False)
    loop: asyncio.AbstractEventLoop | None = field(default=None, repr=False)
    _cancelled: threading.Event | None = field(default=None, init=False, repr=False)

    @property
    def session(self) -> Any:
        """The `Session` whose model called."""
        return None if self.caller is None else self.caller.session

    @property
    def deps(self) -> Any:
        """Whatever the program gave its tools: `Options.deps`."""
        return None if self.caller is None else self.caller.deps

    @property
    def call_key(self) -> str:
        """A key that is the same whenever this very call is seen again, for deduplication."""
        return self.tool_use_id or "/".join(
            (self.session_id, self.server, self.tool_name, str(self.request_id))
        )

    @property
    def remaining(self) -> float | None:
        """Seconds until the deadline, never below 0; `None` without one."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())

    @property
    def cancelled(self) -> threading.Event:
        """Set when nobody waits for the result any more; `cancelled.wait(1)` is a nap in a thread.

        Coroutines need it not: they are cancelled.
        """
        with _making_events:
            if self._cancelled is None:
                self._cancelled = threading.Event()
            if self.is_cancelled:
                self._cancelled.set()
            return self._cancelled

    def check_cancelled(self) -> None:
        """Raise `asyncio.CancelledError` if nobody waits for the result any more."""
        if self.is_cancelled:
            raise asyncio.CancelledError

    def cancel(self) -> None:
        """Tell the tool that nobody waits any more; called by whoever runs it."""
        self.is_cancelled = True
        if self._cancelled is not None:
            self._cancelled.set()

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Tell the CLI how far the call is; never waits.

        Does nothing where the CLI did not ask for progress.
        """
        self.progressed = done
        if self.caller is None or self.progress_token is None:
            return
        params: dict[str, Any] = {"progressToken": self.progress_token, "progress": done}
        if total is not None:
            params["total"] = total
        if message is not None:
            params["message"] = message
        notification = {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
        call_in(self.loop, self.caller.notify, notification)


def call_in(
    loop: asyncio.AbstractEventLoop | None, function: Callable[..., Any], *args: Any
) -> None:
    """Call `function` at once if `loop` runs here, else have it call it soon.

    Nothing happens if the loop is closed; without one, the call is made here.
    """
    if loop is None or loop is _running_loop():
        function(*args)
    elif not loop.is_closed():
        loop.call_soon_threadsafe(function, *args)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
