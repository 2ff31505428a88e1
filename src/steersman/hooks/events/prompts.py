"""What people and servers say to each other: prompts, messages, forms."""

from __future__ import annotations

from typing import Any, ClassVar

from steersman.hooks.events.event import HookEvent
from steersman.hooks.outputs import (
    ElicitationOutput,
    ElicitationResultOutput,
    MessageDisplayOutput,
    NotificationOutput,
    Output,
    UserPromptExpansionOutput,
    UserPromptSubmitOutput,
)

__all__ = [
    "Elicitation",
    "ElicitationResult",
    "MessageDisplay",
    "Notification",
    "UserPromptExpansion",
    "UserPromptSubmit",
]


class UserPromptSubmit(HookEvent, frozen=True, kw_only=True, tag="UserPromptSubmit"):
    """A prompt is about to reach the model."""

    OUTPUT: ClassVar[type[Output] | None] = UserPromptSubmitOutput

    prompt: str = ""
    source: str = ""
    session_title: str | None = None


class UserPromptExpansion(HookEvent, frozen=True, kw_only=True, tag="UserPromptExpansion"):
    """A slash command, or a prompt of an MCP server, is about to become a prompt."""

    OUTPUT: ClassVar[type[Output] | None] = UserPromptExpansionOutput
    MATCHED: ClassVar[str] = "command_name"

    expansion_type: str = ""
    command_name: str = ""
    command_args: str = ""
    command_source: str | None = None
    prompt: str = ""


class MessageDisplay(HookEvent, frozen=True, kw_only=True, tag="MessageDisplay"):
    """A piece of the model's text is about to be shown."""

    OUTPUT: ClassVar[type[Output] | None] = MessageDisplayOutput

    turn_id: str = ""
    message_id: str = ""
    index: int = 0
    final: bool = False
    delta: str = ""


class Notification(HookEvent, frozen=True, kw_only=True, tag="Notification"):
    """The CLI tells the person something."""

    OUTPUT: ClassVar[type[Output] | None] = NotificationOutput
    MATCHED: ClassVar[str] = "notification_type"

    message: str = ""
    title: str | None = None
    notification_type: str = ""


class Elicitation(HookEvent, frozen=True, kw_only=True, tag="Elicitation"):
    """A tool server wants something of the person."""

    OUTPUT: ClassVar[type[Output] | None] = ElicitationOutput
    MATCHED: ClassVar[str] = "mcp_server_name"

    mcp_server_name: str = ""
    message: str = ""
    mode: str = ""
    url: str | None = None
    elicitation_id: str | None = None
    requested_schema: dict[str, Any] | None = None


class ElicitationResult(HookEvent, frozen=True, kw_only=True, tag="ElicitationResult"):
    """The person has answered a tool server."""

    OUTPUT: ClassVar[type[Output] | None] = ElicitationResultOutput
    MATCHED: ClassVar[str] = "mcp_server_name"

    mcp_server_name: str = ""
    elicitation_id: str | None = None
    mode: str = ""
    action: str = ""
    content: dict[str, Any] | None = None
