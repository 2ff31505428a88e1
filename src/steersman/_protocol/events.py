"""Events that the protocol machine reports to the session."""

from __future__ import annotations

from typing import Any, final

from msgspec import Struct

from steersman._protocol.framing import Oversize
from steersman.control.verbs import Answer
from steersman.errors import RequestError
from steersman.hooks.events import HookEvent
from steersman.journal import Kind
from steersman.messages.turns import Assistant, StreamEvent
from steersman.permissions import CanUseTool, Elicitation, UserDialog


@final
class MessageArrived(Struct, gc=False):
    """A line arrived: for the journal, with the turns that it belongs to."""

    line: bytes
    kind: Kind
    turns: tuple[str, ...]
    name: str = ""
    """The type of a message, or the subtype of a system message.

    Empty for `stream_event` lines, except one that abandons what was streamed: `abandoned`.
    """
    message: Assistant | None = None
    """The decoded line, if it had to be decoded to route it."""


@final
class AssistantArrived(Struct, gc=False):
    """A complete assistant message arrived, decoded."""

    line: bytes
    message: Assistant
    """The decoded message; its source line is not set yet."""
    turns: tuple[str, ...]

    def each(self) -> list[MessageArrived]:
        """Return this event in the form of other messages."""
        return [MessageArrived(self.line, Kind.MESSAGE, self.turns, "assistant", self.message)]


@final
class StreamEventsArrived(Struct, gc=False):
    """Consecutive `stream_event` lines that belong to the same turns."""

    lines: list[bytes]
    turns: tuple[str, ...]
    messages: list[StreamEvent] | None = None
    """The decoded lines, if the caller iterates over them; their source lines are not set yet."""

    def each(self) -> list[MessageArrived]:
        """Return one event per line, in the form of other messages."""
        return [MessageArrived(line, Kind.PARTIAL, self.turns) for line in self.lines]


@final
class EntriesMirrored(Struct, gc=False):
    """The CLI has written entries to a session file: a `transcript_mirror` line."""

    line: bytes


@final
class Answered(Struct, frozen=True):
    """A control request of ours was answered, refused or lost."""

    request_id: str
    answer: Answer | RequestError


@final
class PermissionAsked(Struct, frozen=True):
    """The CLI requests a permission for a tool call."""

    request_id: str
    request: CanUseTool


@final
class ElicitationAsked(Struct, frozen=True):
    """An MCP server requests input from the user."""

    request_id: str
    elicitation: Elicitation


@final
class DialogAsked(Struct, frozen=True):
    """The CLI requests that a dialog is shown to the user."""

    request_id: str
    dialog: UserDialog


@final
class HookAsked(Struct, frozen=True):
    """The CLI calls a hook."""

    request_id: str
    callback_id: str
    event: HookEvent
    tool_use_id: str = ""
    """The id of the tool call; for events without one the CLI invents an id."""


@final
class ToolCalled(Struct, frozen=True):
    """A JSON-RPC message for an in-process MCP server arrived."""

    request_id: str
    server: str
    message: dict[str, Any]


@final
class Unanswerable(Struct, frozen=True):
    """A control request arrived that is unknown or malformed; it must be refused."""

    request_id: str
    reason: str
    callback_id: str = ""
    """The hook that the request is for; empty if it is for none."""


@final
class Withdrawn(Struct, frozen=True):
    """The CLI cancelled a request of its own."""

    request_id: str


@final
class TurnStarted(Struct, frozen=True):
    """The CLI has started to process a prompt."""

    uuid: str


@final
class TurnSettled(Struct, frozen=True):
    """The CLI has finished with a prompt, or dropped it."""

    uuid: str
    result: bytes | None
    """The line of the result that names the prompt, if there is one."""
    was_cancelled: bool = False


@final
class StateReported(Struct, frozen=True):
    """The CLI reports its state: `running`, `idle` or `requires_action`."""

    state: str


@final
class ModeDiffers(Struct, frozen=True):
    """The CLI reports another permission mode than it was given, or none."""

    given: str
    reported: str


@final
class NoiseReceived(Struct, frozen=True):
    """A line on stdout was not a JSON object."""

    line: bytes


@final
class LineDropped(Struct, frozen=True):
    """A line was longer than the limit, and was dropped."""

    oversize: Oversize


Event = (
    MessageArrived
    | StreamEventsArrived
    | AssistantArrived
    | EntriesMirrored
    | Answered
    | PermissionAsked
    | ElicitationAsked
    | DialogAsked
    | HookAsked
    | ToolCalled
    | Unanswerable
    | Withdrawn
    | TurnStarted
    | TurnSettled
    | StateReported
    | ModeDiffers
    | NoiseReceived
    | LineDropped
)
