"""Every port of a session, on one page.

A session reaches the outside world only through these protocols.

    Transport   -> transports/     starts a CLI somewhere
    Channel     -> transports/     the connection to one running CLI
    Receiver    -> _session/       receives the output of the CLI
    ToolServer  -> tools/          an MCP server in this process
    Approver    -> host program    decides whether a tool may run
    Asks        -> inbox/          keeps asks until the user answers
    Sink        -> stores/         writes the journal to a store
    SessionStore -> stores/        keeps the entries of conversations
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, runtime_checkable

from steersman._json import Json, JsonDict, JsonObject
from steersman.control.mcp import TOOL_USE_ID_META
from steersman.journal import Entry
from steersman.permissions import (
    Ask,
    Decision,
    DialogAnswer,
    Elicitation,
    ElicitationAnswer,
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
    "ContinuesNumbers",
    "DialogHandler",
    "DurableAsks",
    "ElicitationHandler",
    "FileArgument",
    "Json",
    "JsonDict",
    "JsonObject",
    "Launch",
    "OpensFirst",
    "QuestionHandler",
    "ReadsEntries",
    "Receiver",
    "ReportsSuspension",
    "SessionAsks",
    "SessionStore",
    "Sink",
    "StreamsSessions",
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
class ReportsSuspension(Protocol):
    """What a `Channel` also has if `suspend` takes a while: without it, `suspend` is immediate."""

    async def suspended(self) -> None:
        """Return once every process of the tree is suspended as last requested, or has exited."""
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

    A sink whose entries outlive the session may also be a `ContinuesNumbers`, an `OpensFirst` and
    a `ReadsEntries`: a method or attribute that it does not have counts as left out.
    """

    def write(self, entries: Sequence[Entry]) -> None:
        """Write the next entries, in order. No entry is given twice."""
        ...

    def close(self) -> None:
        """Close the sink after the last entry. May be called any number of times."""
        ...


@runtime_checkable
class ContinuesNumbers(Protocol):
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
class OpensFirst(Protocol):
    """What a `Sink` has besides, if it must wait for something before its first entry."""

    async def open(self) -> None:
        """Prepare the sink, such as by asking a database for the last number.

        Called before the first entry of each session that uses the sink. If it raises, or takes
        longer than `StartupLimits.spawn`, the session does not start.
        """
        ...


@runtime_checkable
class ReadsEntries(Protocol):
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
class StreamsSessions(Protocol):
    """What a `SessionStore` has besides, if it can give a long conversation in chunks."""

    def stream(self, key: SessionKey) -> AsyncIterator[list[SessionStoreEntry]]:
        """Return the entries of `load`, in chunks. Nothing for a key that was never written."""
        ...

    async def positions(self, key: SessionKey) -> int:
        """Return how many entries the key has."""
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
