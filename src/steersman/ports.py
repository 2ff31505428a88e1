"""Every port of a session, on one page.

A session reaches the outside world only through these protocols.

    Transport   -> transports/     starts a CLI somewhere
    Channel     -> transports/     the connection to one running CLI
    Receiver    -> _session/       receives the output of the CLI
    ToolServer  -> tools/          an MCP server in this process
    Approver    -> host program    decides whether a tool may run
    Asks        -> inbox/          keeps asks until the user answers
    DurableWork -> inbox/, stores/ keeps leases and turns of conversations
    Durability  -> durable/        keeps those of one session
    HeldCalls   -> durable/        holds calls that will be asked about
    Parking     -> durable/        ends a session whose turns are to be continued
    Sink        -> stores/         writes the journal to a store
    SessionStore -> stores/        keeps the entries of conversations
    Mirror      -> mirror/         copies one conversation to a SessionStore
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

from steersman._json import Json, JsonDict, JsonObject
from steersman.control.mcp import TOOL_USE_ID_META
from steersman.journal import Entry
from steersman.permissions import (
    Ask,
    CanUseTool,
    Decision,
    DialogAnswer,
    Elicitation,
    ElicitationAnswer,
    Payload,
    PermissionContext,
    QuestionAnswer,
    QuestionAsk,
    UserDialog,
)
from steersman.transcripts.keys import (
    SessionKey,
    SessionListSubkeysKey,
    SessionStoreEntry,
    SessionStoreListEntry,
    SessionSummaryEntry,
)

if TYPE_CHECKING:
    from steersman.hooks.registry import Registered

__all__ = [
    "INTERNAL_ERROR",
    "INVALID_PARAMS",
    "METHOD_NOT_FOUND",
    "TOOL_USE_ID_META",
    "Approver",
    "Asks",
    "Caller",
    "Channel",
    "Clock",
    "Conversation",
    "DialogHandler",
    "Durability",
    "DurableAsks",
    "DurableWork",
    "ElicitationHandler",
    "FileArgument",
    "HeldCalls",
    "Json",
    "JsonDict",
    "JsonObject",
    "Launch",
    "Mirror",
    "Parking",
    "QuestionHandler",
    "Receiver",
    "SessionAsks",
    "SessionStore",
    "Sink",
    "StoredAsk",
    "StoredTurn",
    "SupportsAwaitAnswer",
    "SupportsEndAfter",
    "SupportsLastSeq",
    "SupportsOpen",
    "SupportsRead",
    "SupportsStore",
    "SupportsStream",
    "SupportsSuspended",
    "SupportsWork",
    "ToolServer",
    "Transport",
    "jsonrpc_error",
]

METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

Clock = Callable[[], float]
"""Returns seconds since the epoch. Clocks may jump, so this one only dates journal entries."""


@dataclass(frozen=True, slots=True)
class FileArgument:
    """A command line argument that ends in the path of a file of `Launch.files`."""

    prefix: str
    """The part of the argument before the path, such as `--settings=`."""
    name: str
    """The file's key in `Launch.files`."""


@dataclass(frozen=True, slots=True)
class Launch:
    """A command to run. `argv` holds nothing private; `env` and `files` may."""

    argv: tuple[str | FileArgument, ...]
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """The whole environment of the CLI; a transport adds only names that begin `STEERSMAN_`."""
    cwd: str | None = None
    user: str | None = None
    """The name of the user to run the CLI as; this process needs the right to become that user."""
    files: Mapping[str, bytes] = field(default_factory=dict[str, bytes], repr=False)
    """Files written with mode 0600 before the start, and removed after the process tree exited."""


class Receiver(Protocol):
    """Receives the output of one running CLI. All methods are called in the event loop's thread.

    A chunk may end anywhere, also inside a line. No method may block or raise.
    """

    def data_received(self, data: bytes) -> None:
        """Receive the next chunk of stdout."""
        ...

    def stderr_received(self, data: bytes) -> None:
        """Receive the next chunk of stderr."""
        ...

    def exited(self, status: int) -> None:
        """Handle the exit of the CLI's whole process tree.

        Called exactly once, after the last chunk. A negative status is the number of a signal.
        """
        ...


