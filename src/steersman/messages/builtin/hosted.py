"""Tools of services around the CLI: artifacts, projects, designs, proposed skills."""

from __future__ import annotations

from typing import Any

from msgspec import field

from steersman.messages.builtin.base import ToolInput, ToolOutput

__all__ = [
    "ArtifactInput",
    "ArtifactOutput",
    "ClaudeDesignInput",
    "ClaudeDesignOutput",
    "ProjectsInput",
    "ProjectsOutput",
    "ProposeSkillsInput",
    "ProposeSkillsOutput",
]


class ArtifactInput(ToolInput, frozen=True, kw_only=True):
    """`Artifact`: publish a page, or look at those published; `action` says which."""

    action: str | None = None
    file_path: str | None = None
    favicon: str | None = None
    icon: str | None = None
    limit: float | None = None
    page_token: str | None = None
    scope: str | None = None
    title: str | None = None
    description: str | None = None
    label: str | None = None
    url: str | None = None
    prompt: str | None = None
    force: bool | None = None
    pin: Any = None
    out_dir: str | None = None
    file_paths: list[str] | None = None
    asset_id: str | None = None
    after: Any = None
    capabilities: Any = None
    contract: Any = None


class ArtifactOutput(ToolOutput, frozen=True, kw_only=True, rename=None):
    """What came of it; which fields are there depends on the action."""

    url: str | None = None
    path: str | None = None
    artifact_id: str | None = None
    title: str | None = None
    version: Any = None
    capabilities: Any = None
    stored: Any = None
    warnings: Any = None
    publishes_remaining: Any = field(default=None, name="publishesRemaining")
    publishes_reset_at: Any = field(default=None, name="publishesResetAt")
    contract: Any = None
    updated: Any = None
    owned: Any = None
    icon: Any = None
    favicon_sent: Any = field(default=None, name="faviconSent")
    icon_dropped: Any = field(default=None, name="iconDropped")
    audience: Any = None
    seq: Any = None
    unchanged: Any = None
    live_subscription: Any = field(default=None, name="liveSubscription")
    pinned: Any = None
    artifacts: list[Any] | None = None
    truncated: bool | None = None
    total: int | None = None
    total_at_least: int | None = None
    next_page_token: str | None = None
    pins_enabled: bool | None = None
    scope: str | None = None
    external_listed: Any = None
    read: Any = None
    artifact_read: Any = field(default=None, name="artifactRead")
    watch: Any = None
    unwatch: Any = None
    watches: Any = None
    filter_url: str | None = None
    arms: Any = None
    written: Any = None
    asset_upload: Any = None
    asset_uploads: Any = None
    asset_list: Any = None
    asset_read: Any = None
    asset_delete: Any = None
    pin: Any = None


class ProjectsInput(ToolInput, frozen=True, kw_only=True):
    """`Projects`: look into a project's files, or write one; `method` says which."""

    method: str = ""
    path: str | None = None
    content: str | None = None
    local_path: str | None = None
    present_to_user: Any = None
    query: str | None = None
    n: float | None = None


class ProjectsOutput(ToolOutput, frozen=True, kw_only=True, rename=None):
    """What came of it; which fields are there depends on the method."""

    method: str | None = None
    notice: str | None = None
    local_file: Any = None
    name: str | None = None
    description: str | None = None
    instructions: str | None = None
    docs: Any = None
    files: Any = None
    sync_sources: Any = None
    knowledge: Any = None
    path: str | None = None
    file_kind: str | None = None
    content: Any = None
    created_at: Any = None
    rag: Any = None
    hits: Any = None
    doc_uuid: str | None = None
    replaced: Any = None
    present_to_user: Any = None
    local_path: str | None = None
    deleted: Any = None
    truncated: bool | None = None
    size_bytes: int | None = None
    updated_at: Any = None


class ClaudeDesignInput(ToolInput, frozen=True, kw_only=True):
    """`ClaudeDesign`: do something in a design; `operation` says what."""

    operation: str = ""
    arguments: dict[str, Any] = {}


class ClaudeDesignOutput(ToolOutput, frozen=True, kw_only=True):
    """What came of it."""

    operation: str | None = None
    content: Any = None
    is_error: bool | None = None


class ProposeSkillsInput(ToolInput, frozen=True, kw_only=True):
    """`propose_skills`: suggest what might become a skill."""

    proposals: list[dict[str, Any]] = []


class ProposeSkillsOutput(ToolOutput, frozen=True, kw_only=True):
    """How many were suggested."""

    proposal_count: int | None = None
