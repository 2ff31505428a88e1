"""Session: one conversation you can hold."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

import msgspec

from steersman._protocol.events import (
    DialogAsked,
    ElicitationAsked,
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
from steersman._session.deciding import Deciding, deciding_for
from steersman._session.decisions import Decisions, forbidden_among
from steersman._session.handlers import Handlers
from steersman._session.hooking import Hooking
from steersman._session.identity import new_uuid
from steersman._session.inbound import Desk
from steersman._session.ledger import Ledger
from steersman._session.link import Link
from steersman._session.prompts import Prompt, content_of
from steersman._session.readers import Reading
from steersman._session.readiness import ServerBook, await_servers
from steersman._session.serving import Serving
from steersman._session.starting import start
from steersman._session.turn import LINES, Turn
from steersman._wire.launch import Plan, hook_id
from steersman.control import (
    CancelAsyncMessage,
    ContextUsage,
    GetContextUsage,
    Initialized,
    Interrupt,
    InterruptReceipt,
    McpMessage,
    McpServers,
    McpStatus,
    ModelSet,
    PermissionModeSet,
    RewindFiles,
    Rewound,
    SetModel,
    SetPermissionMode,
    StopTask,
    Verb,
)
from steersman.errors import (
    ChannelClosed,
    CliExited,
    ForbiddenTool,
    RequestRefused,
    RequestTimeout,
    SteersmanError,
    UsageError,
)
from steersman.journal import Entry, Kind, Lagged, Move, Phase, step
from steersman.messages import Init, Message
from steersman.options import Options, PermissionMode, checks
from steersman.ports import Caller, Clock, JsonObject, ToolServer, Transport

__all__ = ["Session", "State"]

T = TypeVar("T")
AnswerT = TypeVar("AnswerT")

log = logging.getLogger("steersman.session")

LOST = -9
"""The status of a CLI whose end nobody told us."""

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
        clock: Clock = time.time,
    ) -> None:
        self.options = options
        self.phase = Phase.IDLE
        self._plan = plan
        self._transport = transport
        self._servers = servers
        self._clock = clock
        self._works: _Works | None = None
        self._initialized: Initialized | None = None
        self.capabilities: frozenset[str] | None = None
        """What the CLI says it can do; it tells at the beginning of a turn, so `None` before."""
        self._cause: SteersmanError | None = None
        self._keeper: AsyncGenerator[None, None] | None = None

    # Life

    async def start(self) -> Self:
        """Run the CLI and greet it.

        Raises `LaunchError`, `StartupError`, `NotLoggedIn` or `ProtocolViolation`; `McpNotReady`,
        a `StartupError`, where a tool server of `require` is not connected.
        """
        if self._works is not None:
            raise UsageError("session", self, "a session that was not started before")
        works = self._works = self._build()
        self._move(Move.LAUNCH)
        try:
            await works.serving.attach()
            self._initialized = await start(
                works.link, self._plan, self._transport, self.options.startup
            )
            await await_servers(works.link, works.book, self.options, self._servers)
        except BaseException as error:
            self._cause = error if isinstance(error, SteersmanError) else None
            self._move(Move.FAIL)
            works.link.growth.end()
            await works.serving.detach()
            raise
        self._move(Move.GREET)
        self._keeper = _keep(self)
        await anext(self._keeper)
        return self

    def _build(self) -> _Works:
        options = self.options
        link = Link(self._plan, options, self, self._clock)
        report = self._report_fault
        ledger = Ledger(link, options.request_timeout)
        deciding, decisions = deciding_for(
            options, link.note, lambda: ledger.uuid_at_work, self._clock, report
        )
        hooks = {hook_id(n): hook for n, hook in enumerate(options.hooks)}
        callers = {key: self._caller(key, deciding) for key in self._servers}
        serving = Serving(self._servers, callers, report)
        desk = Desk(deciding, Hooking(hooks, report), serving)
        return _Works(link, Handlers(desk, link), ledger, serving, ServerBook(link), decisions)

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

        Begins at the call, not at the first await, so that cancelling the wait does not keep the
        CLI alive. May be called any number of times; `abandon()` is for those who do not wait.
        """
        self.abandon()
        return self._see_it_gone()

    def abandon(self) -> None:
        """Begin to close, and do not wait for it."""
        works = self._works
        if works is None or not works.link.is_open:
            return
        works.ledger.take_back(None, also_queued=True)
        if works.ledger.at_work is not None:
            # Also where it has not begun: at the end of its input the CLI would still run it.
            works.link.tell(Interrupt(cancel_queued=True), self.options.request_timeout)
        works.handlers.cancel_all()
        works.link.close(self.options.close_grace)

    async def _see_it_gone(self) -> None:
        works = self._works
        if works is None or not works.link.was_opened:
            return
        await asyncio.wait([works.link.gone], timeout=3 * self.options.close_grace + 10)
        if not works.link.gone.done():
            # The ladder is the transport's, and it has lost its way: nobody shall wait for it.
            works.link.exited(LOST)
        await works.handlers.wait(self.options.close_grace)
        await works.serving.detach()
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
        told = "" if self._works is None else self._works.link.connection.session_id
        return told or self._plan.session_id

    @property
    def pid(self) -> int | None:
        """The CLI's process id, while it runs on this machine."""
        return None if self._works is None else self._works.link.pid

    @property
    def initialized(self) -> Initialized:
        """What the CLI said about itself in the handshake: version, models, and more."""
        if self._initialized is None:
            raise ChannelClosed("this session has not started", hint="use `async with`")
        return self._initialized

    @property
    def state(self) -> State:
        """What the session is doing, or waits for."""
        if self._works is not None and self.phase is Phase.RUNNING:
            if self._works.handlers.open_permissions:
                return "waiting_permission"
            if self._works.handlers.open_tool_calls:
                return "waiting_tool_call"
        return self.phase.value

    @property
    def cost_usd(self) -> float:
        """What all turns of this session cost, those that nobody asked for included."""
        return 0.0 if self._works is None else self._works.ledger.cost_usd

    @property
    def last_seq(self) -> int:
        """The number of the newest journal entry."""
        return 0 if self._works is None else self._works.link.journal.last_seq

    # Prompts

    async def send(self, prompt: Prompt, *, query: bool = True) -> Turn:
        """Send `prompt`, word for word as it is, and hold its turn.

        Returns once it is written, or queued behind another: the CLI gets one prompt at a time.
        With `query=False` the text is only added to the conversation, for the next prompt.
        """
        if not isinstance(query, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError("query", query, "True or False")
        # Without this mark the CLI runs slash commands and reads files named by `@`.
        fields: dict[str, Any] = {"client_composed": True} if self.options.verbatim_prompts else {}
        content = content_of(prompt)
        if fields and isinstance(content, str) and content.startswith("/"):
            self._refuse_if_run(content)
        return self._send(content, fields if query else {**fields, "shouldQuery": False})

    def _refuse_if_run(self, text: str) -> None:
        """Older CLIs, which tell no capabilities, would run it in spite of our mark."""
        self._at_work()
        if not self.initialized.capabilities:
            hint = "if it is meant as a command, use session.command()"
            raise UsageError("prompt", text, "a text this old CLI does not run: no `/`", hint=hint)

    async def command(self, text: str) -> Turn:
        """Send a slash command, such as `/compact`, for the CLI to run."""
        if not (isinstance(text, str) and text.startswith("/") and len(text) > 1):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError("text", text, "a slash command, such as /compact")
        return self._send(text, {})

    def _send(self, content: Any, fields: dict[str, Any]) -> Turn:
        works = self._at_work()
        turn = Turn(self, new_uuid(), content, fields)
        works.ledger.add(turn)
        self._move(Move.BEGIN)
        return turn

    async def interrupt(
        self, *, turn: Turn | None = None, also_queued: bool = False
    ) -> InterruptReceipt:
        """Stop the turn under way, and wait until it has settled.

        The receipt lists the prompts that still wait; `also_queued=True` takes those back too.
        Raises `RequestTimeout` when the CLI does not answer.
        """
        if not (turn is None or isinstance(turn, Turn)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError("turn", turn, "a Turn of this session, or None")
        if not isinstance(also_queued, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError("also_queued", also_queued, "True or False")
        ledger = self._at_work().ledger
        taken = ledger.take_back(turn, also_queued=also_queued)
        waiting = ledger.queued
        receipt = InterruptReceipt()
        # A turn that is over, or was only queued, must not stop another one that runs.
        if turn is None or turn is ledger.at_work:
            try:
                async with asyncio.timeout(self.options.request_timeout):
                    receipt = await self._stop(ledger.at_work, also_queued=also_queued)
            except TimeoutError:
                raise RequestTimeout("interrupt", "the turn did not settle in time") from None
        return InterruptReceipt(
            still_queued=[*receipt.still_queued, *waiting],
            cancelled=[*receipt.cancelled, *taken],
        ).came_from(receipt.raw)

    async def _stop(self, turn: Turn | None, *, also_queued: bool) -> InterruptReceipt:
        """Interrupt the CLI until `turn` has settled."""
        link, timeout = self._at_work().link, self.options.request_timeout
        if turn is None:
            return await link.call(Interrupt(cancel_queued=also_queued), timeout)
        turn.was_interrupted = True
        await self._withdraw(turn)
        receipt = InterruptReceipt()
        while not turn.is_settled:
            # An interrupt alone would not stop a prompt that has not begun, and the CLI may hold
            # it back for as long as a tool server is mute.
            has_begun = turn.has_begun
            verb = Interrupt(cancel_queued=also_queued or not has_begun)
            receipt = await link.call(verb, timeout)
            if has_begun or turn.uuid in receipt.cancelled:
                break
            await turn.begun()
        await turn.result()
        others = [uuid for uuid in receipt.cancelled if uuid != turn.uuid]
        return msgspec.structs.replace(receipt, cancelled=others).came_from(receipt.raw)

    async def _withdraw(self, turn: Turn) -> None:
        """Take a prompt that has not begun out of the CLI's queue, and disturb nobody else."""
        if turn.has_begun:
            return
        works = self._at_work()
        verb = CancelAsyncMessage(message_uuid=turn.uuid)
        answer = await works.link.call(verb, self.options.request_timeout)
        if answer.cancelled:
            # Older CLIs send no lifecycle that would settle it.
            works.ledger.withdrawn(turn.uuid)

    # Verbs

    async def call(self, verb: Verb[AnswerT], *, timeout: float | None = None) -> AnswerT:
        """Put `verb` to the CLI and wait for its answer.

        Raises `RequestRefused` when the CLI says no and `RequestTimeout` when it says nothing.
        Cancelling the wait sends `control_cancel_request` and forgets the id.
        """
        if not isinstance(verb, Verb):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError("verb", verb, "a value of steersman.control, such as SetModel(...)")
        works = self._at_work()
        missing = verb.needs - (verb.needs if self.capabilities is None else self.capabilities)
        if missing:
            lacks = ", ".join(sorted(missing))
            raise RequestRefused(verb.operation, f"this CLI is too old for it: it has no {lacks}")
        patience = max(self.options.request_timeout, verb.patience or 0)
        return await works.link.call(verb, self._timeout(timeout, patience))

    async def control(
        self, subtype: str, /, *, timeout: float | None = None, **fields: Any
    ) -> dict[str, Any]:
        """Send a control request that has no class here; gives the answer as it came."""
        if not (isinstance(subtype, str) and subtype):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError("subtype", subtype, "the CLI's name for a control request")
        plain = checks.plain("fields", fields)
        seconds = self._timeout(timeout, self.options.request_timeout)
        answer = await self._at_work().link.control(subtype, plain, seconds)
        return answer.raw

    async def set_model(self, model: str | None) -> ModelSet:
        """Use another model from the next API call on; `None` is the default one."""
        if not (model is None or (isinstance(model, str) and model)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError("model", model, "a model's name, or None")
        return await self.call(SetModel(model=model))

    async def set_permission_mode(self, mode: PermissionMode) -> PermissionModeSet:
        """Ask more, ask less, or plan only."""
        checks.permission_mode("mode", mode)
        return await self.call(SetPermissionMode(mode=mode))

    async def rewind_files(self, user_message_id: str, *, dry_run: bool = False) -> Rewound:
        """Put files back to where they stood before a prompt; needs file checkpointing."""
        return await self.call(RewindFiles(user_message_id=user_message_id, dry_run=dry_run))

    async def mcp_status(self) -> McpServers:
        """How the tool servers are."""
        return await self.call(McpStatus())

    async def context_usage(self) -> ContextUsage:
        """What fills the context window, and how much is left."""
        return await self.call(GetContextUsage())

    async def stop_task(self, task_id: str) -> None:
        """End a background task; an unknown id is no error to the CLI."""
        await self.call(StopTask(task_id=task_id))

    def _timeout(self, given: float | None, otherwise: float) -> float:
        if given is None:
            return otherwise
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
        if not callable(pick):
            raise UsageError("pick", pick, "a function of an entry")
        if self._works is None:
            raise ChannelClosed("this session has not started", hint="use `async with`")
        link = self._works.link
        return Reading(link.journal, link.growth, pick, after=after, until=until, on_lag=on_lag)

    def shows(self, entry: Entry) -> bool:
        """Whether an entry is a message for people, under this session's options."""
        return entry.kind is Kind.MESSAGE or (
            entry.kind is Kind.PARTIAL and self.options.include_partial_messages
        )

    # What the link reports

    def message_arrived(self, entry: Entry, name: str) -> None:
        """Keep what a turn's result will need, and what the CLI can do."""
        if self._works is not None:
            self._works.ledger.hear(entry, name)
            self._works.decisions.hear(entry, name)
        if name == "init" and isinstance(entry.message, Init):
            self.capabilities = frozenset(entry.message.capabilities)
            if self._works is not None:
                self._works.book.hear_init(entry.message.mcp_servers)
                self._refuse_forbidden(self._works, entry.message.tools)
            if self._works is not None and self.id:
                self._works.serving.name_session(self.id)

    def _refuse_forbidden(self, works: _Works, tools: list[str]) -> None:
        """End a session whose CLI offers what the options take away, before the model sees it."""
        found = forbidden_among(tools, self.options)
        if found:
            self._cause = ForbiddenTool(found)
            works.link.kill()

    def event_happened(self, event: Event) -> None:
        """Answer, settle, or take note."""
        assert self._works is not None
        ledger, handlers = self._works.ledger, self._works.handlers
        match event:
            case (
                PermissionAsked()
                | ElicitationAsked()
                | DialogAsked()
                | HookAsked()
                | ToolCalled()
                | Unanswerable()
            ):
                handlers.start(event, ledger.context())
            case Withdrawn(request_id):
                handlers.withdraw(request_id)
            case TurnStarted(uuid):
                ledger.began(uuid)
            case TurnSettled():
                ledger.settle(event)
            case StateReported("running"):
                self._move(Move.BEGIN)
            # An idle from before our newest prompt may still be on its way.
            case StateReported("idle") if ledger.at_work is None:
                self._move(Move.REST)
            case _:
                pass

    def link_ended(self, status: int) -> None:
        """Settle what is left: cancelled if we closed, failed if the CLI left us."""
        assert self._works is not None
        link, ledger = self._works.link, self._works.ledger
        self._works.handlers.cancel_all()
        if not link.is_closing and self.phase is not Phase.STARTING:
            self._cause = CliExited(
                "the CLI ended in the middle of the session",
                hint="open the conversation again with resume=session.id",
                evidence=link.evidence("turn" if ledger.at_work else self.phase.value, status),
            )
        ledger.settle_all(self._cause)
        if self.phase is not Phase.STARTING:
            is_meant = link.is_closing and self._cause is None
            self._move(Move.COMPLETE if is_meant else Move.FAIL)

    def _caller(self, server: str, deciding: Deciding) -> Caller:
        def notify(message: JsonObject) -> None:
            if self._works is not None and self._works.link.is_open:
                verb = McpMessage(server_name=server, message=dict(message))
                self._works.link.tell(verb, self.options.request_timeout)

        return Caller(
            self.id or "",
            server,
            notify,
            report=self._report_tool,
            elicit=deciding.elicit,
            session=self,
            turn=lambda: None if self._works is None else self._works.ledger.at_work,
            deps=self.options.deps,
        )

    def _report_tool(self, tool: str, error: BaseException) -> None:
        if self._works is not None:
            self._works.link.note(Kind.TOOL_FAILED, tool=tool, error=type(error).__name__)

    def _report_fault(self, where: str, error: BaseException | str) -> None:
        if isinstance(error, BaseException):
            log.error("%s failed", where, exc_info=error)
        else:
            log.error("%s %s", where, error)
        if self._works is not None:
            self._works.link.fault(where, error)

    def _move(self, move: Move) -> None:
        before, self.phase = self.phase, step(self.phase, move)
        if self._works is not None and before is not self.phase:
            self._works.link.note(Kind.PHASE, before=before.value, after=self.phase.value)

    def _at_work(self) -> _Works:
        """The works of a session that can still be spoken to."""
        if self._works is None or (self._initialized is None and self._cause is None):
            raise ChannelClosed("this session has not started", hint="use `async with`")
        if self._cause is not None:
            raise self._cause
        if not self._works.link.is_open:
            raise ChannelClosed("this session is closed", hint="open another session")
        return self._works


@dataclass(frozen=True, slots=True)
class _Works:
    """What runs a session once it is started."""

    link: Link
    handlers: Handlers
    ledger: Ledger
    serving: Serving
    book: ServerBook
    decisions: Decisions


async def _keep(session: Session) -> AsyncGenerator[None, None]:
    """Stand open as long as the session does: a loop that shuts down closes both."""
    try:
        yield
    finally:
        await session.released()