class Channel(Protocol):
    """The connection to one running CLI.

    Every method may be called at any time, also after the exit, and returns at once.
    """

    @property
    def pid(self) -> int | None:
        """The process id of the CLI, or None if it does not run on this machine."""
        ...

    def write(self, data: bytes) -> None:
        """Write all of `data` to the CLI, in order. Dropped if the CLI no longer reads."""
        ...

    def end_input(self) -> None:
        """Close the CLI's stdin after all data is written."""
        ...

    def suspend(self) -> None:
        """Suspend every process of the tree, as SIGSTOP does."""
        ...

    def resume(self) -> None:
        """Let every process of a suspended tree continue."""
        ...

    def close(self, grace: float) -> None:
        """End the whole tree: close stdin, wait `grace` seconds, SIGTERM, wait again, SIGKILL.

        Cannot be cancelled; `Receiver.exited` is called when it is done.
        A second call can only shorten the wait.
        """
        ...

    def kill(self) -> None:
        """End the whole tree now, with SIGKILL."""
        ...


@runtime_checkable
class SupportsSuspended(Protocol):
    """What a `Channel` also has if `suspend` takes a while: without it, `suspend` is immediate."""

    async def suspended(self) -> None:
        """Return once every process of the tree is suspended as last requested, or has exited."""
        ...


@runtime_checkable
class SupportsEndAfter(Protocol):
    """What a `Channel` also has if its process tree can be ended without this process."""

    def end_after(self, seconds: float) -> None:
        """Kill the tree in `seconds`, also if this process is stopped then.

        A second call replaces the first.
        """
        ...


class Transport(Protocol):
    """A place where a CLI can run."""

    async def open(self, launch: Launch, receiver: Receiver) -> Channel:
        """Start the CLI and return the channel to it once it runs.

        Raises `LaunchError` if it cannot be started; then nothing is left behind and the receiver
        is never called. Cancelling the call also leaves nothing behind.
        """
        ...


def _nothing(*_: object) -> None:
    """Ignore a call."""


@dataclass(slots=True, eq=False)
class Caller:
    """A session that an MCP server serves under one key; one object for the life of the session."""

    session_id: str
    """The id of the conversation, as far as it is known: one that the CLI chooses is known only
    after the start."""
    server: str
    notify: Callable[[JsonObject], None]
    """Send a JSON-RPC notification from the server to the CLI."""
    report: Callable[[str, BaseException], None] = _nothing
    """Record in the journal that the tool of that name failed, and with which exception."""
    elicit: Callable[[Elicitation], Awaitable[ElicitationAnswer]] | None = None
    """Ask the user something on behalf of the server."""
    session: Any = None
    """The `Session`, for tools that steer it."""
    turn: Callable[[], Any] = _nothing
    """Returns the current `Turn`, or None."""
    deps: Any = None
    """The value of `Options.deps`, which the host program gives to its tools."""


class ToolServer(Protocol):
    """An in-process MCP server. One object may serve several sessions at once."""

    @property
    def tool_names(self) -> tuple[str, ...]:
        """The names of the tools, as far as they are known, for approval rules."""
        ...

    async def attach(self, caller: Caller) -> None:
        """Prepare to serve a session, before its CLI starts. Raises `McpNotReady` if it cannot."""
        ...

    async def detach(self, caller: Caller) -> None:
        """Stop serving a session that ended. Called once per `attach`, also if that raised."""
        ...

    async def handle(self, message: JsonObject, caller: Caller) -> JsonObject | None:
        """Answer one JSON-RPC message; return None for a notification.

        Cancelled when the CLI cancels the request.
        """
        ...


def jsonrpc_error(request_id: object, code: int, message: str) -> JsonDict:
    """Return the JSON-RPC error answer to the request with the id `request_id`."""
    return {"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": message}}


