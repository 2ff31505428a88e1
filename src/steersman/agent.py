"""The front desk: picks the adapters, wires them, and opens sessions."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path
from typing import Any, Self, TypeVar, overload

from steersman._session.course import Continuation, Course
from steersman._session.identity import new_uuid
from steersman._session.prompts import Prompt, content_of
from steersman._session.session import Session
from steersman._session.turn import Turn
from steersman._wire.launch import Plan, plan
from steersman.errors import BadOutput, NoOutput, TurnFailed, UsageError
from steersman.journal import TurnResult
from steersman.messages import Message
from steersman.options import Options, options_from
from steersman.options.servers import McpServer
from steersman.ports import Clock, JsonObject, ToolServer, Transport
from steersman.skills import check_plugins
from steersman.tools.mcp_instance import as_tool_server
from steersman.tools.output import Shape, shape_of
from steersman.tools.toolbox import Toolbox
from steersman.transports.locate import locate
from steersman.transports.subprocess import SubprocessTransport

__all__ = ["Agent", "Query", "Session", "Turn", "query", "run"]

T = TypeVar("T")

FUNCTIONS = "functions"
"""The key under which plain functions are served: `mcp__functions__<name>`."""


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
        self._clock = clock
        self.options = options_from(options, fields)
        self._transport = _checked(transport)
        # Built here, so that a function that cannot be a tool is told of before anything runs.
        _servers_of(self.options)

    def session(self, *, transport: Transport | None = None, **overrides: Any) -> Session:
        """A session that starts with `async with`; any option may be overridden."""
        options = _policed(options_from(self.options, overrides))
        servers = _servers_of(options)
        chosen = _checked(transport) or self._transport
        if chosen is None:
            check_plugins(options)
        program = _program(options, chosen)

        def again(how: Continuation) -> Plan:
            return _plan(_options_again(options, how), servers, program, reruns=how.reruns)

        course = Course(
            options,
            _plan(options, servers, program),
            chosen or SubprocessTransport(),
            servers,
            self._clock,
            again,
            as_tool_server,
        )
        return Session(course)

    async def start(
        self, prompt: Prompt | None = None, *, transport: Transport | None = None, **overrides: Any
    ) -> Session:
        """A session that runs already, its first prompt sent. Close it with `aclose()`."""
        if prompt is not None:
            content_of(prompt)
        session = self.session(transport=transport, **overrides)
        await session.start()
        if prompt is not None:
            await session.send(prompt)
        return session

    def query(
        self, prompt: Prompt, *, transport: Transport | None = None, **overrides: Any
    ) -> Query:
        """One prompt and its messages, for `async for`; nothing is left behind."""
        content_of(prompt)
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
        content_of(prompt)
        shape: Shape[Any] | None = None
        if output is not None:
            shape = _shape(output)
            overrides["output_format"] = {"type": "json_schema", "schema": shape.schema}
        async with self.session(transport=transport, **overrides) as session:
            turn = await session.send(prompt)
            result = await turn
        _raise_unless_completed(result)
        return result if shape is None else _read_output(shape, result)


class Query(AsyncIterator[Message]):
    """The messages of one prompt. Ends its session with the last one, or when it is let go."""

    def __init__(self, session: Session, prompt: Prompt) -> None:
        self.session = session
        self._prompt = prompt
        self._messages: AsyncIterator[Message] | None = None

    def __aiter__(self) -> Query:
        return self

    async def __anext__(self) -> Message:
        try:
            if self._messages is None:
                await self.session.start()
                turn = await self.session.send(self._prompt)
                self._messages = turn.messages()
            return await anext(self._messages)
        except BaseException:
            # The end, an error or a cancellation: in each case this was the last message.
            await self.aclose()
            raise

    async def aclose(self) -> None:
        """End the session and see its CLI gone."""
        await self.session.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.aclose()

    def __del__(self) -> None:
        # `break` in an `async for` ends here: the CLI's end is begun at once, not awaited.
        self.session.abandon()


def query(
    prompt: Prompt,
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


def _options_again(options: Options, how: Continuation) -> Options:
    """The options for another CLI of the same session."""
    return dataclasses.replace(
        options,
        resume=None if how.is_new else how.session_id,
        session_id=how.session_id if how.is_new else None,
        continue_conversation=False,
        fork_session=False,
        resume_session_at=how.at,
        resume_drops_turn=None,
    )


def _plan(
    options: Options, servers: Mapping[str, ToolServer], program: str, *, reruns: bool = False
) -> Plan:
    approved: Iterable[str] = ()
    if options.functions:
        names = servers[FUNCTIONS].tool_names
        approved = [f"mcp__{FUNCTIONS}__{name}" for name in names]
    return plan(
        options,
        program=program,
        host_env=os.environ,
        new_session_id=new_uuid(),
        servers=servers,
        approved=approved,
        reruns=reruns,
    )


def _policed(options: Options) -> Options:
    """The options with our own guard, if there is a policy to hold."""
    if options.policy is None and not options.ask_every_call:
        return options
    from steersman._session.policing import policed  # noqa: PLC0415 - most programs have none

    return policed(options)


def _program(options: Options, transport: Transport | None) -> str:
    """The CLI to run. Only a transport of the caller's own knows what there is where it runs."""
    if transport is None:
        return locate(options.cli_path)
    return "claude" if options.cli_path is None else str(options.cli_path)


def _servers_of(options: Options) -> dict[str, ToolServer]:
    """The tool servers that live in this process, by key."""
    given: Mapping[str, ToolServer | McpServer | JsonObject] = {}
    if not isinstance(options.mcp_servers, str | Path):
        given = options.mcp_servers
    servers = {
        key: as_tool_server(server)
        for key, server in given.items()
        if not isinstance(server, Mapping)
    }
    if options.functions:
        if FUNCTIONS in given:
            raise UsageError(
                "mcp_servers key", FUNCTIONS, f"another key: {FUNCTIONS!r} is that of functions="
            )
        servers[FUNCTIONS] = Toolbox(FUNCTIONS, options.functions)
    return servers


def _checked(transport: Transport | None) -> Transport | None:
    if transport is not None and not callable(getattr(transport, "open", None)):
        raise UsageError("transport", transport, "a Transport, such as SubprocessTransport()")
    return transport


def _shape(output: Any) -> Shape[Any]:
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
