"""Recorded conversations with the real CLI. `README.md` says where they come from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Literal

__all__ = [
    "Direction",
    "Frame",
    "alone",
    "dialogue",
    "frames",
    "kind_of",
    "lines",
    "sample",
    "traces",
]

Direction = Literal["cli>sdk", "sdk>cli", "stderr", "proc"]
Frame = dict[str, Any]

Source = Literal["recorded", "declared"]

TRACES = Path(__file__).parent / "traces"


@cache
def traces() -> tuple[str, ...]:
    """The name of every trace."""
    return tuple(sorted(path.stem for path in TRACES.glob("*.jsonl")))


@cache
def _recorded(trace: str) -> tuple[tuple[Direction, bytes], ...]:
    _head, *records = _json_lines(TRACES / f"{trace}.jsonl")
    return tuple((found["dir"], encoded(found["msg"])) for found in map(json.loads, records))


def _json_lines(path: Path) -> list[bytes]:
    # `str.splitlines` also splits at U+2028 and others, which JSON allows inside a text.
    return [line for line in path.read_bytes().split(b"\n") if line]


def encoded(frame: Frame) -> bytes:
    """`frame` as the CLI would write it: compact, and only escaped where it must be."""
    return json.dumps(frame, ensure_ascii=False, separators=(",", ":")).encode(
        "utf-8", "surrogatepass"
    )


def dialogue(trace: str) -> list[tuple[Direction, Frame]]:
    """What both sides said, in order; fresh objects each time."""
    return [(direction, json.loads(line)) for direction, line in _recorded(trace)]


def frames(trace: str, direction: Direction = "cli>sdk") -> list[Frame]:
    """What one side said."""
    return [frame for said, frame in dialogue(trace) if said == direction]


def lines(trace: str, direction: Direction = "cli>sdk") -> list[bytes]:
    """The same as lines, without their ends."""
    return [line for said, line in _recorded(trace) if said == direction]


def kind_of(frame: Frame) -> str:
    """The words that tell frames apart: type, and subtype where there is one."""
    match frame:
        case {"type": "control_request", "request": {"subtype": subtype}}:
            return f"control_request/{subtype}"
        case {"type": "control_response", "response": {"subtype": subtype}}:
            return f"control_response/{subtype}"
        case {"type": "stream_event", "event": {"type": event}}:
            return f"stream_event/{event}"
        case {"type": kind, "subtype": subtype}:
            return f"{kind}/{subtype}"
        case _:
            return str(frame.get("type"))


def alone(source: Source, name: str) -> list[Frame]:
    """Frames and facts that stand outside a conversation: recorded, or only declared."""
    path = TRACES.parent / source / f"{name}.jsonl"
    return [*map(json.loads, _json_lines(path))]


def _every_line() -> Iterator[bytes]:
    """All frames of the CLI: those of conversations first, those that nobody saw last."""
    yield from (line for trace in traces() for line in lines(trace))
    yield from map(encoded, alone("recorded", "messages") + alone("declared", "messages"))


@cache
def _first(kind: str) -> bytes:
    return next(line for line in _every_line() if kind_of(json.loads(line)).startswith(kind))


def sample(kind: str) -> Frame:
    """The first frame of a kind, such as `assistant` or `system/init`.

    Recorded if the CLI was ever seen to send one; else one made from its declarations.
    """
    found: Frame = json.loads(_first(kind))
    return found
