"""Verbs about the session as a whole."""

from __future__ import annotations

from typing import Any, ClassVar

from msgspec import field

from steersman.control.verbs import Answer, Verb

__all__ = [
    "CancelAsyncMessage",
    "Initialize",
    "Initialized",
    "Interrupt",
    "InterruptReceipt",
    "McpMessage",
    "ModelSet",
    "PermissionModeSet",
    "SetModel",
    "SetPermissionMode",
    "Withdrawn",
]


class Initialized(Answer, frozen=True, kw_only=True):
    """What this CLI is and can do."""

    commands: list[dict[str, Any]] = []
    agents: list[dict[str, Any]] = []
    models: list[dict[str, Any]] = []
    account: dict[str, Any] = {}
    output_style: str = field(default="", name="output_style")
    pid: int | None = None
    claude_code_version: str = field(default="", name="claude_code_version")
    current_permission_mode: str = field(default="", name="current_permission_mode")
    capabilities: list[str] = []
    hook_on_failure_supported: bool = field(default=False, name="hook_on_failure_supported")


class Initialize(Verb[Initialized], frozen=True, kw_only=True, tag="initialize"):
    """Open the conversation: hooks, tool servers, prompts, agents."""

    ANSWER: ClassVar[type[Answer]] = Initialized

    hooks: dict[str, list[dict[str, Any]]] | None = None
    agents: dict[str, Any] | None = None
    sdk_mcp_servers: list[str] | None = field(default=None, name="sdkMcpServers")
    json_schema: dict[str, Any] | None = field(default=None, name="jsonSchema")
    system_prompt: list[str] | None = field(default=None, name="systemPrompt")
    append_system_prompt: str | None = field(default=None, name="appendSystemPrompt")


class InterruptReceipt(Answer, frozen=True, kw_only=True):
    """What an interrupt left waiting, and what it took along. Empty on older CLIs."""

    still_queued: list[str] = field(default_factory=list[str], name="still_queued")
    cancelled: list[str] = []


class Interrupt(Verb[InterruptReceipt], frozen=True, kw_only=True, tag="interrupt"):
    """Stop the turn under way."""

    ANSWER: ClassVar[type[Answer]] = InterruptReceipt

    cancel_queued: bool = False


class ModelSet(Answer, frozen=True, kw_only=True):
    """The model that the name stands for."""

    model: str = ""


class SetModel(Verb[ModelSet], frozen=True, kw_only=True, tag="set_model"):
    """Use another model from the next API call on; a wrong name shows only then."""

    ANSWER: ClassVar[type[Answer]] = ModelSet

    model: str | None


class PermissionModeSet(Answer, frozen=True, kw_only=True):
    """The mode now in force."""

    mode: str = ""


class SetPermissionMode(
    Verb[PermissionModeSet], frozen=True, kw_only=True, tag="set_permission_mode"
):
    """Ask more, ask less, or plan only."""

    ANSWER: ClassVar[type[Answer]] = PermissionModeSet

    mode: str


class Withdrawn(Answer, frozen=True, kw_only=True):
    """Whether the prompt was still waiting, and is gone now."""

    cancelled: bool = False


class CancelAsyncMessage(Verb[Withdrawn], frozen=True, kw_only=True, tag="cancel_async_message"):
    """Take back a prompt that the CLI has queued."""

    ANSWER: ClassVar[type[Answer]] = Withdrawn

    message_uuid: str


class McpMessage(Verb[Answer], frozen=True, kw_only=True, tag="mcp_message"):
    """Pass a notification from a tool server in this process to the CLI."""

    server_name: str
    message: dict[str, Any]
