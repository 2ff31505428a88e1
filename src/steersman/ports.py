"""Every seam of steersman, on one page.

The session knows the outside world only through these protocols.

    Transport   -> transports/     where a CLI can run
    Channel     -> transports/     the way to one running CLI
    Receiver    -> _session/       takes what it says
    ToolServer  -> tools/          tools the CLI may call
    Approver    -> yours           may this tool run?
    Asks        -> inbox/          where questions wait for a person
    Sink        -> stores/         where the journal is written down
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from steersman._json import JsonDict, JsonObject
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
    "DialogHandler",
    "ElicitationHandler",
    "FileArgument",
    "JsonObject",
    "Launch",
    "QuestionHandler",
    "Receiver",
    "Sink",
    "ToolServer",
    "Transport",
    "jsonrpc_error",
]

METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

Clock = Callable[[], float]
"""Seconds since the epoch. It may jump, so it only dates entries; nothing is ever timed by it."""


@dataclass(frozen=True, slots=True)
class FileArgument:
    """An argument that ends in the path of one of the launch's files."""

    prefix: str
    """What stands before the path in the same token, such as `--settings=`."""
    name: str
    """The file's key in `Launch.files`."""


@dataclass(frozen=True, slots=True)
class Launch:
    """A command, ready to run anywhere. Nothing in `argv` is private; `env` and `files` may be."""

    argv: tuple[str | FileArgument, ...]
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """The whole environment of the CLI; nothing is added to it."""
    cwd: str | None = None
    user: str | None = None
    """The name of the user to run it as; needs the right to become them."""
    files: Mapping[str, bytes] = field(default_factory=dict[str, bytes], repr=False)
    """Written with mode 0600 before the start, removed when the CLI's tree is gone."""


class Receiver(Protocol):
    """Takes what one running CLI says, as it comes, always in the event loop's own thread.

    Chunks may break anywhere; framing is not the transport's business.
    None of these may block or raise.
    """

    def data_received(self, data: bytes) -> None:
        """Take the next chunk of stdout."""
        ...

    def stderr_received(self, data: bytes) -> None:
        """Take the next chunk of stderr."""
        ...

    def exited(self, status: int) -> None:
        """Learn that the CLI and its whole tree are gone.

        Called exactly once, after the last chunk; a negative status is the signal that ended it.
        """
        ...


class Channel(Protocol):
    """The way to one running CLI.

    Every method may be called at any time, also after the end, and returns at once.
    """

    @property
    def pid(self) -> int | None:
        """The CLI's own process id, where it has one on this machine."""
        ...

    def write(self, data: bytes) -> None:
        """Hand over all of `data`, in order; dropped if the CLI no longer reads."""
        ...

    def end_input(self) -> None:
        """Close the CLI's stdin once everything handed over is written."""
        ...

    def suspend(self) -> None:
        """Stop every process of the tree where it stands."""
        ...

    def resume(self) -> None:
        """Let a suspended tree run on."""
        ...

    def close(self, grace: float) -> None:
        """End input, then the whole tree: wait `grace` seconds, SIGTERM, wait again, SIGKILL.

        Cannot be cancelled; `Receiver.exited` tells when it is done.
        A second call can only shorten the wait.
        """
        ...

    def kill(self) -> None:
        """End the whole tree now, with SIGKILL."""
        ...


class Transport(Protocol):
    """A place where a CLI can run."""

    async def open(self, launch: Launch, receiver: Receiver) -> Channel:
        """Start the CLI and return the way to it once it runs.

        Raises `LaunchError` when it cannot be run; then nothing is left behind and the receiver
        is never called. Cancelling the wait also leaves nothing behind.
        """
        ...


def _nothing(*_: object) -> None:
    """What a caller does that nobody listens to."""


