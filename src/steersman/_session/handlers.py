"""The tasks that answer the CLI: one per question, each of them cancellable.

A question that waits in an inbox has no task: its answer comes by itself, or it is withdrawn.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from typing import Any

from steersman._protocol.events import PermissionAsked, ToolCalled
from steersman._session.asking import LATER
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
        self._running: dict[str, tuple[Asked, asyncio.Task[None] | None, float]] = {}
        """What is being answered, by which task, and since when; by none if it comes later."""
        self._held: list[bytes] = []
        """Answers that go out together, in the next round of the event loop."""
        self._withdrawn: set[str] = set()
        """Questions that nobody waits for any more, whose tasks still clean up."""
        self._permissions = 0
        self._calls = 0

    @property
    def is_empty(self) -> bool:
        """Whether the CLI waits for nothing of ours."""
        return not self._running

    @property
    def waits_for_person(self) -> bool:
        """Whether a permission is open."""
        return self._permissions > 0

    @property
    def waits_for_tool(self) -> bool:
        """Whether a tool of ours runs."""
        return self._calls > 0

    @property
    def open(self) -> list[tuple[Asked, float]]:
        """Everything that is being answered, and since when."""
        return [
            (asked, since)
            for request_id, (asked, _, since) in self._running.items()
            if request_id not in self._withdrawn
        ]

    def start(self, asked: Asked, context: contextvars.Context) -> None:
        """Begin to answer `asked`, in the context of the turn that it belongs to."""
        loop = asyncio.get_running_loop()
        task = loop.create_task(self._answer(asked), context=context)
        self._running[asked.request_id] = (asked, task, self._link.log.clock())
        self._withdrawn.discard(asked.request_id)
        self._count(asked, 1)

    def withdraw(self, request_id: str) -> None:
        """Nobody waits for this answer any more."""
        if request_id in self._running:
            self._cancel(request_id, "the CLI took the question back")

    def cancel_all(self) -> None:
        """Stop answering."""
        for request_id in list(self._running):
            self._cancel(request_id, "its session has ended")

    def _cancel(self, request_id: str, reason: str) -> None:
        asked, task, _ = self._running[request_id]
        if task is not None:
            # One that is cancelled before its first step does not come to its own end.
            task.add_done_callback(lambda task: self._ended(asked, task))
            task.cancel()
            if request_id not in self._withdrawn:
                self._withdrawn.add(request_id)
                self._count(asked, -1)
            return
        self._forget(request_id)
        self._desk.withdraw(request_id, reason)
        self._send(self._link.connection.refuse(request_id, reason))

    async def wait(self, timeout: float) -> None:
        """Give the cancelled ones time to clean up."""
        mine = asyncio.current_task()
        tasks = [task for _, task, _ in self._running.values() if task and task is not mine]
        if tasks:
            await asyncio.wait(tasks, timeout=timeout)

    async def _answer(self, asked: Asked) -> None:
        try:
            await self._answer_or_refuse(asked)
        finally:
            # Here, because a callback for the end of each task costs another round of the loop.
            self._ended(asked, asyncio.current_task())

    async def _answer_or_refuse(self, asked: Asked) -> None:
        connection = self._link.connection
        try:
            response = await self._desk.answer(asked, self._link.session_id, self._answer_later)
            if response is LATER:
                # Unless the answer was there at once.
                running = self._running.get(asked.request_id)
                if running is not None:
                    self._running[asked.request_id] = (asked, None, running[2])
                return
            line = connection.answer(asked.request_id, response)
        except Refused as refused:
            line = connection.refuse(asked.request_id, str(refused))
        except Exception as error:  # noqa: BLE001 - such as an answer that no JSON can say
            self._link.log.fault(type(asked).__name__, error)
            line = connection.refuse(asked.request_id, f"unanswerable: {type(error).__name__}")
        self._send(line)

    def _answer_later(self, request_id: str, response: Any) -> None:
        """Send an answer that no task waited for; nothing if the question was withdrawn."""
        if self._forget(request_id):
            self._send(self._link.connection.answer(request_id, response))

    def _ended(self, asked: Asked, task: asyncio.Task[None] | None) -> None:
        running = self._running.get(asked.request_id)
        if running is None or running[1] is not task:
            return
        self._forget(asked.request_id)
        # What was cancelled has no answer yet. Where the CLI took back a tool call, it still counts
        # the request as open.
        self._send(self._link.connection.refuse(asked.request_id, "cancelled"))

    def _forget(self, request_id: str) -> bool:
        running = self._running.pop(request_id, None)
        if request_id in self._withdrawn:
            self._withdrawn.discard(request_id)
        elif running is not None:
            self._count(running[0], -1)
        return running is not None

    def _count(self, asked: Asked, more: int) -> None:
        """Keep count of what a session waits for; hooks do not count."""
        if isinstance(asked, PermissionAsked):
            self._permissions += more
            count = self._permissions
        elif isinstance(asked, ToolCalled) and _is_call(asked):
            self._calls += more
            count = self._calls
        else:
            return
        if count == max(more, 0):
            # The first of its kind, or none any more; in between nothing changes.
            self._changed()

    def _send(self, line: bytes) -> None:
        if not line or not self._link.is_open:
            return
        if len(self._running) <= 1 and not self._held:
            self._link.write(line)
            return
        # Others answer at the same time: one write for all of them costs a fraction.
        if not self._held:
            asyncio.get_running_loop().call_soon(self._release)
        self._held.append(line)

    def _release(self) -> None:
        held, self._held = self._held, []
        if self._link.is_open:
            self._link.write_all(held)


def _is_call(asked: ToolCalled) -> bool:
    return asked.message.get("method") == "tools/call"
