"""Matches lines from a host with recorded lines, although each run uses other ids."""

from __future__ import annotations

import re

from steersman import _json
from steersman._json import JsonDict

Frame = JsonDict

LineKey = tuple[str, str]
"""A kind of line, and the detail that distinguishes lines of that kind."""

END: LineKey = ("end of input", "")

RUN_FIELDS = frozenset({"type", "message", "uuid", "session_id"})
"""Fields of a prompt that differ in every run, or that are compared separately."""


def object_of(line: bytes) -> Frame:
    """Return the JSON object on a line; empty if there is none."""
    try:
        found = _json.loads(line)
    except ValueError:
        return {}
    return found if _json.is_object(found) else {}


def inside(frame: Frame, name: str) -> Frame:
    """Return the object in the field `name`; empty if there is none."""
    found = frame.get(name)
    return found if _json.is_object(found) else {}


def line_key(frame: Frame) -> LineKey:
    """Return the key under which a line from the host is matched."""
    match frame.get("type"):
        case "user":
            return "prompt", ""
        case "control_response":
            return "answer", str(inside(frame, "response").get("request_id"))
        case "control_request":
            return "request", str(inside(frame, "request").get("subtype"))
        case "control_cancel_request":
            return "cancel", str(frame.get("request_id"))
        case kind:
            return "line", str(kind)


def comparable_part(frame: Frame) -> Frame:
    """Return the content of a line, without the ids that differ in every run."""
    match frame.get("type"):
        case "user":
            content = inside(frame, "message").get("content")
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
            return {"content": blocks, **_without(frame, RUN_FIELDS)}
        case "control_request":
            return _without(inside(frame, "request"))
        case "control_response":
            return _without(inside(frame, "response"), frozenset({"request_id"}))
        case _:
            return _without(frame, frozenset({"request_id"}))


def _without(fields: Frame, without: frozenset[str] = frozenset()) -> Frame:
    """Return `fields` without null values, which mean the same as missing fields."""
    return {
        name: value for name, value in fields.items() if value is not None and name not in without
    }


def describe_request(request: Frame) -> str:
    """Return a description of a control request from the CLI."""
    match request.get("subtype"):
        case "can_use_tool":
            return f"the permission for {request.get('tool_name')} ({request.get('tool_use_id')})"
        case "hook_callback":
            given = inside(request, "input")
            tool = f" at {given['tool_name']}" if "tool_name" in given else ""
            return f"the {given.get('hook_event_name')} hook {request.get('callback_id')}{tool}"
        case "mcp_message":
            called = inside(request, "message")
            name = f"{called.get('method')} {inside(called, 'params').get('name', '')}".strip()
            return f"{name} of the MCP server {request.get('server_name')}"
        case subtype:
            return f"the control request {subtype}"


class IdMap:
    """Maps the ids of a tape to the ids of this run, and back."""

    def __init__(self) -> None:
        self._to_live = _Replacements()
        self._to_tape = _Replacements()
        self._requests: dict[bytes, bytes] = {}
        self._recorded: dict[str, str] = {}

    def learn(self, recorded: Frame, came: Frame) -> None:
        """Pair the ids of a recorded line and the line of this run that matches it."""
        match recorded, came:
            case {"type": "user", "uuid": str(old)}, {"uuid": str(new)}:
                self._pair(_json.dumps(old), _json.dumps(new))
            case {"type": "control_request", "request_id": str(old)}, {"request_id": str(new)}:
                self._recorded[new] = old
                self._requests[_json.dumps(old)] = _json.dumps(new)
            case _:
                pass

    def pair_sessions(self, old: str, new: str) -> None:
        """Pair two session ids. They are replaced everywhere, because paths contain them."""
        self._pair(old.encode(), new.encode())

    def _pair(self, old: bytes, new: bytes) -> None:
        self._to_live.add(old, new)
        self._to_tape.add(new, old)

    def recorded(self, key: LineKey) -> LineKey:
        """Return the tape's key for a key of this run."""
        kind, detail = key
        return (kind, self._recorded.get(detail, detail)) if kind == "cancel" else key

    def to_live(self, line: bytes) -> bytes:
        """Return a line of the tape with the ids of this run."""
        line = self._to_live.apply(line)
        # Some hosts use 1, 2, 3 as request ids, so these are replaced only in `request_id`.
        return _REQUEST_ID.sub(self._name_request, line) if _ANSWER in line else line

    def to_tape(self, line: bytes) -> bytes:
        """Return a line of this run with the ids of the tape."""
        return self._to_tape.apply(line)

    def _name_request(self, found: re.Match[bytes]) -> bytes:
        return found[1] + self._requests.get(found[2], found[2])


_ANSWER = b'"control_response"'
_REQUEST_ID = re.compile(rb'("request_id":\s*)("(?:[^"\\]|\\.)*")')


class _Replacements:
    """Byte strings and their replacements, applied in one pass."""

    def __init__(self) -> None:
        self._table: dict[bytes, bytes] = {}
        self._pattern: re.Pattern[bytes] | None = None

    def add(self, old: bytes, new: bytes) -> None:
        self._table[old] = new
        self._pattern = None

    def apply(self, line: bytes) -> bytes:
        if self._pattern is None:
            self._pattern = re.compile(b"|".join(map(re.escape, self._table)))
        return self._pattern.sub(lambda found: self._table[found[0]], line) if self._table else line
