"""Messages of a turn: what was said, what was answered, how it ended. Told apart by `type`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from msgspec import field

from steersman._values import Wire
from steersman.messages.content import (
    Block,
    KnownBlock,
    TextBlock,
    ToolUseBlock,
    adopt_blocks,
    read_blocks,
)

__all__ = [
    "Assistant",
    "AssistantBody",
    "CommandLifecycle",
    "Result",
    "StreamEvent",
    "ToolProgress",
    "TurnMessage",
    "Usage",
    "User",
    "UserBody",
]


class UserBody(Wire, frozen=True, kw_only=True):
    """The inside of a `User` message."""

    READERS: ClassVar[Mapping[str, Callable[[Any], list[Any]]]] = {"content": read_blocks}

    content: str | list[KnownBlock] = ""
    role: str = "user"

    def adopt(self) -> None:
        """Blocks stand in `content`."""
        adopt_blocks(self, self.content, "content")


class User(Wire, frozen=True, kw_only=True, tag="user"):
    """Something said to the model, by a person, by a tool, or by the CLI itself."""

    message: UserBody = field(default_factory=UserBody)
    session_id: str = ""
    parent_tool_use_id: str | None = None
    uuid: str | None = None
    is_replay: bool = field(default=False, name="isReplay")
    is_synthetic: bool = field(default=False, name="isSynthetic")
    tool_use_result: Any = None
    agent_id: str | None = None

    def adopt(self) -> None:
        """The body stands in `message`."""
        self.message.came_from((self, ("message",)))

    @property
    def content(self) -> str | list[Block]:
        """What was said: a text, or blocks such as tool results."""
        return self.message.content  # type: ignore[return-value]  # lenient reading adds UnknownBlock


class Usage(Wire, frozen=True, kw_only=True):
    """Tokens."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0


class AssistantBody(Wire, frozen=True, kw_only=True):
    """The inside of an `Assistant` message."""

    READERS: ClassVar[Mapping[str, Callable[[Any], list[Any]]]] = {"content": read_blocks}

    content: list[KnownBlock] = []
    id: str = ""
    model: str = ""
    stop_reason: str | None = None
    usage: Usage = field(default_factory=Usage)

    def adopt(self) -> None:
        """Blocks stand in `content`, tokens in `usage`."""
        adopt_blocks(self, self.content, "content")
        self.usage.came_from((self, ("usage",)))


class Assistant(Wire, frozen=True, kw_only=True, tag="assistant"):
    """Something the model said: one finished block of its message."""

    message: AssistantBody = field(default_factory=AssistantBody)
    session_id: str = ""
    parent_tool_use_id: str | None = None
    uuid: str | None = None
    user_message_uuids: list[str] = []
    agent_id: str | None = None
    aborted: bool = False
    error: str | None = None
    is_api_error_message: bool = False
    api_error_status: int | None = None

    def adopt(self) -> None:
        """The body stands in `message`."""
        self.message.came_from((self, ("message",)))

    @property
    def content(self) -> list[Block]:
        """The blocks."""
        return self.message.content  # type: ignore[return-value]  # lenient reading adds UnknownBlock

    @property
    def text(self) -> str:
        """The prose, without thinking and tool calls."""
        return "".join(block.text for block in self.content if isinstance(block, TextBlock))

    @property
    def tool_uses(self) -> list[ToolUseBlock]:
        """The tools it asks for."""
        return [block for block in self.content if isinstance(block, ToolUseBlock)]


class StreamEvent(Wire, frozen=True, kw_only=True, tag="stream_event"):
    """A piece of an answer still being written: the API's own event."""

    event: dict[str, Any] = {}
    session_id: str = ""
    parent_tool_use_id: str | None = None
    uuid: str | None = None
    api_message_id: str | None = None


class Result(Wire, frozen=True, kw_only=True, tag="result"):
    """The turn is over, and this is what it cost.

    `subtype: success` does not mean success: an API failure is a success with `is_error`.
    """

    subtype: str = ""
    is_error: bool = False
    session_id: str = ""
    uuid: str | None = None
    result: str | None = None
    structured_output: Any = None
    stop_reason: str | None = None
    terminal_reason: str | None = None
    startup_failure_reason: str | None = None
    errors: list[str] = []
    api_error_status: int | None = None
    num_turns: int = 0
    duration_ms: int = 0
    duration_api_ms: int = 0
    ttft_ms: int | None = None
    total_cost_usd: float | None = None
    """Cumulative for the CLI's process."""
    usage: Usage = field(default_factory=Usage)
    model_usage: dict[str, Any] = field(default_factory=dict[str, Any], name="modelUsage")
    model_usage_since_last_result: dict[str, Any] = {}
    permission_denials: list[dict[str, Any]] = []
    user_message_uuids: list[str] = []
    origin: dict[str, Any] | None = None
    result_index: int | None = None

    def adopt(self) -> None:
        """Tokens stand in `usage`."""
        self.usage.came_from((self, ("usage",)))


class ToolProgress(Wire, frozen=True, kw_only=True, tag="tool_progress"):
    """A tool or hook still runs; sent every thirty seconds."""

    tool_use_id: str = ""
    tool_name: str = ""
    parent_tool_use_id: str | None = None
    elapsed_time_seconds: float | None = None
    session_id: str = ""


class CommandLifecycle(Wire, frozen=True, kw_only=True, tag="command_lifecycle"):
    """A prompt of ours was queued, started, completed or cancelled."""

    command_uuid: str = ""
    state: str = ""
    session_id: str = ""


TurnMessage = User | Assistant | StreamEvent | Result | ToolProgress | CommandLifecycle
