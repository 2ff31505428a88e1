"""Records of the journal as frames: the line of the journal file, with the session in front."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from steersman import _json
from steersman._json import Json, JsonDict

CUT = 20_000
"""Characters of a value that pages of old entries show."""


def prefix_of(session: str) -> bytes:
    """Return the beginning of every frame of a session."""
    return b'{"session":' + _json.dumps(session) + b","


def frame_of_line(prefix: bytes, line: bytes) -> bytes:
    """Return the frame of a line of a journal file."""
    return prefix + line[1:]


@dataclass(slots=True)
class _Cuts:
    """The values of one record that were cut, and where the search is."""

    found: list[JsonDict] = field(default_factory=list[JsonDict])
    path: list[str | int] = field(default_factory=list[str | int])

    @contextmanager
    def below(self, step: str | int) -> Generator[None, None, None]:
        self.path.append(step)
        try:
            yield
        finally:
            self.path.pop()

    def record(self, size: int) -> None:
        self.found.append({"path": [*self.path], "size": size})


def cut(frame: bytes, most: int = CUT) -> bytes:
    """Return `frame` with long texts cut, and listed in its `cut`. A short frame stays."""
    if len(frame) <= most:
        return frame
    try:
        record = _json.loads(frame)
        cuts = _Cuts()
        shorter = _cut_value(record, most, cuts)
        if cuts.found:
            shorter["cut"] = cuts.found
        small = _json.dumps(shorter)
    except (ValueError, RecursionError):
        return _without_content(frame, {})
    # Many short values: only their size is left.
    return small if len(small) <= _MUCH * most else _without_content(frame, record)


_MUCH = 10
_CONTENT = ("frame", "text", "base64", "details")


def _cut_value(value: Json, most: int, cuts: _Cuts) -> Json:
    if isinstance(value, str):
        if len(value) > most:
            cuts.record(len(value))
            return value[:most]
        return value
    if _json.is_object(value):
        return {name: _cut_below(name, each, most, cuts) for name, each in value.items()}
    if _json.is_array(value):
        return [_cut_below(place, each, most, cuts) for place, each in enumerate(value)]
    return value


def _cut_below(step: str | int, value: Json, most: int, cuts: _Cuts) -> Json:
    with cuts.below(step):
        return _cut_value(value, most, cuts)


def _without_content(frame: bytes, record: JsonDict) -> bytes:
    name = next((each for each in _CONTENT if each in record), "frame")
    kept = {key: value for key, value in record.items() if key not in _CONTENT}
    return _json.dumps({**kept, name: None, "cut": [{"path": [name], "size": len(frame)}]})
