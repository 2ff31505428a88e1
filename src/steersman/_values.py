"""What every value that came over the wire has: its fields, and the object they were read from."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self, TypeVar, cast

import msgspec
from msgspec import Struct
from msgspec.structs import force_setattr

from steersman import _json

__all__ = ["MISFITS", "UNFIT", "Wire", "decoder_of", "read", "read_leniently", "source_of"]

# Where a value keeps what it was read from: a line, or an object inside another one's line.
SOURCE = "_source"

MISFITS = (msgspec.ValidationError, RecursionError, UnicodeEncodeError)
"""What `msgspec.convert` raises; the last for a lone surrogate in a key or a tag."""

UNFIT = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What decoding raises, of a line that is no JSON or has another shape."""

# Resolving annotations costs more than all the rest of a lenient reading.
_fields = functools.cache(msgspec.structs.fields)


@functools.cache
def decoder_of(cls: type[Any]) -> msgspec.json.Decoder[Any]:
    """A decoder of lines that are a `cls`; made when the first of them comes."""
    return msgspec.json.Decoder(cls)


WireT = TypeVar("WireT", bound="Wire")


class _Sourced:
    """Room for the source, and a message's line, beside the fields: cheaper than a `__dict__`."""

    # Both here: msgspec has no room for more below.
    __slots__ = ("_line", "_source")


class Wire(_Sourced, Struct, frozen=True, kw_only=True):
    """A value of the CLI's. Missing or strange fields take their defaults; `raw` has them all."""

    READERS: ClassVar[Mapping[str, Callable[[Any], list[Any]]]] = {}
    """For fields that hold many things: how to keep what fits when not all of it does."""

    @property
    def raw(self) -> dict[str, Any]:
        """The object exactly as it came, with the fields that this release does not know."""
        source = source_of(self)
        if isinstance(source, dict):
            return cast("dict[str, Any]", source)
        if isinstance(source, bytes):
            found = _json.loads(source)
        elif source is None:
            found = msgspec.to_builtins(self)
        else:
            root, path = cast("tuple[Any, tuple[str | int, ...]]", source)
            found = _follow(_json.loads(root) if isinstance(root, bytes) else root, path)
        force_setattr(self, SOURCE, found)
        return cast("dict[str, Any]", found)

    def came_from(
        self, source: bytes | dict[str, Any] | tuple[Wire, tuple[str | int, ...]]
    ) -> Self:
        """Remember `source`: a line, an object, or a place inside another value."""
        if type(source) is tuple:
            # The line, not the parent: values that know each other are freed only by the garbage
            # collector, and there would be some in every message.
            parent, path = source
            root, above = parent.place
            force_setattr(self, SOURCE, (root, above + path))
        else:
            force_setattr(self, SOURCE, source)
        self.adopt()
        return self

    def stands_at(self, root: bytes | dict[str, Any], path: tuple[str | int, ...]) -> None:
        """Remember the place inside the line, or the object, that all of it came from."""
        force_setattr(self, SOURCE, (root, path))
        self.adopt()

    @property
    def place(self) -> tuple[bytes | dict[str, Any], tuple[str | int, ...]]:
        """The line, or the object, that all of it came from, and where in it this value stands."""
        source = source_of(self) or self.raw
        if type(source) is tuple:
            return cast("tuple[bytes | dict[str, Any], tuple[str | int, ...]]", source)
        return source, ()

    def adopt(self) -> None:
        """Tell the values inside this one where they stand, in classes that have such fields."""


def source_of(value: Wire) -> Any:
    """The line, the object or the place that `value` came from; None if it was made by hand."""
    return getattr(value, SOURCE, None)


def read(cls: type[WireT], line: bytes) -> WireT:
    """A `cls` from `line`; never raises on a JSON object. Raises `ValueError` on anything else."""
    try:
        value: WireT = decoder_of(cls).decode(line)
    except UNFIT:
        found = _json.loads(line)
        if not _json.is_object(found):
            raise ValueError("not a JSON object") from None
        value = read_leniently(cls, found)
    return value.came_from(line)


def read_leniently(cls: type[WireT], found: dict[str, Any]) -> WireT:
    """A `cls` from an object that does not fit it: each field that fits is taken."""
    values = {
        field.name: value
        for field in _fields(cls)
        if field.encode_name in found
        for value in _fitting(
            field.type, found[field.encode_name], cls.READERS.get(field.name, _nested(field.type))
        )
    }
    return cls(**values)


def _fitting(wanted: Any, found: Any, otherwise: Callable[[Any], list[Any]]) -> list[Any]:
    """`found` as `wanted`, or what `otherwise` makes of it: one value or none."""
    try:
        return [msgspec.convert(found, wanted)]
    except MISFITS:
        return otherwise(found)


def _nested(wanted: Any) -> Callable[[Any], list[Any]]:
    def look_inside(found: Any) -> list[Any]:
        if _json.is_object(found) and isinstance(wanted, type) and issubclass(wanted, Wire):
            return [read_leniently(wanted, found)]
        return []

    return look_inside


def _follow(found: Any, path: tuple[str | int, ...]) -> dict[str, Any]:
    """The object at `path`; an empty one where there is none and the value is all defaults."""
    try:
        for step in path:
            found = found[step]
    except (KeyError, IndexError, TypeError):
        return {}
    return found if _json.is_object(found) else {}
