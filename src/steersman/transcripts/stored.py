"""A session, a subagent and a message, as they are stored."""

from __future__ import annotations

from dataclasses import dataclass, field

from steersman._json import JsonDict
from steersman.transcripts.entries import TranscriptEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionInfo:
    """A session, as a list shows it."""

    session_id: str
    summary: str
    """The title, or what stands for one: the title that was given or that the CLI wrote, the last
    prompt, a summary, or the first prompt."""
    last_modified: int
    """Milliseconds since the epoch."""
    file_size: int | None = None
    custom_title: str | None = None
    first_prompt: str | None = None
    git_branch: str | None = None
    cwd: str | None = None
    tag: str | None = None
    created_at: int | None = None
    """Milliseconds since the epoch."""
    archived: bool = False
    expires: int | None = None
    """When the CLI will delete the session, in milliseconds since the epoch; None if not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentInfo:
    """A subagent of a session."""

    agent_id: str
    agent_type: str | None = None
    description: str | None = None
    parent_tool_use_id: str | None = None
    parent_agent_id: str | None = None
    subpath: str = ""
    """Where its entries are, such as `subagents/agent-<id>`."""


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message of a stored conversation; decoded when it is read."""

    entry: TranscriptEntry = field(repr=False)
    """The line of the session file."""
    session_id: str
    parent_tool_use_id: str | None = None
    """For a message of a subagent: the tool call that started the subagent."""
    parent_agent_id: str | None = None
    """For a message of a subagent that another subagent started: the id of that one."""

    @property
    def type(self) -> str:
        """`user`, `assistant` or `system`."""
        return self.entry.type

    @property
    def uuid(self) -> str:
        """The id of the message."""
        return self.entry.uuid

    @property
    def message(self) -> JsonDict:
        """The message in the shape of the Messages API: `role`, `content` and others."""
        return self.entry.message

    @property
    def timestamp(self) -> str:
        """When the CLI wrote the message, in ISO 8601; empty if that is not known."""
        return self.entry.timestamp

    @property
    def is_meta(self) -> bool:
        """Whether the CLI wrote this message for the model, and does not show it to users."""
        return self.entry.is_meta

    @property
    def is_compact_summary(self) -> bool:
        """Whether this message is the summary that a compaction left."""
        return self.entry.is_compact_summary

    @property
    def raw(self) -> bytes:
        """The line of the session file."""
        return self.entry.raw
