"""The base of every value that the CLI sends: fields, source, lenient reading.

A value remembers its source: the line it was decoded from, or the place inside another value's
line. `raw` decodes the source when it is first read. Knows no message, no verb and no hook event.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from types import UnionType
from typing import (
    Any,
    ClassVar,
    TypeAlias,
    TypeGuard,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
)

import msgspec
from msgspec import Struct
from msgspec.structs import FieldInfo, force_setattr

from steersman import _json
from steersman._json import Json, JsonDict

# The attribute that holds the source of a value; see `Source`.
SOURCE = "_source"

CONVERT_ERRORS = (msgspec.ValidationError, RecursionError, UnicodeEncodeError)
"""What `msgspec.convert` raises. A lone surrogate in a key or a tag is a `UnicodeEncodeError`."""

DECODE_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What a decoder raises for a line that is not JSON or does not fit the class."""

Path: TypeAlias = tuple[str | int, ...]
"""Keys and positions that lead from a decoded line to a value inside it."""

Root: TypeAlias = bytes | JsonDict
"""A line, or the object that was decoded from one."""

Source: TypeAlias = Root | tuple[Root, Path]
"""Where a value was read from: a whole line or object, or a place inside one."""

Reader: TypeAlias = Callable[[Json], list[Json]]
"""Reads a field whose value does not fit its type; returns a list of one value, or of none."""

Readers: TypeAlias = Mapping[str, Reader]
"""Readers by the name of their field."""


class _Sourced:
    """Slots for the source and for a message's line, which are cheaper than a `__dict__`."""

    # Both are declared here because msgspec allows no further slots in subclasses.
    __slots__ = ("_line", "_source")


class WireStruct(_Sourced, Struct, frozen=True, kw_only=True):
    """A value that the CLI sent.

    A field that is missing or malformed has its default; `raw` has every field as it was sent.
    """

    READERS: ClassVar[Readers] = {}
    """Readers of fields that hold other values and whose reader does not follow from their type."""

    _DROPS_STRANGE_ITEMS: ClassVar[bool] = False
    """Whether lenient reading drops an item of a list that is not an object.

    If not, the item becomes a value of defaults, so that positions stay the same.
    """

    @property
    def raw(self) -> JsonDict:
        """The JSON object as the CLI sent it, including fields that this release does not know."""
        source = source_of(self)
        if isinstance(source, dict):
            return source
        if isinstance(source, bytes):
            found: JsonDict = _json.loads(source)
        elif source is None:
            found = msgspec.to_builtins(self)
        else:
            root, path = source
            found = _follow(_json.loads(root) if isinstance(root, bytes) else root, path)
        force_setattr(self, SOURCE, found)
        return found

    def _link_children(self) -> None:
        """Set the source of every value in a field of this one."""
        fields = _fields_with_values(type(self))
        if fields:
            root, path = place_of(self)
            for name, wire_name in fields:
                _link(getattr(self, name), root, (*path, wire_name))


WireT = TypeVar("WireT", bound=WireStruct)


def source_of(value: WireStruct) -> Source | None:
    """Return the source of `value`, or None if it was not read from JSON."""
    source: Source | None = getattr(value, SOURCE, None)
    return source


def set_source(value: WireT, source: Root | tuple[WireStruct, Path]) -> WireT:
    """Set the source of `value` and of the values inside it; return `value`.

    `source` is a line, an object, or another value and the path from it to this one.
    """
    if type(source) is tuple:
        # Refer to the line, not to the parent: values that refer to each other are freed only by
        # the garbage collector, and every message would hold some.
        parent, path = source
        root, above = place_of(parent)
        force_setattr(value, SOURCE, (root, above + path))
    else:
        force_setattr(value, SOURCE, source)
    value._link_children()  # pyright: ignore[reportPrivateUsage] - the same file
    return value


def place_of(value: WireStruct) -> tuple[Root, Path]:
    """Return the line or object that `value` is part of, and the path to it."""
    source = source_of(value) or value.raw
    return source if type(source) is tuple else (cast("Root", source), ())


@functools.cache
def decoder_of(cls: type[Any]) -> msgspec.json.Decoder[Any]:
    """Return the decoder for lines that are a `cls`, built on first use."""
    return msgspec.json.Decoder(cls)


@functools.cache
def fields_of(cls: type[Struct]) -> tuple[FieldInfo, ...]:
    """Return the fields of `cls` with resolved annotations. Resolving is slow, so it is cached."""
    return msgspec.structs.fields(cls)


