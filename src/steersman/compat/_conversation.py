"""One session of a client, in the event loop of the session: start, prompts, end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast, get_args

from steersman._json import JsonDict, is_mapping
from steersman._session.turn import When
from steersman.agent import Agent
from steersman.compat._cursor import Cursor
from steersman.compat._errors import ProcessError
from steersman.compat._raising import as_official, has_exited_in_order, result_error
from steersman.compat._runtime import SAME_LOOP, Runtime
from steersman.compat.options import Translated, translate
from steersman.compat.parsing import message_from_line, parse_message, raw_of, without_costs
from steersman.compat.transport import CustomTransport, Transport
from steersman.compat.types import ResultMessage
from steersman.errors import Described, SteersmanError, UsageError
from steersman.journal import Entry, Kind
from steersman.options import checks

if TYPE_CHECKING:
    from steersman._session.turn import Turn
    from steersman.compat.types import ClaudeAgentOptions, Message
    from steersman.options import Options

log = logging.getLogger("steersman.compat")

CONNECTING = 600.0
"""Seconds for a transport of the caller to connect; it may start a machine first."""

WORKING = 365 * 24 * 3600.0
"""Seconds for the work of a run over a transport of the caller: without end, as over the CLI."""

LAST_MESSAGES = 1.0
"""Seconds for a transport of the caller to end its messages after its input has ended."""


class Conversation:
    """A session, the cursor over its messages, and what sends its prompts."""

    def __init__(
        self, options: ClaudeAgentOptions, transport: Transport | None, runtime: Runtime
    ) -> None:
        self._runtime = runtime
        translated = _translated(options, runtime)
        native = translated.options
        self._finish_stderr = translated.finish_stderr
        self._replays_prompts = translated.replays_prompts
        self._reports_states = transport is not None or translated.reports_states
        self._custom = None if transport is None else CustomTransport(transport, runtime)
        self._has_callbacks = _has_callbacks(options)
        if self._custom is not None:
            native = _without_flags(native)
        self.session = Agent(native, transport=self._custom).session()
        self._cursor: Cursor | None = None
        self._feeding: asyncio.Task[None] | None = None
        self._ends_by_itself = False
        """Whether the run ends with its prompts; an error as the last result is raised then."""

    @property
    def cursor(self) -> Cursor:
        """The messages that no reader has got yet."""
        assert self._cursor is not None
        return self._cursor

    async def start(self) -> None:
        """Start the session. What a transport of the caller raises is raised as it is."""
        try:
            await self.session.start()
        except SteersmanError as error:
            self._raise_failure()
            official, refusal = as_official(error), await self._refusal()
            if refusal is None or not isinstance(official, ProcessError):
                raise
            raise result_error(refusal, official) from official
        self._cursor = Cursor(
            self.session,
            replays_prompts=self._replays_prompts,
            reports_states=self._reports_states,
        )

    async def _refusal(self) -> ResultMessage | None:
        """Return the result of a CLI that has refused to start, such as one without the session."""
        if not self.session.last_seq:
            return None
        async for entry in self.session.journal():
            if isinstance(entry, Entry) and entry.kind is Kind.MESSAGE:
                message = message_from_line(entry.line)
                if isinstance(message, ResultMessage):
                    return message
        return None

    async def send(self, message: object, session_id: str | None = None) -> None:
        """Send a user message, and return when it is written."""
        line = user_line(message, session_id)
        try:
            turn = await self.session.send(
                line.content, when=line.when, query=line.query, uuid=line.uuid, fields=line.fields
            )
        except SteersmanError:
            self._raise_failure()
            raise
        if line.query:
            self.cursor.owes(turn)
        if self._custom is not None:
            await self._custom.flushed()

    async def result_of(self, turn: Turn) -> Message | None:
        """Return the result of a prompt that has settled, which a reader has got already.

        It has no costs, so that who adds them up counts a turn once. Returns None if there is no
        result, as of a cancelled prompt. Raises why the prompt was given up, if it was.
        """
        self._raise_failure()
        done, last = await turn.result(), self.cursor.last_result
        if done.result is None:
            if done.outcome == "failed" and done.cause is not None:
                raise done.cause
            return without_costs(last) if last and done.outcome == "completed" else None
        if last is not None and raw_of(last).get("uuid") == done.result.uuid:
            return without_costs(last)
        found = parse_message(done.result.raw)
        return without_costs(found) if isinstance(found, ResultMessage) else found

    async def send_text(self, text: str, session_id: str) -> None:
        """Send a text."""
        await self.send(_user(text), session_id)

    async def run_text(self, text: str) -> None:
        """Send a text, and end the session when its work has ended."""
        await self.send(_user(text), "")
        self._feeding = asyncio.Task(self._finish())

    async def feed(self, prompts: AsyncIterable[Any]) -> None:
        """Send what the iterable yields, and end the session when all its work has ended."""
        self._feeding = asyncio.Task(self._feed(prompts))

    async def _feed(self, prompts: AsyncIterable[Any]) -> None:
        try:
            await self._runtime.here(self._iterate, prompts)
        except Exception as error:
            # As the official SDK does: the prompts so far get their answers.
            log.exception("the prompts cannot be read further; the input ends: %s", error)  # noqa: TRY401
        await self._finish()

    async def _iterate(self, prompts: AsyncIterable[Any]) -> None:
        """Send each prompt; runs where the iterable runs."""
        async for prompt in prompts:
            await self._runtime.there(self.send, prompt)

    async def _finish(self) -> None:
        """End the session when nothing runs or waits any more."""
        self._ends_by_itself = True
        try:
            if self._custom is None:
                await self.session.finish()
                return
            if not self._has_callbacks:
                self._custom.end_input_soon()
            await self.session.wait_idle(WORKING)
            await self._custom.end_input(LAST_MESSAGES)
        except SteersmanError as error:
            # The session has ended before; readers get the cause.
            log.debug("a run has ended early: %r", error)
        finally:
            self.session.abandon()

    def end_error(self) -> BaseException | None:
        """Return what is raised behind the last message, or None."""
        failure = None if self._custom is None else self._custom.failure
        result = self.cursor.last_result
        failed = result if result is not None and result.is_error else None
        if isinstance(failure, ProcessError) and failed is not None:
            return result_error(failed, failure)
        if failure is not None:
            return failure
        cause = self.session.cause
        if cause is not None and not has_exited_in_order(cause):
            return as_official(cause)
        if failed is not None and self._ends_by_itself and self._custom is None:
            return result_error(failed, None)
        return None

    async def aclose(self) -> None:
        """End the session, and wait until its CLI has exited."""
        feeding, self._feeding = self._feeding, None
        if feeding is not None:
            feeding.cancel()
        await self.session.aclose()
        self._finish_stderr()
        if feeding is not None:
            with suppress(asyncio.CancelledError):
                await asyncio.wait([feeding])

    def _raise_failure(self) -> None:
        if self._custom is not None and self._custom.failure is not None:
            raise self._custom.failure


def _translated(options: ClaudeAgentOptions, runtime: Runtime) -> Translated:
    if runtime is SAME_LOOP:
        return translate(options)
    return translate(options, call=runtime.here, notify=runtime.notify)


def _user(text: str) -> dict[str, Any]:
    return {"type": "user", "message": {"role": "user", "content": text}}


def _has_callbacks(options: ClaudeAgentOptions) -> bool:
    """Whether the CLI may ask this process something, so that its input must stay open."""
    servers = options.mcp_servers
    is_served = isinstance(servers, dict) and any(
        each.get("type") == "sdk" for each in servers.values()
    )
    return bool(options.hooks or options.can_use_tool or is_served)


def _without_flags(options: Options) -> Options:
    """Return the options for a transport of the caller, which starts the CLI by itself."""
    return options.replace(
        resume=None,
        continue_conversation=False,
        fork_session=False,
        resume_session_at=None,
        resume_drops_turn=None,
        revive=False,
        startup=replace(options.startup, spawn=CONNECTING),
    )


# User messages as dicts → prompts of a session

ALLOWED = 'a dict such as {"type": "user", "message": {"role": "user", "content": "..."}}'

READ = frozenset({"type", "message", "uuid", "priority", "shouldQuery", "parent_tool_use_id"})
"""Fields that become arguments of `Session.send`, or that it always writes."""


@dataclass(frozen=True, slots=True)
class UserLine:
    """One prompt: the arguments of `Session.send`."""

    content: Any
    uuid: str | None
    when: When
    query: bool
    fields: JsonDict


def user_line(given: object, session_id: str | None = None) -> UserLine:
    """Return the prompt in a user message. Raises `UsageError`.

    `session_id` is the field for messages that have none.
    """
    message = given.get("message") if is_mapping(given) else None
    if not is_mapping(given) or not is_mapping(message) or "content" not in message:
        raise UsageError("prompt", Described.kind_of(given), ALLOWED)
    if given.get("type", "user") != "user":
        raise UsageError("prompt", Described(f"a message of type {given['type']!r}"), ALLOWED)
    fields: dict[str, Any] = {k: v for k, v in given.items() if k not in READ}
    parent = given.get("parent_tool_use_id")
    if parent is not None:
        fields["parent_tool_use_id"] = parent
    if session_id is not None:
        fields.setdefault("session_id", session_id)
    when = given.get("priority", "next")
    return UserLine(
        content=message["content"],
        uuid=_uuid(given),
        when=cast("When", when) if when in get_args(When) else "next",
        query=given.get("shouldQuery") is not False,
        fields=fields,
    )


def _uuid(given: Mapping[str, Any]) -> str | None:
    uuid = given.get("uuid")
    return uuid if isinstance(uuid, str) and checks.UUID.fullmatch(uuid) else None
