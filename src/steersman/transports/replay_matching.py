"""What a host says to a CLI, whatever ids it uses for it: how two runs are compared."""

from __future__ import annotations

import re

from steersman import _json
from steersman._json import JsonDict

__all__ = [
    "END",
    "Frame",
    "IdMap",
    "LineKey",
    "comparable_part",
    "describe_request",
    "inside",
    "line_key",
    "object_of",
]

Frame = JsonDict

LineKey = tuple[str, str]
"""A kind of line, and the detail that distinguishes lines of that kind."""

END: LineKey = ("end of input", "")

RUN_FIELDS = frozenset({"type", "message", "uuid", "session_id"})
"""Fields of a prompt that are new on every run, or told otherwise."""


def object_of(line: bytes) -> Frame:
    """The object on a line; empty when there is none."""
    try:
        found = _json.loads(line)
    except ValueError:
        return {}
    return found if _json.is_object(found) else {}


def inside(frame: Frame, name: str) -> Frame:
    """The object under a name; empty when there is none."""
    found = frame.get(name)
    return found if _json.is_object(found) else {}


def line_key(frame: Frame) -> LineKey:
    """What a line of the host's is about."""
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
    """What a line says, without the ids that are new on every run."""
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
    """Without what is null, too: it says as little as what is missing."""
    return {
        name: value for name, value in fields.items() if value is not None and name not in without
    }


def describe_request(request: Frame) -> str:
    """A question of the CLI's in words."""
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
            return f"{name} at the tool server {request.get('server_name')}"
        case subtype:
            return f"a question {subtype}"


class IdMap:
    """Maps the ids of a tape to the ids of this run, and back."""

    def __init__(self) -> None:
        self._to_live = _Replacements()
        self._to_tape = _Replacements()
        self._requests: dict[bytes, bytes] = {}
        self._recorded: dict[str, str] = {}

    def learn(self, recorded: Frame, came: Frame) -> None:
        """Two lines mean the same: so do their ids."""
        match recorded, came:
            case {"type": "user", "uuid": str(old)}, {"uuid": str(new)}:
                self._pair(_json.dumps(old), _json.dumps(new))
            case {"type": "control_request", "request_id": str(old)}, {"request_id": str(new)}:
                self._recorded[new] = old
                self._requests[_json.dumps(old)] = _json.dumps(new)
            case _:
                pass

    def pair_sessions(self, old: str, new: str) -> None:
        """The conversation's id, which is also part of paths."""
        self._pair(old.encode(), new.encode())

    def _pair(self, old: bytes, new: bytes) -> None:
        self._to_live.add(old, new)
        self._to_tape.add(new, old)

    def recorded(self, key: LineKey) -> LineKey:
        """Return the tape's key for a key of this run."""
        kind, detail = key
        return (kind, self._recorded.get(detail, detail)) if kind == "cancel" else key

    def to_live(self, line: bytes) -> bytes:
        """A line of the tape for this run."""
        line = self._to_live.apply(line)
        # Some hosts count 1, 2, 3: the id of a request means something only in its place.
        return _REQUEST_ID.sub(self._name_request, line) if _ANSWER in line else line

    def to_tape(self, line: bytes) -> bytes:
        """A line of this run as the tape would have it."""
        return self._to_tape.apply(line)

    def _name_request(self, found: re.Match[bytes]) -> bytes:
        return found[1] + self._requests.get(found[2], found[2])


_ANSWER = b'"control_response"'
_REQUEST_ID = re.compile(rb'("request_id":\s*)("(?:[^"\\]|\\.)*")')


class _Replacements:
    """Words, and the words to put in their place, all at once."""

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