class Sink(Protocol):
    """Writes the journal of a session as it grows.

    Called in the event loop, so a call must be short. It never raises, because a journal that
    cannot be written must not break the session; a sink reports its failure once, in its own way.

    A sink whose entries outlive the session may also be a `SupportsLastSeq`, an `SupportsOpen` and
    a `SupportsRead`: a method or attribute that it does not have counts as left out.
    """

    def write(self, entries: Sequence[Entry]) -> None:
        """Write the next entries, in order. No entry is given twice."""
        ...

    def close(self) -> None:
        """Close the sink after the last entry. May be called any number of times."""
        ...


@runtime_checkable
class SupportsLastSeq(Protocol):
    """What a `Sink` has besides, if it may hold entries of earlier sessions.

    The session counts on from the greatest `last_seq` of its sinks, so that a number means one
    entry, also after a restart of the host program.
    """

    @property
    def last_seq(self) -> int:
        """The greatest number that the sink holds; 0 if it is empty.

        Read once for each session, after `open` and before the first entry.
        """
        ...


@runtime_checkable
class SupportsOpen(Protocol):
    """What a `Sink` has besides, if it must wait for something before its first entry."""

    async def open(self) -> None:
        """Prepare the sink, such as by asking a database for the last number.

        Called before the first entry of each session that uses the sink. If it raises, or takes
        longer than `StartupLimits.spawn`, the session does not start.
        """
        ...


@runtime_checkable
class SupportsRead(Protocol):
    """What a `Sink` has besides, if entries that have left the memory can be read from it."""

    def read(self, after: int) -> AsyncIterator[Sequence[Entry]]:
        """Return the entries after number `after`, in order, in batches of bounded size.

        Everything that was passed to `write` before this call is part of it, also what is not
        stored yet. It ends behind the last of these entries or later, and never waits for new ones.
        If it is an async generator, the reader of the session closes it early.
        """
        ...


class SessionStore(Protocol):
    """Keeps the entries of conversations; in the shape of the official SDKs, so any of theirs fits.

    Only `append` and `load` are required. The others may be left out: an implementation need not
    inherit from this class, and a method that it does not have, or that raises
    `NotImplementedError`, counts as left out.
    """

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Add entries, in order. An entry whose `uuid` the key already has is left out."""
        ...

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """Return all entries of the key, in order; None if it was never written."""
        ...

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        """Return the sessions of a project. Optional; needed for `continue_conversation`."""
        raise NotImplementedError

    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        """Return the summaries of a project's sessions. Optional."""
        raise NotImplementedError

    async def delete(self, key: SessionKey) -> None:
        """Remove the key; without a `subpath`, also all parts of the session. Optional."""
        raise NotImplementedError

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        """Return the subpaths of a session. Optional; needed to resume with subagents."""
        raise NotImplementedError


@runtime_checkable
class SupportsStream(Protocol):
    """What a `SessionStore` has besides, if it can give a long conversation in chunks."""

    def stream(self, key: SessionKey) -> AsyncIterator[list[SessionStoreEntry]]:
        """Return the entries of `load`, in chunks. Nothing for a key that was never written."""
        ...

    async def positions(self, key: SessionKey) -> int:
        """Return how many entries the key has."""
        ...


class Mirror(Protocol):
    """Copies the conversation of a session to its store, and finds there what the session resumes.

    Only `find`, `restore` and `close` wait.
    """

    @property
    def is_unused(self) -> bool:
        """Whether `close` has nothing to do."""
        ...

    async def find(self) -> str | None:
        """Return the id of the conversation to resume; None if only the CLI can find it."""
        ...

    async def restore(self, session_id: str | None) -> str | None:
        """Return what the CLI resumes, an id or a path; None leaves the choice to the CLI.

        Raises `ResumeNotFound` if there is no such conversation.
        """
        ...

    def received(self, line: bytes) -> None:
        """Keep the entries of a `transcript_mirror` line until the store has them."""
        ...

    def flush(self) -> None:
        """Append what there is, soon: a turn has ended."""
        ...

    def resumes(self) -> None:
        """Note that a CLI is started that resumes the conversation."""
        ...

    def lost_sight(self, *, at_once: bool = False) -> None:
        """Compare all files: the CLI may have written entries that it did not report.

        `at_once` if the CLI has exited, so that nothing more is written.
        """
        ...

    async def close(self) -> bool:
        """Append what is left, and clean up; returns whether the store has everything."""
        ...


