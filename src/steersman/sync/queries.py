"""`Query` for synchronous code: the messages of one prompt, or of a stream of prompts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Self

from steersman._portal.portal import shared_portal
from steersman._prompt_content import Prompt, prompt_content
from steersman.agent import Session as AsyncSession
from steersman.messages import Message
from steersman.sync.session import Session
from steersman.tools._run.threads import run_in_thread

__all__ = ["Query"]


class Query(Iterator[Message]):
    """The messages of one prompt, or of a stream of prompts, for `for`.

    Closes its session after the last message, after an error, and when it is garbage collected.
    """

    def __init__(
        self, session: Session, running: AsyncSession, prompt: Prompt | Iterator[Prompt]
    ) -> None:
        """Send `prompt` to `session`, which wraps `running`."""
        self.session = session
        self._running = running
        self._portal = shared_portal()
        self._prompt = prompt
        self._messages: Iterator[Message] | None = None
        self._feeding: asyncio.Task[None] | None = None

    def __next__(self) -> Message:
        try:
            if self._messages is None:
                self.session.start()
                self._messages = self._begin()
            return next(self._messages)
        except BaseException:
            # The end, an error or ctrl-c: no message follows.
            self.close()
            raise

    def _begin(self) -> Iterator[Message]:
        if not isinstance(self._prompt, Iterator):
            return self.session.send(self._prompt).messages()
        feeding = _feed(self._running, self._prompt)
        self._feeding = self._portal.do(asyncio.Task, feeding)
        return self.session.messages()

    def close(self) -> None:
        """Close the session and wait until its CLI has exited."""
        feeding, self._feeding = self._feeding, None
        if feeding is not None:
            self._portal.do(feeding.cancel)
        self.session.close()
        if feeding is not None and feeding.done() and not feeding.cancelled():
            # A prompt that could not be sent is a mistake of the caller, who gets the error here.
            feeding.result()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


async def _feed(session: AsyncSession, prompts: Iterator[Prompt]) -> None:
    """Send each prompt of the stream; after the last one, wait until every turn has settled.

    Refers only to the running session, so that a query which is no longer read can be freed.
    """
    try:
        while prompt := await run_in_thread(_next_of, prompts):
            prompt_content(prompt[0])
            await session.send(prompt[0])
        await session.wait()
    finally:
        session.abandon()


def _next_of(prompts: Iterator[Prompt]) -> tuple[Prompt] | None:
    for prompt in prompts:
        return (prompt,)
    return None
