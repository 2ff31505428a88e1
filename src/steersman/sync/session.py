"""`Session` for synchronous code: one line per method, over the portal."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, overload
from weakref import WeakValueDictionary

from steersman._portal.portal import shared_portal
from steersman._session.session import close_soon, completed
from steersman.agent import Checkpoint, Decorator, EventName, Prompt, Remove, When
from steersman.agent import Session as AsyncSession
from steersman.agent import Turn as AsyncTurn
from steersman.control.context import ContextUsage
from steersman.control.files import Rewound
from steersman.control.handshake import Initialized
from steersman.control.mcp import McpServers, McpServersSet
from steersman.control.models import ModelSet
from steersman.control.permissions import PermissionModeSet
from steersman.control.session import InterruptReceipt
from steersman.control.verbs import Verb
from steersman.errors import RequestTimeout, SteersmanError, UsageError
from steersman.journal import Entry, Kind, Lagged, Phase, TurnResult
from steersman.journal.calls import ToolCallRecord
from steersman.journal.snapshot import SessionEnded, SessionSnapshot, State, StateChanged
from steersman.journal.tasks import AgentNode, Task
from steersman.messages import Message
from steersman.options import Options, PermissionMode
from steersman.options.servers import McpServer
from steersman.permissions.asks import Ask
from steersman.ports import JsonObject, ToolServer
from steersman.sync.callbacks import in_thread, with_threads
from steersman.sync.items import Items
from steersman.sync.turn import Turn, stop

if TYPE_CHECKING:
    from typing import Unpack

    from steersman.options.keywords import OptionKwargs

AnswerT = TypeVar("AnswerT")
T = TypeVar("T")


class Session:
    """One conversation. Opened with `with agent.session() as session`.

    A session has one CLI at a time. A CLI that exits is restarted, and the conversation continues.
    The session runs in the event loop of `steersman.sync`; any other thread may use it. A session
    that is no longer referenced is closed, and so is every session when the program exits.
    """

    def __init__(self, session: AsyncSession, *, closes: bool = False) -> None:
        """Wrap a session that runs in the loop of `steersman.sync`, such as `ToolContext.session`.

        With `closes` the session is closed when this wrapper is freed.
        """
        self.options: Options = session.options
        self._portal = shared_portal().with_grace(session.options.close_grace)
        self._session = session
        self._closes = closes
        self._turns: WeakValueDictionary[str, Turn] = WeakValueDictionary()
        """The MCP servers of the running session."""

    def __del__(self) -> None:
        # This may run wherever the garbage collector does, also in the loop of the session.
        if getattr(self, "_closes", False) and not self._portal.thread.is_lost:
            close_soon(self._session)

    # Start and end

    def start(self) -> Self:
        """Run the CLI and initialize it.

        Raises `LaunchError`, `StartupError`, `NotLoggedIn` or `ProtocolViolation`.
        """
        self._starting(self._session.start)
        return self

    def __enter__(self) -> Self:
        self._starting(self._session.__aenter__)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _starting(self, start: Any) -> None:
        try:
            self._portal.call(start)
        except KeyboardInterrupt:
            # It may have come when the session had just started.
            self._session.abandon()
            raise

    def close(self) -> None:
        """End the session, and wait until the CLI's process tree has exited.

        The end begins at the call, so that interrupting the wait does not keep the CLI alive. May
        be called any number of times. `abandon()` does not wait. Raises `RequestTimeout` if the
        event loop is blocked by an async tool or hook; the session is closed when it is free.
        """
        if not self._portal.thread.is_closed:
            grace = self._portal.grace
            why = "an async tool or hook blocks the event loop, which did not answer"
            hint = (
                "make the tool or hook a plain `def`; the session is closed when the loop is free"
            )
            late = RequestTimeout("close", why, grace, hint=hint)
            self._portal.call_while_free(late, self._session.aclose)

    def abandon(self) -> None:
        """Begin to close the session, without waiting for it. May be called in any thread."""
        if not self._portal.thread.is_lost:
            self._session.abandon()

    def cancel(self) -> None:
        """End the session at once: kill the CLI's process tree and cancel what is open."""
        self._portal.call(self._session.cancel)

    def park(self, timeout: float = 10.0) -> tuple[str, ...]:
        """End the CLI without interrupting it; returns the ids of the asks that wait.

        Turns that have not settled settle as `parked`; `resume_turns()` of the next session of the
        conversation continues them. Needs an inbox in a store. After `timeout` seconds the CLI is
        killed, also if what it waits for is not in its file. Cancelling the wait does not stop it.
        """
        return self._portal.call(self._session.park, timeout)

    # Information

    @property
    def id(self) -> str | None:
        """The session id; known before the start, unless the CLI chooses the conversation.

        The CLI does so with `continue_conversation`, and if `resume` is not an id.
        """
        return self._session.id

    @property
    def is_saved(self) -> bool | None:
        """Whether the CLI has saved this conversation on this machine; `None` if not known."""
        return self._session.is_saved

    @property
    def pid(self) -> int | None:
        """The CLI's process id, if it runs on this machine."""
        return self._session.pid

    @property
    def phase(self) -> Phase:
        """The phase of the session, whatever it waits for."""
        return self._session.phase

    @property
    def cause(self) -> SteersmanError | None:
        """Why the session has ended: the error that its open turns have failed with.

        `None` while it runs, and if it was closed, cancelled or parked.
        """
        return self._session.cause

    @property
    def state(self) -> State:
        """What the session does or waits for."""
        return self._session.state

    @property
    def initialized(self) -> Initialized:
        """What the CLI reported in the handshake: version, models, and more."""
        return self._session.initialized

    @property
    def capabilities(self) -> frozenset[str] | None:
        """What this CLI can do; `None` before the start.

        The names that the CLI lists, more of them at the start of each turn, and the promises that
        hold on its release, such as `continues_turns` and `soft_pause`: see `docs/conformance.md`.
        """
        return self._session.capabilities

    @property
    def cost_usd(self) -> float:
        """The cost of all turns of this session, including turns without a prompt."""
        return self._session.cost_usd

    @property
    def faults(self) -> Mapping[str, str]:
        """The background tasks that fail now, with their errors; they are started again.

        These write to stores: the lease, the ends of turns, the mirror.
        """
        return self._session.faults

    @property
    def restarts(self) -> int:
        """How often the CLI was restarted."""
        return self._session.restarts

    def snapshot(self) -> SessionSnapshot:
        """Return the current state as an immutable value."""
        return self._portal.do(self._session.snapshot)

    def describe(self) -> str:
        """Return the current state as a line of text for users: `waiting for you 40 s`.

        Ends with the promises that do not hold on the release of the CLI, if there are any.
        """
        return self._portal.do(self._session.describe)

    @property
    def tasks(self) -> tuple[Task, ...]:
        """Background tasks and subagents, including those that have ended."""
        return self._portal.do(lambda: self._session.tasks)

    @property
    def agents(self) -> AgentNode:
        """The main agent, and the subagents that it started, as a tree."""
        return self._portal.do(lambda: self._session.agents)

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
        add: Any = self._session.on
        if listener is None:
            register = self._portal.do(add, event)

            def decorate(listener: Callable[[Any], object]) -> Callable[[Any], object]:
                self._portal.do(register, in_thread(listener))
                return listener

            return decorate
        remove = self._portal.do(add, event, in_thread(listener))
        return lambda: self._portal.do(remove)

    def wait_idle(self, timeout: float) -> bool:
        """Wait until nothing runs or is queued, background work included; returns whether it is so.

        A session that has ended is idle.
        """
        return self._until(lambda: self._portal.call(self._session.wait_idle, timeout))

    def finish(self, timeout: float | None = None) -> SessionSnapshot:
        """Accept no more prompts, let everything finish, and close; returns the last snapshot.

        Background work has `CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS` between turns: 10 minutes if the
        CLI's environment does not have it, and 0 is for ever. What then still runs is stopped.
        Raises `RequestTimeout` (also a `TimeoutError`) if it takes longer. The session then stays
        open, and accepts prompts again.
        """
        return self._until(lambda: self._portal.call(self._session.finish, timeout))

    # Readers of the journal

    @property
    def last_seq(self) -> int:
        """The number of the newest journal entry."""
        return self._session.last_seq

    def messages(self, *, after: int = 0) -> Iterator[Message]:
        """Iterate over the messages after entry number `after`, until the session ends.

        Raises `ReaderLagged` if some of them are no longer in memory.
        """
        return Items(self._portal, lambda: self._session.messages(after=after), self._stop)

    def raw(self, *, after: int = 0) -> Iterator[bytes]:
        """Iterate over the lines of the conversation as received, without control lines."""
        return Items(self._portal, lambda: self._session.raw(after=after), self._stop)

    def journal(
        self, *, after: int | None = None, kinds: Collection[Kind] | None = None
    ) -> Iterator[Entry | Lagged]:
        """Iterate over all entries by number; yields `Lagged` for those neither here nor stored.

        With `kinds` only over entries of those kinds.
        """
        session = self._session
        return Items(self._portal, lambda: session.journal(after=after, kinds=kinds), self._stop)

    def redacted(self, line: bytes) -> bytes:
        """Return `line` without known secrets, as the journal file has it."""
        return self._session.redacted(line)

    # Prompts

    def send(
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
        return self._turn(
            self._portal.call(
                self._session.send,
                prompt,
                when=when,
                key=key,
                query=query,
                uuid=uuid,
                fields=fields,
            )
        )

    def resume_turns(self) -> list[Turn]:
        """Continue the turns of the conversation that no session has settled, and return them.

        Needs an inbox in a store. Each prompt is sent again, in order; the model learns what was
        decided meanwhile. Raises `StoreError` if the store cannot be reached.
        """
        return [*map(self._turn, self._portal.call(self._session.resume_turns))]

    def run(self, prompt: Prompt, *, when: When = "later", key: str | None = None) -> TurnResult:
        """Send `prompt`, wait for its turn, and return the result. Raises `TurnFailed`."""
        return completed(self.send(prompt, when=when, key=key).result())

    def command(self, text: str) -> Turn:
        """Send a slash command, such as `/compact`, for the CLI to run."""
        return self._turn(self._portal.call(self._session.command, text))

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The turns of this session, in the order of their prompts.

        All that have not settled, and the last 200 that have.
        """
        return tuple(map(self._turn, self._portal.do(lambda: self._session.turns)))

    def turn(self, uuid: str) -> Turn:
        """Return the turn with this uuid. Raises `UsageError` if it is not among `turns`."""
        return self._turn(self._portal.do(self._session.turn, uuid))

    def withdraw(self, turn: Turn) -> bool:
        """Cancel a prompt that the model has not seen; returns whether that worked."""
        return self._own(turn).withdraw()

    def interrupt(self, *, turn: Turn | None = None, also_queued: bool = False) -> InterruptReceipt:
        """Stop the current turn, or `turn`, and wait until it has settled.

        The receipt lists the prompts that still wait; `also_queued=True` cancels those too.
        Raises `RequestTimeout` if the CLI does not answer.
        """
        if turn is not None:
            return self._own(turn).interrupt(also_queued=also_queued)
        return self._portal.call(self._session.interrupt, also_queued=also_queued)

    # Pausing

    def pause(self, *, hard: bool = False) -> None:
        """Hold the next tool, and every prompt that was not sent yet.

        A tool that runs continues, and so does the model's current message. `hard=True` stops the
        CLI's whole process tree, including running tools. Raises `RequestRefused` if the CLI is
        too old to be held without `hard=True`.
        """
        self._portal.call(self._session.pause, hard=hard)

    def resume(self) -> None:
        """Continue a paused session; does nothing to one that is not paused."""
        self._portal.call(self._session.resume)

    # Rewinding

    def checkpoint(self) -> Checkpoint:
        """Return the current point in the conversation, for `rewind`."""
        return self._portal.do(self._session.checkpoint)

    def rewind(self, checkpoint: Checkpoint) -> None:
        """Reset the conversation to `checkpoint`, and with file checkpointing the files too.

        The session must be idle. The CLI is restarted at that point. Later messages stay in the
        CLI's session file, but are no longer part of the conversation. If the caller is cancelled
        after the CLI was closed, the rewind is completed all the same.
        """
        self._portal.call(self._session.rewind, checkpoint)

    def fork(self, **overrides: Unpack[OptionKwargs]) -> Session:
        """Return another session, not started, that continues from here independently."""
        words = with_threads(self.options, overrides)
        return Session(self._portal.do(lambda: self._session.fork(**words)), closes=True)

    # Verbs

    def call(self, verb: Verb[AnswerT], *, timeout: float | None = None) -> AnswerT:
        """Send `verb` to the CLI and wait for its answer.

        Raises `RequestRefused` if the CLI refuses and `RequestTimeout` if it does not answer.
        Cancelling the wait sends `control_cancel_request` and forgets the id.
        """
        return self._portal.call(lambda: self._session.call(verb, timeout=timeout))

    def control(
        self, subtype: str, /, *, timeout: float | None = None, **fields: Any
    ) -> dict[str, Any]:
        """Send a control request that has no class here; returns the answer as received."""
        return self._portal.call(self._session.control, subtype, timeout=timeout, **fields)

    def set_model(self, model: str | None) -> ModelSet:
        """Use another model from the next API call on; `None` is the default model."""
        return self._portal.call(self._session.set_model, model)

    def set_permission_mode(self, mode: PermissionMode) -> PermissionModeSet:
        """Change the permission mode."""
        return self._portal.call(self._session.set_permission_mode, mode)

    def rewind_files(self, user_message_id: str, *, dry_run: bool = False) -> Rewound:
        """Restore files to their state before a prompt; needs file checkpointing."""
        return self._portal.call(self._session.rewind_files, user_message_id, dry_run=dry_run)

    def mcp_status(self) -> McpServers:
        """Return the status of the MCP servers."""
        return self._portal.call(self._session.mcp_status)

    def mcp_reconnect(self, server_name: str) -> None:
        """Have the CLI reconnect to an external MCP server. Raises `RequestRefused`."""
        self._portal.call(self._session.mcp_reconnect, server_name)

    def mcp_toggle(self, server_name: str, *, enabled: bool) -> None:
        """Disable or enable an MCP server."""
        self._portal.call(self._session.mcp_toggle, server_name, enabled=enabled)

    def mcp_set_servers(
        self, servers: Mapping[str, ToolServer | McpServer | JsonObject | None]
    ) -> McpServersSet:
        """Replace the external servers that this method added before, and add in-process ones.

        In-process servers that are not named stay; `None` removes one.
        Raises `McpNotReady` if an in-process server cannot be attached.
        """
        return self._portal.call(self._session.mcp_set_servers, servers)

    def context_usage(self) -> ContextUsage:
        """Return what fills the context window, and how much is left."""
        return self._portal.call(self._session.context_usage)

    def stop_task(self, task_id: str) -> None:
        """Stop a background task; the CLI ignores an unknown id."""
        self._portal.call(self._session.stop_task, task_id)

    # Helpers

    def _turn(self, turn: AsyncTurn) -> Turn:
        """Return the wrapper of a turn: the same one, as long as anything refers to it."""
        return self._turns.get(turn.uuid) or self._turns.setdefault(
            turn.uuid, Turn(self, turn, self._portal)
        )

    def _own(self, turn: object) -> Turn:
        if not isinstance(turn, Turn) or turn.session is not self:
            raise UsageError("turn", turn, "a Turn of this session")
        return turn

    def _until(self, wait: Callable[[], T]) -> T:
        try:
            return wait()
        except KeyboardInterrupt:
            self._stop()
            raise

    def _stop(self) -> None:
        stop(self._portal, self._session.interrupt)
