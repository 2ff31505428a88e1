"""Session: one conversation you can hold."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import time
import uuid as uuids
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

from steersman._protocol.events import (
    Event,
    HookAsked,
    PermissionAsked,
    StateReported,
    ToolCalled,
    TurnSettled,
    TurnStarted,
    Unanswerable,
    Withdrawn,
)
from steersman._session.handlers import Handlers
from steersman._session.inbound import Desk
from steersman._session.link import Link
from steersman._session.prompts import Prompt, content_of
from steersman._session.readers import Reading
from steersman._session.starting import start
from steersman._session.turn import LINES, Turn
from steersman._wire.launch import Plan, hook_id
from steersman.control import (
    Initialized,
    Interrupt,
    InterruptReceipt,
    McpMessage,
    ModelSet,
    PermissionModeSet,
    SetModel,
    SetPermissionMode,
    Verb,
)
from steersman.errors import (
    ChannelClosed,
    CliExited,
    NotLoggedIn,
    RequestTimeout,
    SteersmanError,
    UsageError,
)
from steersman.journal import Entry, Kind, Lagged, Move, Outcome, Phase, TurnResult, step
from steersman.journal.results import CostMeter, cause_of, outcome_of
from steersman.messages import ApiRetry, Assistant, Message, Result, parse_message
from steersman.options import Options, PermissionMode
from steersman.ports import Caller, JsonObject, ToolServer, Transport

__all__ = ["Session", "State"]

T = TypeVar("T")
AnswerT = TypeVar("AnswerT")

log = logging.getLogger("steersman.session")

State = Literal[
    "idle",
    "starting",
    "running",
    "waiting_tool_call",
    "waiting_permission",
    "paused",
    "completed",
    "failed",
    "cancelled",
]

AUTHENTICATION_TRIES = 2
"""A wrong key stays wrong: after so many refusals we end the CLI's retries, which take minutes."""


