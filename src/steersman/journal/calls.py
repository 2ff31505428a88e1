"""Tool calls, read off the messages: who asked for what, when, and how long it took.

Messages and their times in, records out. A call is known by its `tool_use_id`, so any number of
them may be under way at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from steersman import _json
from steersman.messages import (
    Assistant,
    Block,
    Message,
    ToolResultBlock,
    ToolUseBlock,
    User,
)

__all__ = ["CallBook", "ToolCallRecord", "server_of"]

KEPT = 1000
"""Finished calls that a book remembers; a session may live for months."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallRecord:
    """One tool call of the model's."""

    tool_use_id: str
    name: str
    """As the CLI calls it: `Bash`, or `mcp__<server>__<tool>`."""
    server: str | None = None
    """The tool server, if it is a tool of one."""
    input: Mapping[str, Any]
    started: float
    """When the model had asked for it; seconds since the epoch."""
    duration: float | None = None
    """Seconds until its result, the wait for a permission included; `None` while it runs."""
    is_error: bool | None = None
    """Whether it failed or was denied; `None` while it runs."""
    parent_tool_use_id: str | None = None
    """The call that started the subagent which made this one; `None` for the main agent's."""
    agent_id: str | None = None
    """That subagent, as far as the CLI told."""

    @property
    def is_running(self) -> bool:
        """Whether its result has not come."""
        return self.duration is None


class CallBook:
    """Follows tool calls from the model's wish to the tool's answer."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._running: dict[str, ToolCallRecord] = {}
        self._finished: dict[str, ToolCallRecord] = {}
        self._count = 0

    @property
    def count(self) -> int:
        """How many calls there were, those that are forgotten included."""
        return self._count

    @property
    def running(self) -> tuple[ToolCallRecord, ...]:
        """Calls without a result, the oldest first."""
        return tuple(self._running.values())

    @property
    def all(self) -> tuple[ToolCallRecord, ...]:
        """Every call it remembers, in the order they began in."""
        found = [*self._finished.values(), *self._running.values()]
        return tuple(sorted(found, key=lambda call: call.started))

    def hear(self, message: Message, at: float) -> list[ToolCallRecord]:
        """The calls that begin or end with `message`, as they are now."""
        if isinstance(message, Assistant):
            if message.is_api_error_message:
                return []
            return [self._begin(each, message, at) for each in message.tool_uses]
        if isinstance(message, User):
            ended = (self._end(each, message, at) for each in _results_in(message))
            return [each for each in ended if each is not None]
        return []

    def close(self) -> list[ToolCallRecord]:
        """The CLI is gone: calls under way will have no result, and are forgotten."""
        lost = list(self._running.values())
        self._running.clear()
        return lost

    def _begin(self, use: ToolUseBlock, message: Assistant, at: float) -> ToolCallRecord:
        known = self._running.get(use.id) or self._finished.get(use.id)
        if known is not None:
            return known
        self._count += 1
        record = ToolCallRecord(
            tool_use_id=use.id,
            name=use.name,
            server=server_of(use.name),
            input=use.input,
            started=at,
            parent_tool_use_id=message.parent_tool_use_id,
            agent_id=message.agent_id,
        )
        self._running[use.id] = record
        return record

    def _end(self, result: ToolResultBlock, message: User, at: float) -> ToolCallRecord | None:
        begun = self._running.pop(result.tool_use_id, None)
        if begun is None:
            return None
        record = replace(
            begun,
            duration=max(0.0, at - begun.started),
            is_error=bool(result.is_error),
            agent_id=begun.agent_id or message.agent_id,
        )
        self._finished[record.tool_use_id] = record
        if len(self._finished) > self._kept:
            del self._finished[next(iter(self._finished))]
        return record


def server_of(name: str) -> str | None:
    """The tool server in a tool's name; `None` for the CLI's own tools."""
    prefix, _, rest = name.partition("__")
    server, separator, _ = rest.partition("__")
    return server if prefix == "mcp" and separator else None


def _results_in(message: User) -> list[ToolResultBlock]:
    content: str | list[Block] = message.content
    if not _json.is_array(content):
        return []
    return [block for block in content if isinstance(block, ToolResultBlock)]
