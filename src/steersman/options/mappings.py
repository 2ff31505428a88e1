"""The keys of the mappings that options accept, for editors and type checkers.

Each option that accepts one of these also accepts any other mapping, and checks it at run time: a
key that a newer CLI knows needs no new class here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Required, TypedDict


class ThinkingConfig(TypedDict, total=False):
    """A value of `thinking`."""

    type: Required[Literal["adaptive", "enabled", "disabled"]]
    budget_tokens: int
    """With `enabled` only, and needed there."""
    display: Literal["summarized", "omitted", "highlights"]
    """With `adaptive` and `enabled`."""


class PresetPrompt(TypedDict, total=False):
    """A value of `system_prompt`: the CLI's own prompt, with changes."""

    type: Literal["preset"]
    preset: Required[Literal["claude_code"]]
    append: str
    exclude_dynamic_sections: bool
    snapshot: bool


class CustomPrompt(TypedDict, total=False):
    """A value of `system_prompt`: a prompt in place of the CLI's own."""

    type: Required[Literal["custom"]]
    prompt: Required[str | Sequence[str]]
    snapshot: bool


class PromptFile(TypedDict):
    """A value of `system_prompt`: a prompt that the CLI reads from a file."""

    type: Literal["file"]
    path: str


class ToolsPreset(TypedDict):
    """A value of `tools`: the CLI's default set."""

    type: Literal["preset"]
    preset: Literal["claude_code"]


class OutputFormat(TypedDict):
    """A value of `output_format`: the JSON schema of the structured output."""

    type: Literal["json_schema"]
    schema: Mapping[str, Any]


class TaskBudget(TypedDict):
    """A value of `task_budget`."""

    total: int


class AskUserQuestionWords(TypedDict, total=False):
    """Settings of the tool `AskUserQuestion`, in `tool_config`."""

    previewFormat: Literal["markdown", "html"]
    extendedQuestions: bool
    optionalDescriptions: bool


class ToolConfig(TypedDict):
    """A value of `tool_config`."""

    askUserQuestion: AskUserQuestionWords


class SandboxNetwork(TypedDict, total=False):
    """The key `network` of `sandbox`."""

    allowedDomains: Sequence[str]
    allowUnixSockets: Sequence[str]
    allowAllUnixSockets: bool
    allowLocalBinding: bool
    httpProxyPort: int
    socksProxyPort: int


class SandboxFilesystem(TypedDict, total=False):
    """The key `filesystem` of `sandbox`."""

    allowWrite: Sequence[str]
    denyWrite: Sequence[str]
    denyRead: Sequence[str]
    allowRead: Sequence[str]


class SandboxSettings(TypedDict, total=False):
    """A value of `sandbox`, in the form of the CLI's settings files."""

    enabled: bool
    failIfUnavailable: bool
    autoAllowBashIfSandboxed: bool
    allowUnsandboxedCommands: bool
    excludedCommands: Sequence[str]
    network: SandboxNetwork
    filesystem: SandboxFilesystem
    enableWeakerNestedSandbox: bool


class StdioServer(TypedDict, total=False):
    """The configuration of an MCP server that is run as a command."""

    type: Literal["stdio"]
    command: Required[str]
    args: Sequence[str]
    env: Mapping[str, str]


class HttpServer(TypedDict, total=False):
    """The configuration of an MCP server that is reached over streamable HTTP."""

    type: Required[Literal["http"]]
    url: Required[str]
    headers: Mapping[str, str]


class SseServer(TypedDict, total=False):
    """The configuration of an MCP server that is reached over server-sent events."""

    type: Required[Literal["sse"]]
    url: Required[str]
    headers: Mapping[str, str]
