"""Tools of hosted services: artifacts, projects, designs, proposed skills."""

from __future__ import annotations

from msgspec import field

from steersman._json import Json, JsonDict
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
    """`Artifact`: publish a page, or read published ones, as `action` selects."""

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
    pin: Json = None
    out_dir: str | None = None
    file_paths: list[str] | None = None
    asset_id: str | None = None
    after: Json = None
    capabilities: Json = None
    contract: Json = None


class ArtifactOutput(ToolOutput, frozen=True, kw_only=True, rename=None):
    """The result of `Artifact`; the action decides which fields are set."""

    url: str | None = None
    path: str | None = None
    artifact_id: str | None = None
    title: str | None = None
    version: Json = None
    capabilities: Json = None
    stored: Json = None
    warnings: Json = None
    publishes_remaining: Json = field(default=None, name="publishesRemaining")
    publishes_reset_at: Json = field(default=None, name="publishesResetAt")
    contract: Json = None
    updated: Json = None
    owned: Json = None
    icon: Json = None
    favicon_sent: Json = field(default=None, name="faviconSent")
    icon_dropped: Json = field(default=None, name="iconDropped")
    audience: Json = None
    seq: Json = None
    unchanged: Json = None
    live_subscription: Json = field(default=None, name="liveSubscription")
    pinned: Json = None
    artifacts: list[Json] | None = None
    truncated: bool | None = None
    total: int | None = None
    total_at_least: int | None = None
    next_page_token: str | None = None
    pins_enabled: bool | None = None
    scope: str | None = None
    external_listed: Json = None
    read: Json = None
    artifact_read: Json = field(default=None, name="artifactRead")
    watch: Json = None
    unwatch: Json = None
    watches: Json = None
    filter_url: str | None = None
    arms: Json = None
    written: Json = None
    asset_upload: Json = None
    asset_uploads: Json = None
    asset_list: Json = None
    asset_read: Json = None
    asset_delete: Json = None
    pin: Json = None


class ProjectsInput(ToolInput, frozen=True, kw_only=True):
    """`Projects`: read, search or write files of a project, as `method` selects."""

    method: str = ""
    path: str | None = None
    content: str | None = None
    local_path: str | None = None
    present_to_user: Json = None
    query: str | None = None
    n: float | None = None


class ProjectsOutput(ToolOutput, frozen=True, kw_only=True, rename=None):
    """The result of `Projects`; the method decides which fields are set."""

    method: str | None = None
    notice: str | None = None
    local_file: Json = None
    name: str | None = None
    description: str | None = None
    instructions: str | None = None
    docs: Json = None
    files: Json = None
    sync_sources: Json = None
    knowledge: Json = None
    path: str | None = None
    file_kind: str | None = None
    content: Json = None
    created_at: Json = None
    rag: Json = None
    hits: Json = None
    doc_uuid: str | None = None
    replaced: Json = None
    present_to_user: Json = None
    local_path: str | None = None
    deleted: Json = None
    truncated: bool | None = None
    size_bytes: int | None = None
    updated_at: Json = None


class ClaudeDesignInput(ToolInput, frozen=True, kw_only=True):
    """`ClaudeDesign`: run an operation on a design."""

    operation: str = ""
    arguments: JsonDict = {}


class ClaudeDesignOutput(ToolOutput, frozen=True, kw_only=True):
    """The result of the operation."""

    operation: str | None = None
    content: Json = None
    is_error: bool | None = None


class ProposeSkillsInput(ToolInput, frozen=True, kw_only=True):
    """`propose_skills`: propose new skills."""

    proposals: list[JsonDict] = []


class ProposeSkillsOutput(ToolOutput, frozen=True, kw_only=True):
    """The number of proposals."""

    proposal_count: int | None = None