def read(cls: type[WireT], line: bytes) -> WireT:
    """Read a `cls` from `line`. Raises `ValueError` only if `line` is not a JSON object."""
    try:
        value: WireT = decoder_of(cls).decode(line)
    except DECODE_ERRORS:
        found = _json.loads(line)
        if not _json.is_object(found):
            raise ValueError("not a JSON object") from None
        value = read_leniently(cls, found)
    return set_source(value, line)


def read_leniently(cls: type[WireT], found: JsonDict) -> WireT:
    """Build a `cls` from the fields of `found` that fit; the others get their defaults."""
    readers = _readers_of(cls)
    values = {
        field.name: value
        for field in fields_of(cls)
        if field.encode_name in found
        for value in _fitting(field.type, found[field.encode_name], readers.get(field.name))
    }
    return cls(**values)


def by_tag(classes: Iterable[type[WireStruct]]) -> dict[str, type[WireStruct]]:
    """Map the tag of each class, such as `assistant`, to the class."""
    return {str(cls.__struct_config__.tag): cls for cls in classes}


def _fitting(wanted: object, found: Json, reader: Reader | None) -> list[Json]:
    try:
        return [msgspec.convert(found, cast("type[object]", wanted))]
    except CONVERT_ERRORS:
        return [] if reader is None else reader(found)


@functools.cache
def _readers_of(cls: type[WireStruct]) -> Readers:
    """Return the readers of the fields of `cls` that hold other values."""
    readers = {each.name: _reader_for(each.type, cls) for each in fields_of(cls)}
    known = {name: reader for name, reader in readers.items() if reader is not None}
    return {**known, **cls.READERS}


def _reader_for(wanted: object, owner: type[WireStruct]) -> Reader | None:
    """Return the reader of a field of type `X`, `list[X]` or `dict[str, X]`, or None."""
    if _is_struct(wanted):
        return functools.partial(_read_one, wanted)
    origin, inside = get_origin(wanted), get_args(wanted)
    if origin in (list, dict) and _is_struct(inside[-1]):
        if origin is dict:
            return functools.partial(_read_named, inside[-1])
        drops = owner._DROPS_STRANGE_ITEMS  # pyright: ignore[reportPrivateUsage] - the same file
        return functools.partial(_read_objects if drops else _read_list, inside[-1])
    if origin in (Union, UnionType):
        return next(filter(None, (_reader_for(each, owner) for each in inside)), None)
    return None


def _is_struct(wanted: object) -> TypeGuard[type[WireStruct]]:
    return isinstance(wanted, type) and issubclass(wanted, WireStruct)


def _read_one(cls: type[WireStruct], found: Json) -> list[Json]:
    return [read_leniently(cls, found)] if _json.is_object(found) else []


def _read_list(cls: type[WireStruct], found: Json) -> list[Json]:
    return [[_read_or_default(cls, each) for each in found]] if _json.is_array(found) else []


def _read_objects(cls: type[WireStruct], found: Json) -> list[Json]:
    if not _json.is_array(found):
        return []
    # Positions change, so each value gets its own object as its source.
    objects = (each for each in found if _json.is_object(each))
    return [[set_source(read_leniently(cls, each), each) for each in objects]]


def _read_named(cls: type[WireStruct], found: Json) -> list[Json]:
    if not _json.is_object(found):
        return []
    return [{name: _read_or_default(cls, each) for name, each in found.items()}]


def _read_or_default(cls: type[WireT], found: Json) -> WireT:
    return read_leniently(cls, found if _json.is_object(found) else {})


@functools.cache
def _fields_with_values(cls: type[WireStruct]) -> tuple[tuple[str, str], ...]:
    """Return the fields that can hold other values, each with its name on the wire."""
    return tuple((each.name, each.encode_name) for each in fields_of(cls) if _can_hold(each.type))


def _can_hold(wanted: object) -> bool:
    return _is_struct(wanted) or any(map(_can_hold, get_args(wanted)))


def _link(held: object, root: Root, path: Path) -> None:
    if held is None:
        return
    if isinstance(held, WireStruct):
        # A value of `_read_objects` has its own object already; its position would be wrong.
        if type(getattr(held, SOURCE, None)) is not dict:
            force_setattr(held, SOURCE, (root, path))
            if _fields_with_values(type(held)):
                held._link_children()  # pyright: ignore[reportPrivateUsage] - the same file
    elif _json.is_array(held):
        for position, each in enumerate(held):
            _link(each, root, (*path, position))
    elif _json.is_object(held):
        for name, each in held.items():
            _link(each, root, (*path, name))


def _follow(found: Json, path: Path) -> JsonDict:
    """Return the object at `path`, or an empty one if the value is all defaults."""
    try:
        for step in path:
            found = found[step]
    except (KeyError, IndexError, TypeError):
        return {}
    return found if _json.is_object(found) else {}
