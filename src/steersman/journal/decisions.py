"""Tool calls and who decided about them, read from a journal, for the dry run of a policy.

policy.dry_run(recorded_calls(entries))
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from steersman import _json
from steersman.journal.journal import Entry, Kind
from steersman.messages.content import ToolResultBlock, ToolUseBlock
from steersman.messages.system import Init, Status
from steersman.messages.turns import Assistant, User
from steersman.permissions import Ask, Place, RecordedCall, ToolCall, ask_from_json

__all__ = ["ask_of", "recorded_calls"]

SUMMARY = frozenset({"ask", "tool", "tool_use_id", "agent"})
"""Fields of an `ASKED` entry that repeat parts of the ask, for quick readers."""


def ask_of(entry: Entry) -> Ask | None:
    """Return the ask of an `ASKED` entry, without known secrets; None for any other entry.

    Also None if the entry does not have the whole ask: earlier releases wrote only a summary.
    """
    if entry.kind is not Kind.ASKED or "payload" not in entry.details:
        return None
    fields = {name: value for name, value in entry.details.items() if name not in SUMMARY}
    return ask_from_json(_json.dumps(fields))


def recorded_calls(entries: Iterable[object]) -> list[RecordedCall]:
    """Return every tool call that ended, in the order in which the model made them."""
    reader = _CallReader()
    for entry in entries:
        # `session.journal()` also yields `Lagged` where entries were lost.
        if isinstance(entry, Entry):
            reader.record(entry)
    return [call for call in reader.calls.values() if call.tool_use_id in reader.ended]


class _CallReader:
    def __init__(self) -> None:
        self.calls: dict[str, RecordedCall] = {}
        self.ended: set[str] = set()
        self._mode = "default"
        self._place = Place()

    def record(self, entry: Entry) -> None:
        if entry.kind is Kind.DECIDED:
            self._decided(entry)
        elif entry.kind is Kind.MESSAGE:
            match entry.message:
                case Init() as init:
                    self._mode = init.permission_mode or self._mode
                    # `cwd` changes with `cd`, but rules are relative to where the session started.
                    self._place = self._place if self._place.cwd != "/" else Place(init.cwd or "/")
                case Status(permission_mode=str() as mode):
                    self._mode = mode
                case Assistant() as message:
                    self._called(message)
                case User() as message:
                    self._ended(message)
                case _:
                    pass

    def _called(self, message: Assistant) -> None:
        for block in message.message.content:
            if isinstance(block, ToolUseBlock):
                call = ToolCall(
                    block.name, block.input, message.subagent_type, self._mode, self._place
                )
                self.calls[block.id] = RecordedCall(block.id, call, ran=False)

    def _decided(self, entry: Entry) -> None:
        known = self.calls.get(str(entry.details.get("tool_use_id")))
        if known is not None:
            self.calls[known.tool_use_id] = replace(
                known,
                ran=entry.details.get("verdict") == "allow",
                source=str(entry.details.get("source", "")),
                by=str(entry.details.get("by", "")),
            )

    def _ended(self, message: User) -> None:
        content = message.message.content
        for block in () if isinstance(content, str) else content:
            if isinstance(block, ToolResultBlock) and block.tool_use_id in self.calls:
                known = self.calls[block.tool_use_id]
                self.ended.add(block.tool_use_id)
                if not known.source:
                    self.calls[known.tool_use_id] = replace(known, ran=not block.is_error)
