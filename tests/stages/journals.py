"""Makes journals comparable: ids become names, deltas are joined, some fields are left out.

Everything that is not named in `NOT_COMPARED` must be the same on every stage.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any, cast

from steersman.journal import Entry

INSTALLED = "what happens to be installed with the stock CLI; no session hangs on it"
CLOCK = "time"
DISPLAY = "a hint for the CLI's own screens"

NOT_COMPARED: Mapping[str, str] = {
    # Times
    "*.timestamp": CLOCK,
    "*.ttft_ms": CLOCK,
    "*.duration_ms": CLOCK,
    "assistant.thinking_duration_ms": CLOCK,
    "result.duration_api_ms": CLOCK,
    "result.first_content_frame_ms": CLOCK,
    "result.request_sent_wall_ms": CLOCK,
    "result.time_to_request_ms": CLOCK,
    "result.ttft_stream_ms": CLOCK,
    "system api_retry.retry_delay_ms": "drawn at random",
    # What is installed
    "answer initialize.response.response.account": INSTALLED,
    "answer initialize.response.response.agents": INSTALLED,
    "answer initialize.response.response.analytics_disabled": INSTALLED,
    "answer initialize.response.response.available_output_styles": INSTALLED,
    "answer initialize.response.response.capabilities": "told in full only by system/init",
    "answer initialize.response.response.commands": INSTALLED,
    "answer initialize.response.response.models": INSTALLED,
    "answer initialize.response.response.fast_mode_*": INSTALLED,
    "answer initialize.response.response.feedback_mode": INSTALLED,
    "answer initialize.response.response.ide_rc_*": INSTALLED,
    "answer initialize.response.response.other_hook_ask_outranks_host": INSTALLED,
    "answer initialize.response.response.remote_control_*": INSTALLED,
    "answer initialize.response.response.user_output_styles_dir": INSTALLED,
    "answer initialize.response.response.pid": "a process has its own",
    "system init.additional_directories": INSTALLED,
    "system init.agents": INSTALLED,
    "system init.analytics_disabled": INSTALLED,
    "system init.capabilities": "the scripted CLI names those that it lives up to",
    "system init.fast_mode_*": INSTALLED,
    "system init.memory_paths": INSTALLED,
    "system init.messaging_socket_path": INSTALLED,
    "system init.original_cwd": INSTALLED,
    "system init.per_turn_effort_active": INSTALLED,
    "system init.plugins": INSTALLED,
    "system init.product_feedback_disabled": INSTALLED,
    "system init.skills": INSTALLED,
    "system init.slash_commands": INSTALLED,
    "system init.terminal_slash_commands": INSTALLED,
    "system init.tools": INSTALLED,
    "system init.ultrathink_*": INSTALLED,
    "system init.view_mode": DISPLAY,
    # What the stock CLI reads out of a command
    "request can_use_tool.request.blocked_path": "it parses the command",
    "request can_use_tool.request.permission_suggestions": "it parses the command",
    "user.tool_use_result.noOutputExpected": "it parses the command",
    "request hook_callback.request.input.transcript_path": "the scripted CLI writes no transcript",
    # Hints
    "system thinking_tokens": DISPLAY,
    "*.owed_rows": DISPLAY,
    "*.thinking_display": DISPLAY,
    "request can_use_tool.request.server_policy_ask_only": "it knows the policies of companies",
}

TEXTS_NOT_COMPARED: Mapping[str, str] = {
    r" If it persists, check your inference gateway \([^)]*\)\.": "names the host of the model",
    r"\\n\\nThis tool's input schema was not in your prompt .*? then call it again\.": (
        "the stock CLI keeps schemas of MCP tools back, and a scripted model calls them unseen"
    ),
}


def told(entries: Iterable[Entry], project: str) -> list[str]:
    """Return one line per entry: its kind, its turn, and its comparable content.

    Parallel activities of the CLI have no fixed order, so each lane is listed separately: the
    model's messages, each control request with its answer, and everything else.
    """
    labels = _Labels()
    lines = [_line_of(entry, labels) for entry in entries]
    lanes: dict[str, list[_Line]] = {}
    for line in sorted(lines, key=lambda each: each.lane[:1]):
        if line.label not in NOT_COMPARED:
            _add(line, lanes.setdefault(line.lane, []))
    shown = [each.shown() for lane in lanes.values() for each in lane]
    return _named([_left(each.replace(project, "PROJECT")) for each in shown])


def _left(line: str) -> str:
    for pattern in TEXTS_NOT_COMPARED:
        line = re.sub(pattern, "", line)
    return line


def _add(line: _Line, lane: list[_Line]) -> None:
    """Join the deltas of one text to one line."""
    if lane and line.delta and lane[-1].delta.get("type") == line.delta.get("type"):
        lane[-1].grow(line)
    else:
        lane.append(line)


class _Line:
    """One entry on its way."""

    def __init__(self, entry: Entry, label: str, frame: dict[str, Any]) -> None:
        self.entry = entry
        self.label = label
        self.frame = frame

    @property
    def lane(self) -> str:
        """With what it is in order: the session, the model, or one control request."""
        match self.frame:
            case {"type": "stream_event" | "assistant"}:
                return "2 model"
            case {"type": "control_response", "response": {"request_id": str(id_)}}:
                return f"3 {id_}"
            case {"type": "control_request" | "control_cancel_request", "request_id": str(id_)}:
                return f"3 {id_}"
            case _:
                return "1 session"

    @property
    def delta(self) -> dict[str, Any]:
        """Return the delta of a partial message."""
        event: dict[str, Any] = self.frame.get("event") or {}
        return event.get("delta") or {} if event.get("type") == "content_block_delta" else {}

    def grow(self, other: _Line) -> None:
        """Add the next delta of the same text."""
        for name in PIECES:
            if name in other.delta:
                self.delta[name] += other.delta[name]

    def shown(self) -> str:
        parts = (
            self.entry.kind.value,
            list(self.entry.turns),
            _pruned(dict(self.entry.details), "details"),
            self.label,
            _pruned(self.frame, self.label),
        )
        return " ".join(json.dumps(part, sort_keys=True) for part in parts if part)


PIECES = ("text", "thinking", "partial_json", "signature")


class _Labels:
    """What a frame is: its type and subtype; an answer is named by what was asked."""

    def __init__(self) -> None:
        self._asked: dict[str, str] = {}

    def of(self, frame: Mapping[str, Any]) -> str:
        match frame:
            case {"type": "control_request", "request_id": str(id_), "request": dict(request)}:
                asked = cast("dict[str, Any]", request)
                method = (asked.get("message") or {}).get("method")
                self._asked[id_] = f"{asked.get('subtype')}" + (f" {method}" if method else "")
                return f"request {self._asked[id_]}"
            case {"type": "control_response", "response": {"request_id": str(id_)}}:
                return f"answer {self._asked.get(id_, 'to nobody')}"
            case {"type": "stream_event", "event": {"type": str(kind)}}:
                return f"stream {kind}"
            case {"type": "user", "isReplay": True}:
                return "replay"
            case {"type": str(kind), "subtype": str(subtype)} if kind == "system":
                return f"system {subtype}"
            case _:
                return str(frame.get("type", ""))


def _line_of(entry: Entry, labels: _Labels) -> _Line:
    if not entry.line:
        return _Line(entry, "", {})
    frame: dict[str, Any] = json.loads(entry.line)
    return _Line(entry, labels.of(frame), frame)


def _pruned(value: Any, path: str) -> Any:
    """The value without what is not compared."""
    if isinstance(value, dict):
        return {
            name: _pruned(each, f"{path}.{name}")
            for name, each in cast("dict[str, Any]", value).items()
            if not _is_left_out(f"{path}.{name}")
        }
    if isinstance(value, list):
        return [_pruned(each, path) for each in value]
    # Costs are sums, and who adds in another order gets another last digit.
    return round(value, 9) if isinstance(value, float) else value


def _is_left_out(path: str) -> bool:
    return any(fnmatchcase(path, pattern) for pattern in NOT_COMPARED)


ID = re.compile(
    r"\b(?:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
    r"|(?:msg|req|toolu)_[0-9a-f]{24}|req_\d+_[0-9a-f]{8})\b"
)


def _named(lines: list[str]) -> list[str]:
    """Ids that come up in several lines get names, in the order in which they come up."""
    found = [set(ID.findall(line)) for line in lines]
    seen = Counter(id_ for ids in found for id_ in ids)
    names: dict[str, str] = {}

    def name(match: re.Match[str]) -> str:
        id_ = match[0]
        return names.setdefault(id_, f"ID{len(names) + 1}") if seen[id_] > 1 else "ID"

    return [ID.sub(name, line) for line in lines]
