"""`Agent`, `query()` and `run()`: from options to sessions, messages and results.

The modules that run a session are imported when the first `Agent` is made: importing this one stays
cheap, and no session waits for an import.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import AsyncIterable, AsyncIterator, Callable, Coroutine, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeVar, overload

# Imported first of all, so that our exit handler is registered before those of the program. Exit
# handlers run in reverse order, so ours runs last.
import steersman.transports.at_exit  # noqa: F401  # pyright: ignore[reportUnusedImport]
from steersman._lazy import by_name
from steersman._prompt_content import Prompt, prompt_content
from steersman.errors import (
    BadOutput,
    NoOutput,
    ResumeNotFound,
    SessionInUse,
    UsageError,
)
from steersman.options import checks
from steersman.options.fields import Options, options_from
from steersman.options.limits import Watchdog

if TYPE_CHECKING:
    from typing import Unpack

    # Only a type checker reads this. `TypeForm` also covers unions: `output=Answer | None`.
    from typing_extensions import TypeForm

    from steersman._session.listeners import Decorator, EventName, Remove
    from steersman._session.ready_sessions import ReadySessions
    from steersman._session.sent_prompts import Checkpoint
    from steersman._session.session import Session
    from steersman._session.shared_memory import limit_journal_memory
    from steersman._session.turn import Delivery, Turn, TurnSession, TurnState, When
    from steersman.journal.results import TurnResult
    from steersman.messages.parsing import Message
    from steersman.options.keywords import OptionKwargs
    from steersman.ports import Clock, Transport
    from steersman.tools._schema.schema import Shape
else:
    __getattr__, __dir__ = by_name(
        __name__,
        {
            "_session.sent_prompts": ("Checkpoint",),
            "_session.listeners": ("Decorator", "EventName", "Remove"),
            "_session.session": ("Session",),
            "_session.shared_memory": ("limit_journal_memory",),
            "_session.turn": ("Delivery", "Turn", "TurnSession", "TurnState", "When"),
        },
        below="steersman",
    )

__all__ = [
    "Agent",
    "Checkpoint",
    "Decorator",
    "Delivery",
    "EventName",
    "Opening",
    "Prompt",
    "Query",
    "Remove",
    "Session",
    "Turn",
    "TurnSession",
    "TurnState",
    "TypedResult",
    "When",
    "limit_journal_memory",
    "query",
    "run",
    "run_result",
]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_NO_CONVERSATION: OptionKwargs = {
    "session_id": None,
    "resume": None,
    "continue_conversation": False,
}
_FROM_ITS_END: OptionKwargs = {
    **_NO_CONVERSATION,
    "resume_session_at": None,
    "resume_drops_turn": None,
}
_DEFAULT_WATCHDOG = Watchdog()
_OF_A_CONVERSATION = ("resume", "session_id", "continue_conversation")
_OF_A_FORK = ("resume", "continue_conversation")


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
        from steersman import _factory  # noqa: PLC0415 - loads everything that runs a session

        self._build_session = _factory.build_session
        self._clock = clock
        self.options = options_from(options, fields)
        self._transport = _checked(transport)
        self._ready: ReadySessions | None = None
        # Built once here, so that a function that cannot be a tool is refused at once.
        _factory.tool_servers(self.options)

    def session(
        self, *, transport: Transport | None = None, **overrides: Unpack[OptionKwargs]
    ) -> Session:
        """Return a session, which `async with` starts. Keywords override options of the agent."""
        return self._session(transport, overrides)

    def _session(
        self,
        transport: Transport | None,
        overrides: OptionKwargs,
        key: str | None = None,
        *,
        streams: bool = True,
    ) -> Session:
        if self._ready is not None and not overrides and transport is None:
            ready = self._ready.claim()
            if ready is not None:
                return ready
        options = options_from(self.options, overrides)
        has_own_limits = options.watchdog != _DEFAULT_WATCHDOG
        if not (streams or has_own_limits or options.include_partial_messages):
            # No caller can read the text while it grows; every token would cost this process time.
            options = options.replace(include_partial_messages=False)
        chosen = _checked(transport) or self._transport

        def branch(session_id: str, more: OptionKwargs) -> Session:
            _refuse_choice("a fork continues this conversation", more, _OF_A_FORK)
            if not (given := more.get("fork_session", True)):
                raise UsageError("fork_session", given, "True: a fork has an id of its own")
            words: OptionKwargs = {**overrides, **_FROM_ITS_END, "resume": session_id}
            words["fork_session"] = True
            return self._session(chosen, {**words, **more})

        return self._build_session(options, chosen, self._clock, branch, key)

    async def start(
        self,
        prompt: Prompt | None = None,
        *,
        transport: Transport | None = None,
        **overrides: Unpack[OptionKwargs],
    ) -> Session:
        """Return a session that is started, after sending `prompt`. Close it with `aclose()`."""
        if prompt is not None:
            prompt_content(prompt)
        session = self._session(transport, overrides)
        await session.start()
        if prompt is not None:
            await session.send(prompt)
        return session

    async def prewarm(self, count: int = 1) -> None:
        """Have `count` CLIs started and initialized for the next sessions of this agent.

        `session()`, `start()`, `run()` and `query()` take one, unless they override an option. The
        id of a conversation is chosen when its CLI starts, so `open()` and forks cannot. Call it
        again to start more; `prewarm(0)` closes those that are left, as the event loop does.
        """
        checks.whole("count", count)
        given: OptionKwargs = {
            "resume": self.options.resume,
            "session_id": self.options.session_id,
            "continue_conversation": self.options.continue_conversation,
        }
        _refuse_choice("a CLI that is started ahead begins a new one", given, _OF_A_CONVERSATION)
        # Few programs use it.
        from steersman._session.ready_sessions import ReadySessions  # noqa: PLC0415

        def make() -> Session:
            return self._session(self._transport, {"session_id": None})

        self._ready = self._ready or ReadySessions(make)
        await self._ready.fill(count)

    def open(
        self,
        key: str,
        *,
        missing: Literal["fresh", "fail"] = "fresh",
        transport: Transport | None = None,
        **overrides: Unpack[OptionKwargs],
    ) -> Opening:
        """Open the conversation of `key`: `async with agent.open(key) as session`.

        `await agent.open(key)` returns the started session too; then close it with `aclose()`. The
        conversation is resumed if it exists. If not, a new one is started under this key, or
        `ResumeNotFound` is raised with `missing="fail"`. A key is any string; a UUID is the id of
        the conversation itself. Raises `SessionInUse` if another session has the conversation open,
        after `wait=` seconds.
        """
        checks.non_empty("key", key)
        checks.one_of("fresh", "fail")("missing", missing)
        _refuse_choice("the key chooses the conversation", overrides, _OF_A_CONVERSATION)
        session_id = key if checks.UUID.fullmatch(key) else _uuid_of(key)
        known: OptionKwargs = {**overrides, **_NO_CONVERSATION, "resume": session_id}
        fresh: OptionKwargs = {**overrides, **_NO_CONVERSATION, "session_id": session_id}
        return Opening(
            lambda: self._session(transport, known, key),
            None if missing == "fail" else lambda: self._session(transport, fresh, key),
        )

    def query(
        self,
        prompt: Prompt | AsyncIterable[Prompt],
        *,
        transport: Transport | None = None,
        **overrides: Unpack[OptionKwargs],
    ) -> Query:
        """Send one prompt, or a stream of prompts, and return the messages for `async for`.

        The session is closed with the last message. If the loop may be left earlier, use
        `async with agent.query(...) as messages`. Raises `TurnFailed` if a prompt is not answered.
        """
        if not isinstance(prompt, AsyncIterable):
            prompt_content(prompt)
        return Query(self._session(transport, overrides, streams=False), prompt)

    @overload
    async def run(
        self,
        prompt: Prompt,
        *,
        output: None = None,
        transport: Transport | None = None,
        **overrides: Unpack[OptionKwargs],
    ) -> TurnResult: ...

    @overload
    async def run(
        self,
        prompt: Prompt,
        *,
        output: type[T],
        transport: Transport | None = None,
        **overrides: Unpack[OptionKwargs],
    ) -> T: ...

    @overload
    async def run(
        self,
        prompt: Prompt,
        *,
        output: TypeForm[T],
        transport: Transport | None = None,
        **overrides: Unpack[OptionKwargs],
    ) -> T: ...

    async def run(
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
        prompt_content(prompt)
        if output is not None:
            return (await self._typed(prompt, output, transport, overrides)).output
        async with self._session(transport, overrides, streams=False) as session:
            return await session.run(prompt)

    @overload
    async def run_result(
        self,
        prompt: Prompt,
        *,
        output: type[T],
        transport: Transport | None = None,
        **overrides: Unpack[OptionKwargs],
    ) -> TypedResult[T]: ...

    @overload
    async def run_result(
        self,
        prompt: Prompt,
        *,
        output: TypeForm[T],
        transport: Transport | None = None,
        **overrides: Unpack[OptionKwargs],
    ) -> TypedResult[T]: ...

    async def run_result(
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
        prompt_content(prompt)
        return await self._typed(prompt, output, transport, overrides)

    async def _typed(
        self,
        prompt: Prompt,
        output: TypeForm[T],
        transport: Transport | None,
        overrides: OptionKwargs,
    ) -> TypedResult[T]:
        _refuse_choice("output= chooses the form of the answer", overrides, ("output_format",))
        shape = _shape(output)
        form: OptionKwargs = {"output_format": {"type": "json_schema", "schema": shape.schema}}
        async with self._session(transport, {**overrides, **form}, streams=False) as session:
            result = await session.run(prompt)
        return TypedResult(_read_output(shape, result), result)


@dataclass(frozen=True, slots=True)
class TypedResult(Generic[T_co]):
    """An answer as an instance of the class that was asked for, and the result of its turn."""

    output: T_co
    result: TurnResult


class Opening(Coroutine[Any, Any, "Session"]):
    """A session that is being opened by `Agent.open`: for `async with`, `await` or a task."""

    def __init__(self, resumed: Callable[[], Session], fresh: Callable[[], Session] | None) -> None:
        self._resumed = resumed
        self._fresh = fresh
        self._session: Session | None = None
        self._steps: Coroutine[Any, Any, Session] | None = None

    def __await__(self) -> Generator[Any, None, Session]:
        return self._open().__await__()

    def send(self, value: Any, /) -> Any:
        """Run the next step; for `asyncio.create_task`."""
        self._steps = self._steps or self._open()
        return self._steps.send(value)

    def throw(self, *error: Any) -> Any:
        """Raise an error in the current step."""
        self._steps = self._steps or self._open()
        return self._steps.throw(*error)

    def close(self) -> None:
        """Give up the steps that are left."""
        if self._steps is not None:
            self._steps.close()

    async def __aenter__(self) -> Session:
        self._session = await self._open()
        return self._session

    async def __aexit__(self, *_error: object) -> None:
        if self._session is not None:
            await self._session.aclose()

    async def _open(self) -> Session:
        resumed = self._resumed()
        if self._fresh is not None and resumed.is_saved is False:
            # No CLI is started only to learn that there is nothing to resume.
            return await self._begin(self._fresh())
        try:
            return await resumed.start()
        except ResumeNotFound:
            if self._fresh is None:
                raise
        return await self._begin(self._fresh())

    async def _begin(self, fresh: Session) -> Session:
        try:
            return await fresh.start()
        except SessionInUse as error:
            if error.pid is not None:
                raise
        # It was not there, and now it is: another session has begun and closed it meanwhile.
        return await self._resumed().start()


class Query(AsyncIterator["Message"]):
    """The messages of one prompt, or of a stream of prompts, for `async for`.

    Closes its session after the last message and after an error. If the loop may be left earlier,
    use `async with agent.query(...) as messages`, or `aclose()`: until then the CLI runs.

    A query that nothing refers to is closed too, with a `ResourceWarning`, as a file is. If a
    prompt is not answered, because the CLI is lost for good, it raises what `run()` raises.
    """

    def __init__(self, session: Session, prompt: Prompt | AsyncIterable[Prompt]) -> None:
        # Imported by the first agent.
        from steersman._session.query_prompts import QueryPrompts  # noqa: PLC0415

        self.session = session
        self._prompt = prompt
        self._prompts = QueryPrompts(session)
        self._messages: AsyncIterator[Message] | None = None
        self._is_closed = False

    def __aiter__(self) -> Query:
        return self

    async def __anext__(self) -> Message:
        if not self._is_closed:
            try:
                message = await self._next()
            except BaseException:
                # An error or a cancellation: no message follows.
                await self._close()
                raise
            if message is not None:
                return message
            await self.aclose()
        raise StopAsyncIteration

    async def _next(self) -> Message | None:
        """Return the next message; None at the end. Raises why a prompt was not answered."""
        if self._messages is None:
            await self.session.start()
            self._messages = await self._begin()
        message = await anext(self._messages, None)
        if message is None and not self._is_closed:
            await self._prompts.raise_loss()
        return message

    async def _begin(self) -> AsyncIterator[Message]:
        if isinstance(self._prompt, AsyncIterable):
            return self._prompts.feed(self._prompt)
        return await self._prompts.send(self._prompt)

    async def aclose(self) -> None:
        """Close the session and wait until its CLI has exited."""
        await self._close()
        self._prompts.raise_failure()

    async def _close(self) -> None:
        self._is_closed = True
        self._prompts.stop()
        await self.session.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.aclose()

    def __del__(self, _warn: Callable[..., None] = warnings.warn) -> None:
        if unclosed := self._prompts.forget():
            _warn(unclosed, ResourceWarning, source=self)


def query(
    prompt: Prompt | AsyncIterable[Prompt],
    *,
    options: Options | None = None,
    transport: Transport | None = None,
    **fields: Unpack[OptionKwargs],
) -> Query:
    """Send one prompt and return its messages for `async for`. See `Agent.query`."""
    return Agent(options, transport=transport, **fields).query(prompt)


@overload
async def run(
    prompt: Prompt,
    *,
    output: None = None,
    options: Options | None = None,
    transport: Transport | None = None,
    **fields: Unpack[OptionKwargs],
) -> TurnResult: ...


@overload
async def run(
    prompt: Prompt,
    *,
    output: type[T],
    options: Options | None = None,
    transport: Transport | None = None,
    **fields: Unpack[OptionKwargs],
) -> T: ...


@overload
async def run(
    prompt: Prompt,
    *,
    output: TypeForm[T],
    options: Options | None = None,
    transport: Transport | None = None,
    **fields: Unpack[OptionKwargs],
) -> T: ...


async def run(
    prompt: Prompt,
    *,
    output: TypeForm[T] | None = None,
    options: Options | None = None,
    transport: Transport | None = None,
    **fields: Unpack[OptionKwargs],
) -> T | TurnResult:
    """Send one prompt and return a `TurnResult`, or a `T` with `output=T`. See `Agent.run`."""
    if output is not None:
        _refuse_choice("output= chooses the form of the answer", fields, ("output_format",))
    return await Agent(options, transport=transport, **fields).run(prompt, output=output)


@overload
async def run_result(
    prompt: Prompt,
    *,
    output: type[T],
    options: Options | None = None,
    transport: Transport | None = None,
    **fields: Unpack[OptionKwargs],
) -> TypedResult[T]: ...


@overload
async def run_result(
    prompt: Prompt,
    *,
    output: TypeForm[T],
    options: Options | None = None,
    transport: Transport | None = None,
    **fields: Unpack[OptionKwargs],
) -> TypedResult[T]: ...


async def run_result(
    prompt: Prompt,
    *,
    output: TypeForm[T],
    options: Options | None = None,
    transport: Transport | None = None,
    **fields: Unpack[OptionKwargs],
) -> TypedResult[T]:
    """Send one prompt; return the answer as a `T`, and its `TurnResult`. See `Agent.run_result`."""
    return await Agent(options, transport=transport, **fields).run_result(prompt, output=output)


def _checked(transport: Transport | None) -> Transport | None:
    if transport is not None and not callable(getattr(transport, "open", None)):
        raise UsageError("transport", transport, "a Transport, such as SubprocessTransport()")
    return transport


def _refuse_choice(why: str, given: OptionKwargs, names: tuple[str, ...]) -> None:
    """Refuse options that choose what the call itself chooses; their defaults choose nothing."""
    for name in names:
        value = given.get(name)
        if value is not None and value is not False:
            raise UsageError(name, value, f"nothing: {why}", hint=f"leave out {name}")


def _uuid_of(key: str) -> str:
    from steersman._uuids import uuid_of  # noqa: PLC0415 - few sessions have a key

    return uuid_of("steersman", key)


def _shape(output: TypeForm[T]) -> Shape[T]:
    from steersman.tools._schema.schema import shape_of  # noqa: PLC0415 - most turns have no output

    try:
        return shape_of(output)
    except (TypeError, ValueError) as error:
        allowed = (
            "a dataclass, TypedDict, msgspec Struct, pydantic model, or a plain type made of these"
        )
        hint = error.hint if isinstance(error, UsageError) else str(error)
        raise UsageError("output", output, allowed, hint=hint) from error


def _read_output(shape: Shape[T], result: TurnResult) -> T:
    if result.structured_output is None:
        raise NoOutput(
            "the turn completed without structured output",
            text=result.text,
            hint="ask for the output explicitly in the prompt, or raise max_turns",
        )
    try:
        return shape.read(result.structured_output)
    except ValueError as error:
        raise BadOutput(
            f"the structured output does not fit the type: {error}",
            output=result.structured_output,
            text=result.text,
        ) from error
