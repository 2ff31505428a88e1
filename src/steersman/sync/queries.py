"""`Query` for synchronous code: the messages of one prompt, or of a stream of prompts."""

from __future__ import annotations

import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Self

from steersman._portal.portal import shared_portal
from steersman._prompt_content import Prompt
from steersman._session.query_prompts import QueryPrompts
from steersman.agent import Session as AsyncSession
from steersman.messages import Message
from steersman.sync.items import Items
from steersman.sync.session import Session
from steersman.tools._threads import run_in_thread


class Query(Iterator[Message]):
    """The messages of one prompt, or of a stream of prompts, for `for`.

    Closes its session after the last message and after an error. If the loop may be left earlier,
    use `with agent.query(...) as messages`, or `close()`: until then the CLI runs.

    A query that nothing refers to is closed too, with a `ResourceWarning`, as a file is. If a
    prompt is not answered, because the CLI is lost for good, it raises what `run()` raises.
    """

    def __init__(
        self, session: Session, running: AsyncSession, prompt: Prompt | Iterator[Prompt]
    ) -> None:
        """Send `prompt` to `session`, which wraps `running`."""
        self.session = session
        self._portal = shared_portal()
        self._prompt = prompt
        self._prompts = QueryPrompts(running)
        self._messages: Iterator[Message] | None = None
        self._is_closed = False

    def __next__(self) -> Message:
        if not self._is_closed:
            try:
                message = self._next()
            except BaseException:
                # An error or ctrl-c: no message follows.
                self._close()
                raise
            if message is not None:
                return message
            self.close()
        raise StopIteration

    def _next(self) -> Message | None:
        """Return the next message; None at the end. Raises why a prompt was not answered."""
        if self._messages is None:
            self.session.start()
            self._messages = self._begin()
        message = next(self._messages, None)
        if message is None and not self._is_closed:
            self._portal.call(self._prompts.raise_loss)
        return message

    def _begin(self) -> Iterator[Message]:
        prompts, prompt = self._prompts, self._prompt
        if isinstance(prompt, Iterator):
            return Items(self._portal, lambda: prompts.feed(_in_threads(prompt)))
        sent = self._portal.call(prompts.send, prompt)
        return Items(self._portal, lambda: sent)

    def close(self) -> None:
        """Close the session and wait until its CLI has exited."""
        self._close()
        self._prompts.raise_failure()

    def _close(self) -> None:
        self._is_closed = True
        # Not waited for: an async tool may block the event loop.
        self._portal.do_soon(self._prompts.stop)
        self.session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def __del__(self, _warn: Callable[..., None] = warnings.warn) -> None:
        # In a forked process the session belongs to the parent.
        if not self._portal.thread.is_lost and (unclosed := self._prompts.forget()):
            _warn(unclosed, ResourceWarning, source=self)


async def _in_threads(prompts: Iterator[Prompt]) -> AsyncIterator[Prompt]:
    """Yield each prompt; an iterator that blocks does not block the event loop."""
    while prompt := await run_in_thread(_next_of, prompts):
        yield prompt[0]


def _next_of(prompts: Iterator[Prompt]) -> tuple[Prompt] | None:
    for prompt in prompts:
        return (prompt,)
    return None
