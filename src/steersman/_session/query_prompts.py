"""QueryPrompts: what a query sends to its session, and what became of it.

Refers to the session and not to the query, so that a query which has no reader can be freed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Coroutine
from typing import Any

from steersman._prompt_content import Prompt, prompt_content
from steersman._session.session import Session, close_soon, completed
from steersman._session.turn import Turn
from steersman.messages.parsing import Message

UNCLOSED = (
    "unclosed Query of the session {}: its CLI still ran. Read the query to its end, or use it in"
    " `async with` (`with` in steersman.sync)"
)


class QueryPrompts:
    """Sends the prompts of one query, and raises why one of them was not answered."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._turns: list[Turn] = []
        """Turns that may have ended without a result."""
        self._are_sent = True
        """Whether the query has no further prompts."""
        self._feeding: asyncio.Task[None] | None = None

    async def send(self, prompt: Prompt) -> AsyncIterator[Message]:
        """Send the only prompt, and return its messages."""
        turn = await self._session.send(prompt)
        self._turns.append(turn)
        return turn.messages()

    def feed(self, prompts: AsyncIterable[Prompt]) -> AsyncIterator[Message]:
        """Begin to send each prompt of a stream, and return the messages of the session."""
        self._are_sent = False
        feeding: Coroutine[Any, Any, None] = self._feed(prompts)
        self._feeding = asyncio.Task(feeding)
        return self._session.messages()

    async def _feed(self, prompts: AsyncIterable[Prompt]) -> None:
        """Send each prompt; after the last one, wait until every turn has settled."""
        try:
            async for prompt in prompts:
                prompt_content(prompt)
                turn = await self._session.send(prompt)
                self._turns = [each for each in self._turns if await _may_be_lost(each)]
                self._turns.append(turn)
            self._are_sent = True
            await self._session.finish()
        finally:
            self._session.abandon()

    async def raise_loss(self) -> None:
        """Raise what `run()` raises, if the messages have ended and a prompt was not answered.

        A result that is an error is a message, and is not raised. If it was the stream that failed,
        the turns that its failure ended are not the reason.
        """
        if self._session.cause is None and self._failure is not None:
            raise self._failure
        for turn in self._turns:
            result = await turn.result()
            if result.result is None:
                completed(result)
        if not self._are_sent and self._session.cause is not None:
            raise self._session.cause

    @property
    def _failure(self) -> BaseException | None:
        feeding = self._feeding
        has_ended = feeding is not None and feeding.done() and not feeding.cancelled()
        return feeding.exception() if feeding is not None and has_ended else None

    def stop(self) -> None:
        """Read no further prompts."""
        if self._feeding is not None:
            self._feeding.cancel()

    def raise_failure(self) -> None:
        """Raise, once, why the prompts could not be read or sent: a mistake of the caller."""
        failure, self._feeding = self._failure, None
        if failure is not None:
            raise failure

    def forget(self) -> str:
        """Close the session soon, in its loop, if it is open; returns the warning, or nothing.

        For finalizers, which run in any thread and in the middle of anything.
        """
        return UNCLOSED.format(self._session.id) if close_soon(self._session, self.stop) else ""


async def _may_be_lost(turn: Turn) -> bool:
    if not turn.is_settled:
        return True
    result = await turn.result()
    return result.result is None and result.outcome != "completed"
