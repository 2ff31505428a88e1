"""One CLI process: bytes ⇄ protocol ⇄ journal.

Runs inside callbacks of the event loop, so it never waits.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar, cast

from steersman._json import is_mapping
from steersman._launch.plan import LaunchPlan, hook_id, redacted
from steersman._protocol.connection import Connection
from steersman._protocol.events import (
    Answered,
    AssistantArrived,
    Event,
    LineDropped,
    MessageArrived,
    NoiseReceived,
    StreamEventsArrived,
)
from steersman._protocol.permission_mode import ModeCheck
from steersman._session.gate import GATE
from steersman._session.journal_writer import JournalWriter
from steersman.control.verbs import Answer, Verb
from steersman.errors import ChannelClosed, Evidence, RequestError
from steersman.hooks.events import PreToolUse
from steersman.journal import Entry, Kind
from steersman.journal.journal import NOTHING
from steersman.journal.redaction import Redactor, secrets_in
from steersman.messages.turns import Assistant
from steersman.options import Options
from steersman.ports import Channel, SupportsSuspended, Transport

AnswerT = TypeVar("AnswerT")

# Enum member lookups are slow on Python 3.11, and these run for every line.
CONTROL, MESSAGE, PARTIAL, SENT = Kind.CONTROL, Kind.MESSAGE, Kind.PARTIAL, Kind.SENT
FROM_CLI = frozenset({CONTROL, MESSAGE, PARTIAL, Kind.BOOKKEEPING})
"""Kinds of entries that are lines of the protocol, sent by the CLI."""

SHOWN_NOISE = 300
SEARCHED_NOISE = 4000
"""More than is shown, so that a secret at the end of the shown part is found."""

OWN = frozenset({Answered, NoiseReceived, LineDropped})
"""Events that the link handles itself."""


class LinkListener(Protocol):
    """Receives what the link does not handle itself. Its methods must not raise."""

    def message_arrived(self, entry: Entry, name: str) -> None:
        """Handle a message that was journalled."""
        ...

    def assistant_arrived(self, entry: Entry, message: Assistant) -> None:
        """Handle an assistant message that was journalled; `message` is the decoded line."""
        ...

    def event_happened(self, event: Event) -> None:
        """Handle a control request, or a change of a turn or of the CLI's state."""
        ...

    def line_lost(self, beginning: bytes) -> None:
        """Handle a line that is too long or no JSON; it was journalled as such."""
        ...

    def caught_up(self) -> None:
        """Handle the end of a chunk: everything in it has been reported."""
        ...


