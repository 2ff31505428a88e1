"""Session: one conversation, and the public face of its parts."""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Collection,
    Coroutine,
    Mapping,
)
from contextlib import suppress
from types import AsyncGeneratorType, TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, cast, get_args, overload

from steersman._prompt_content import Prompt, line_fields, prompt_content
from steersman._session.cli import HOW_TO_START, NOT_STARTED, HomeLoop
from steersman._session.dispatcher import Dispatcher
from steersman._session.durability import PARKING, NoParking
from steersman._session.lifecycle import Lifecycle
from steersman._session.listeners import Decorator, EventName, Remove
from steersman._session.mcp_servers import McpControls
from steersman._session.parts import Parts, build
from steersman._session.reading import SessionReaders
from steersman._session.requests.hooks import run_session_start
from steersman._session.sent_prompts import Checkpoint, PromptSender
from steersman._session.setup import SessionSetup
from steersman._session.steering import Interrupts, Pause, wait_for_rest
from steersman._session.turn import Turn, When
from steersman.control.context import ContextUsage, GetContextUsage
from steersman.control.files import RewindFiles, Rewound
from steersman.control.handshake import Initialize, Initialized
from steersman.control.mcp import McpServers, McpServersSet
from steersman.control.models import ModelSet, SetModel
from steersman.control.permissions import PermissionModeSet, SetPermissionMode
from steersman.control.session import EndSession, InterruptReceipt
from steersman.control.tasks import StopTask
from steersman.control.verbs import Verb
from steersman.errors import (
    ChannelClosed,
    Described,
    RequestRefused,
    RequestTimeout,
    SteersmanError,
    TurnFailed,
    UsageError,
)
from steersman.journal import Entry, Kind, Lagged, Move, Phase, TurnResult
from steersman.journal.calls import ToolCallRecord
from steersman.journal.snapshot import SessionEnded, SessionSnapshot, State, StateChanged, describe
from steersman.journal.tasks import AgentNode, Task
from steersman.messages.parsing import Message
from steersman.options import Options, PermissionMode, checks
from steersman.options.servers import McpServer
from steersman.permissions.asks import Ask
from steersman.ports import JsonObject, Parking, ToolServer

if TYPE_CHECKING:
    from typing import Unpack

    from steersman.options.keywords import OptionKwargs

__all__ = ["WAIT_LONGER", "Session", "State", "close_soon", "completed", "start_ahead"]

AnswerT = TypeVar("AnswerT")
T = TypeVar("T")

MakeParking = Callable[[Parts, Lifecycle], Parking]
"""Makes what parks a session."""


OWN_CHECKPOINT = "a Checkpoint of this conversation"

WAIT_LONGER = "wait again, or for longer: nothing was stopped"
"""The hint of a `RequestTimeout` that only ends a wait."""


def _is_command(given: object) -> bool:
    return isinstance(given, str) and given.startswith("/") and len(given) > 1


def _is_seconds(given: object) -> bool:
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    return given is None or (is_number and cast("float", given) > 0)


def _is_name(given: object) -> bool:
    return isinstance(given, str) and given != ""


_check_checkpoint = checks.instance_of(Checkpoint, OWN_CHECKPOINT)
_check_command = checks.must_be("a slash command, such as /compact", _is_command)
_check_model = checks.optional(checks.must_be("a model's name, or None", _is_name))
_check_subtype = checks.must_be("the CLI's name for a control request", _is_name)
_check_timeout = checks.must_be("seconds above 0, or None", _is_seconds)
_check_verb = checks.instance_of(Verb, "a value of steersman.control, such as SetModel(...)")


