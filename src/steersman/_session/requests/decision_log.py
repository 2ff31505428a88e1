"""The record of who decided about each tool call.

A decision of this process is written to the journal when it is made, before it is sent. A decision
of the CLI, of one of its hooks or of one of its rules is read from the tool's result. A tool that
ran without any recorded decision gets an `UNDECIDED` entry.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec
from msgspec import Struct

from steersman._json import JsonDict
from steersman.journal import Entry, Kind

Source = Literal["rule", "callback", "hook", "cli", "person", "nobody"]

# In Python 3.11, looking up an enum member costs thirty times as much as a global name, and every
# permission needs this one.
DECIDED = Kind.DECIDED

MOST_OPEN = 10_000
"""Decisions that are kept until the tool's result; above that number, the oldest is dropped."""


class _Verdict(Struct):
    decision: str = ""
    source: str = ""
    reason_type: str = ""


class _Meta(Struct):
    id: str = ""
    permission_decision: _Verdict | None = None
    non_execution_kind: str | None = None


class _Block(Struct):
    type: str = ""
    tool_use_id: str = ""
    is_error: bool | None = False


class _Body(Struct):
    content: str | list[_Block] = ""


class _Line(Struct):
    message: _Body
    tool_result_meta: list[_Meta] = []


_decode = msgspec.json.Decoder(_Line).decode


class DecisionLog:
    """Writes each decision to the journal once, with its source."""

    def __init__(self, write: Callable[[Kind, JsonDict], None]) -> None:
        self._write = write
        self._open: dict[str, str] = {}

    def record(  # noqa: PLR0913 - most of them by name
        self,
        tool_use_id: str,
        tool: str,
        verdict: str,
        source: Source,
        *,
        by: str = "",
        reason: str = "",
        agent: str | None = None,
        ask_id: str = "",
    ) -> None:
        """Record a decision of this process; `verdict` is `allow` or `deny`.

        `ask_id` is the id of the ask that was answered, if there was one.
        """
        self._open[tool_use_id] = verdict
        if len(self._open) > MOST_OPEN:
            del self._open[next(iter(self._open))]
        details: JsonDict = {
            "tool_use_id": tool_use_id,
            "tool": tool,
            "verdict": verdict,
            "source": source,
        }
        if by:
            details["by"] = by
        if reason:
            details["reason"] = reason
        if agent:
            details["agent"] = agent
        if ask_id:
            details["id"] = ask_id
        self._write(DECIDED, details)

    def record_answer(self, ask_id: str, ask: str, by: str) -> None:
        """Record the answer to a question of `AskUserQuestion`, an elicitation or a dialog."""
        details = {"id": ask_id, "ask": ask, "verdict": "answered", "source": "person", "by": by}
        self._write(DECIDED, details)

    def record_results(self, entry: Entry) -> None:
        """Record the decisions that the CLI reports with tool results."""
        if b'"tool_result"' not in entry.line:
            return
        try:
            line = _decode(entry.line)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return
        if isinstance(line.message.content, str):
            return
        metas = {meta.id: meta for meta in line.tool_result_meta}
        for block in line.message.content:
            if block.type == "tool_result":
                self._record_result(block, metas.get(block.tool_use_id))

    def _record_result(self, block: _Block, meta: _Meta | None) -> None:
        ours = self._open.pop(block.tool_use_id, None)
        reported = None if meta is None else meta.permission_decision
        if reported is None:
            # An error without a decision is a call that the CLI could not make at all.
            if ours is None and not block.is_error:
                self._write(Kind.UNDECIDED, {"tool_use_id": block.tool_use_id})
            return
        verdict = "allow" if reported.decision == "accept" else "deny"
        if verdict != ours:
            details = {
                "tool_use_id": block.tool_use_id,
                "verdict": verdict,
                "source": _source(reported),
                "reason": reported.reason_type,
            }
            self._write(DECIDED, details)


def _source(reported: _Verdict) -> Source:
    if reported.source == "hook":
        return "hook"
    if reported.source.startswith("user"):
        return "callback"
    return "rule" if reported.reason_type == "rule" else "cli"