class Asks(Protocol):
    """Keeps asks until they are answered, for several sessions, in several event loops.

    Both methods return at once and never raise. An implementation that keeps asks over a restart
    writes them to disk before it shows them. It recognizes an ask that is opened again by its
    session and payload.
    """

    def open(self, ask: Ask, settle: Callable[[Any, str], None]) -> None:
        """Keep `ask` until it is answered, then call `settle` with the answer and who gave it.

        `settle` is called at most once, from any thread. The answer must be one that `ask.response`
        accepts.
        """
        ...

    def close(self, ask_id: str, reason: str) -> None:
        """Close an ask that needs no answer any more. `settle` must not be called after that."""
        ...


@runtime_checkable
class SessionAsks(Asks, Protocol):
    """An `Asks` that can also close the ask of one session, if another has one of the same id."""

    def close_ask(self, ask: Ask, reason: str) -> None:
        """Close `ask`, and no ask of another session."""
        ...


@runtime_checkable
class DurableAsks(Asks, Protocol):
    """An `Asks` that keeps asks when their process ends, and knows them again in the next one.

    It may be answered by a process that has no session. Its asks have no secrets that the session
    knows.
    """

    def keep(
        self,
        ask: Ask,
        settle: Callable[[Any, str], None],
        report: Callable[[BaseException], None],
    ) -> None:
        """As `open`. If the ask cannot be stored, it waits, and `report` is called once.

        `report` is called from any thread.
        """
        ...

    def close_ask(self, ask: Ask, reason: str, *, may_return: bool = False) -> None:
        """Close `ask`, and no ask of another session.

        With `may_return` only this process stops to wait: the CLI or the session ends, the ask
        stays open, and the next process of the conversation may open it again.
        """
        ...


@runtime_checkable
class SupportsAwaitAnswer(DurableAsks, Protocol):
    """A `DurableAsks` that can also report an answer without using it.

    With it, calls that will be asked about are held before the CLI requests the permission, so that
    they can be deferred when the session is parked.
    """

    def await_answer(
        self,
        ask: Ask,
        answered: Callable[[], None],
        report: Callable[[BaseException], None],
    ) -> None:
        """As `keep`, but `answered` is called once `ask` has an answer or has expired.

        The answer stays unused, and the ask is one that `keep` knows again. `close_ask` ends the
        wait, also after `answered`; without `may_return` no later request can use the answer.
        """
        ...

    def own(self, session: str, is_owner: Callable[[], bool] | None, token: str = "") -> None:
        """Use answers for the asks of a session only while `is_owner` returns True; None ends that.

        `is_owner` is called from any thread. `token` is that of the session's lease: each write
        about its asks names it, and changes nothing once the lease is lost.
        """
        ...


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """A turn as it is stored: what is needed to send its prompt again."""

    uuid: str
    key: str | None
    content: Json = field(repr=False)
    """The content of the prompt, as it is sent. It is stored as it is, with its secrets."""
    fields: JsonObject = field(default_factory=dict[str, Any], repr=False)
    """Further fields of the user message."""
    when: str = "later"
    """`later`, `next` or `now`."""
    state: str = "open"
    """`open`, `parked` or `settled`."""
    outcome: str = ""
    """How a settled turn ended."""


