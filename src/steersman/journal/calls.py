"""Tool calls, read from messages: which agent called which tool, when, and for how long.

Messages and their times in, records out. Calls are identified by `tool_use_id`, so any number of
them may run at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import msgspec

from steersman import _json
from steersman._json import JsonObject
from steersman._struct import DECODE_ERRORS
from steersman.messages.base import line_of
from steersman.messages.content import Block, ToolResultBlock, ToolUseBlock
from steersman.messages.parsing import Message, parse_message
from steersman.messages.turns import Assistant, User

KEPT = 1000
"""How many finished calls a session remembers; it may run for months."""
KEPT_BYTES = 4 * 1024 * 1024
"""How many bytes their inputs may have together; one input may be a large file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallRecord:
    """One tool call of the model."""

    tool_use_id: str
    name: str
    """The CLI's name of the tool: `Bash`, or `mcp__<server>__<tool>`."""
    server: str | None = None
    """The MCP server of the tool; `None` for the CLI's own tools."""
    input: JsonObject
    started: float
    """When the assistant message with the call arrived; seconds since the epoch."""
    duration: float | None = None
    """Seconds until the result, including the wait for a permission; `None` while it runs."""
    is_error: bool | None = None
    """Whether the call failed or was denied; `None` while it runs."""
    parent_tool_use_id: str | None = None
    """The call that started the subagent that made this one; `None` for the main agent."""
    agent_id: str | None = None
    """The subagent that made this call, if the CLI has named it."""

    @property
    def is_running(self) -> bool:
        """Whether the call has no result yet."""
        return self.duration is None


@dataclass(frozen=True, slots=True)
class ToolEnd:
    """The result of a tool call, without its content."""

    tool_use_id: str
    is_error: bool = False
    agent_id: str | None = None


class ToolCallTracker:
    """Follows tool calls from the assistant message to the tool result."""

    def __init__(self, kept: int = KEPT, kept_bytes: int = KEPT_BYTES) -> None:
        """Remember the latest `kept` finished calls, up to `kept_bytes`."""
        self._kept = kept
        self._kept_bytes = kept_bytes
        self._running: dict[str, ToolCallRecord] = {}
        self._finished: dict[str, ToolCallRecord] = {}
        self._weights: dict[str, int] = {}
        self._weight = 0
        self._count = 0

    @property
    def count(self) -> int:
        """How many calls there were, including forgotten ones."""
        return self._count

    @property
    def running(self) -> tuple[ToolCallRecord, ...]:
        """The calls without a result, the oldest first."""
        return tuple(self._running.values())

    @property
    def all(self) -> tuple[ToolCallRecord, ...]:
        """All remembered calls, in the order in which they began."""
        found = [*self._finished.values(), *self._running.values()]
        return tuple(sorted(found, key=lambda call: call.started))

    def knows(self, tool_use_id: str) -> bool:
        """Whether a call was recorded, and is still kept."""
        return tool_use_id in self._running or tool_use_id in self._finished

    def resume(self, tool_use_id: str, name: str, given: JsonObject, at: float) -> None:
        """Record a call of an earlier CLI that this one runs: no message here begins it."""
        if not self.knows(tool_use_id):
            self._count += 1
            self._running[tool_use_id] = ToolCallRecord(
                tool_use_id=tool_use_id, name=name, server=server_of(name), input=given, started=at
            )
            self._weights[tool_use_id] = 0

    def record(self, message: Message, at: float) -> list[ToolCallRecord]:
        """Return the calls that begin or end with `message`."""
        if isinstance(message, Assistant):
            uses = message.tool_uses
            if not uses or message.is_api_error_message:
                return []
            weight = len(line_of(message) or b"")
            return [self._begin(each, message, at, weight) for each in uses]
        return self.end(_ends_in(message), at) if isinstance(message, User) else []

    def end(self, ends: Iterable[ToolEnd], at: float) -> list[ToolCallRecord]:
        """Return the calls that `ends` finish; results of unknown calls are ignored."""
        ended = (self._end(each, at) for each in ends)
        return [each for each in ended if each is not None]

    def close(self) -> list[ToolCallRecord]:
        """Forget and return the running calls: their CLI has exited, so no result will come."""
        lost = list(self._running.values())
        self._running.clear()
        for each in lost:
            del self._weights[each.tool_use_id]
        return lost

    def _begin(
        self, use: ToolUseBlock, message: Assistant, at: float, weight: int
    ) -> ToolCallRecord:
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
        self._weights[use.id] = weight
        return record

    def _end(self, end: ToolEnd, at: float) -> ToolCallRecord | None:
        begun = self._running.pop(end.tool_use_id, None)
        if begun is None:
            return None
        record = replace(
            begun,
            duration=max(0.0, at - begun.started),
            is_error=end.is_error,
            agent_id=begun.agent_id or end.agent_id,
        )
        self._finished[record.tool_use_id] = record
        self._weight += self._weights[record.tool_use_id]
        self._forget()
        return record

    def _forget(self) -> None:
        while self._finished and (
            len(self._finished) > self._kept or self._weight > self._kept_bytes
        ):
            oldest = next(iter(self._finished))
            del self._finished[oldest]
            self._weight -= self._weights.pop(oldest)


def server_of(name: str) -> str | None:
    """Return the MCP server in the name of a tool; `None` for the CLI's own tools."""
    prefix, _, rest = name.partition("__")
    server, separator, _ = rest.partition("__")
    return server if prefix == "mcp" and separator else None


def tool_ends_in(line: bytes) -> list[ToolEnd]:
    """Return the tool results on a `user` line, without decoding their content."""
    if b'"tool_result"' not in line:
        return []
    try:
        found = _decode(line)
    except DECODE_ERRORS:
        message = parse_message(line)
        return _ends_in(message) if isinstance(message, User) else []
    content = found.message.content
    return [
        ToolEnd(each.tool_use_id, bool(each.is_error), found.agent_id)
        for each in content
        if not isinstance(each, str) and each.type == "tool_result"
    ]


class _Block(msgspec.Struct):
    type: str = ""
    tool_use_id: str = ""
    is_error: bool | None = None


class _Body(msgspec.Struct):
    content: str | list[_Block] = ""


class _Line(msgspec.Struct):
    message: _Body = msgspec.field(default_factory=_Body)
    agent_id: str | None = None


_decode = msgspec.json.Decoder(_Line).decode


def _ends_in(message: User) -> list[ToolEnd]:
    content: str | list[Block] = message.content
    if not _json.is_array(content):
        return []
    return [
        ToolEnd(block.tool_use_id, bool(block.is_error), message.agent_id)
        for block in content
        if isinstance(block, ToolResultBlock)
    ]
