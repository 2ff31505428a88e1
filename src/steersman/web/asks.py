"""The asks of all sessions, for viewers: listed, answered, reported when one opens or ends.

Turns that wait for asks are continued once there is an answer, in sessions that are closed too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from functools import partial
from typing import TypeAlias

from steersman import _json
from steersman._background import BackgroundTasks
from steersman._json import JsonDict
from steersman.errors import ReaderLagged, SessionInUse
from steersman.inbox import AskOutcome, Change, Inbox, StoredInbox
from steersman.permissions import Ask
from steersman.permissions.json_form import answer_from_json, ask_to_json
from steersman.ports import StoredTurn
from steersman.web.conversation import Conversation
from steersman.web.conversations import Conversations
from steersman.web.failures import Refusal

AnyInbox: TypeAlias = Inbox | StoredInbox

RETRY = 1.0
"""Seconds until an inbox whose changes have ended is watched again, or a session is tried again
for which there was no room."""

Redact: TypeAlias = Callable[[str, bytes], bytes | None]
"""Removes known secrets from a line of a session, given its id; None if they are not known."""


class OpenAsks:
    """The open asks of an inbox, kept up to date."""

    def __init__(
        self, inbox: AnyInbox, notify: Callable[[JsonDict, str], None], redact: Redact
    ) -> None:
        self._inbox = inbox
        self._notify = notify
        self._redact = redact
        self._open: dict[str, dict[str, Ask]] = {}
        """The open asks of each session, by their ids."""

    def count(self, session: str) -> int:
        """Return how many asks of a session wait."""
        return len(self._open.get(session, ()))

    async def list(self) -> list[Ask]:
        """Return the open asks of all sessions, the oldest first."""
        return await self._inbox.list()

    async def find(self, ask_id: str, session: str | None) -> Ask:
        """Return an open ask. Raises `AskNotFound`, `AlreadyAnswered` or `AskGone`."""
        return await self._inbox.get(ask_id, session=session)

    async def answer(self, ask: Ask, given: object, by: str, seen: str | None) -> AskOutcome:
        """Answer an ask; `given` is the answer as JSON, decoded."""
        return await self._inbox.answer(ask, answer_from_json(_json.dumps(given)), by=by, seen=seen)

    def json(self, ask: Ask) -> JsonDict:
        """Return an ask as viewers get it."""
        line = ask_to_json(ask)
        found: JsonDict = _json.loads(self._redact(ask.session, line) or line)
        return {**found, "digest": ask.digest}

    async def watch(self) -> None:
        """Follow the inbox until cancelled. Raises `StoreError`."""
        while True:
            try:
                async with aclosing(self._inbox.watch()) as changes:
                    # It begins with all that are open; how others have ended was not seen.
                    for ask in [ask for asks in self._open.values() for ask in asks.values()]:
                        self._follow(Change("closed", ask))
                    async for change in changes:
                        self._follow(change)
            except ReaderLagged:
                continue
            await asyncio.sleep(RETRY)

    def _follow(self, change: Change) -> None:
        ask = change.ask
        asks = self._open.setdefault(ask.session, {})
        frame: JsonDict = {"type": "ask", "what": change.what, "ask": self.json(ask)}
        if change.what in ("opened", "delegated"):
            asks[ask.id] = ask
        else:
            asks.pop(ask.id, None)
            if not asks:
                del self._open[ask.session]
            if self._redact(ask.session, b"{}") is None:
                # The session knew the secrets, and has ended.
                frame["ask"]["payload"] = {}
            if change.outcome is not None:
                frame["by"] = change.outcome.by
        self._notify(frame, ask.session)


AT_ONCE = 4
"""How many sessions are opened at once."""

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
