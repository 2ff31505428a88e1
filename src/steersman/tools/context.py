"""`ToolContext`: what a tool may know about the call that it serves."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from steersman._json import JsonDict
from steersman.ports import Caller
from steersman.tools._mcp.jsonrpc import PROGRESS, RequestId, notification

_making_events = threading.Lock()


@dataclass(slots=True, kw_only=True, eq=False)
class ToolContext:
    """One call of one tool; passed to every parameter that is annotated with this class.

    All attributes and methods may be used in any thread.
    """

    tool_name: str
    tool_use_id: str = ""
    """The id of the tool use in the model's message; empty if the CLI sent none."""
    session_id: str = ""
    server: str = ""
    """The key in `mcp_servers` under which the toolbox serves this session."""
    request_id: RequestId = ""
    turn: Any = field(default=None, repr=False)
    """The `Turn` that was current when the call arrived, or `None`."""
    deadline: float | None = None
    """When the tool's `timeout` expires, on the clock of `time.monotonic()`."""
    is_cancelled: bool = False
    """Whether the result is no longer wanted: cancelled, interrupted, or timed out."""
    progressed: float = 0.0
    """The latest value passed to `progress()`."""
    caller: Caller | None = field(default=None, repr=False)
    progress_token: RequestId | None = field(default=None, repr=False)
    loop: asyncio.AbstractEventLoop | None = field(default=None, repr=False)
    _cancelled: threading.Event | None = field(default=None, init=False, repr=False)

    @property
    def session(self) -> Any:
        """The `Session` whose model made the call."""
        return None if self.caller is None else self.caller.session

    @property
    def deps(self) -> Any:
        """The value of `Options.deps`."""
        return None if self.caller is None else self.caller.deps

    @property
    def call_key(self) -> str:
        """A key for deduplication: equal whenever the same call arrives again."""
        return self.tool_use_id or "/".join(
            (self.session_id, self.server, self.tool_name, str(self.request_id))
        )

    @property
    def remaining(self) -> float | None:
        """Seconds until the deadline, never below 0; `None` without a deadline."""
        return None if self.deadline is None else max(0.0, self.deadline - time.monotonic())

    @property
    def cancelled(self) -> threading.Event:
        """An event that is set when the result is no longer wanted.

        A tool in a thread can sleep with `cancelled.wait(1)`. Coroutines are cancelled instead.
        """
        with _making_events:
            if self._cancelled is None:
                self._cancelled = threading.Event()
            if self.is_cancelled:
                self._cancelled.set()
            return self._cancelled

    def check_cancelled(self) -> None:
        """Raise `asyncio.CancelledError` if the result is no longer wanted."""
        if self.is_cancelled:
            raise asyncio.CancelledError

    def cancel(self) -> None:
        """Mark the call as cancelled; called by the code that runs the tool."""
        self.is_cancelled = True
        if self._cancelled is not None:
            self._cancelled.set()

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Send a progress notification to the CLI, without waiting.

        Nothing is sent if the CLI did not ask for progress.
        """
        self.progressed = done
        if self.caller is None or self.progress_token is None:
            return
        params: JsonDict = {"progressToken": self.progress_token, "progress": done}
        if total is not None:
            params["total"] = total
        if message is not None:
            params["message"] = message
        call_in(self.loop, self.caller.notify, notification(PROGRESS, params))


def call_in(
    loop: asyncio.AbstractEventLoop | None, function: Callable[..., object], *args: object
) -> None:
    """Call `function` in `loop`: at once if that loop runs in this thread, else soon.

    Without a loop, the call is made here. If the loop is closed, nothing is called.
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