@dataclass(frozen=True, slots=True)
class StoredAsk:
    """An ask of a turn that waits, or has an answer that no request of the CLI has used."""

    id: str
    kind: str
    """`permission`, `question`, `elicitation` or `dialog`."""
    state: str
    """`open`, `answered` or `expired`."""
    tool_name: str | None = None
    tool_use_id: str | None = None
    agent: str | None = None
    """The id of the subagent that made the request; None for the main agent."""
    input: JsonObject = field(default_factory=dict[str, Any], repr=False)
    """The input of the tool, without known secrets; empty if the ask is not about a tool."""
    by: str = ""
    """Who answered or expired it."""
    decision: str = ""
    """`allow` or `deny`; empty if it is open."""
    reason: str = ""
    """Of a denial."""
    updated_input: JsonObject | None = field(default=None, repr=False)
    """The changed input, or that of AskUserQuestion with the answers; None if unchanged."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation as it is stored, with the turns that are not settled."""

    key: str
    """The key that it was opened with, else the session id."""
    session: str
    machine: str
    """Where the CLI has the files of its turns; empty if it has begun none."""
    turns: tuple[StoredTurn, ...] = ()
    """The unsettled ones, in the order in which they were begun."""
    begun: int = 0
    """How many turns it has begun, with those that are settled."""


class DurableWork(Protocol):
    """The leases and turns of conversations, in a store that several processes share.

    A lease belongs to its `token`. A write with the token of a lease that has expired, or that
    another process has, changes nothing. The time is that of the database. Every method raises
    `StoreError` if the store cannot be reached; a call that failed so can be made again.
    """

    async def take(
        self, session: str, *, key: str, owner: str, token: str, machine: str, seconds: float
    ) -> Conversation | None:
        """Take the lease for `seconds`, and return the conversation as it was; None if it is new.

        Raises `SessionInUse`, with `owner` and `until`, while another token has the lease.
        `owner` is the name that `SessionInUse` gives. `machine` counts from the first `begin` on.
        """
        ...

    async def renew(self, session: str, token: str, seconds: float) -> bool:
        """Have the lease for `seconds` from now on. Returns False if it is lost, for good."""
        ...

    async def release(self, session: str, token: str) -> None:
        """Give the lease up. Does nothing if it is lost."""
        ...

    async def begin(self, session: str, token: str, turn: StoredTurn) -> None:
        """Store a turn before its prompt is sent.

        A turn with this `uuid` is stored once: if it is parked, it is open again; if it is settled,
        it stays so. Raises `LeaseLost`.
        """
        ...

    async def settle(
        self, session: str, token: str, uuid: str, state: str, outcome: str, *, since: float = 0.0
    ) -> bool:
        """Write that a turn is `parked` or `settled`. A turn is settled once.

        `since` is when the CLI began: what an earlier one has asked was lost with it.
        Returns False if the lease is lost, if the turn was settled before by another token or with
        another outcome, or if there is no such turn.
        """
        ...

    async def unsettled(self, session: str) -> list[StoredTurn]:
        """Return the turns that are open or parked, in the order in which they were begun."""
        ...

    async def asks_of(self, session: str, turn: str) -> list[StoredAsk]:
        """Return the asks of a turn that are open, or have an unused answer; the oldest first."""
        ...


@runtime_checkable
class SupportsWork(Protocol):
    """What a store has besides, if it keeps leases and turns."""

    @property
    def work(self) -> DurableWork:
        """The leases and turns of the store."""
        ...


@runtime_checkable
class SupportsStore(Protocol):
    """What an inbox has besides, if its asks are in a store that also keeps leases and turns."""

    @property
    def store(self) -> SupportsWork:
        """The store: sessions with this inbox are durable."""
        ...


class HeldCalls(Protocol):
    """Holds tool calls that will be asked about, before the CLI requests the permission."""

    @property
    def held(self) -> tuple[Ask, ...]:
        """The asks of the calls that are held now."""
        ...

    def hooks(self, given: Iterable[Registered]) -> list[Registered]:
        """Return the hooks of the session, the first of which holds calls from now on.

        The hook that it replaces is the one that the CLI was given for this, or the policy's.
        """
        ...

    async def resumed(self, uuid: str) -> Sequence[CanUseTool]:
        """Return the calls at which a turn was left, and that the CLI asks about at its start.

        Empty if the CLI does not continue the turn by itself.
        """
        ...

    def prompt_sent(self) -> None:
        """Treat those calls as any others: a prompt is sent, or their turn is continued."""
        ...

    def was_shown(self, payload: Payload) -> bool:
        """Whether the ask about this request of the CLI was opened before the request."""
        ...

    def requested(self, payload: Payload) -> bool:
        """Leave an ask to the request of the CLI; returns whether that is about the same input."""
        ...

    def withdrawn(self, tool_use_id: str, reason: str) -> None:
        """Close the ask of a call that the CLI has given up."""
        ...

    def turn_settled(self) -> None:
        """Close the asks of a turn that the CLI will not request any more."""
        ...


