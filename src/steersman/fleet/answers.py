"""Notifies parked jobs that their asks have answers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from typing import Protocol, runtime_checkable

from steersman.errors import SteersmanError
from steersman.fleet.jobs import answered
from steersman.fleet.queue import JobQueue
from steersman.ports import Conversation, KeepsWork, StoredAsk

__all__ = ["AnswerWatch"]

log = logging.getLogger("steersman.fleet")


@runtime_checkable
class ReadyWork(Protocol):
    """The turns of a store, if it reports which of them can be continued."""

    def ready(self) -> AsyncGenerator[Conversation]:
        """Yield each conversation that can be continued, without an end."""
        ...

    async def asks_of(self, session: str, turn: str) -> list[StoredAsk]:
        """Return the asks of a turn that are open, or have an unused answer."""
        ...


class AnswerWatch:
    """Watches the inboxes of parked jobs, one task for each inbox."""

    def __init__(self, queue: JobQueue) -> None:
        self._queue = queue
        self._tasks: dict[int, asyncio.Task[None]] = {}

    def watch(self, inbox: object) -> None:
        """Watch an inbox in a store from now on; any other one is not watched."""
        if not isinstance(inbox, KeepsWork):
            return
        work: object = inbox.work
        if isinstance(work, ReadyWork) and id(inbox) not in self._tasks:
            self._tasks[id(inbox)] = asyncio.Task(self._follow(work))

    async def _follow(self, work: ReadyWork) -> None:
        try:
            async for conversation in work.ready():
                await self._notify(work, conversation)
        except SteersmanError:
            log.exception("parked jobs are not continued any more: their inbox cannot be watched")

    async def _notify(self, work: ReadyWork, conversation: Conversation) -> None:
        names = (conversation.key, conversation.session)
        unsettled = self._queue.unsettled
        jobs = [id_ for id_, each in unsettled.items() if each.conversation in names]
        if not jobs:
            return
        asks = [
            ask.id
            for turn in conversation.turns
            for ask in await work.asks_of(conversation.session, turn.uuid)
            if ask.state != "open"
        ]
        for job in jobs:
            await self._queue.signal(job, answered(*asks))

    async def aclose(self) -> None:
        """Watch no more."""
        for task in self._tasks.values():
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks.values())