class Session:
    """One conversation with one CLI. Opened with `async with agent.session() as session`.

    It runs in the event loop that started it; any task of that loop may use it.
    """

    def __init__(
        self,
        options: Options,
        plan: Plan,
        transport: Transport,
        servers: Mapping[str, ToolServer],
    ) -> None:
        self.options = options
        self.phase = Phase.IDLE
        self._plan = plan
        self._transport = transport
        self._servers = servers
        self._link: Link | None = None
        self._handlers: Handlers | None = None
        self._initialized: Initialized | None = None
        self._queue: deque[Turn] = deque()
        self._turns: dict[str, Turn] = {}
        self._meter = CostMeter()
        self._cost_of_result = 0.0
        self._cost = 0.0
        self._cause: SteersmanError | None = None
        self._keeper: AsyncGenerator[None, None] | None = None

    # Life

    async def start(self) -> Self:
        """Run the CLI and greet it. Raises `LaunchError`, `StartupError` or `NotLoggedIn`."""
        if self._link is not None:
            raise UsageError("session", self, "a session that was not started before")
        link = self._link = Link(self._plan, self.options, self)
        hooks = {hook_id(n): hook for n, hook in enumerate(self.options.hooks)}
        desk = Desk(
            self.options.can_use_tool, hooks, self._servers, self._caller, self._report_fault
        )
        self._handlers = Handlers(desk, link)
        self._move(Move.LAUNCH)
        try:
            self._initialized = await start(link, self._plan, self._transport, self.options.startup)
        except BaseException as error:
            self._cause = error if isinstance(error, SteersmanError) else None
            self._move(Move.FAIL)
            link.growth.end()
            raise
        self._move(Move.GREET)
        self._keeper = _keep(self)
        await anext(self._keeper)
        return self

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    def aclose(self) -> Coroutine[Any, Any, None]:
        """End the session and see the CLI's whole tree gone.

        Begins at the call, not at the first await: cancelling the wait, or never waiting at all,
        does not keep the CLI alive. May be called any number of times.
        """
        self.abandon()
        return self._see_it_gone()

    def abandon(self) -> None:
        """Begin to close, and do not wait for it."""
        link = self._link
        if link is None or not link.is_open:
            return
        if self._turns:
            link.tell(Interrupt(), self.options.request_timeout)
        if self._handlers is not None:
            self._handlers.cancel_all()
        while self._queue:
            self._settle(self._queue.popleft(), None, cancelled=True)
        link.close(self.options.close_grace)

    async def _see_it_gone(self) -> None:
        if self._link is None or not self._link.was_opened:
            return
        # The ladder is the transport's: this bound is only for a transport that lost its way.
        await asyncio.wait([self._link.gone], timeout=3 * self.options.close_grace + 10)
        if self._handlers is not None:
            await self._handlers.wait(self.options.close_grace)
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            await keeper.aclose()

    async def released(self) -> None:
        """Close because the event loop shuts down."""
        self._keeper = None
        await self.aclose()

    # What one can know

    @property
    def id(self) -> str | None:
        """The conversation's id; known before the start unless the latest one is continued."""
        told = self._link.connection.session_id if self._link is not None else ""
        return told or self._plan.session_id

    @property
    def pid(self) -> int | None:
        """The CLI's process id, while it runs on this machine."""
        return None if self._link is None else self._link.pid

    @property
    def initialized(self) -> Initialized:
        """What the CLI said about itself in the handshake: version, models, and more."""
        if self._initialized is None:
            raise ChannelClosed("this session has not started", hint="use `async with`")
        return self._initialized

    @property
    def state(self) -> State:
        """What the session is doing, or waits for."""
        if self._handlers is not None and self.phase is Phase.RUNNING:
            if self._handlers.open_permissions:
                return "waiting_permission"
            if self._handlers.open_tool_calls:
                return "waiting_tool_call"
        return self.phase.value

    @property
    def cost_usd(self) -> float:
        """What all turns of this session cost, those that nobody asked for included."""
        return self._cost

    @property
    def last_seq(self) -> int:
        """The number of the newest journal entry."""
        return 0 if self._link is None else self._link.journal.last_seq

    # Prompts

    async def send(self, prompt: Prompt, *, query: bool = True) -> Turn:
        """Send `prompt`, word by word as it is, and hold its turn.

        Returns once it is written, or queued behind another: the CLI gets one prompt at a time.
        With `query=False` the text is only added to the conversation, for the next prompt.
        """
        # Verbatim: without this mark the CLI runs slash commands and reads files named by `@`.
        return self._enqueue(content_of(prompt), {"client_composed": True}, query=query)

    async def command(self, text: str) -> Turn:
        """Send a slash command, such as `/compact`, for the CLI to run."""
        if not (isinstance(text, str) and text.startswith("/") and len(text) > 1):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError("text", text, "a slash command, such as /compact")
        return self._enqueue(text, {}, query=True)

    async def interrupt(
        self, *, turn: Turn | None = None, also_queued: bool = False
    ) -> InterruptReceipt:
        """Stop the turn under way, and wait until it has settled.

        The receipt lists the prompts that still wait; `also_queued=True` takes those back too.
        Raises `RequestTimeout` when the CLI does not answer.
        """
        link = self._open_link()
        taken_back = self._take_back(turn, also_queued=also_queued)
        target = turn or next(iter(self._turns.values()), None)
        if target is None or target.is_settled:
            return self._receipt(
                await link.call(Interrupt(), self.options.request_timeout), taken_back
            )
        target.was_interrupted = True
        try:
            async with asyncio.timeout(self.options.request_timeout):
                # An interrupt that reaches the CLI before the prompt has begun stops nothing.
                await target.begun()
                verb = Interrupt(cancel_queued=also_queued)
                receipt = await link.call(verb, self.options.request_timeout)
                await target.result()
        except TimeoutError:
            raise RequestTimeout("interrupt", "the turn did not settle in time") from None
        return self._receipt(receipt, taken_back)

    def _take_back(self, turn: Turn | None, *, also_queued: bool) -> list[str]:
        """Settle prompts that the CLI has not seen: all of them, or the one that is meant."""
        meant = [each for each in self._queue if also_queued or each is turn]
        for each in meant:
            self._queue.remove(each)
            each.was_interrupted = each is turn
            self._settle(each, None, cancelled=True)
        return [each.uuid for each in meant]

    def _receipt(self, receipt: InterruptReceipt, taken_back: list[str]) -> InterruptReceipt:
        return InterruptReceipt(
            still_queued=[*receipt.still_queued, *(each.uuid for each in self._queue)],
            cancelled=[*receipt.cancelled, *taken_back],
        ).came_from(receipt.raw)

    def _enqueue(self, content: Any, fields: dict[str, Any], *, query: bool) -> Turn:
        self._open_link()
        if not query:
            fields["shouldQuery"] = False
        turn = Turn(self, str(uuids.uuid4()), content, fields)
        self._queue.append(turn)
        self._send_next()
        return turn

    def _send_next(self) -> None:
        """Write the next prompt, if the CLI is not at work on one of ours: it would merge them."""
        link = self._link
        if link is None or not link.is_open or self._turns or not self._queue:
            return
        turn = self._queue.popleft()
        self._turns[turn.uuid] = turn
        turn.begins_after = link.journal.last_seq
        line = link.connection.prompt(turn.uuid, turn.content, **turn.fields)
        link.write(line, (turn.uuid,))
        self._move(Move.BEGIN)

    # Verbs

    async def call(self, verb: Verb[AnswerT], *, timeout: float | None = None) -> AnswerT:
        """Put `verb` to the CLI and wait for its answer.

        Raises `RequestRefused` when the CLI says no and `RequestTimeout` when it says nothing.
        Cancelling the wait sends `control_cancel_request` and forgets the id.
        """
        if not isinstance(verb, Verb):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError("verb", verb, "a value of steersman.control, such as SetModel(...)")
        return await self._open_link().call(verb, self._timeout(timeout))

    async def control(
        self, subtype: str, /, *, timeout: float | None = None, **fields: Any
    ) -> dict[str, Any]:
        """Send a control request that has no class here; gives the answer as it came."""
        if not (isinstance(subtype, str) and subtype):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError("subtype", subtype, "the CLI's name for a control request")
        answer = await self._open_link().control(subtype, fields, self._timeout(timeout))
        return answer.raw

    async def set_model(self, model: str | None) -> ModelSet:
        """Use another model from the next API call on; `None` is the default one."""
        if not (model is None or (isinstance(model, str) and model)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError("model", model, "a model's name, or None")
        return await self.call(SetModel(model=model))

    async def set_permission_mode(self, mode: PermissionMode) -> PermissionModeSet:
        """Ask more, ask less, or plan only."""
        Options(permission_mode=mode)
        return await self.call(SetPermissionMode(mode=mode))

    def _timeout(self, given: float | None) -> float:
        if given is None:
            return self.options.request_timeout
        if isinstance(given, bool) or not isinstance(given, int | float) or given <= 0:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError("timeout", given, "seconds above 0, or None")
        return given

    # Readings

    def messages(self, *, after: int = 0) -> AsyncIterator[Message]:
        """Every message of the session, from entry number `after` on, until it ends.

        Raises `ReaderLagged` when some of them are gone from memory.
        """
        shows = self.shows
        return self.reading(lambda entry: entry.message if shows(entry) else None, after=after)

    def raw(self, *, after: int = 0) -> AsyncIterator[bytes]:
        """The lines of the conversation as they came, without control lines."""
        return self.reading(lambda e: e.line if e.kind in LINES else None, after=after)

    def journal(self, *, after: int = 0) -> AsyncIterator[Entry | Lagged]:
        """Everything that happened, by sequence number; `Lagged` where entries are gone."""

        def pick(entry: Entry) -> Entry | Lagged | None:
            return entry

        return self.reading(pick, after=after, on_lag=Lagged)

    def reading(
        self,
        pick: Callable[[Entry], T | None],
        *,
        after: int = 0,
        until: Callable[[Entry], bool] = lambda _: False,
        on_lag: Callable[[int], T] | None = None,
    ) -> AsyncIterator[T]:
        """What `pick` makes of each entry, for readings of your own; `None` is passed over."""
        if isinstance(after, bool) or not isinstance(after, int) or after < 0:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError("after", after, "a sequence number, 0 or more")
        link = self._link
        if link is None:
            raise ChannelClosed("this session has not started", hint="use `async with`")
        return Reading(link.journal, link.growth, pick, after=after, until=until, on_lag=on_lag)

    def shows(self, entry: Entry) -> bool:
        """Whether an entry is a message for people, under this session's options."""
        return entry.kind is Kind.MESSAGE or (
            entry.kind is Kind.PARTIAL and self.options.include_partial_messages
        )

    # What the link reports

    def message_arrived(self, entry: Entry, name: str) -> None:
        """Keep what a turn's result will need."""
        if name == "assistant" and entry.turns:
            message = entry.message
            if isinstance(message, Assistant):
                for turn in self._turns_of(entry):
                    turn.transcript.add(message)
        elif name == "result" and isinstance(entry.message, Result):
            self._cost_of_result = self._meter.cost_of(entry.message)
            self._cost += self._cost_of_result
        elif name == "api_retry" and isinstance(entry.message, ApiRetry):
            self._give_up_on_login(entry, entry.message)

    def event_happened(self, event: Event) -> None:
        """Answer, settle, or take note."""
        match event:
            case PermissionAsked() | HookAsked() | ToolCalled() | Unanswerable():
                assert self._handlers is not None
                self._handlers.start(event, self._context())
            case Withdrawn(request_id):
                assert self._handlers is not None
                self._handlers.withdraw(request_id)
            case TurnStarted(uuid):
                if uuid in self._turns:
                    self._turns[uuid].begin()
            case TurnSettled(uuid, line, was_cancelled):
                turn = self._turns.pop(uuid, None)
                if turn is not None:
                    self._settle(turn, line, cancelled=was_cancelled)
                    self._send_next()
            case StateReported(state):
                self._on_state(state)
            case _:
                pass

    def link_ended(self, status: int) -> None:
        """Settle what is left: cancelled if we closed, failed if the CLI left us."""
        assert self._link is not None
        was_closed = not self._link.is_open and self._link.is_closing
        if self._handlers is not None:
            self._handlers.cancel_all()
        if not was_closed:
            where = "turn" if self._turns else self.phase.value
            self._cause = CliExited(
                "the CLI ended in the middle of the session",
                hint="open the conversation again with resume=session.id",
                evidence=self._link.evidence(where, status),
            )
        for turn in [*self._turns.values(), *self._queue]:
            self._settle(turn, None, cancelled=was_closed)
        self._turns.clear()
        self._queue.clear()
        if self.phase is not Phase.STARTING:
            self._move(Move.COMPLETE if was_closed else Move.FAIL)

    def _on_state(self, state: str) -> None:
        if state == "running":
            self._move(Move.BEGIN)
        # An idle from before our newest prompt may still be on its way.
        elif state == "idle" and not self._turns:
            self._move(Move.REST)

    def _settle(self, turn: Turn, line: bytes | None, *, cancelled: bool = False) -> None:
        assert self._link is not None
        result = parse_message(line) if line is not None else None
        if isinstance(result, Result):
            settled = self._result_of(turn, result)
        else:
            settled = self._end_of(turn, cancelled=cancelled)
        self._link.journal.append(
            time.time(), Kind.SETTLED, turns=(turn.uuid,), outcome=settled.outcome
        )
        self._link.growth.wake()
        turn.settle(settled)

    def _end_of(self, turn: Turn, *, cancelled: bool) -> TurnResult:
        """How a turn ended that no result names."""
        outcome: Outcome = "failed" if self._cause else "completed"
        if cancelled:
            outcome = "interrupted" if turn.was_interrupted else "cancelled"
        return TurnResult(
            uuid=turn.uuid,
            outcome=outcome,
            text=turn.transcript.text,
            answer=turn.transcript.answer,
            cause=self._cause,
        )

    def _result_of(self, turn: Turn, result: Result) -> TurnResult:
        cost, self._cost_of_result = self._cost_of_result, 0.0
        outcome = outcome_of(result, was_interrupted=turn.was_interrupted)
        return TurnResult(
            uuid=turn.uuid,
            outcome="failed" if turn.cause else outcome,
            text=turn.transcript.text,
            answer=result.result or turn.transcript.answer,
            cost_usd=cost,
            usage=result.usage,
            structured_output=result.structured_output,
            stop_reason=result.stop_reason,
            terminal_reason=result.terminal_reason,
            permission_denials=result.permission_denials,
            api_error=result.api_error_status,
            cause=turn.cause or cause_of(result),
            result=result,
        )

    def _give_up_on_login(self, entry: Entry, retry: ApiRetry) -> None:
        if retry.error != "authentication_failed" or retry.attempt < AUTHENTICATION_TRIES:
            return
        turns = [turn for turn in self._turns_of(entry) if turn.cause is None]
        for turn in turns:
            turn.cause = NotLoggedIn(
                f"the API refused the credential (HTTP {retry.error_status})",
                hint="log in with `claude`, or set a valid ANTHROPIC_API_KEY; if user settings"
                ' hold the key helper, pass setting_sources=("user",)',
            )
        if turns and self._link is not None and self._link.is_open:
            self._link.tell(Interrupt(), self.options.request_timeout)

    def _turns_of(self, entry: Entry) -> list[Turn]:
        return [self._turns[uuid] for uuid in entry.turns if uuid in self._turns]

    def _context(self) -> contextvars.Context:
        """The context of the turn under way: that of the `send()` that caused it."""
        turn = next(iter(self._turns.values()), None)
        return (contextvars.copy_context() if turn is None else turn.context).copy()

    def _caller(self, server: str) -> Caller:
        def notify(message: JsonObject) -> None:
            if self._link is not None and self._link.is_open:
                verb = McpMessage(server_name=server, message=dict(message))
                self._link.tell(verb, self.options.request_timeout)

        return Caller(self.id or "", server, notify)

    def _report_fault(self, where: str, error: BaseException | str) -> None:
        if isinstance(error, BaseException):
            log.error("%s failed", where, exc_info=error)
        else:
            log.error("%s %s", where, error)
        if self._link is not None:
            self._link.fault(where, error)

    def _move(self, move: Move) -> None:
        before, self.phase = self.phase, step(self.phase, move)
        if self._link is not None and before is not self.phase:
            self._link.journal.append(
                time.time(), Kind.PHASE, before=before.value, after=self.phase.value
            )
            self._link.growth.wake()

    def _open_link(self) -> Link:
        if self._link is not None and self._link.is_open and self._initialized is not None:
            return self._link
        if self._cause is not None:
            raise self._cause
        if self._link is None or self._initialized is None:
            raise ChannelClosed("this session has not started", hint="use `async with`")
        raise ChannelClosed("this session is closed", hint="open another session")


async def _keep(session: Session) -> AsyncGenerator[None, None]:
    """Stand open as long as the session does: a loop that shuts down closes both."""
    try:
        yield
    finally:
        await session.released()
