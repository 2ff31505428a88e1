"""The tasks that answer the CLI: one per question, each of them cancellable.

A question that waits in an inbox has no task: its answer comes by itself, or it is withdrawn.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Coroutine
from typing import Any

from steersman._protocol.events import PermissionAsked, ToolCalled
from steersman._session.asking import LATER
from steersman._session.deciding import Refused
from steersman._session.inbound import Asked, Desk
from steersman._session.link import Link

__all__ = ["Handlers"]


class Handlers:
    """Runs the desk's answers beside the reader, which never waits for them."""

    def __init__(self, desk: Desk, link: Link) -> None:
        self._desk = desk
        self._link = link
        self._running: dict[str, tuple[Asked, asyncio.Task[None] | None]] = {}
        """What is being answered, and by which task; by none if the answer comes later."""

    @property
    def open_permissions(self) -> list[PermissionAsked]:
        """Permission questions that wait for a decision."""
        return [asked for asked, _ in self._running.values() if isinstance(asked, PermissionAsked)]

    @property
    def open_tool_calls(self) -> list[ToolCalled]:
        """Tools of ours that are running."""
        return [asked for asked, _ in self._running.values() if _is_call(asked)]  # type: ignore[misc]

    def start(self, asked: Asked, context: contextvars.Context) -> None:
        """Begin to answer `asked`, in the context of the turn that it belongs to."""
        task = _start_task(self._answer(asked), context)
        self._running[asked.request_id] = (asked, task)
        task.add_done_callback(lambda task: self._ended(asked, task))

    def withdraw(self, request_id: str) -> None:
        """Nobody waits for this answer any more."""
        if request_id in self._running:
            self._cancel(request_id, "the CLI took the question back")

    def cancel_all(self) -> None:
        """Stop answering."""
        for request_id in list(self._running):
            self._cancel(request_id, "its session has ended")

    def _cancel(self, request_id: str, reason: str) -> None:
        task = self._running[request_id][1]
        if task is not None:
            task.cancel()
            return
        del self._running[request_id]
        self._desk.withdraw(request_id, reason)
        self._send(self._link.connection.refuse(request_id, reason))

    async def wait(self, timeout: float) -> None:
        """Give the cancelled ones time to clean up."""
        mine = asyncio.current_task()
        tasks = [task for _, task in self._running.values() if task and task is not mine]
        if tasks:
            await asyncio.wait(tasks, timeout=timeout)

    async def _answer(self, asked: Asked) -> None:
        connection = self._link.connection
        try:
            response = await self._desk.answer(asked, connection.session_id, self._answer_later)
            if response is LATER:
                # Unless the answer was there at once.
                if asked.request_id in self._running:
                    self._running[asked.request_id] = (asked, None)
                return
            line = connection.answer(asked.request_id, response)
        except Refused as refused:
            line = connection.refuse(asked.request_id, str(refused))
        except Exception as error:  # noqa: BLE001 - such as an answer that no JSON can say
            self._link.fault(type(asked).__name__, error)
            line = connection.refuse(asked.request_id, f"unanswerable: {type(error).__name__}")
        self._send(line)

    def _answer_later(self, request_id: str, response: Any) -> None:
        """Send an answer that no task waited for; nothing if the question was withdrawn."""
        if self._running.pop(request_id, None) is not None:
            self._send(self._link.connection.answer(request_id, response))

    def _ended(self, asked: Asked, task: asyncio.Task[None]) -> None:
        running = self._running.get(asked.request_id)
        if running is not None and running[1] is task:
            del self._running[asked.request_id]
        if task.cancelled():
            # Not in the task, which may be cancelled before its first step. Where the CLI took back
            # a tool call, it still counts the request as open.
            self._send(self._link.connection.refuse(asked.request_id, "cancelled"))

    def _send(self, line: bytes) -> None:
        if self._link.is_open:
            self._link.write(line)


def _is_call(asked: Asked) -> bool:
    return isinstance(asked, ToolCalled) and asked.message.get("method") == "tools/call"


def _start_task(
    answering: Coroutine[Any, Any, None], context: contextvars.Context
) -> asyncio.Task[None]:
    return asyncio.get_running_loop().create_task(answering, context=context)
