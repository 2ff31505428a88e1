"""What the machine tells whoever drives it."""

from __future__ import annotations

from typing import Any, final

from msgspec import Struct

from steersman._protocol.framing import Oversize
from steersman.control.verbs import Answer
from steersman.errors import RequestError
from steersman.hooks.events import HookEvent
from steersman.journal import Kind
from steersman.messages.turns import Assistant
from steersman.permissions import CanUseTool, Elicitation, UserDialog

__all__ = [
    "Answered",
    "AssistantArrived",
    "DialogAsked",
    "ElicitationAsked",
    "Event",
    "HookAsked",
    "LineDropped",
    "MessageArrived",
    "NoiseReceived",
    "PermissionAsked",
    "StateReported",
    "StreamEventsArrived",
    "ToolCalled",
    "TurnSettled",
    "TurnStarted",
    "Unanswerable",
    "Withdrawn",
]


@final
class MessageArrived(Struct, gc=False):
    """A line for the journal, and the turns that it belongs to."""

    line: bytes
    kind: Kind
    turns: tuple[str, ...]
    name: str = ""
    """The CLI's word for a message: its type, or a system message's subtype.

    Empty for pieces, but for one that says that what was streamed does not count: `abandoned`.
    """
    message: Assistant | None = None
    """What `line` says, where it had to be decoded to know where it goes."""


@final
class AssistantArrived(Struct, gc=False):
    """What an agent said, whole: a message that was decoded to know where it goes."""

    line: bytes
    message: Assistant
    """It has yet to be told where it stands."""
    turns: tuple[str, ...]

    def each(self) -> list[MessageArrived]:
        """As if it were any message."""
        return [MessageArrived(self.line, Kind.MESSAGE, self.turns, "assistant", self.message)]


@final
class StreamEventsArrived(Struct, gc=False):
    """Pieces of a message that came one behind the other, and belong to the same turns."""

    lines: list[bytes]
    turns: tuple[str, ...]

    def each(self) -> list[MessageArrived]:
        """One by one, as if they were any messages."""
        return [MessageArrived(line, Kind.PARTIAL, self.turns) for line in self.lines]


@final
class Answered(Struct, frozen=True):
    """A request of ours is over."""

    request_id: str
    answer: Answer | RequestError


@final
class PermissionAsked(Struct, frozen=True):
    """The CLI asks whether a tool may run."""

    request_id: str
    request: CanUseTool


@final
class ElicitationAsked(Struct, frozen=True):
    """An MCP server wants something of the person."""

    request_id: str
    elicitation: Elicitation


@final
class DialogAsked(Struct, frozen=True):
    """The CLI wants a dialog shown."""

    request_id: str
    dialog: UserDialog


@final
class HookAsked(Struct, frozen=True):
    """A moment has come that a hook was registered for."""

    request_id: str
    callback_id: str
    event: HookEvent
    tool_use_id: str = ""
    """The tool call it is about; for other events the CLI makes one up."""


@final
class ToolCalled(Struct, frozen=True):
    """A JSON-RPC message for a tool server in this process."""

    request_id: str
    server: str
    message: dict[str, Any]


@final
class Unanswerable(Struct, frozen=True):
    """The CLI asked something this release does not know, or cannot read; it must be told so."""

    request_id: str
    reason: str


@final
class Withdrawn(Struct, frozen=True):
    """The CLI no longer waits for our answer."""

    request_id: str


@final
class TurnStarted(Struct, frozen=True):
    """The CLI has begun with a prompt of ours."""

    uuid: str


@final
class TurnSettled(Struct, frozen=True):
    """A prompt of ours is done with."""

    uuid: str
    result: bytes | None
    """The line of the result that names it, if one does."""
    was_cancelled: bool = False


@final
class StateReported(Struct, frozen=True):
    """The CLI says that it is `running`, `idle`, or that it `requires_action`."""

    state: str


@final
class NoiseReceived(Struct, frozen=True):
    """A line on stdout is not a JSON object."""

    line: bytes


@final
class LineDropped(Struct, frozen=True):
    """A line was too long."""

    oversize: Oversize


Event = (
    MessageArrived
    | StreamEventsArrived
    | AssistantArrived
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
    | NoiseReceived
    | LineDropped
)
