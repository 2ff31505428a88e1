"""Around a tool: before it, after it, and whether it may run."""

from __future__ import annotations

from typing import Any, ClassVar

from steersman.hooks.events.event import HookEvent
from steersman.hooks.outputs import (
    Output,
    PermissionDeniedOutput,
    PermissionRequestOutput,
    PostToolBatchOutput,
    PostToolUseFailureOutput,
    PostToolUseOutput,
    ToolVerdict,
)

__all__ = [
    "PermissionDenied",
    "PermissionRequest",
    "PostToolBatch",
    "PostToolUse",
    "PostToolUseFailure",
    "PreToolUse",
]


class PreToolUse(HookEvent, frozen=True, kw_only=True, tag="PreToolUse"):
    """A tool is about to run."""

    OUTPUT: ClassVar[type[Output] | None] = ToolVerdict
    MATCHED: ClassVar[str] = "tool_name"

    tool_name: str = ""
    tool_input: dict[str, Any] = {}
    tool_use_id: str = ""
    mcp_server: dict[str, Any] | None = None


class PostToolUse(HookEvent, frozen=True, kw_only=True, tag="PostToolUse"):
    """A tool has run."""

    OUTPUT: ClassVar[type[Output] | None] = PostToolUseOutput
    MATCHED: ClassVar[str] = "tool_name"

    tool_name: str = ""
    tool_input: dict[str, Any] = {}
    tool_use_id: str = ""
    tool_response: Any = None
    duration_ms: float = 0.0
    mcp_server: dict[str, Any] | None = None


class PostToolUseFailure(HookEvent, frozen=True, kw_only=True, tag="PostToolUseFailure"):
    """A tool has failed."""

    OUTPUT: ClassVar[type[Output] | None] = PostToolUseFailureOutput
    MATCHED: ClassVar[str] = "tool_name"

    tool_name: str = ""
    tool_input: dict[str, Any] = {}
    tool_use_id: str = ""
    error: str = ""
    is_interrupt: bool = False
    duration_ms: float = 0.0
    mcp_server: dict[str, Any] | None = None


class PostToolBatch(HookEvent, frozen=True, kw_only=True, tag="PostToolBatch"):
    """All tools that the model asked for at once are done."""

    OUTPUT: ClassVar[type[Output] | None] = PostToolBatchOutput

    tool_calls: list[dict[str, Any]] = []


class PermissionRequest(HookEvent, frozen=True, kw_only=True, tag="PermissionRequest"):
    """The CLI asks whether a tool may run: this hook and `can_use_tool`, at the same time."""

    OUTPUT: ClassVar[type[Output] | None] = PermissionRequestOutput
    MATCHED: ClassVar[str] = "tool_name"

    tool_name: str = ""
    tool_input: dict[str, Any] = {}
    permission_suggestions: list[dict[str, Any]] = []
    mcp_server: dict[str, Any] | None = None


class PermissionDenied(HookEvent, frozen=True, kw_only=True, tag="PermissionDenied"):
    """The mode `auto` has refused a tool."""

    OUTPUT: ClassVar[type[Output] | None] = PermissionDeniedOutput
    MATCHED: ClassVar[str] = "tool_name"

    tool_name: str = ""
    tool_input: dict[str, Any] = {}
    tool_use_id: str = ""
    reason: str = ""
    mcp_server: dict[str, Any] | None = None