@dataclass(slots=True, eq=False)
class Caller:
    """Who a tool server serves: one session, under one key. One object for the session's life."""

    session_id: str
    """As far as it is known: the latest conversation tells its id only after the start."""
    server: str
    notify: Callable[[JsonObject], None]
    """Send a JSON-RPC notification from the server to the CLI."""
    report: Callable[[str, BaseException], None] = _nothing
    """Journal that the tool of that name failed, and how."""
    elicit: Callable[[Elicitation], Awaitable[ElicitationAnswer]] | None = None
    """Ask the person something on the server's behalf."""
    session: Any = None
    """The `Session`, for tools that steer it."""
    turn: Callable[[], Any] = _nothing
    """The `Turn` at work now, if there is one."""
    deps: Any = None
    """Whatever the program gave its tools: `Options.deps`."""


class ToolServer(Protocol):
    """One MCP server that lives in this process. It may serve several sessions at once."""

    @property
    def tool_names(self) -> tuple[str, ...]:
        """The names of its tools, as far as known, for approval rules."""
        ...

    async def attach(self, caller: Caller) -> None:
        """A session is about to start its CLI. Raises `McpNotReady` if it cannot be served."""
        ...

    async def detach(self, caller: Caller) -> None:
        """That session is over. Called once for each `attach`, also for one that raised."""
        ...

    async def handle(self, message: JsonObject, caller: Caller) -> JsonObject | None:
        """Answer one JSON-RPC message; `None` for a notification.

        Cancelled when the CLI takes the call back.
        """
        ...


def jsonrpc_error(request_id: object, code: int, message: str) -> JsonDict:
    """Return the JSON-RPC error answer to the request with the id `request_id`."""
    return {"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": message}}


class Sink(Protocol):
    """Where a session's journal is written down as it grows.

    Called in the event loop, so it must not wait for long, and it never raises: a journal that
    cannot be written must not hurt the session. What goes wrong it reports in its own way, once.
    """

    def write(self, entries: Sequence[Entry]) -> None:
        """Keep the next entries, in order; none is given twice."""
        ...

    def close(self) -> None:
        """Nothing more will come; may be called any number of times."""
        ...


class Asks(Protocol):
    """Where asks wait for an answer. It may serve several sessions, in several event loops.

    Both methods return at once and never raise. One that keeps asks over a restart writes them down
    before it shows them, and knows an ask that comes again by its session and payload.
    """

    def open(self, ask: Ask, settle: Callable[[Any, str], None]) -> None:
        """Keep `ask` until somebody answers, and call `settle` with the answer and who gave it.

        `settle` is called at most once, from any thread; the answer is one that `ask.response`
        takes.
        """
        ...

    def close(self, ask_id: str, reason: str) -> None:
        """Nobody waits for this answer any more; `settle` must not be called from now on."""
        ...


class Approver(Protocol):
    """Decides whether a tool may run; raising, or anything but a decision, denies.

    With an inbox, `None` puts the question there.
    """

    def __call__(
        self, tool_name: str, tool_input: JsonDict, context: PermissionContext, /
    ) -> Decision | Awaitable[Decision | None] | None:
        """Answer the CLI's question."""
        ...


Answers: TypeAlias = QuestionAnswer | Sequence[QuestionAnswer]


class QuestionHandler(Protocol):
    """Answers what the model asks the person; raising, or anything else, answers nothing.

    With an inbox, `None` puts the questions there.
    """

    def __call__(self, asked: QuestionAsk, /) -> Answers | Awaitable[Answers | None] | None:
        """Say what the person said, with `Question.answer()` and `Question.skip()`."""
        ...


class ElicitationHandler(Protocol):
    """Answers an MCP server's question to the person; raising, or anything else, declines.

    With an inbox, `None` puts the question there.
    """

    def __call__(
        self, elicitation: Elicitation, /
    ) -> ElicitationAnswer | Awaitable[ElicitationAnswer | None] | None:
        """Say what the person said."""
        ...


class DialogHandler(Protocol):
    """Shows a dialog of the CLI's; raising is told to the CLI as an error."""

    def __call__(self, dialog: UserDialog, /) -> DialogAnswer | Awaitable[DialogAnswer]:
        """Say what the person did."""
        ...