class CliLink:
    """One CLI process: its channel, the protocol with it, and its journal entries."""

    def __init__(
        self,
        plan: LaunchPlan,
        options: Options,
        listener: LinkListener,
        log: JournalWriter,
        ended: Callable[[CliLink, int], None],
    ) -> None:
        self.env = plan.launch.env
        """The environment that the CLI was given."""
        self.journal = log
        self.began_after = log.journal.last_seq
        self.mode = ModeCheck(plan.mode, others_decide=bool(options.permission_prompt_tool_name))
        """Compares the permission mode that the CLI reports with the one that it was given."""
        self.connection = Connection(
            os.urandom(4).hex(),
            {GATE: PreToolUse} | {hook_id(n): hook.event for n, hook in enumerate(options.hooks)},
            options.max_buffer_size,
            mirrors=options.session_store is not None,
            partials=options.include_partial_messages is True,
            mode=self.mode,
        )
        self.redactor = Redactor(
            secrets_in(
                plan.launch.env,
                options.mcp_servers,
                options.settings,
                options.managed_settings,
                *map(_servers_of, options.agents.values()),
            )
        )
        self.stderr = StderrTail()
        self.noise = ""
        """The first lines on stdout that were not JSON."""
        self.first_byte = asyncio.Event()
        self.first_noise: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the CLI has written something that is not JSON."""
        self._has_output = False
        self.exit_status: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._plan = plan
        self._on_stderr = options.stderr
        self._listener = listener
        self._ended = ended
        self._channel: Channel | None = None
        self.is_closing = False
        self._is_in_chunk = False
        """Whether a chunk is being processed: its readers are woken once, at its end."""
        self.last_activity = 0.0
        """Loop time of the last line in either direction."""
        self.last_kind = Kind.MESSAGE
        """The kind of the last line from the CLI."""
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[str, asyncio.Future[Answer]] = {}
        self._alarm: asyncio.TimerHandle | None = None

    # The process

    async def open(self, transport: Transport) -> None:
        """Start the CLI. Raises `LaunchError`."""
        self._channel = await transport.open(self._plan.launch, self)

    @property
    def has_sent_json(self) -> bool:
        """Whether the CLI has sent a line of the protocol."""
        entries = self.journal.journal.after(self.began_after, most=1000)
        return any(entry.kind in FROM_CLI for entry in entries)

    @property
    def session_id(self) -> str:
        """The session id that the CLI reported, or else the one that we chose."""
        return self.connection.session_id or self._plan.session_id or ""

    @property
    def pid(self) -> int | None:
        """The CLI's process id."""
        return None if self._channel is None else self._channel.pid

    @property
    def was_opened(self) -> bool:
        """Whether a process was started."""
        return self._channel is not None

    @property
    def is_open(self) -> bool:
        """Whether lines can be written."""
        return self._channel is not None and not self.is_closing and not self.exit_status.done()

    def close(self, grace: float) -> None:
        """Close the CLI's input and end it; `exit_status` is set when it has exited."""
        self.is_closing = True
        if self._channel is None:
            if not self.exit_status.done():
                self.exit_status.set_result(0)
        else:
            self._channel.close(grace)

    async def suspend(self, timeout: float) -> None:
        """Stop all processes of the CLI's tree (SIGSTOP). Raises `TimeoutError`."""
        if self._channel is not None:
            self._channel.suspend()
            if isinstance(self._channel, SupportsSuspended):
                async with asyncio.timeout(timeout):
                    await self._channel.suspended()

    def resume(self) -> None:
        """Continue a stopped process tree (SIGCONT)."""
        if self._channel is not None:
            self._channel.resume()

    def kill(self) -> None:
        """Kill the CLI's process tree. Its exit counts as a loss, so it may be restarted."""
        if self._channel is not None:
            self._channel.kill()

    def end(self) -> None:
        """Kill the CLI's process tree for good. Its exit counts as a close."""
        self.is_closing = True
        if self._channel is not None:
            self._channel.kill()

    def evidence(self, phase: str, status: int | None = None) -> Evidence:
        """Return what is known about the process, without secrets."""
        # Redacted before it is cut, so that no part of a secret is left at the beginning.
        stderr = self.redactor.shown(self.stderr.text)[-KEPT:]
        argv = tuple(map(self.redactor.shown, redacted(self._plan.launch)))
        return Evidence(phase, status, stderr, argv)

    # From the CLI: the receiver of the channel

    def data_received(self, data: bytes) -> None:
        """Process a chunk of stdout: journal its lines, and report its events."""
        if not self._has_output:
            self._has_output = True
            self.first_byte.set()
            if not data.lstrip().startswith(b"{"):
                # Also for output without a line end, such as a prompt for a password.
                self._noise_began()
        self.last_activity = self._loop.time()
        events = self.connection.receive_batched(data)
        if len(events) == 1 and type(only := events[0]) is StreamEventsArrived:
            # Most chunks, if the text is read as it grows. Only readers need them.
            self.last_kind = PARTIAL
            self.journal.write_partials(only)
        else:
            # Readers may do anything, so they run when all of the chunk is handled.
            self._process(events, wake_at_once=True)

    def stderr_received(self, data: bytes) -> None:
        """Keep a chunk of stderr, and pass it to the `stderr` callback."""
        self.stderr.add(data)
        if self._on_stderr is not None:
            try:
                self._on_stderr(data.decode("utf-8", "replace"))
            except Exception as error:  # noqa: BLE001 - the caller's own code; it must not stop us
                self.journal.fault("stderr callback", error)

    def exited(self, status: int) -> None:
        """Handle the exit of the CLI's process tree. Later calls are ignored."""
        if self.exit_status.done():
            return
        self._process(self.connection.receive_batched(b""), wake_at_once=False)
        self.first_byte.set()
        if self._alarm is not None:
            self._alarm.cancel()
        for lost in self.connection.lose():
            self._on_answer(lost)
        self.exit_status.set_result(status)
        self._ended(self, status)

    def _process(self, events: list[Event], *, wake_at_once: bool) -> None:
        log = self.journal
        now = log.clock()
        log.hold_wakeups()
        self._is_in_chunk = True
        try:
            self._dispatch(events, now)
            log.flush()
            self._listener.caught_up()
        finally:
            self._is_in_chunk = False
            log.release_wakeups(at_once=wake_at_once)

    def _dispatch(self, events: list[Event], now: float) -> None:
        log = self.journal
        for event in events:
            if type(event) is StreamEventsArrived:
                # Most lines; only readers need them.
                self.last_kind = PARTIAL
                log.append_partials(now, event.lines, event.turns, event.messages)
            elif type(event) is AssistantArrived:
                self.last_kind = MESSAGE
                message = event.message
                entry = log.append(now, MESSAGE, event.line, event.turns, NOTHING, message)
                self._listener.assistant_arrived(entry, message)
            elif type(event) is MessageArrived:
                if event.kind is CONTROL:
                    log.append(now, CONTROL, self.redactor.line(event.line), event.turns)
                else:
                    self._on_message(event, now)
            elif type(event) in OWN:
                self._handle(event, now)
            else:
                self._listener.event_happened(event)

    def _handle(self, event: Event, now: float) -> None:
        if isinstance(event, Answered):
            self._on_answer(event)
        elif isinstance(event, NoiseReceived):
            self._on_noise(event.line, now)
        elif isinstance(event, LineDropped):
            over = event.oversize
            self.journal.append(now, Kind.OVERSIZE, over.head, details={"size": over.size})
            self._listener.line_lost(over.head)

    def _on_message(self, event: MessageArrived, now: float) -> None:
        self.last_kind = event.kind
        entry = self.journal.append(now, event.kind, event.line, event.turns)
        if event.name:
            self._listener.message_arrived(entry, event.name)

    def _on_noise(self, line: bytes, now: float) -> None:
        self._noise_began()
        self.journal.append(now, Kind.NOISE, line)
        self._listener.line_lost(line)
        if len(self.noise) < SHOWN_NOISE:
            shown = self.redactor.shown(line[:SEARCHED_NOISE].decode("utf-8", "replace"))
            self.noise = f"{self.noise}\n{shown}".strip()[:SHOWN_NOISE]

    def _noise_began(self) -> None:
        if not self.first_noise.done():
            self.first_noise.set_result(None)

    def _on_answer(self, event: Answered) -> None:
        waiting = self._waiting.get(event.request_id)
        if waiting is None or waiting.done():
            return
        if isinstance(event.answer, RequestError):
            waiting.set_exception(event.answer)
        else:
            waiting.set_result(event.answer)

    # To the CLI

    def write(self, line: bytes, turns: tuple[str, ...] = ()) -> None:
        """Send a line and journal it. Raises `ChannelClosed`."""
        if line:
            self.write_all((line,), turns)

    def write_all(self, lines: Sequence[bytes], turns: tuple[str, ...] = ()) -> None:
        """Send several lines at once and journal each. Raises `ChannelClosed`."""
        channel = self._channel
        if channel is None or self.is_closing or self.exit_status.done():
            raise ChannelClosed("this session is closed", hint="open another session")
        log, redacted = self.journal, self.redactor.line
        now = log.clock()
        for line in lines:
            log.append(now, SENT, redacted(line[:-1]), turns)
        # Journalled before it is sent, so that a journal read after a crash has it.
        log.flush()
        if not self._is_in_chunk:
            log.wake()
            self.last_activity = self._loop.time()
        channel.write(lines[0] if len(lines) == 1 else b"".join(lines))

    async def call(self, verb: Verb[AnswerT], timeout: float) -> AnswerT:
        """Send `verb` to the CLI and wait for its answer."""
        request_id, answer = self.post(verb, timeout)
        return cast("AnswerT", await self._receive(request_id, answer))

    async def control(self, subtype: str, fields: Mapping[str, Any], timeout: float) -> Answer:
        """Send a control request that has no class, and wait for its answer."""
        request = self.connection.control(subtype, fields, _now(), timeout)
        return await self._receive(*self._send(*request))

    def post(
        self, verb: Verb[Any], timeout: float, answer: type[Answer] | None = None
    ) -> tuple[str, asyncio.Future[Answer]]:
        """Send `verb`; returns its id, which the caller must `forget`, and the future answer.

        The answer is an `answer`, or else of the class that belongs to the verb.
        """
        return self._send(*self.connection.call(verb, _now(), timeout, answer))

    def notify(self, verb: Verb[Any], timeout: float) -> None:
        """Send `verb` and ignore its answer."""
        request_id, answer = self.post(verb, timeout)
        answer.add_done_callback(lambda _: self.forget(request_id))

    def forget(self, request_id: str) -> None:
        """Forget a request; cancel it if it is not answered yet."""
        waiting = self._waiting.pop(request_id, None)
        if waiting is not None and not waiting.cancel() and not waiting.cancelled():
            # Retrieved, so that asyncio does not report an unhandled error.
            waiting.exception()
        cancel = self.connection.cancel(request_id)
        if cancel and self.is_open:
            self.write(cancel)

    def _send(self, request_id: str, line: bytes) -> tuple[str, asyncio.Future[Answer]]:
        try:
            self.write(line)
        except ChannelClosed:
            self.connection.cancel(request_id)
            raise
        waiting: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = waiting
        self._set_alarm()
        return request_id, waiting

    async def _receive(self, request_id: str, answer: asyncio.Future[Answer]) -> Answer:
        try:
            return await answer
        finally:
            self.forget(request_id)

    def _set_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        deadline = self.connection.next_deadline()
        if deadline is not None:
            self._alarm = asyncio.get_running_loop().call_at(deadline, self._expire)

    def _expire(self) -> None:
        self._alarm = None
        for late, cancel in self.connection.expire(asyncio.get_running_loop().time()):
            self._on_answer(late)
            if self.is_open:
                self.write(cancel)
        self._set_alarm()


def _servers_of(agent: object) -> object:
    """Return the MCP servers that are configured for one subagent."""
    return agent.get("mcpServers") if is_mapping(agent) else getattr(agent, "mcp_servers", None)


KEPT = 16 * 1024
LONGEST_SECRET = 4 * 1024
"""How much more is kept than shown, so that a secret at the beginning is whole and found."""


class StderrTail:
    """The end of the CLI's stderr, bounded: a failing hook makes it write hundreds of lines."""

    def __init__(self, kept: int = KEPT + LONGEST_SECRET) -> None:
        self._kept = kept
        self._tail = b""

    def add(self, data: bytes) -> None:
        """Append a chunk."""
        self._tail = (self._tail + data)[-self._kept :]

    @property
    def text(self) -> str:
        """The kept end of stderr."""
        return self._tail.decode("utf-8", "replace").strip()


def _now() -> float:
    return asyncio.get_running_loop().time()
