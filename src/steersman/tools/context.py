"""What a tool may know about the call it serves."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from steersman.ports import Caller, JsonObject

__all__ = ["ToolContext"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """One call of one tool; given to every parameter that is annotated with this class."""

    tool_name: str
    tool_use_id: str = ""
    """The id of the call as it stands in the model's message; empty if the CLI sent none."""
    session_id: str = ""
    server: str = ""
    """The key under which the toolbox serves this session."""
    request_id: int | str = ""
    caller: Caller | None = field(default=None, repr=False, compare=False)
    progress_token: int | str | None = field(default=None, repr=False, compare=False)
    loop: asyncio.AbstractEventLoop | None = field(default=None, repr=False, compare=False)

    @property
    def call_key(self) -> str:
        """A key that is the same whenever this very call is seen again, for deduplication."""
        return self.tool_use_id or "/".join(
            (self.session_id, self.server, self.tool_name, str(self.request_id))
        )

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Tell the CLI how far the call is. May be called from any thread; never waits.

        Does nothing where the CLI did not ask for progress.
        """
        if self.caller is None or self.progress_token is None:
            return
        self._notify(
            {
                "jsonrpc": "2.0",
                "method": "notifications/progress",
                "params": {
                    "progressToken": self.progress_token,
                    "progress": done,
                    **({} if total is None else {"total": total}),
                    **({} if message is None else {"message": message}),
                },
            },
        )

    def _notify(self, notification: JsonObject) -> None:
        assert self.caller is not None
        if self.loop is None or self.loop is _running_loop():
            self.caller.notify(notification)
        elif not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.caller.notify, notification)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
