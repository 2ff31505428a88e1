"""`query()` and `ClaudeSDKClient`: the official front, over a session."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Coroutine
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Self, TypeVar, cast

# Imported first of all, so that our exit handler is registered before those of the program.
import steersman.transports.at_exit  # noqa: F401  # pyright: ignore[reportUnusedImport]
from steersman.compat._conversation import Conversation
from steersman.compat._errors import CLIConnectionError
from steersman.compat._raising import NOT_CONNECTED, official_errors
from steersman.compat._runtime import Runtime
from steersman.compat.portal import current_runtime
from steersman.compat.transport import Transport
from steersman.compat.types import ClaudeAgentOptions, ResultMessage
from steersman.control.models import SetModel
from steersman.control.permissions import SetPermissionMode

if TYPE_CHECKING:
    from steersman._session.session import Session
    from steersman.compat.types import (
        ContextUsageResponse,
        McpStatusResponse,
        Message,
        PermissionMode,
    )

P = ParamSpec("P")
T = TypeVar("T")


async def query(
    *,
    prompt: str | AsyncIterable[dict[str, Any]],
    options: ClaudeAgentOptions | None = None,
    transport: Transport | None = None,
) -> AsyncIterator[Message]:
    """Send one prompt, or a stream of prompts, and iterate over the messages.

    The session is closed with the last message. If the loop is left earlier, it is closed when
    nothing refers to the iterator any more, or by its `aclose()`. Raises `ResultError` behind an
    error result.
    """
    messages = InternalClient().process_query(
        prompt=prompt, options=options or ClaudeAgentOptions(), transport=transport
    )
    try:
        async for message in messages:
            yield message
    finally:
        if isinstance(messages, AsyncGenerator):
            await messages.aclose()


class InternalClient:
    """Runs `query()`. Instrumentation wraps its method, which has the official name."""

    async def process_query(
        self,
        prompt: str | AsyncIterable[dict[str, Any]],
        options: ClaudeAgentOptions,
        transport: Transport | None = None,
    ) -> AsyncIterator[Message]:
        """Run a session for one prompt, or a stream of prompts."""
        _check_prompt(prompt)
        runtime = current_runtime()
        with official_errors():
            talk = Conversation(options, transport, runtime)
            try:
                await runtime.there(talk.start)
                stop_guarding = runtime.guard(talk.session)
                try:
                    if isinstance(prompt, str):
                        await runtime.there(talk.run_text, prompt)
                    else:
                        await runtime.there(talk.feed, prompt)
                    cursor = talk.cursor
                    while True:
                        message = cursor.take()
                        if message is not None:
                            yield message
                        elif not await runtime.there(cursor.fill):
                            break
                    _raise(talk.end_error())
                finally:
                    stop_guarding()
            finally:
                await runtime.finish(talk.aclose)


class ClaudeSDKClient:
    """A conversation: prompts at any time, messages as they come, and control requests."""

    _query = None
    """What some programs ask for before they use it; there is none here."""

    def __init__(
        self,
        options: ClaudeAgentOptions | None = None,
        transport: Transport | None = None,
    ) -> None:
        self.options = ClaudeAgentOptions() if options is None else options
        self._transport = transport
        self._connected: tuple[Conversation, Runtime, Callable[[], None]] | None = None
        self._reads_response = False
        """Whether the next iterator over messages is that of a response."""

    @property
    def session(self) -> Session:
        """The session of steersman behind this client. Under trio it runs in another thread."""
        return self._require()[0].session

    async def connect(self, prompt: str | AsyncIterable[dict[str, Any]] | None = None) -> None:
        """Start the CLI. A text is sent as the first prompt.

        With an iterable, the messages end when it and all its work have ended.
        """
        if prompt is not None:
            _check_prompt(prompt)
        await self.disconnect()
        runtime = current_runtime()
        with official_errors():
            talk = Conversation(self.options, self._transport, runtime)
            try:
                await runtime.there(talk.start)
                if isinstance(prompt, str):
                    await runtime.there(talk.send_text, prompt, "default")
                elif prompt is not None:
                    await runtime.there(talk.feed, prompt)
            except BaseException:
                await runtime.finish(talk.aclose)
                raise
        self._connected = talk, runtime, runtime.guard(talk.session)

    async def disconnect(self) -> None:
        """End the session, and wait until its CLI has exited."""
        connected, self._connected = self._connected, None
        if connected is not None:
            talk, runtime, stop_guarding = connected
            stop_guarding()
            with official_errors():
                await runtime.finish(talk.aclose)

    async def __aenter__(self) -> Self:
        await self.connect()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> Literal[False]:
        await self.disconnect()
        return False

    async def query(
        self, prompt: str | AsyncIterable[dict[str, Any]], session_id: str = "default"
    ) -> None:
        """Send a text, or each user message of an iterable.

        Into a turn that runs, a prompt folds in at its next tool boundary.
        """
        talk, runtime, _ = self._require()
        with official_errors():
            if isinstance(prompt, str):
                await runtime.there(talk.send_text, prompt, session_id)
                return
            async for message in prompt:
                await runtime.there(talk.send, message, session_id)

    async def receive_messages(self) -> AsyncIterator[Message]:
        """Iterate over messages until the session ends. All readers share one cursor."""
        talk, runtime, _ = self._require()
        cursor = talk.cursor
        # Claimed by the first iterator that begins: `receive_response` begins its own at once.
        is_response, self._reads_response = self._reads_response, False
        with official_errors():
            while True:
                message = cursor.take()
                if message is not None:
                    yield message
                elif is_response and (settled := cursor.take_settled()) is not None:
                    again = await runtime.there(talk.result_of, settled)
                    if again is not None:
                        yield again
                    return
                elif not await runtime.there(cursor.fill):
                    break
            _raise(talk.end_error())

    async def receive_response(self) -> AsyncIterator[Message]:
        """Iterate over messages up to the next `ResultMessage`.

        Always ends: a prompt that shared the turn of another one yields that turn's result again,
        without its costs. Reads through `receive_messages`, which programs and instrumentation
        replace.
        """
        self._reads_response = True
        messages = self.receive_messages()
        try:
            async for message in messages:
                yield message
                if isinstance(message, ResultMessage):
                    return
        finally:
            self._reads_response = False
            if isinstance(messages, AsyncGenerator):
                await messages.aclose()

    async def interrupt(self) -> None:
        """Stop the turn that runs; its result follows."""
        await self._control("interrupt")

    async def set_permission_mode(self, mode: PermissionMode) -> None:
        """Change the permission mode."""
        await self._call(lambda session: session.call(SetPermissionMode(mode=mode)))

    async def set_model(self, model: str | None = None) -> None:
        """Use another model; None is the default one."""
        await self._call(lambda session: session.call(SetModel(model=model)))

    async def rewind_files(self, user_message_id: str) -> None:
        """Restore files to their state before a prompt; needs file checkpointing."""
        await self._control("rewind_files", user_message_id=user_message_id)

    async def reconnect_mcp_server(self, server_name: str) -> None:
        """Have the CLI connect to an MCP server again."""
        await self._control("mcp_reconnect", serverName=server_name)

    async def toggle_mcp_server(self, server_name: str, enabled: bool) -> None:  # noqa: FBT001 - official
        """Disable or enable an MCP server."""
        await self._call(lambda session: session.mcp_toggle(server_name, enabled=enabled))

    async def stop_task(self, task_id: str) -> None:
        """Stop a background task."""
        await self._control("stop_task", task_id=task_id)

    async def get_mcp_status(self) -> McpStatusResponse:
        """Return the status of the MCP servers."""
        return cast("McpStatusResponse", await self._control("mcp_status"))

    async def get_context_usage(self) -> ContextUsageResponse:
        """Return what fills the context window."""
        return cast("ContextUsageResponse", await self._control("get_context_usage"))

    async def get_server_info(self) -> dict[str, Any] | None:
        """Return the CLI's answer to the `initialize` request."""
        return dict(self._require()[0].session.initialized.raw)

    def _require(self) -> tuple[Conversation, Runtime, Callable[[], None]]:
        if self._connected is None:
            raise CLIConnectionError(NOT_CONNECTED)
        return self._connected

    async def _control(self, subtype: str, **fields: Any) -> dict[str, Any]:
        return await self._call(lambda session: session.control(subtype, **fields))

    async def _call(self, make: Callable[[Session], Coroutine[Any, Any, T]]) -> T:
        talk, runtime, _ = self._require()
        with official_errors():
            return await runtime.there(lambda: make(talk.session))


def _check_prompt(prompt: object) -> None:
    if not isinstance(prompt, str | AsyncIterable):
        raise TypeError(
            f"prompt: got {type(prompt).__name__}, allowed: a str, or an async iterable of dicts"
            ' such as {"type": "user", "message": {"role": "user", "content": "..."}}'
        )


def _raise(error: BaseException | None) -> None:
    """Raise the error, if there is one."""
    if error is not None:
        raise error
