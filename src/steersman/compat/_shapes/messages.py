"""Messages of a conversation."""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from steersman.compat._shapes.content import ContentBlock
from steersman.compat._shapes.origins import MessageOrigin
from steersman.compat._shapes.raw import SLOTS
from steersman.compat._shapes.system import SystemMessage
from steersman.compat._shapes.usage import ModelUsage, RateLimitInfo

__all__ = [
    "AssistantMessage",
    "AssistantMessageError",
    "ConversationResetMessage",
    "DeferredToolUse",
    "Message",
    "RateLimitEvent",
    "ResultMessage",
    "StreamEvent",
    "UserMessage",
]


AssistantMessageError: TypeAlias = Literal[
    "authentication_failed",
    "billing_error",
    "rate_limit",
    "invalid_request",
    "server_error",
    "unknown",
]
"""Why the API gave no answer."""


@dataclass
class UserMessage:
    """A prompt, or the results of tool calls."""

    __slots__ = SLOTS

    content: str | list[ContentBlock]
    uuid: str | None = None
    parent_tool_use_id: str | None = None
    tool_use_result: dict[str, Any] | None = None
    origin: MessageOrigin | None = None


@dataclass
class AssistantMessage:
    """A message of the model, or one block of it."""

    __slots__ = SLOTS

    content: list[ContentBlock]
    model: str
    parent_tool_use_id: str | None = None
    error: AssistantMessageError | None = None
    usage: dict[str, Any] | None = None
    message_id: str | None = None
    stop_reason: str | None = None
    session_id: str | None = None
    uuid: str | None = None


@dataclass
class DeferredToolUse:
    """A tool call that a hook has deferred; the turn ended there."""

    id: str
    name: str
    input: dict[str, Any]


@dataclass
class ResultMessage:
    """The end of a turn: its last text, its cost, its errors."""

    __slots__ = SLOTS

    subtype: str
    duration_ms: int
    duration_api_ms: int
    is_error: bool
    num_turns: int
    session_id: str
    stop_reason: str | None = None
    total_cost_usd: float | None = None
    usage: dict[str, Any] | None = None
    result: str | None = None
    structured_output: Any = None
    model_usage: dict[str, ModelUsage] | None = None
    permission_denials: list[Any] | None = None
    deferred_tool_use: DeferredToolUse | None = None
    errors: list[str] | None = None
    api_error_status: int | None = None
    uuid: str | None = None
    terminal_reason: str | None = None
    origin: MessageOrigin | None = None


@dataclass
class StreamEvent:
    """A part of a message that is being written; `event` is the API's own."""

    __slots__ = SLOTS

    uuid: str
    session_id: str
    event: dict[str, Any]
    parent_tool_use_id: str | None = None


@dataclass
class RateLimitEvent:
    """The CLI reports a usage limit."""

    __slots__ = SLOTS

    rate_limit_info: RateLimitInfo
    uuid: str
    session_id: str


@dataclass
class ConversationResetMessage:
    """The conversation was cleared and continues under another id."""

    __slots__ = SLOTS

    new_conversation_id: str
    uuid: str
    session_id: str


Message: TypeAlias = (
    UserMessage
    | AssistantMessage
    | SystemMessage
    | ResultMessage
    | StreamEvent
    | RateLimitEvent
    | ConversationResetMessage
)
"""What a client's iterators give."""
