"""Turns that wait for asks, continued once there is an answer, in sessions that are closed too."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from functools import partial

from steersman._background import BackgroundTasks
from steersman.errors import SessionInUse
from steersman.inbox import StoredInbox
from steersman.ports import StoredTurn
from steersman.web.asks import AnyInbox
from steersman.web.conversation import Conversation
from steersman.web.conversations import Conversations
from steersman.web.failures import Refusal

AT_ONCE = 4
"""How many sessions are opened at once."""

RETRY = 1.0
"""Seconds until a session is tried again for which there is no room now."""

LONGEST_PAUSE = 60.0
"""Seconds between two attempts to continue a session, which may start a CLI, at most."""


class Continuing:
    """Opens sessions of the bridge whose asks were answered while they were closed.

    Does nothing without an inbox in a store: other asks end with their session.
    """

    def __init__(
        self, conversations: Conversations, inbox: AnyInbox, background: BackgroundTasks
    ) -> None:
        self._background = background
        self._conversations = conversations
        self._store = inbox.store if isinstance(inbox, StoredInbox) else None
        self._wanted: set[str] = set()
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._is_closed = False

    async def watch(self) -> None:
        """Continue what can be continued, now and after answers of any process; until cancelled."""
        if self._store is None:
            return
        async with aclosing(self._store.ready()) as ready:
            async for conversation in ready:
                self.answered(conversation.session)

    def answered(self, session: str) -> None:
        """Continue the turns of a session in a task of its own, if an answer lets them.

        Other than `watch`, this does not wait for the lease of a process that was killed.
        """
        if self._store is None or self._is_closed:
            return
        self._wanted.add(session)
        self._background.keep(
            f"continuing the session {session}",
            partial(self._continue, session),
            meanwhile="its answered turns wait",
            longest=LONGEST_PAUSE,
        )

    def close(self) -> None:
        """Continue nothing more. What is not continued now is continued by the next server."""
        self._is_closed = True

    async def _continue(self, session: str) -> None:
        async with self._slots:
            while session in self._wanted:
                # Another answer may come meanwhile.
                self._wanted.discard(session)
                is_done = False
                try:
                    is_done = await self._is_done(session)
                finally:
                    if not is_done:
                        self._wanted.add(session)
                if not is_done:
                    await asyncio.sleep(RETRY)

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
        return True

    async def _answered_turns(self, found: Conversation) -> list[StoredTurn]:
        """Return the unsettled turns if one of them has an answer that no session will use."""
        assert self._store is not None
        turns = await self._store.work.unsettled(found.id)
        session = found.session
        known = {turn.uuid for turn in (() if session is None else session.turns)}
        for turn in turns:
            if turn.uuid not in known:
                asks = await self._store.work.asks_of(found.id, turn.uuid)
                if any(ask.state != "open" for ask in asks):
                    return turns
        return []
