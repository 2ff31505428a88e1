"""Signals jobs whose asks were answered, by whomever, while no session waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

from steersman._background import BackgroundTasks
from steersman.errors import StoreError
from steersman.fleet.jobs import answered
from steersman.fleet.queue import JobQueue
from steersman.inbox.rows import ReadyStore
from steersman.ports import Conversation, SupportsStore


class AnswerSignals:
    """Signals each conversation that can be continued, again until the signal has arrived.

    `ready` yields a conversation once for each change, so one that was not signalled is kept here.
    """

    def __init__(
        self,
        ready: Callable[[], AsyncGenerator[Conversation]],
        signal: Callable[[Conversation], Awaitable[None]],
    ) -> None:
        self._ready = ready
        self._signal = signal
        self._unsent: dict[str, Conversation] = {}
        self._news = asyncio.Event()

    def keep_in(self, background: BackgroundTasks, name: str) -> None:
        """Signal from now on, in the background."""
        words = "parked jobs are not continued by their answers"
        background.keep(f"reading {name}", self._collect, meanwhile=words)
        background.keep(f"signalling {name}", self._send_all, meanwhile=words)

    async def _collect(self) -> None:
        async with aclosing(self._ready()) as ready:
            async for conversation in ready:
                self._unsent[conversation.session] = conversation
                self._news.set()

    async def _send_all(self) -> None:
        while True:
            if not self._unsent:
                await self._news.wait()
            self._news.clear()
            failed: list[StoreError] = []
            for session, conversation in [*self._unsent.items()]:
                try:
                    await self._signal(conversation)
                except StoreError as error:
                    # The others are not held up by this one.
                    failed.append(error)
                    continue
                if self._unsent.get(session) is conversation:
                    del self._unsent[session]
            if failed:
                raise failed[0]


class AnswerWatch:
    """Watches the inboxes of parked jobs in this process."""

    def __init__(self, queue: JobQueue, background: BackgroundTasks) -> None:
        self._queue = queue
        self._background = background
        self._watched: dict[int, object] = {}
        """The inboxes by their `id()`, which is theirs as long as they are kept."""

    def watch(self, inbox: object) -> None:
        """Watch an inbox in a store from now on; any other one is not watched."""
        if not isinstance(inbox, SupportsStore) or id(inbox) in self._watched:
            return
        store: object = inbox.store
        if isinstance(store, ReadyStore):
            self._watched[id(inbox)] = inbox
            name = f"the answers of inbox {len(self._watched)}"

            async def signal(conversation: Conversation) -> None:
                await self._notify(store, conversation)

            AnswerSignals(store.ready, signal).keep_in(self._background, name)

    async def _notify(self, store: ReadyStore, conversation: Conversation) -> None:
        names = (conversation.key, conversation.session)
        unsettled = self._queue.unsettled
        jobs = [id_ for id_, each in unsettled.items() if each.conversation in names]
        if not jobs:
            return
        asks = [
            ask.id
            for turn in conversation.turns
            for ask in await store.work.asks_of(conversation.session, turn.uuid)
            if ask.state != "open"
        ]
        for job in jobs:
            await self._queue.signal(job, answered(*asks))