class Durability(Protocol):
    """The lease and the turns of one session in a store."""

    @property
    def keeps_turns(self) -> bool:
        """Whether the turns have rows, and the conversation a lease."""
        ...

    @property
    def holding(self) -> HeldCalls:
        """What holds calls that will be asked about."""
        ...

    def transport(self, inner: Transport) -> Transport:
        """Return a transport whose CLIs can only be used while the session has its lease."""
        ...

    async def take(
        self, session_id: str | None, is_ending: Callable[[], bool] = bool, *, wait: float = 0.0
    ) -> None:
        """Take the lease, if the conversation is known and not ours already.

        Raises `SessionInUse` after `wait` seconds, `UsageError` if the conversation can only be
        continued on another machine, and `ChannelClosed` once the session is closed.
        """
        ...

    async def begin(self, turn: StoredTurn) -> None:
        """Store a turn. Raises `StoreError` or `LeaseLost`; then nothing may be sent."""
        ...

    def settled(self, uuid: str, outcome: str) -> None:
        """Write how a turn has ended, in the background."""
        ...

    async def unsettled(self) -> list[StoredTurn]:
        """Return the turns of the conversation that are not settled. Raises `StoreError`."""
        ...

    async def asks_of(self, uuid: str) -> list[StoredAsk]:
        """Return the asks of a turn that wait, or whose answer is unused. Raises `StoreError`."""
        ...

    async def close(self) -> None:
        """Write what is left, and release the lease; the CLI has exited."""
        ...


class Parking(Protocol):
    """Ends a session so that the next one can continue its turns."""

    @property
    def waits_for(self) -> tuple[str, ...]:
        """The ids of the asks that wait, once the session was parked."""
        ...

    def watch(self) -> None:
        """Begin to look whether the session waits for nothing but asks; it has started."""
        ...

    async def park(self, timeout: float) -> None:
        """Park the session; returns when its CLI is being ended.

        Raises `UsageError` if the asks of the session do not outlive it.
        """
        ...

    def close(self) -> None:
        """Begin to close the session."""
        ...


class Approver(Protocol):
    """Decides whether a tool may run. An exception, or a value that is no decision, denies.

    With an inbox, `None` opens an ask there.
    """

    def __call__(
        self, tool_name: str, tool_input: JsonDict, context: PermissionContext, /
    ) -> Decision | Awaitable[Decision | None] | None:
        """Return the decision about a `can_use_tool` request."""
        ...


Answers: TypeAlias = QuestionAnswer | Sequence[QuestionAnswer]


class QuestionHandler(Protocol):
    """Answers the questions of `AskUserQuestion`. An exception, or another value, gives no answer.

    With an inbox, `None` opens an ask there.
    """

    def __call__(self, asked: QuestionAsk, /) -> Answers | Awaitable[Answers | None] | None:
        """Return the user's answers, made with `Question.answer()` and `Question.skip()`."""
        ...


class ElicitationHandler(Protocol):
    """Answers an elicitation of an MCP server. An exception, or another value, declines it.

    With an inbox, `None` opens an ask there.
    """

    def __call__(
        self, elicitation: Elicitation, /
    ) -> ElicitationAnswer | Awaitable[ElicitationAnswer | None] | None:
        """Return the user's answer."""
        ...


class DialogHandler(Protocol):
    """Shows a dialog that the CLI requests. The CLI gets an exception as an error."""

    def __call__(self, dialog: UserDialog, /) -> DialogAnswer | Awaitable[DialogAnswer]:
        """Show the dialog and return what the user did."""
        ...
