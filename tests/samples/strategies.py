"""What hypothesis draws: any JSON, broken frames, any way to cut a stream."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

from tests.samples import Frame, lines, traces

ANY_TEXT = st.text(st.characters(), max_size=12) | st.sampled_from(["\ud800", "a\udfffb"])
"""Any text that JavaScript can hold, lone surrogates included."""

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | ANY_TEXT
)
ANY_JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4),
    max_leaves=8,
)

Path = tuple[str | int, ...]


def shape_of(value: Any, depth: int = 3) -> Any:
    """The keys of a value down to `depth`, and the types they lead to."""
    if isinstance(value, dict) and depth:
        return tuple((key, shape_of(inner, depth - 1)) for key, inner in value.items())
    if isinstance(value, list) and depth:
        return ("[]", *(shape_of(inner, depth - 1) for inner in value[:1]))
    return type(value).__name__


def shapes() -> list[Frame]:
    """One frame for each shape in the traces."""
    found = (json.loads(line) for trace in traces() for line in lines(trace))
    return list({shape_of(frame): frame for frame in found}.values())


def places(value: Any, depth: int = 4) -> Iterator[Path]:
    """Where something stands inside `value`, down to `depth`; of a list, its first item."""
    inside = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value[:1])
        if isinstance(value, list)
        else ()
    )
    for key, inner in inside:
        yield (key,)
        if depth > 1:
            yield from ((key, *rest) for rest in places(inner, depth - 1))


def at(value: Any, place: Path) -> Any:
    """What stands at `place`."""
    for step in place:
        value = value[step]
    return value


def replaced(frame: Any, place: Path, *values: Any) -> Any:
    """`frame` with something else at `place`, or nothing there; the rest is shared."""
    step, *rest = place
    copy = frame.copy()
    if rest:
        copy[step] = replaced(frame[step], tuple(rest), *values)
    elif values:
        copy[step] = values[0]
    else:
        del copy[step]
    return copy


STRANGERS: tuple[Any, ...] = (None, True, -1.5, "strange", [None], {"type": 5})


def every_break(frame: Frame, seen: set[Path] | None = None) -> Iterator[Frame]:
    """`frame` with each key dropped, and with each value replaced by one of every type.

    Places in `seen` are passed over, for frames that have most of them in common.
    """
    seen = set() if seen is None else seen
    for place in places(frame, depth=3):
        if place in seen:
            continue
        seen.add(place)
        yield replaced(frame, place)
        for stranger in STRANGERS:
            yield replaced(frame, place, stranger)
    yield {**frame, "added": {"by": ["a", "newer", "CLI"]}}


@st.composite
def broken_frames(draw: st.DrawFn, whole: list[Frame]) -> Frame:
    """A frame with some keys dropped, added or retyped."""
    frame = draw(st.sampled_from(whole))
    for _ in range(draw(st.integers(1, 3))):
        found = list(places(frame))
        if not found:
            break
        place = draw(st.sampled_from(found))
        match draw(st.sampled_from(["drop", "add", "retype"])):
            case "drop":
                frame = replaced(frame, place)
            case "retype":
                frame = replaced(frame, place, draw(ANY_JSON))
            case _:
                inside = [place for place in found if isinstance(at(frame, place), dict)]
                where = draw(st.sampled_from([(), *inside]))
                frame = replaced(frame, (*where, draw(ANY_TEXT)), draw(ANY_JSON))
    return frame


@st.composite
def chunks(draw: st.DrawFn, stream: bytes) -> list[bytes]:
    """`stream`, cut anywhere, into a few chunks or into very many small ones."""
    if draw(st.booleans()):
        size = draw(st.integers(1, 9) | st.integers(10, 70_000))
        size = max(size, len(stream) // 20_000)
        return [stream[at : at + size] for at in range(0, len(stream), size)]
    cuts = sorted(draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    return [
        stream[begin:end]
        for begin, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)
        if begin < end
    ]
