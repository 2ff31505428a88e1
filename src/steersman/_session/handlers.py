"""The tasks that answer the CLI: one per question, each of them cancellable."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable

from steersman._protocol.events import HookAsked, PermissionAsked, ToolCalled
from steersman._session.deciding import Refused
from steersman._session.inbound import Asked, Desk
from steersman._session.link import Link

__all__ = ["Handlers"]


class Handlers:
    """Runs the desk's answers beside the reader, which never waits for them."""

    def __init__(self, desk: Desk, link: Link, changed: Callable[[], None]) -> None:
        self._desk = desk
        self._link = link
        self._changed = changed
        self._running: dict[str, tuple[Asked, asyncio.Task[None]]] = {}
        self._open = {PermissionAsked: 0, ToolCalled: 0}

    @property
    def is_empty(self) -> bool:
        """Whether the CLI waits for nothing of ours."""
        return not self._running

    @property
    def waits_for_person(self) -> bool:
        """Whether a permission is open."""
        return self._open[PermissionAsked] > 0

    @property
    def waits_for_tool(self) -> bool:
        """Whether a tool of ours runs."""
        return self._open[ToolCalled] > 0

    @property
    def open_permissions(self) -> list[PermissionAsked]:
        """Permission questions that wait for a decision."""
        return [asked for asked, _ in self._running.values() if isinstance(asked, PermissionAsked)]

    @property
    def open_tool_calls(self) -> list[ToolCalled]:
        """Tools of ours that are running."""
        return [
            asked
            for asked, _ in self._running.values()
            if isinstance(asked, ToolCalled) and _is_counted(asked)
        ]

    def start(self, asked: Asked, context: contextvars.Context) -> None:
        """Begin to answer `asked`, in the context of the turn that it belongs to."""
        loop = asyncio.get_running_loop()
        task = loop.create_task(self._answer(asked), context=context)
        self._running[asked.request_id] = (asked, task)
        task.add_done_callback(lambda task: self._ended(asked, task))
        self._count(asked, 1)

    def withdraw(self, request_id: str) -> None:
        """Nobody waits for this answer any more."""
        if request_id in self._running:
            self._running[request_id][1].cancel()

    def cancel_all(self) -> None:
        """Stop answering."""
        for _, task in list(self._running.values()):
            task.cancel()

    async def wait(self, timeout: float) -> None:
        """Give the cancelled ones time to clean up."""
        tasks = [task for _, task in self._running.values() if task is not asyncio.current_task()]
        if tasks:
            await asyncio.wait(tasks, timeout=timeout)

    async def _answer(self, asked: Asked) -> None:
        connection = self._link.connection
        try:
            response = await self._desk.answer(asked, connection.session_id)
            line = connection.answer(asked.request_id, response)
        except Refused as refused:
            line = connection.refuse(asked.request_id, str(refused))
        except Exception as error:  # noqa: BLE001 - such as an answer that no JSON can say
            self._link.log.fault(type(asked).__name__, error)
            line = connection.refuse(asked.request_id, f"unanswerable: {type(error).__name__}")
        self._send(line)

    def _ended(self, asked: Asked, task: asyncio.Task[None]) -> None:
        running = self._running.get(asked.request_id)
        if running is not None and running[1] is task:
            del self._running[asked.request_id]
            self._count(asked, -1)
        if task.cancelled():
            # Not in the task, which may be cancelled before its first step. Where the CLI took back
            # a tool call, it still counts the request as open.
            self._send(self._link.connection.refuse(asked.request_id, "cancelled"))

    def _count(self, asked: Asked, more: int) -> None:
        if not isinstance(asked, HookAsked) and _is_counted(asked):
            self._open[type(asked)] += more
            self._changed()

    def _send(self, line: bytes) -> None:
        if self._link.is_open:
            self._link.write(line)


def _is_counted(asked: Asked) -> bool:
    """Whether a session waits as long as this is open."""
    if isinstance(asked, ToolCalled):
        return asked.message.get("method") == "tools/call"
    return isinstance(asked, PermissionAsked)