class Session:
    """One conversation. Opened with `async with agent.session() as session`.

    A session has one CLI at a time. A CLI that exits is restarted, and the conversation continues.
    The session runs in the event loop that started it; any task of that loop may use it.
    """

    def __init__(self, setup: SessionSetup, parking: MakeParking | None = None) -> None:
        self.options: Options = setup.options
        self._parts = parts = build(setup, self)
        self._lifecycle = Lifecycle(parts, Dispatcher(parts))
        self._parking = (parking or _not_parked)(parts, self._lifecycle)
        self._close = self._parking.close
        self._pause = Pause(parts, self._lifecycle)
        self._interrupts = Interrupts(parts, self._lifecycle)
        self._mcp = McpControls(
            self.call,
            parts.mcp_status,
            parts.responder.servers,
            parts.caller_for,
            setup.as_tool_server,
        )
        """The MCP servers of the running session."""
        self._readers = SessionReaders(self, parts)
        self._sender = PromptSender(parts, self._lifecycle, self._readers)
        self._closer: AsyncGenerator[None, None] | None = None
        self._is_ready = False
        """Whether the session was started ahead; `start()` takes it as it is, once."""

    # Start and end

    async def start(self) -> Self:
        """Run the CLI and initialize it.

        Raises `LaunchError`, `StartupError`, `NotLoggedIn` or `ProtocolViolation`.
        """
        self._parts.slot.home.enter()
        if self._is_ready:
            self._is_ready = False
            return self
        await self._lifecycle.start()
        self._closer = _close_with_loop(self._lifecycle, self._parts.slot.home, self._close)
        await anext(self._closer)
        self._parking.watch()
        await self._open()
        return self

    async def _open(self) -> None:
        """Call the `SessionStart` hooks, and send the context and the prompts that they add."""
        hooking = self._parts.responder.hooks
        for opening in await run_session_start(hooking, self.options, self.id or ""):
            if opening.additional_context:
                await self.send(opening.additional_context, query=False)
            if opening.initial_user_message:
                await self.send(opening.initial_user_message)

    async def __aenter__(self) -> Self:
        self._parts.slot.home.check()
        # A session that was started before is only closed at the end of the block.
        return self if self._closer is not None else await self.start()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    def aclose(self) -> Coroutine[Any, Any, None]:
        """End the session, and wait until the CLI's process tree has exited.

        The end begins at the call, not at the first await, so that cancelling the wait does not
        keep the CLI alive. May be called any number of times. `abandon()` does not wait. With an
        inbox in a store, turns that are left are parked: `park()`. In a process that was forked
        since the start it does nothing: the session is the parent's.
        """
        if not self._parts.slot.home.is_here:
            return self._close_in_its_loop()
        self.abandon()
        return self._wait_closed()

    def abandon(self) -> None:
        """Begin to close the session, without waiting for it. May be called in any thread."""
        self._parts.slot.home.call(self._close)

    async def cancel(self) -> None:
        """End the session at once: kill the CLI's process tree and cancel what is open."""
        self._parts.slot.home.check()
        self._lifecycle.close(Move.CANCEL)
        await self._wait_closed()

    async def park(self, timeout: float = PARKING) -> tuple[str, ...]:
        """End the CLI without interrupting it; returns the ids of the asks that wait.

        Turns that have not settled settle as `parked`; `resume_turns()` of the next session of the
        conversation continues them. Needs an inbox in a store. After `timeout` seconds the CLI is
        killed, also if what it waits for is not in its file. Cancelling the wait does not stop it.
        """
        self._parts.slot.home.check()
        await self._parking.park(_seconds(timeout, PARKING))
        await self._wait_closed()
        return self._parking.waits_for

    async def _close_in_its_loop(self) -> None:
        """Do what `aclose()` does, called in another thread and awaited in the session's loop."""
        home = self._parts.slot.home
        # A forked child that leaves `async with` has nothing to close.
        if not self._lifecycle.has_ended and not home.is_lost:
            home.check()
            self.abandon()
            await self._wait_closed()

    async def _wait_closed(self) -> None:
        await self._lifecycle.wait_closed()
        closer, self._closer = self._closer, None
        # A loop that shuts down closes it already, and waits for the same end.
        is_closing = isinstance(closer, AsyncGeneratorType) and closer.ag_running
        if closer is not None and not is_closing:
            await closer.aclose()

    # Information

    @property
    def id(self) -> str | None:
        """The session id; known before the start, unless the CLI chooses the conversation.

        The CLI does so with `continue_conversation`, and if `resume` is not an id.
        """
        return self._parts.slot.session_id

    @property
    def is_saved(self) -> bool | None:
        """Whether the CLI has saved this conversation on this machine; `None` if not known."""
        place = self._parts.slot.place
        return None if place is None else self._parts.setup.is_saved(place)

    @property
    def pid(self) -> int | None:
        """The CLI's process id, if it runs on this machine."""
        return None if self._parts.slot.running is None else self._parts.slot.running.link.pid

    @property
    def phase(self) -> Phase:
        """The phase of the session, whatever it waits for."""
        return self._parts.status.phase

    @property
    def cause(self) -> SteersmanError | None:
        """Why the session has ended: the error that its open turns have failed with.

        `None` while it runs, and if it was closed, cancelled or parked.
        """
        return self._parts.slot.cause if self._parts.status.phase.is_over else None

    @property
    def state(self) -> State:
        """What the session does or waits for."""
        return self._parts.status.state

    @property
    def initialized(self) -> Initialized:
        """What the CLI reported in the handshake: version, models, and more."""
        found = self._parts.slot.initialized
        if found is None:
            raise ChannelClosed(NOT_STARTED, hint=HOW_TO_START)
        return found

    @property
    def capabilities(self) -> frozenset[str] | None:
        """What this CLI can do; `None` before the start.

        The names that the CLI lists, more of them at the start of each turn, and the promises that
        hold on its release, such as `continues_turns` and `soft_pause`: see `docs/conformance.md`.
        """
        return self._parts.slot.capabilities

    @property
    def cost_usd(self) -> float:
        """The cost of all turns of this session, including turns without a prompt."""
        return self._parts.prompts.totals.cost_usd

    @property
    def restarts(self) -> int:
        """How often the CLI was restarted."""
        return self._lifecycle.restarts

    @property
    def faults(self) -> Mapping[str, str]:
        """The background tasks that fail now, with their errors; they are started again.

        These write to stores: the lease, the ends of turns, the mirror.
        """
        return self._parts.background.faults

    def snapshot(self) -> SessionSnapshot:
        """Return the current state as an immutable value."""
        return self._parts.snapshot()

    def describe(self) -> str:
        """Return the current state as a line of text for users: `waiting for you 40 s`.

        Ends with the promises that do not hold on the release of the CLI, if there are any.
        """
        said = describe(self._parts.snapshot(), self._parts.journal.clock())
        release = self._parts.slot.release
        lacks = f"; not on CLI {release.version}: {', '.join(release.lacks)}"
        return said + lacks if release.lacks else said

    @property
    def tasks(self) -> tuple[Task, ...]:
        """Background tasks and subagents, including those that have ended."""
        return tuple(self._parts.prompts.totals.tasks.all)

    @property
    def agents(self) -> AgentNode:
        """The main agent, and the subagents that it started, as a tree."""
        return self._parts.prompts.totals.agents(self.state, self._parts.status.started)

    @overload
    def on(self, event: Literal["message"], listener: Callable[[Message], object]) -> Remove: ...
    @overload
    def on(self, event: Literal["message"]) -> Decorator[Message]: ...
    @overload
    def on(
        self,
        event: Literal["tool_call", "tool_result"],
        listener: Callable[[ToolCallRecord], object],
    ) -> Remove: ...
    @overload
    def on(self, event: Literal["tool_call", "tool_result"]) -> Decorator[ToolCallRecord]: ...
    @overload
    def on(
        self, event: Literal["state_change"], listener: Callable[[StateChanged], object]
    ) -> Remove: ...
    @overload
    def on(self, event: Literal["state_change"]) -> Decorator[StateChanged]: ...
    @overload
    def on(self, event: Literal["ask"], listener: Callable[[Ask], object]) -> Remove: ...
    @overload
    def on(self, event: Literal["ask"]) -> Decorator[Ask]: ...
    @overload
    def on(
        self, event: Literal["error"], listener: Callable[[SteersmanError], object]
    ) -> Remove: ...
    @overload
    def on(self, event: Literal["error"]) -> Decorator[SteersmanError]: ...
    @overload
    def on(
        self, event: Literal["complete"], listener: Callable[[SessionEnded], object]
    ) -> Remove: ...
    @overload
    def on(self, event: Literal["complete"]) -> Decorator[SessionEnded]: ...
    def on(self, event: EventName, listener: Callable[[Any], object] | None = None) -> object:
        """Call `listener` with each such event; returns a function that removes it.

        Without `listener` it is a decorator: `@session.on("ask")`. The listener may be async. It is
        called after the event, in order, and its failure does not affect the session.
        """
        if listener is not None:
            return self._parts.listeners.add(event, listener)
        return self._parts.listeners.decorator(event)

    async def wait_idle(self, timeout: float) -> bool:
        """Wait until nothing runs or is queued, background work included; returns whether it is so.

        A session that has ended is idle.
        """
        if timeout is None:  # pyright: ignore[reportUnnecessaryComparison]
            raise UsageError("timeout", timeout, "seconds above 0")
        seconds = _seconds(timeout, timeout)
        self._parts.slot.home.check()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not (self._lifecycle.is_at_rest or self._parts.status.phase.is_over):
                    await self._parts.journal.signal.wait()
        return self._lifecycle.is_at_rest or self._parts.status.phase.is_over

    async def finish(self, timeout: float | None = None) -> SessionSnapshot:
        """Accept no more prompts, let everything finish, and close; returns the last snapshot.

        Background work has `CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS` between turns: 10 minutes if the
        CLI's environment does not have it, and 0 is for ever. What then still runs is stopped.
        Raises `RequestTimeout` (also a `TimeoutError`) if it takes longer. The session then stays
        open, and accepts prompts again.
        """
        self._parts.slot.home.check()
        if self._parts.status.phase is Phase.IDLE:
            self._parts.slot.require()
        seconds = None if timeout is None else _seconds(timeout, timeout)
        self._sender.waiting += 1
        try:
            async with asyncio.timeout(seconds):
                await wait_for_rest(self._parts, self._lifecycle)
        except TimeoutError:
            what, had = "the session has not finished its work", seconds or 0.0
            raise RequestTimeout("finish", what, had, hint=WAIT_LONGER) from None
        finally:
            self._sender.waiting -= 1
        await self.aclose()
        return self.snapshot()

    # Readers of the journal

    @property
    def last_seq(self) -> int:
        """The number of the newest journal entry."""
        return self._readers.journal.last_seq

    def messages(self, *, after: int = 0) -> AsyncIterator[Message]:
        """Iterate over the messages after entry number `after`, until the session ends.

        Raises `ReaderLagged` if some of them are no longer in memory.
        """
        return self._readers.messages(after)

    def raw(self, *, after: int = 0) -> AsyncIterator[bytes]:
        """Iterate over the lines of the conversation as received, without control lines."""
        return self._readers.lines(after)

    def journal(
        self, *, after: int | None = None, kinds: Collection[Kind] | None = None
    ) -> AsyncIterator[Entry | Lagged]:
        """Iterate over all entries by number; yields `Lagged` for those neither here nor stored.

        With `kinds` only over entries of those kinds.
        """
        return self._readers.entries(after, kinds)

    def redacted(self, line: bytes) -> bytes:
        """Return `line` without known secrets, as the journal file has it."""
        return self._readers.redacted(line)

    # Prompts

    async def send(
        self,
        prompt: Prompt,
        *,
        when: When = "later",
        key: str | None = None,
        query: bool = True,
        uuid: str | None = None,
        fields: JsonObject | None = None,
    ) -> Turn:
        """Send `prompt` unchanged, and return its turn.

        Returns once the prompt is written, or queued behind another. Each `later` prompt gets a
        turn of its own. A `next` prompt becomes part of the current turn at its next tool
        boundary; `now` ends that turn after its running tool. Prompts with the same `key` are the
        same turn, however often they are sent, also by another process that resumes the
        conversation; `KeyTaken` is raised for the key of another prompt. With `query=False` the
        text is only added to the conversation, for the next prompt. `uuid` is the prompt's own,
        and `fields` are further fields of its line, as the CLI knows them.
        """
        if not isinstance(query, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError("query", query, "True or False")
        if when not in get_args(When):
            raise UsageError("when", when, "one of later, next, now")
        line: dict[str, Any] = {} if fields is None else line_fields(fields)
        content = prompt_content(prompt, may_be_empty=True)
        if self.options.verbatim_prompts:
            # Without this field the CLI runs slash commands and reads files named by `@`.
            line["client_composed"] = True
            if isinstance(content, str) and content.startswith("/"):
                self._check_not_run(content)
        if not query:
            line["shouldQuery"] = False
        return await self._sender.send(content, line, when, key, uuid)

    async def resume_turns(self) -> list[Turn]:
        """Continue the turns of the conversation that no session has settled, and return them.

        Needs an inbox in a store. Each prompt is sent again, in order; the model learns what was
        decided meanwhile. Raises `StoreError` if the store cannot be reached.
        """
        return await self._sender.resume_turns()

    async def run(
        self, prompt: Prompt, *, when: When = "later", key: str | None = None
    ) -> TurnResult:
        """Send `prompt`, wait for its turn, and return the result. Raises `TurnFailed`."""
        return completed(await (await self.send(prompt, when=when, key=key)))

    def _check_not_run(self, text: str) -> None:
        """Refuse a slash command that an older CLI would run although we marked it as text."""
        self._sender.require_open()
        if not self.initialized.capabilities:
            hint = "if it is meant as a command, use session.command()"
            raise UsageError("prompt", text, "a text this old CLI does not run: no `/`", hint=hint)

    async def command(self, text: str) -> Turn:
        """Send a slash command, such as `/compact`, for the CLI to run."""
        _check_command("text", text)
        return await self._sender.send(text, {}, "later", None)

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The turns of this session, in the order of their prompts.

        All that have not settled, and the last 200 that have.
        """
        return self._sender.known.all

    def turn(self, uuid: str) -> Turn:
        """Return the turn with this uuid. Raises `UsageError` if it is not among `turns`."""
        return self._sender.known.find(uuid)

    async def withdraw(self, turn: Turn) -> bool:
        """Cancel a prompt that the model has not seen; returns whether that worked."""
        self._require_own("turn", turn)
        return await self._interrupts.withdraw(turn)

    async def interrupt(
        self, *, turn: Turn | None = None, also_queued: bool = False
    ) -> InterruptReceipt:
        """Stop the current turn, or `turn`, and wait until it has settled.

        The receipt lists the prompts that still wait; `also_queued=True` cancels those too.
        Raises `RequestTimeout` if the CLI does not answer.
        """
        if turn is not None:
            self._require_own("turn", turn)
        checks.flag("also_queued", also_queued)
        return await self._interrupts.interrupt(turn, also_queued=also_queued)

    def _require_own(self, name: str, turn: object) -> None:
        if not isinstance(turn, Turn) or turn.session is not self:
            raise UsageError(name, turn, "a Turn of this session")
        self._parts.slot.home.check()

    # Pausing

    async def pause(self, *, hard: bool = False) -> None:
        """Hold the next tool, and every prompt that was not sent yet.

        A tool that runs continues, and so does the model's current message. `hard=True` stops the
        CLI's whole process tree, including running tools. Raises `RequestRefused` if the CLI is
        too old to be held without `hard=True`.
        """
        checks.flag("hard", hard)
        await self._pause.begin(hard=hard)

    async def resume(self) -> None:
        """Continue a paused session; does nothing to one that is not paused."""
        await self._lifecycle.ready()
        self._pause.end()

    # Rewinding

    def checkpoint(self) -> Checkpoint:
        """Return the current point in the conversation, for `rewind`."""
        if self._parts.prompts.totals.last_message is None or self.id is None:
            raise UsageError(
                "checkpoint", Described("no turn yet"), "a session in which the model has spoken"
            )
        last_message = self._parts.prompts.totals.last_message
        return Checkpoint(self.id, last_message, self._sender.count.checkpoint())

    async def rewind(self, checkpoint: Checkpoint) -> None:
        """Reset the conversation to `checkpoint`, and with file checkpointing the files too.

        The session must be idle. The CLI is restarted at that point. Later messages stay in the
        CLI's session file, but are no longer part of the conversation. If the caller is cancelled
        after the CLI was closed, the rewind is completed all the same.
        """
        _check_checkpoint("checkpoint", checkpoint)
        if checkpoint.session_id != self.id:
            raise UsageError("checkpoint", checkpoint, OWN_CHECKPOINT)
        later = self._sender.count.first_after(checkpoint.prompts)
        if later is not None and self.options.enable_file_checkpointing:
            await self.rewind_files(later)
        await self._lifecycle.rewind(
            checkpoint.message_uuid, lambda: self._sender.count.rewind(checkpoint.prompts)
        )

    def fork(self, **overrides: Unpack[OptionKwargs]) -> Session:
        """Return another session, not started, that continues from here independently."""
        place = self._parts.slot.place
        if self._parts.setup.fork is None or place is None:
            raise UsageError("session", self, "a session whose id is known")
        return cast("Session", self._parts.setup.fork(place, overrides))

    # Verbs

    async def call(self, verb: Verb[AnswerT], *, timeout: float | None = None) -> AnswerT:
        """Send `verb` to the CLI and wait for its answer.

        Raises `RequestRefused` if the CLI refuses and `RequestTimeout` if it does not answer.
        Cancelling the wait sends `control_cancel_request` and forgets the id.
        """
        _check_verb("verb", verb)
        _check_no_hooks(verb)
        cli = await self._lifecycle.responsive(verb.operation)
        missing = self._parts.slot.lacks(verb)
        if missing:
            lacks = ", ".join(sorted(missing))
            reason = f"this CLI is too old for it: it has no {lacks}"
            raise RequestRefused(verb.operation, reason, hint="update the CLI")
        patience = max(self.options.request_timeout, verb.patience or 0)
        self._parts.slot.sends(verb.operation)
        answer = await cli.link.call(verb, _seconds(timeout, patience))
        self._parts.slot.record_change(verb)
        if isinstance(verb, EndSession):
            # The CLI exits by itself now, and must not be restarted.
            self.abandon()
        return answer

    async def control(
        self, subtype: str, /, *, timeout: float | None = None, **fields: Any
    ) -> dict[str, Any]:
        """Send a control request that has no class here; returns the answer as received."""
        _check_subtype("subtype", subtype)
        plain = checks.plain("fields", fields)
        seconds = _seconds(timeout, self.options.request_timeout)
        cli = await self._lifecycle.responsive(subtype)
        self._parts.slot.sends(subtype)
        answer = await cli.link.control(subtype, plain, seconds)
        return answer.raw

    async def set_model(self, model: str | None) -> ModelSet:
        """Use another model from the next API call on; `None` is the default model."""
        _check_model("model", model)
        return await self.call(SetModel(model=model))

    async def set_permission_mode(self, mode: PermissionMode) -> PermissionModeSet:
        """Change the permission mode."""
        checks.permission_mode("mode", mode)
        return await self.call(SetPermissionMode(mode=mode))

    async def rewind_files(self, user_message_id: str, *, dry_run: bool = False) -> Rewound:
        """Restore files to their state before a prompt; needs file checkpointing."""
        return await self.call(RewindFiles(user_message_id=user_message_id, dry_run=dry_run))

    async def mcp_status(self) -> McpServers:
        """Return the status of the MCP servers."""
        return await self._mcp.status()

    async def mcp_reconnect(self, server_name: str) -> None:
        """Have the CLI reconnect to an external MCP server. Raises `RequestRefused`."""
        await self._mcp.reconnect(server_name)

    async def mcp_toggle(self, server_name: str, *, enabled: bool) -> None:
        """Disable or enable an MCP server."""
        await self._mcp.toggle(server_name, enabled=enabled)

    async def mcp_set_servers(
        self, servers: Mapping[str, ToolServer | McpServer | JsonObject | None]
    ) -> McpServersSet:
        """Replace the external servers that this method added before, and add in-process ones.

        In-process servers that are not named stay; `None` removes one.
        Raises `McpNotReady` if an in-process server cannot be attached.
        """
        return await self._mcp.set_servers(servers)

    async def context_usage(self) -> ContextUsage:
        """Return what fills the context window, and how much is left."""
        return await self.call(GetContextUsage())

    async def stop_task(self, task_id: str) -> None:
        """Stop a background task; the CLI ignores an unknown id."""
        await self.call(StopTask(task_id=task_id))


def _not_parked(parts: Parts, lifecycle: Lifecycle) -> Parking:
    return NoParking(parts.options.inbox, lifecycle.close)


async def start_ahead(session: Session) -> Session:
    """Start a session for a caller who will start it later."""
    await session.start()
    session._is_ready = True  # pyright: ignore[reportPrivateUsage]
    return session


def close_soon(session: Session, first: Callable[[], object] = lambda: None) -> bool:
    """Close a session that is open, soon and in its loop, and call `first` there before that.

    Returns whether it was open. For finalizers: the garbage collector calls them in any thread, and
    in the loop also in the middle of a step of the session itself.
    """
    lifecycle = session._lifecycle  # pyright: ignore[reportPrivateUsage]
    if not lifecycle.is_open:
        return False

    def close() -> None:
        first()
        session.abandon()

    session._parts.slot.home.post(close)  # pyright: ignore[reportPrivateUsage]
    return True


def completed(result: TurnResult) -> TurnResult:
    """Return the result of a turn. Raises `TurnFailed` if the turn did not complete."""
    if result.outcome != "completed":
        raise TurnFailed(
            result.outcome,
            result.reason,
            text=result.text,
            hint="" if result.cause is None else result.cause.hint,
            cost_usd=result.cost_usd,
            usage=result.usage,
        ) from result.cause
    return result


def _check_no_hooks(verb: object) -> None:
    if isinstance(verb, Initialize) and verb.hooks is not None:
        raise UsageError("verb", verb, "an Initialize without hooks: they would replace ours")


def _seconds(given: float | None, otherwise: float) -> float:
    _check_timeout("timeout", given)
    return otherwise if given is None else given


async def _close_with_loop(
    life: Lifecycle, home: HomeLoop, close: Callable[[], None]
) -> AsyncGenerator[None, None]:
    """Close a session that is still open when its event loop shuts down.

    The loop closes the async generators that it knows; this one is open as long as the session.
    """
    try:
        yield
    finally:
        if not life.has_ended and not home.is_lost:
            close()
            await life.wait_closed()
