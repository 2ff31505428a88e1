"""The front desk: takes what a program wants, and opens sessions for it.

What runs a session is loaded with the first `Agent`: the import costs little, and no session waits
for it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, overload

# Here for its place in time: before the program registers goodbyes of its own.
import steersman.transports.at_exit  # noqa: F401  # pyright: ignore[reportUnusedImport]
from steersman._lazy import by_name
from steersman._session.prompt_content import Prompt, prompt_content
from steersman.adapters import servers_of
from steersman.errors import BadOutput, NoOutput, ResumeNotFound, TurnFailed, UsageError
from steersman.options import checks
from steersman.options.fields import Options, options_from

if TYPE_CHECKING:
    from steersman._session.session import Session
    from steersman._session.turn import Turn
    from steersman.journal.results import TurnResult
    from steersman.messages.parsing import Message
    from steersman.ports import Clock, Transport
    from steersman.tools.output import Shape
else:
    __getattr__, __dir__ = by_name(
        __name__,
        {"_session.session": ("Session",), "_session.turn": ("Turn",)},
        below="steersman",
    )

__all__ = ["Agent", "Query", "Session", "Turn", "query", "run"]

T = TypeVar("T")


class Agent:
    """A configuration that opens sessions. Keyword fields are the fields of `Options`."""

    def __init__(
        self,
        options: Options | None = None,
        *,
        transport: Transport | None = None,
        clock: Clock = time.time,
        **fields: Any,
    ) -> None:
        from steersman import _opening  # noqa: PLC0415 - loads all that runs a session

        self._open_session = _opening.session
        self._clock = clock
        self.options = options_from(options, fields)
        self._transport = _checked(transport)
        # Built here, so that a function that cannot be a tool is told of before anything runs.
        servers_of(self.options)

    def session(self, *, transport: Transport | None = None, **overrides: Any) -> Session:
        """A session that starts with `async with`; any option may be overridden."""
        options = options_from(self.options, overrides)
        chosen = _checked(transport) or self._transport

        def branch(session_id: str, more: Mapping[str, Any]) -> Session:
            fork = {"resume": session_id, "fork_session": True, "session_id": None}
            return self.session(transport=chosen, **{**overrides, **fork, **more})

        return self._open_session(options, chosen, self._clock, branch)

    async def start(
        self, prompt: Prompt | None = None, *, transport: Transport | None = None, **overrides: Any
    ) -> Session:
        """A session that runs already, its first prompt sent. Close it with `aclose()`."""
        if prompt is not None:
            prompt_content(prompt)
        session = self.session(transport=transport, **overrides)
        await session.start()
        if prompt is not None:
            await session.send(prompt)
        return session

    async def open(
        self,
        key: str,
        *,
        missing: Literal["fresh", "fail"] = "fresh",
        transport: Transport | None = None,
        **overrides: Any,
    ) -> Session:
        """The running session of `key`: the conversation goes on, or begins if there is none.

        A key is any text; a UUID is taken for the conversation's own id. With `missing="fail"` one
        that is not there raises `ResumeNotFound`. Close it with `aclose()`.
        """
        if not (isinstance(key, str) and key):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError("key", key, "a text that is not empty")
        if missing not in ("fresh", "fail"):
            raise UsageError("missing", missing, "fresh or fail")
        session_id = key if checks.UUID.fullmatch(key) else _uuid_of(key)
        try:
            return await self.session(transport=transport, resume=session_id, **overrides).start()
        except ResumeNotFound:
            if missing == "fail":
                raise
        fresh = self.session(transport=transport, session_id=session_id, **overrides)
        return await fresh.start()

    def query(
        self,
        prompt: Prompt | AsyncIterable[Prompt],
        *,
        transport: Transport | None = None,
        **overrides: Any,
    ) -> Query:
        """One prompt, or a stream of them, and the messages, for `async for`.

        Nothing is left behind.
        """
        if not isinstance(prompt, AsyncIterable):
            prompt_content(prompt)
        return Query(self.session(transport=transport, **overrides), prompt)

    @overload
    async def run(
        self,
        prompt: Prompt,
        *,
        output: type[T],
        transport: Transport | None = None,
        **overrides: Any,
    ) -> T: ...

    @overload
    async def run(
        self, prompt: Prompt, *, transport: Transport | None = None, **overrides: Any
    ) -> TurnResult: ...

    async def run(
        self,
        prompt: Prompt,
        *,
        output: Any = None,
        transport: Transport | None = None,
        **overrides: Any,
    ) -> Any:
        """One prompt, settled. With `output=T` the answer comes as a `T`.

        Raises `TurnFailed` when it did not complete, and `NoOutput` or `BadOutput`, both with the
        text, when there is no `T` in the answer.
        """
        prompt_content(prompt)
        shape: Shape[Any] | None = None
        if output is not None:
            shape = _shape(output)
            overrides["output_format"] = {"type": "json_schema", "schema": shape.schema}
        async with self.session(transport=transport, **overrides) as session:
            turn = await session.send(prompt)
            result = await turn
        _raise_unless_completed(result)
        return result if shape is None else _read_output(shape, result)


class Query(AsyncIterator["Message"]):
    """The messages of one prompt, or of a stream of them.

    Ends its session with the last one, or when it is let go.
    """

    def __init__(self, session: Session, prompt: Prompt | AsyncIterable[Prompt]) -> None:
        self.session = session
        self._prompt = prompt
        self._messages: AsyncIterator[Message] | None = None
        self._feeding: asyncio.Task[None] | None = None

    def __aiter__(self) -> Query:
        return self

    async def __anext__(self) -> Message:
        try:
            if self._messages is None:
                await self.session.start()
                self._messages = await self._begin()
            return await anext(self._messages)
        except BaseException:
            # The end, an error or a cancellation: in each case this was the last message.
            await self.aclose()
            raise

    async def _begin(self) -> AsyncIterator[Message]:
        if isinstance(self._prompt, AsyncIterable):
            feeding = self._feed(self._prompt)
            self._feeding = asyncio.get_running_loop().create_task(feeding)
            return self.session.messages()
        turn = await self.session.send(self._prompt)
        return turn.messages()

    async def _feed(self, prompts: AsyncIterable[Prompt]) -> None:
        """Send each prompt as it comes; when there are no more, let everything finish."""
        try:
            async for prompt in prompts:
                await self.session.send(prompt)
            await self.session.wait()
        finally:
            self.session.abandon()

    async def aclose(self) -> None:
        """End the session and see its CLI gone."""
        feeding, self._feeding = self._feeding, None
        if feeding is not None and not feeding.done():
            feeding.cancel()
        await self.session.aclose()
        if feeding is not None and feeding.done() and not feeding.cancelled():
            # A prompt that cannot be sent is the caller's mistake, and is told to them.
            feeding.result()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.aclose()

    def __del__(self) -> None:
        # `break` in an `async for` ends here: the CLI's end is begun at once, not awaited.
        self.session.abandon()


def query(
    prompt: Prompt | AsyncIterable[Prompt],
    *,
    options: Options | None = None,
    transport: Transport | None = None,
    **fields: Any,
) -> Query:
    """One prompt and its typed messages, for `async for`. See `Agent.query`."""
    return Agent(options, transport=transport, **fields).query(prompt)


@overload
async def run(
    prompt: Prompt,
    *,
    output: type[T],
    options: Options | None = None,
    transport: Transport | None = None,
    **fields: Any,
) -> T: ...


@overload
async def run(
    prompt: Prompt,
    *,
    options: Options | None = None,
    transport: Transport | None = None,
    **fields: Any,
) -> TurnResult: ...


async def run(
    prompt: Prompt,
    *,
    output: Any = None,
    options: Options | None = None,
    transport: Transport | None = None,
    **fields: Any,
) -> Any:
    """One prompt, settled: a `TurnResult`, or a `T` with `output=T`. See `Agent.run`."""
    return await Agent(options, transport=transport, **fields).run(prompt, output=output)


def _checked(transport: Transport | None) -> Transport | None:
    if transport is not None and not callable(getattr(transport, "open", None)):
        raise UsageError("transport", transport, "a Transport, such as SubprocessTransport()")
    return transport


def _uuid_of(key: str) -> str:
    from steersman._session.uuids import uuid_of  # noqa: PLC0415 - few sessions have a key

    return uuid_of("steersman", key)


def _shape(output: Any) -> Shape[Any]:
    from steersman.tools.output import shape_of  # noqa: PLC0415 - most turns have no output

    try:
        return shape_of(output)
    except (TypeError, ValueError) as error:
        allowed = (
            "a dataclass, TypedDict, msgspec Struct or pydantic model, or plain types of those"
        )
        raise UsageError("output", output, allowed, hint=str(error)) from error


def _raise_unless_completed(result: TurnResult) -> None:
    if result.outcome != "completed":
        raise TurnFailed(result.outcome, result.reason, text=result.text) from result.cause


def _read_output(shape: Shape[T], result: TurnResult) -> T:
    if result.structured_output is None:
        raise NoOutput(
            "the turn completed without structured output",
            text=result.text,
            hint="ask for it more plainly in the prompt, or allow more turns",
        )
    try:
        return shape.read(result.structured_output)
    except ValueError as error:
        raise BadOutput(
            f"the structured output does not fit: {error}",
            output=result.structured_output,
            text=result.text,
        ) from error
