"""What a program saw, as plain JSON that is equal on every run.

Ids, times, costs and paths are replaced by their names; everything else is kept as it was.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

OWN_UUID = "00000000-0000-4000-8000-"
"""How the uuids begin that a program chose itself; they are kept."""

PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), name)
    for pattern, name in (
        (
            rf"(?!{OWN_UUID})\b[0-9a-f]{{8}}-[0-9a-f]{{4}}-[0-9a-f]{{4}}-[0-9a-f]{{4}}-[0-9a-f]{{12}}\b",
            "<uuid>",
        ),
        (r"\btoolu_[0-9a-zA-Z]{20,}", "<tool use>"),
        (r"\bmsg_[0-9a-f]{24}", "<message>"),
        (r"\breq_[0-9a-f]{24}", "<request>"),
        (r"\breq_\d+_[0-9a-f]{8}", "<request>"),
        (r"http://127\.0\.0\.1:\d+", "<model>"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z?", "<time>"),
        (r"\bpid \d+", "pid <n>"),
        (r"\b[0-9a-f]{40}\b", "<commit>"),
        (r"0x[0-9a-f]{6,}", "<address>"),
        (r"after \d+(\.\d+)? ?m?s\b", "after <time>"),
        (r"(ID: |tasks/|agentId: |to: ')[0-9a-z]{9,17}\b", r"\1<id>"),
        (r"<task-id>[0-9a-z]+<", "<task-id><id><"),
        (r"<duration_ms>\d+<", "<duration_ms><n><"),
        (r"blob-\d+-\w+", "blob-<id>"),
        (r"\bduration_ms: \d+", "duration_ms: <n>"),
    )
)

BY_KEY = frozenset(
    [
        "runId",
        "run_id",
        "uuid",
        "session_id",
        "duration_ms",
        "duration_api_ms",
        "total_cost_usd",
        "usage",
        "model_usage",
        "modelUsage",
        "timestamp",
        "prompt_id",
        "task_id",
        "agent_id",
        "message_id",
        "pid",
        "ttft_ms",
        "request_id",
        "retry_delay_ms",
        "durationMs",
        "totalDurationMs",
        "transcript_path",
        "agent_transcript_path",
        "output_file",
        "outputFile",
        "mtime",
        "estimated_tokens",
        "estimated_tokens_delta",
        "pre_tokens",
        "post_tokens",
        "agentId",
        "tool_use_count",
        "totalTokens",
        "outputFilePath",
        "elapsed_time_seconds",
        "backgroundTaskId",
        "duration",
        "end_time",
        "start_time",
        "claude_code_version",
        "duration_ms_since",
        "cumulative_dropped_tokens",
        "api_message_id",
        "cli_version",
        "tool_use_id",
        "parent_tool_use_id",
        "new_conversation_id",
        "uuids",
        "memory_paths",
        "capabilities",
        "version",
        "message_uuid",
        "last_modified",
        "created_at",
        "file_size",
        "entries_hash",
        "estimated_cache_write_usd",
        "resolvedModel",
        "toolUseId",
        "total_tokens",
    ]
)
"""Fields whose value is only named, whatever it is; None and "" are kept."""

OF_UUIDS = frozenset({"user_message_uuid", "user_message_uuids"})
"""Fields that the CLI adds to raw data because ours gives every prompt a uuid; left out."""

INIT = ("permissionMode", "model", "mcp_servers", "output_style", "cwd", "apiKeySource")
"""What is kept of `system/init`, which is long and in every turn."""


def plain(value: Any) -> Any:
    """Return dataclasses as dictionaries with their type's name, without what is None."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
        found = {name: plain(each) for name, each in fields.items() if each is not None}
        return {"is": type(value).__name__, **short(found)}
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value if isinstance(value, str | int | float | bool | None) else repr(value)


def short(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a message with little of a long `data`."""
    if fields.get("subtype") == "init" and isinstance(fields.get("data"), dict):
        data = fields["data"]
        return {**fields, "data": {name: data[name] for name in INIT if name in data}}
    return fields


@dataclasses.dataclass(frozen=True)
class Normalizer:
    """Replaces what differs between two runs in other folders."""

    folders: Mapping[str, str]
    """What is replaced as it stands, such as a path, and by what."""

    def __call__(self, value: Any, key: str = "") -> Any:
        """Return `value` without ids, times, costs and paths."""
        if key in BY_KEY and value not in (None, "", OWN_UUID) and not is_own(value):
            return f"<{key}>"
        if isinstance(value, dict):
            return {
                self.text(name): self(each, name)
                for name, each in value.items()
                if name not in OF_UUIDS
            }
        if isinstance(value, list):
            return [self(each) for each in value]
        return self.text(value) if isinstance(value, str) else value

    def text(self, value: str) -> str:
        """Return a text with everything replaced that has a name."""
        for folder, name in self.folders.items():
            value = value.replace(folder, name)
        for pattern, name in PATTERNS:
            value = pattern.sub(name, value)
        return cut(value)


def is_own(value: Any) -> bool:
    return isinstance(value, str) and value.startswith(OWN_UUID)


LONGEST = 2000


def cut(text: str) -> str:
    """Return a long text by its ends and its length."""
    if len(text) <= LONGEST:
        return text
    return f"{text[:200]} ... {text[-200:]} ({len(text)} characters)"


def shown(error: BaseException) -> dict[str, Any]:
    """Return an exception by its type, its bases and its text."""
    names = [each.__name__ for each in type(error).__mro__]
    bases = names[1 : names.index("Exception")] if "Exception" in names else names[1:]
    return {"is": names[0], "bases": bases, "text": str(error)}
