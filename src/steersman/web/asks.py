"""The asks of all sessions, for viewers: listed, answered, reported when one opens or ends."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from contextlib import aclosing
from typing import TypeAlias

from steersman import _json
from steersman._json import JsonDict
from steersman.errors import ReaderLagged
from steersman.inbox import AskOutcome, Change, Inbox, StoredInbox
from steersman.permissions import Ask
from steersman.permissions.json_form import answer_from_json, ask_to_json

AnyInbox: TypeAlias = Inbox | StoredInbox

RETRY = 1.0
"""Seconds until an inbox whose changes have ended is watched again."""

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
        found = self._inbox.list()
        return await found if inspect.isawaitable(found) else found

    async def find(self, ask_id: str, session: str | None) -> Ask:
        """Return an open ask. Raises `AskNotFound`, `AlreadyAnswered` or `AskGone`."""
        found = self._inbox.get(ask_id, session=session)
        return await found if inspect.isawaitable(found) else found

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
