"""Turns that wait for asks, continued once there is an answer, in sessions that are closed too."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

from steersman.errors import SessionInUse, SteersmanError, StoreError, StoreTooNew
from steersman.inbox import StoredInbox
from steersman.ports import StoredTurn
from steersman.web.asks import AnyInbox
from steersman.web.conversation import Conversation
from steersman.web.conversations import Conversations
from steersman.web.failures import LOG, Refusal

__all__ = ["Continuing"]

AT_ONCE = 4
"""How many sessions are opened at once."""

RETRY = 1.0
"""Seconds until a session is tried again that could not be opened now."""


class Continuing:
    """Opens sessions of the bridge whose asks were answered while they were closed.

    Does nothing without an inbox in a store: other asks end with their session.
    """

    def __init__(self, conversations: Conversations, inbox: AnyInbox) -> None:
        self._conversations = conversations
        self._work = inbox.work if isinstance(inbox, StoredInbox) else None
        self._wanted: set[str] = set()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._is_closed = False

    async def watch(self) -> None:
        """Continue what can be continued, now and after answers of any process; until cancelled."""
        if self._work is None:
            return
        try:
            async with aclosing(self._work.ready()) as ready:
                async for conversation in ready:
                    self.answered(conversation.session)
        except StoreError as error:
            LOG.warning("answers of other processes continue nothing: %s", error.what)

    def answered(self, session: str) -> None:
        """Continue the turns of a session in a task of its own, if an answer lets them.

        Other than `watch`, this does not wait for the lease of a process that was killed.
        """
        if self._work is None or self._is_closed:
            return
        self._wanted.add(session)
        if session not in self._tasks:
            self._tasks[session] = asyncio.Task(self._continue(session))

    async def aclose(self) -> None:
        """Continue nothing more. What is not continued now is continued by the next server."""
        self._is_closed = True
        tasks = [*self._tasks.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _continue(self, session: str) -> None:
        try:
            async with self._slots:
                while session in self._wanted:
                    self._wanted.discard(session)
                    if not await self._is_done(session):
                        self._wanted.add(session)
                        await asyncio.sleep(RETRY)
        except SteersmanError as error:
            LOG.warning("an answered session could not be continued: %s", error)
        except Exception:  # noqa: BLE001 - one session must not stop the others
            LOG.exception("an answered session could not be continued")
        finally:
            self._wanted.discard(session)
            del self._tasks[session]

    async def _is_done(self, session: str) -> bool:
        """Continue a session; returns False if that is to be tried again."""
        try:
            found = self._conversations.find(session)
            turns = await self._answered_turns(found)
            if turns:
                self._conversations.check_may_open(found)
                await found.continue_turns(turns)
        except SessionInUse:
            # Another process has it, and uses the answer.
            return True
        except Refusal as refusal:
            # Not a session of this bridge, or one without its agent; else wait for room.
            return refusal.code != "too_many_sessions"
        except StoreTooNew:
            raise
        except StoreError as error:
            LOG.warning("an answered session cannot be continued yet: %s", error.what)
            return False
        return True

    async def _answered_turns(self, found: Conversation) -> list[StoredTurn]:
        """Return the unsettled turns if one of them has an answer that no session will use."""
        assert self._work is not None
        turns = await self._work.unsettled(found.id)
        session = found.session
        known = {turn.uuid for turn in (() if session is None else session.turns)}
        for turn in turns:
            if turn.uuid not in known:
                asks = await self._work.asks_of(found.id, turn.uuid)
                if any(ask.state != "open" for ask in asks):
                    return turns
        return []
