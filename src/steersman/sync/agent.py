"""`Agent`, `query()`, `run()` and `Query` for synchronous code.

Sessions are closed when the program exits, before CLIs are killed.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Literal, Self, TypeVar, overload

from steersman._portal.portal import Portal, shared_portal
from steersman._prompt_content import Prompt, prompt_content
from steersman._session.query_prompts import QueryPrompts
from steersman.agent import Agent as AsyncAgent
from steersman.agent import Opening, TypedResult
from steersman.agent import Session as AsyncSession
from steersman.hooks import Hooks
from steersman.journal import TurnResult
from steersman.messages import Message
from steersman.options import Options
from steersman.options.fields import options_from
from steersman.sync.callbacks import with_threads
from steersman.sync.items import Items
from steersman.sync.session import Session
from steersman.tools._threads import run_in_thread
from steersman.transports.at_exit import AT_EXIT

if TYPE_CHECKING:
    from typing import Unpack

    from typing_extensions import TypeForm

    from steersman.options.keywords import OptionKwargs
    from steersman.ports import Clock, Transport

T = TypeVar("T")

EXIT_PATIENCE = 10.0
"""Seconds for all sessions to close; then their CLIs are killed."""


class Agent:
    """Options that are used for several sessions. The keywords are the fields of `Options`."""

    def __init__(
        self,
        options: Options | None = None,
        *,
        transport: Transport | None = None,
        clock: Clock = time.time,
        **fields: Unpack[OptionKwargs],
    ) -> None:
        self._agent = AsyncAgent(options, transport=transport, clock=clock, **fields)
        self.options = self._agent.options
        self._ahead: AsyncAgent | None = None
        """Starts sessions ahead, with callbacks that run in threads."""
        self._hooks_ahead: Hooks | None = None
        """The hooks that those sessions have."""
        self._given = (transport, clock)

    def session(
        self, *, transport: Transport | None = None, **overrides: Unpack[OptionKwargs]
    ) -> Session:
        """Return a session, which `with` starts. Keywords override options of the agent."""
        return Session(self._session(transport, overrides), closes=True)

    def _session(self, transport: Transport | None, overrides: OptionKwargs) -> AsyncSession:
        agent, words = self._chosen(transport, overrides)
        return self._portal.do(lambda: agent.session(transport=transport, **words))

    def _chosen(
        self, transport: Transport | None, overrides: OptionKwargs
    ) -> tuple[AsyncAgent, OptionKwargs]:
        """Return what makes the next session, and with which options."""
        is_plain = transport is None and not overrides
        # A CLI that was started before a hook was registered does not call it.
        if self._ahead is not None and is_plain and self._hooks_ahead == self.options.hooks:
            return self._ahead, {}
        return self._agent, with_threads(self.options, overrides)

    def start(
        self,
        prompt: Prompt | None = None,
        *,
        transport: Transport | None = None,
        **overrides: Unpack[OptionKwargs],
    ) -> Session:
        """Return a session that is started, after sending `prompt`. Close it with `close()`."""
        if prompt is not None:
            prompt_content(prompt)
        session = self.session(transport=transport, **overrides).start()
        if prompt is not None:
            session.send(prompt)
        return session

    def prewarm(self, count: int = 1) -> None:
        """Have `count` CLIs started and initialized for the next sessions of this agent.

        `session()`, `start()`, `run()` and `query()` take one, unless they override an option. The
        id of a conversation is chosen when its CLI starts, so `open()` and forks cannot. Call it
        again to start more; `prewarm(0)` closes those that are left, as the event loop does.
        """
        if self._ahead is None:
            self._hooks_ahead = self.options.hooks | Hooks()
            options = options_from(self.options, with_threads(self.options, {}))
            transport, clock = self._given
            self._ahead = AsyncAgent(options, transport=transport, clock=clock)
        self._portal.call(self._ahead.prewarm, count)

    def open(
        self,
        key: str,
        *,
        missing: Literal["fresh", "fail"] = "fresh",
        transport: Transport | None = None,
        **overrides: Unpack[OptionKwargs],
    ) -> Session:
        """Open the conversation of `key`: `with agent.open(key) as session`.

        Returns a session that is started; without `with`, close it with `close()`. The
        conversation is resumed if it exists. If not, a new one is started under this key, or
        `ResumeNotFound` is raised with `missing="fail"`. A key is any string; a UUID is the id of
        the conversation itself. Raises `SessionInUse` if another session has the conversation open,
        after `wait=` seconds.
        """
        words = with_threads(self.options, overrides)
        opening = self._agent.open(key, missing=missing, transport=transport, **words)
        opened: list[Session] = []
        # A wrapper that is freed closes its session, also if the caller was interrupted.
        self._portal.call(_open, opening, opened)
        return opened.pop()

    def query(
        self,
        prompt: Prompt | Iterator[Prompt],
        *,
        transport: Transport | None = None,
        **overrides: Unpack[OptionKwargs],
    ) -> Query:
        """Send one prompt, or a stream of prompts, and return the messages for `for`.

        The session is closed with the last message. If the loop may be left earlier, use
        `with agent.query(...) as messages`. Raises `TurnFailed` if a prompt is not answered.
        """
        if not isinstance(prompt, Iterator):
            prompt_content(prompt)
        session = self._session(transport, overrides)
        return Query(Session(session), session, prompt)

    @overload
    def run(
        self,
        prompt: Prompt,
        *,
        output: None = None,
        transport: Transport | None = None,
        **overrides: Unpack[OptionKwargs],
    ) -> TurnResult: ...

    @overload
    def run(
        self,
        prompt: Prompt,
        *,
        output: type[T],
        transport: Transport | None = None,
        **overrides: Unpack[OptionKwargs],
    ) -> T: ...

    @overload
    def run(
        self,
        prompt: Prompt,
        *,
        output: TypeForm[T],
        transport: Transport | None = None,
        **overrides: Unpack[OptionKwargs],
    ) -> T: ...

    def run(
        self,
        prompt: Prompt,
        *,
        output: TypeForm[T] | None = None,
        transport: Transport | None = None,
        **overrides: Unpack[OptionKwargs],
    ) -> T | TurnResult:
        """Send one prompt and return its result; with `output=T` return the answer as a `T`.

        Raises `TurnFailed` if the turn did not complete. With `output`, raises `NoOutput` if the
        answer has no structured output, and `BadOutput` if that is not a `T`; both have the text.
        `run_result` returns the answer together with its cost.
        """
        agent, words = self._chosen(transport, overrides)
        if output is None:
            return self._portal.call(lambda: agent.run(prompt, transport=transport, **words))
        return self._portal.call(
            lambda: agent.run(prompt, output=output, transport=transport, **words)
        )

    @overload
    def run_result(
        self,
        prompt: Prompt,
        *,
        output: type[T],
        transport: Transport | None = None,
        **overrides: Unpack[OptionKwargs],
    ) -> TypedResult[T]: ...

    @overload
    def run_result(
        self,
        prompt: Prompt,
        *,
        output: TypeForm[T],
        transport: Transport | None = None,
        **overrides: Unpack[OptionKwargs],
    ) -> TypedResult[T]: ...

    def run_result(
        self,
        prompt: Prompt,
        *,
        output: TypeForm[T],
        transport: Transport | None = None,
        **overrides: Unpack[OptionKwargs],
    ) -> TypedResult[T]:
        """Send one prompt; return the answer as a `T`, and the `TurnResult` with its cost.

        Raises as `run`.
        """
        words = with_threads(self.options, overrides)
        return self._portal.call(
            lambda: self._agent.run_result(prompt, output=output, transport=transport, **words)
        )

    @property
    def _portal(self) -> Portal:
        # Asked for each time: an agent that was made before fork() may be used after it.
        return shared_portal().with_grace(self.options.close_grace)


async def _open(opening: Opening, opened: list[Session]) -> None:
    opened.append(Session(await opening, closes=True))


def query(
    prompt: Prompt | Iterator[Prompt],
    *,
    options: Options | None = None,
    transport: Transport | None = None,
    **fields: Unpack[OptionKwargs],
) -> Query:
    """Send one prompt and return its messages for `for`. See `Agent.query`."""
    return Agent(options, transport=transport, **fields).query(prompt)


@overload
def run(
    prompt: Prompt,
    *,
    output: None = None,
    options: Options | None = None,
    transport: Transport | None = None,
    **fields: Unpack[OptionKwargs],
) -> TurnResult: ...


@overload
def run(
    prompt: Prompt,
    *,
    output: type[T],
    options: Options | None = None,
    transport: Transport | None = None,
    **fields: Unpack[OptionKwargs],
) -> T: ...


@overload
def run(
    prompt: Prompt,
    *,
    output: TypeForm[T],
    options: Options | None = None,
    transport: Transport | None = None,
    **fields: Unpack[OptionKwargs],
) -> T: ...


def run(
    prompt: Prompt,
    *,
    output: TypeForm[T] | None = None,
    options: Options | None = None,
    transport: Transport | None = None,
    **fields: Unpack[OptionKwargs],
) -> T | TurnResult:
    """Send one prompt and return a `TurnResult`, or a `T` with `output=T`. See `Agent.run`."""
    if output is not None:
        return run_result(
            prompt, output=output, options=options, transport=transport, **fields
        ).output
    return Agent(options, transport=transport, **fields).run(prompt)


@overload
def run_result(
    prompt: Prompt,
    *,
    output: type[T],
    options: Options | None = None,
    transport: Transport | None = None,
    **fields: Unpack[OptionKwargs],
) -> TypedResult[T]: ...


@overload
def run_result(
    prompt: Prompt,
    *,
    output: TypeForm[T],
    options: Options | None = None,
    transport: Transport | None = None,
    **fields: Unpack[OptionKwargs],
) -> TypedResult[T]: ...


def run_result(
    prompt: Prompt,
    *,
    output: TypeForm[T],
    options: Options | None = None,
    transport: Transport | None = None,
    **fields: Unpack[OptionKwargs],
) -> TypedResult[T]:
    """Send one prompt; return the answer as a `T`, and its `TurnResult`. See `Agent.run_result`."""
    return Agent(options, transport=transport, **fields).run_result(prompt, output=output)


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


def close_sessions() -> None:
    """Close every session and end the event loop, within `EXIT_PATIENCE` seconds."""
    shared_portal().thread.close(EXIT_PATIENCE)


# Before the function that kills every CLI.
AT_EXIT.insert(0, close_sessions)
